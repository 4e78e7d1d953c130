/* Orders from the lines of a file: plain or JSON. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/deal/files.h"
#include "core/dispatch/needs.h"
#include "proto/json_in.h"
#include "proto/orders.h"

/* One key of a JSON order. The readers return -EINVAL and may leave the reason to the caller. */
struct order_key {
	const char *name;
	const char *what; /* what it must be, for the message */
	int (*read)(struct json_in *in, struct order *order);
};

static int read_text(struct json_in *in, char **ret_text)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	int r = json_in_string(in, &text);
	if (r < 0 || buf_len(&text) == 0)
		return -EINVAL;
	free(*ret_text);
	*ret_text = buf_take_str(&text);
	return 0;
}

static int read_int(struct json_in *in, int64_t min, int64_t max, int32_t *ret_value)
{
	int64_t value;
	if (json_in_int(in, &value) < 0 || value < min || value > max)
		return -EINVAL;
	*ret_value = (int32_t)value;
	return 0;
}

static int read_id(struct json_in *in, struct order *order)
{
	int r = read_text(in, &order->id);
	return r < 0 || strlen(order->id) > ORDER_ID_MAX ? -EINVAL : 0;
}

static int read_words(struct json_in *in, struct order *order)
{
	AUTO(strv_done) struct strv words = STRV_INIT;
	AUTO(buf_done) struct buf word = BUF_INIT;
	int r = json_in_enter(in, '[');
	while (r >= 0 && (r = json_in_element(in)) > 0) {
		r = json_in_string(in, &word);
		strv_add(&words, buf_str(&word));
	}
	if (r < 0 || words.count == 0 || !*words.items[0] || order->argv)
		return -EINVAL;
	order->argv = words.items;
	words = STRV_INIT;
	return 0;
}

static int read_cmd(struct json_in *in, struct order *order)
{
	return json_in_peek(in) == JSON_ARRAY ? read_words(in, order)
					      : read_text(in, &order->shell);
}

static int read_cores(struct json_in *in, struct order *order)
{
	return read_int(in, 1, ORDER_CORES_MAX, &order->cores);
}

static int read_retries(struct json_in *in, struct order *order)
{
	return read_int(in, 0, INT16_MAX, &order->retries);
}

static int read_runs(struct json_in *in, struct order *order)
{
	return read_int(in, 1, ORDER_RUNS_MAX, &order->runs);
}

/* Seconds as a number, or a text with a unit. */
static int read_time(struct json_in *in, uint64_t *ret_ns, uint32_t *ret_percent)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	double seconds;
	if (json_in_peek(in) == JSON_NUMBER) {
		if (json_in_double(in, &seconds) < 0 || !(seconds > 0 && seconds < 1e9))
			return -EINVAL;
		*ret_ns = MAX((uint64_t)(seconds * 1e9), (uint64_t)1);
		*ret_percent = 0;
		return 0;
	}
	if (json_in_string(in, &text) < 0)
		return -EINVAL;
	return order_parse_timeout(buf_str(&text), ret_ns, ret_percent, NULL);
}

static int read_timeout(struct json_in *in, struct order *order)
{
	return read_time(in, &order->timeout_ns, &order->timeout_percent);
}

static int read_cpu_timeout(struct json_in *in, struct order *order)
{
	uint32_t percent = 0;
	int r = read_time(in, &order->cpu_timeout_ns, &percent);
	return r < 0 || percent ? -EINVAL : 0;
}

static int read_env(struct json_in *in, struct order *order)
{
	AUTO(buf_done) struct buf name = BUF_INIT, value = BUF_INIT;
	struct strv *env = &order_extra(order)->env;
	int r = json_in_enter(in, '{');
	while (r >= 0 && (r = json_in_member(in, &name)) > 0) {
		if (buf_len(&name) == 0 || strchr(buf_str(&name), '='))
			return -EINVAL;
		if (json_in_peek(in) == JSON_NULL) {
			r = json_in_null(in);
			strv_add(env, buf_str(&name));
		} else if ((r = json_in_string(in, &value)) >= 0) {
			strv_take(env, mem_printf("%s=%s", buf_str(&name), buf_str(&value)));
		}
	}
	return r;
}

static int read_cwd(struct json_in *in, struct order *order)
{
	return read_text(in, &order_extra(order)->cwd);
}

static int read_stdin(struct json_in *in, struct order *order)
{
	return read_text(in, &order_extra(order)->stdin_path);
}

static int read_group(struct json_in *in, struct order *order)
{
	return read_text(in, &order_extra(order)->group);
}

static int read_source(struct json_in *in, struct order *order)
{
	return read_text(in, &order_extra(order)->source);
}

static int read_variant(struct json_in *in, struct order *order)
{
	int r = read_text(in, &order_extra(order)->variant);
	return r < 0 || strlen(order_extra(order)->variant) > ORDER_VARIANT_MAX ? -EINVAL : 0;
}

/* A text, or a whole number as it stands. */
static int read_label(struct json_in *in, struct buf *ret_value)
{
	struct json_number number;
	if (json_in_peek(in) != JSON_NUMBER)
		return json_in_string(in, ret_value);
	int r = json_in_number(in, &number);
	buf_clear(ret_value);
	if (r >= 0)
		buf_append(ret_value, number.text, number.len);
	return r < 0 || number.real ? -EINVAL : 0;
}

static int add_label(struct json_in *in, struct strv *labels, const char *name)
{
	AUTO(buf_done) struct buf value = BUF_INIT;
	if (read_label(in, &value) < 0 || !label_name_ok(name) || labels->count >= LABELS_MAX)
		return -EINVAL;
	if (buf_len(&value) > 0)
		env_set(labels, name, buf_str(&value));
	return 0;
}

/* A list has the names 1, 2, …. */
static int read_label_list(struct json_in *in, struct strv *labels)
{
	int r = json_in_enter(in, '[');
	for (int i = 1; r >= 0 && (r = json_in_element(in)) > 0; i++) {
		AUTO_FREE char *name = mem_printf("%d", i);
		r = add_label(in, labels, name);
	}
	return r;
}

static int read_labels(struct json_in *in, struct order *order)
{
	AUTO(buf_done) struct buf name = BUF_INIT;
	struct strv *labels = &order_extra(order)->labels;
	if (json_in_peek(in) == JSON_ARRAY)
		return read_label_list(in, labels);
	int r = json_in_enter(in, '{');
	while (r >= 0 && (r = json_in_member(in, &name)) > 0)
		r = add_label(in, labels, buf_str(&name));
	return r;
}

/* A text, or a list of them. */
static int read_names(struct json_in *in, struct strv *ret_names, bool (*ok)(const char *text))
{
	AUTO(buf_done) struct buf name = BUF_INIT;
	bool list = json_in_peek(in) == JSON_ARRAY;
	int r = list ? json_in_enter(in, '[') : 1;
	while (r >= 0 && (!list || (r = json_in_element(in)) > 0)) {
		r = json_in_string(in, &name);
		if (r < 0 || !ok(buf_str(&name)) || ret_names->count >= ORDER_NEEDS_MAX)
			return -EINVAL;
		strv_add(ret_names, buf_str(&name));
		if (!list)
			break;
	}
	return r < 0 || ret_names->count == 0 ? -EINVAL : 0;
}

static bool is_host(const char *text)
{
	return *text && strlen(text) < NEEDS_NAME_MAX;
}

static int read_hosts(struct json_in *in, struct order *order)
{
	return read_names(in, &order_extra(order)->hosts, is_host);
}

static int read_features(struct json_in *in, struct order *order)
{
	return read_names(in, &order_extra(order)->features, needs_feature_ok);
}

static int read_transfer(struct json_in *in, struct order *order)
{
	return read_names(in, &order_extra(order)->transfer, files_path_ok);
}

static int read_returns(struct json_in *in, struct order *order)
{
	return read_names(in, &order_extra(order)->returns, files_path_ok);
}

static int read_cleanup(struct json_in *in, struct order *order)
{
	return json_in_bool(in, &order_extra(order)->cleanup);
}

/* Bytes as a number, or a text with a unit. */
static int read_memory(struct json_in *in, struct order *order)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	int64_t bytes;
	uint64_t *memory = &order_extra(order)->memory;
	if (json_in_peek(in) == JSON_NUMBER) {
		if (json_in_int(in, &bytes) < 0 || bytes < 1)
			return -EINVAL;
		*memory = (uint64_t)bytes;
		return 0;
	}
	return json_in_string(in, &text) < 0 || str_to_size(buf_str(&text), memory) < 0 || !*memory
		       ? -EINVAL
		       : 0;
}

static const struct order_key keys[] = {
	{ "id", "a text of at most 200 bytes", read_id },
	{ "cmd", "a shell line or a list of words", read_cmd },
	{ "cores", "a number from 1 to 4096", read_cores },
	{ "timeout", "a time such as 30, \"2m\" or \"200%\"", read_timeout },
	{ "cpu_timeout", "a time such as 30 or \"2m\"", read_cpu_timeout },
	{ "retries", "a number from 0", read_retries },
	{ "env", "an object of texts, null to unset", read_env },
	{ "cwd", "a path", read_cwd },
	{ "stdin", "a path", read_stdin },
	{ "group", "a text", read_group },
	{ "runs", "a number from 1", read_runs },
	{ "labels", "an object of at most 64 texts, or a list of them", read_labels },
	{ "source", "a line for the shell", read_source },
	{ "variant", "a text of at most 15 bytes", read_variant },
	{ "hosts", "a name or a list of at most 64", read_hosts },
	{ "features", "a word or a list of at most 64", read_features },
	{ "memory", "a size such as 4294967296 or \"4G\"", read_memory },
	{ "transfer", "a relative path or a list of at most 64", read_transfer },
	{ "return", "a relative path or a list of at most 64", read_returns },
	{ "cleanup", "true or false", read_cleanup },
};

static const struct order_key *find_key(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (str_eq(keys[i].name, name))
			return &keys[i];
	return NULL;
}

static int unknown_key(const char *name, struct err *err)
{
	const char *nearest = NULL;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		nearest = str_nearest(name, keys[i].name, nearest);
	if (nearest)
		return err_set(err, EINVAL, "unknown key '%s'; did you mean '%s'?", name, nearest);
	return err_set(err, EINVAL, "unknown key '%s'", name);
}

static int read_object(struct json_in *in, struct order *order, struct err *err)
{
	AUTO(buf_done) struct buf name = BUF_INIT;
	int r = json_in_enter(in, '{');
	while (r >= 0 && (r = json_in_member(in, &name)) > 0) {
		const struct order_key *key = find_key(buf_str(&name));
		if (!key)
			return unknown_key(buf_str(&name), err);
		r = key->read(in, order);
		if (r < 0)
			return err_set(err, EINVAL, "column %zu: key '%s' must be %s",
				       json_in_column(in), key->name, key->what);
	}
	if (r < 0 || json_in_end(in) < 0)
		return err_set(err, EINVAL, "column %zu: not a JSON object", json_in_column(in));
	if (!order->shell == !order->argv)
		return err_set(err, EINVAL, "%s",
			       order->shell ? "two commands" : "key 'cmd' is missing");
	return 0;
}

/* The source command becomes the beginning of the command line, where a plain line has it. */
static void fold_source(struct order *order)
{
	AUTO(buf_done) struct buf line = BUF_INIT;
	if (!*order_source(order))
		return;
	/* Braces: no part of the command may run without the environment. */
	bool parts = order->shell && order->shell[strcspn(order->shell, ";|&\n")];
	buf_printf(&line, "%s && %s", order_source(order), parts ? "{ " : "");
	order_append_command(order, 0, &line);
	buf_append_str(&line, parts ? "\n}" : "");
	order_set_shell(order, buf_take_str(&line));
}

static bool is_blank(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

int orders_add_line(struct orders *orders, const char *line, size_t len, uint32_t number,
		    struct err *err)
{
	while (len > 0 && is_blank(line[len - 1]))
		len--;
	while (len > 0 && is_blank(*line)) {
		line++;
		len--;
	}
	if (len == 0 || *line == '#')
		return 0;
	if (memchr(line, '\0', len))
		return err_set(err, EINVAL, "contains a NUL byte");
	if (orders->count >= ORDERS_MAX)
		return err_set(err, E2BIG, "more than %d orders", ORDERS_MAX);

	struct order *order = orders_append(orders);
	order->line = number;
	if (*line == '{') {
		struct json_in in;
		json_in_init(&in, line, len);
		int r = read_object(&in, order, err);
		if (r < 0)
			return r;
	} else {
		order->shell = mem_strndup(line, len);
	}
	fold_source(order);
	order_close(order);
	return 0;
}
