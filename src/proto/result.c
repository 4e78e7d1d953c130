#include "proto/result.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/mem.h"
#include "base/str.h"

static const char *const value_keys[] = {
	[RESULT_WALL_NS] = "wall_ns",
	[RESULT_USER_NS] = "user_ns",
	[RESULT_SYS_NS] = "sys_ns",
	[RESULT_MAXRSS_KB] = "maxrss_kb",
	[RESULT_MINFLT] = "minflt",
	[RESULT_MAJFLT] = "majflt",
	[RESULT_NVCSW] = "nvcsw",
	[RESULT_NIVCSW] = "nivcsw",
	[RESULT_INSTRUCTIONS] = "instructions",
};
static_assert(ARRAY_LEN(value_keys) == RESULT_VALUE_COUNT, "every value needs a key");

const char *result_value_key(enum result_value value)
{
	return value_keys[value];
}

int result_value_parse(const char *key)
{
	for (int i = 0; i < RESULT_VALUE_COUNT; i++)
		if (str_eq(value_keys[i], key))
			return i;
	return -EINVAL;
}

void result_done(struct result *result)
{
	free(result->id);
	free(result->shell);
	free(result->cwd);
	free(result->stdin_path);
	free(result->group);
	free(result->cores);
	free(result->count_source);
	free(result->env_hash);
	free(result->out.path);
	free(result->err_out.path);
	strv_done(&result->argv);
	strv_done(&result->args);
	strv_done(&result->env);
	strv_done(&result->suspect);
	strv_done(&result->missing);
	*result = RESULT_INIT;
}

void result_set(struct result *result, enum result_value value, int64_t number)
{
	result->has[value] = true;
	result->value[value] = number;
}

void result_miss(struct result *result, const char *field, const char *why)
{
	env_set(&result->missing, field, why);
}

/* --- writing --- */

static void put_key(struct buf *out, const char *key)
{
	buf_append_str(out, ",\"");
	buf_append_str(out, key);
	buf_append_str(out, "\":");
}

static void put_text(struct buf *out, const char *key, const char *text)
{
	if (!text || !*text)
		return;
	put_key(out, key);
	json_quote(out, text);
}

static void put_number(struct buf *out, const char *key, int64_t number)
{
	put_key(out, key);
	buf_printf(out, "%lld", (long long)number);
}

static void put_list(struct buf *out, const char *key, const struct strv *list)
{
	put_key(out, key);
	for (size_t i = 0; i < list->count; i++) {
		buf_append_char(out, i ? ',' : '[');
		json_quote(out, list->items[i]);
	}
	buf_append_str(out, list->count ? "]" : "[]");
}

/* {"NAME":"value"}; an item without '=' becomes null. */
static void put_map(struct buf *out, const char *key, const struct strv *list)
{
	if (list->count == 0)
		return;
	put_key(out, key);
	for (size_t i = 0; i < list->count; i++) {
		const char *equals = strchr(list->items[i], '=');
		size_t len = equals ? (size_t)(equals - list->items[i]) : strlen(list->items[i]);
		AUTO_FREE char *name = mem_strndup(list->items[i], len);
		buf_append_char(out, i ? ',' : '{');
		json_quote(out, name);
		buf_append_char(out, ':');
		if (equals)
			json_quote(out, equals + 1);
		else
			buf_append_str(out, "null");
	}
	buf_append_char(out, '}');
}

static void put_status(struct buf *out, const struct exit_status *status)
{
	if (status->kind == EXIT_CODE)
		put_number(out, "exit", status->value);
	if (status->kind != EXIT_SIGNAL)
		return;
	const char *name = str_signal_name(status->value);
	if (name)
		put_text(out, "signal", name);
	else
		put_number(out, "signal", status->value);
	if (status->core_dumped)
		buf_append_str(out, ",\"core_dumped\":true");
}

static void put_output(struct buf *out, const char *key, const struct result_output *output)
{
	if (!output->present)
		return;
	put_key(out, key);
	buf_printf(out, "{\"bytes\":%llu", (unsigned long long)output->bytes);
	put_text(out, "path", output->path);
	put_text(out, "sha256", output->sha256);
	buf_append_char(out, '}');
}

static void put_counts(struct buf *out, const struct result *result)
{
	if (!result->has[RESULT_INSTRUCTIONS])
		return;
	put_key(out, "counts");
	buf_printf(out, "{\"%s\":%lld", value_keys[RESULT_INSTRUCTIONS],
		   (long long)result->value[RESULT_INSTRUCTIONS]);
	put_text(out, "source", result->count_source);
	put_text(out, "env_hash", result->env_hash);
	buf_append_char(out, '}');
}

static void put_order(struct buf *out, const struct result *result)
{
	if (result->shell)
		put_text(out, "cmd", result->shell);
	else
		put_list(out, "cmd", &result->argv);
	if (result->args.count > 0)
		put_list(out, "args", &result->args);
	put_map(out, "env", &result->env);
	put_text(out, "cwd", result->cwd);
	put_text(out, "stdin", result->stdin_path);
	put_text(out, "group", result->group);
	if (result->width > 0)
		put_number(out, "width", result->width);
}

static void put_trial(struct buf *out, const struct result *result)
{
	put_number(out, "attempt", result->attempt);
	put_number(out, "run", result->run);
	if (result->warmup)
		buf_append_str(out, ",\"warmup\":true");
	put_text(out, "variant", result->variant);
	if (result->block >= 0)
		put_number(out, "block", result->block);
}

void result_write(const struct result *result, struct buf *out)
{
	buf_append_str(out, "{\"id\":");
	json_quote(out, result->id ? result->id : "");
	put_text(out, "hash", result->hash);
	put_order(out, result);
	put_trial(out, result);
	put_text(out, "reason", reason_name(result->reason));
	put_status(out, &result->status);
	put_text(out, "start", result->start);
	for (int i = 0; i < RESULT_INSTRUCTIONS; i++)
		if (result->has[i])
			put_number(out, value_keys[i], result->value[i]);
	put_text(out, "cores", result->cores);
	put_counts(out, result);
	if (result->suspect.count > 0)
		put_list(out, "suspect", &result->suspect);
	put_output(out, "stdout", &result->out);
	put_output(out, "stderr", &result->err_out);
	put_map(out, "missing", &result->missing);
	buf_append_str(out, "}\n");
}

/* --- reading --- */

static int read_text(struct json_in *in, char **ret_text)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	int r = json_in_string(in, &text);
	if (r < 0)
		return r;
	free(*ret_text);
	*ret_text = buf_take_str(&text);
	return 0;
}

/* A text of bounded length; one that is too long is refused. */
static int read_short(struct json_in *in, char *ret_text, size_t size)
{
	AUTO_FREE char *text = NULL;
	int r = read_text(in, &text);
	if (r < 0)
		return r;
	if (strlen(text) >= size)
		return -EINVAL;
	strcpy(ret_text, text);
	return 0;
}

static int read_small(struct json_in *in, int *ret_value)
{
	int64_t value;
	int r = json_in_int(in, &value);
	if (r < 0 || value < 0 || value > INT32_MAX)
		return -EINVAL;
	*ret_value = (int)value;
	return 0;
}

static int read_list(struct json_in *in, struct strv *ret_list)
{
	strv_done(ret_list);
	int r = json_in_enter(in, '[');
	while (r >= 0 && (r = json_in_element(in)) > 0) {
		char *item = NULL;
		r = read_text(in, &item);
		if (r >= 0)
			strv_take(ret_list, item);
	}
	return r;
}

static int read_map(struct json_in *in, struct strv *ret_list)
{
	AUTO(buf_done) struct buf key = BUF_INIT, text = BUF_INIT;
	strv_done(ret_list);
	int r = json_in_enter(in, '{');
	while (r >= 0 && (r = json_in_member(in, &key)) > 0) {
		if (json_in_peek(in) == JSON_NULL) {
			r = json_in_null(in);
			strv_add(ret_list, buf_str(&key));
			continue;
		}
		r = json_in_string(in, &text);
		if (r >= 0)
			strv_take(ret_list, mem_printf("%s=%s", buf_str(&key), buf_str(&text)));
	}
	return r;
}

static int read_reason(struct json_in *in, struct result *result)
{
	char name[32];
	int r = read_short(in, name, sizeof(name));
	if (r < 0)
		return r;
	r = reason_parse(name);
	if (r >= 0)
		result->reason = (enum reason)r;
	return r;
}

static int read_exit(struct json_in *in, struct result *result)
{
	result->status.kind = EXIT_CODE;
	return read_small(in, &result->status.value);
}

static int read_signal(struct json_in *in, struct result *result)
{
	char name[32];
	result->status.kind = EXIT_SIGNAL;
	if (json_in_peek(in) == JSON_NUMBER)
		return read_small(in, &result->status.value);
	int r = read_short(in, name, sizeof(name));
	if (r < 0)
		return r;
	r = str_to_signal(name);
	if (r >= 0)
		result->status.value = r;
	return r;
}

static int read_cmd(struct json_in *in, struct result *result)
{
	if (json_in_peek(in) == JSON_ARRAY)
		return read_list(in, &result->argv);
	return read_text(in, &result->shell);
}

static int read_output(struct json_in *in, struct result_output *output)
{
	AUTO(buf_done) struct buf key = BUF_INIT;
	int64_t bytes;
	output->present = true;
	int r = json_in_enter(in, '{');
	while (r >= 0 && (r = json_in_member(in, &key)) > 0) {
		const char *name = buf_str(&key);
		if (str_eq(name, "path")) {
			r = read_text(in, &output->path);
		} else if (str_eq(name, "bytes")) {
			r = json_in_int(in, &bytes);
			if (r >= 0)
				output->bytes = (uint64_t)MAX(bytes, 0);
		} else if (str_eq(name, "sha256")) {
			r = read_short(in, output->sha256, sizeof(output->sha256));
		} else {
			r = json_in_skip(in);
		}
	}
	return r;
}

static int read_number(struct json_in *in, struct result *result, enum result_value value)
{
	int r = json_in_int(in, &result->value[value]);
	result->has[value] = r >= 0;
	return r;
}

static int read_counts(struct json_in *in, struct result *result)
{
	AUTO(buf_done) struct buf key = BUF_INIT;
	int r = json_in_enter(in, '{');
	while (r >= 0 && (r = json_in_member(in, &key)) > 0) {
		const char *name = buf_str(&key);
		if (str_eq(name, value_keys[RESULT_INSTRUCTIONS]))
			r = read_number(in, result, RESULT_INSTRUCTIONS);
		else if (str_eq(name, "source"))
			r = read_text(in, &result->count_source);
		else if (str_eq(name, "env_hash"))
			r = read_text(in, &result->env_hash);
		else
			r = json_in_skip(in);
	}
	return r;
}

static int read_key(struct json_in *in, const char *key, struct result *result)
{
	if (str_eq(key, "id"))
		return read_text(in, &result->id);
	if (str_eq(key, "hash"))
		return read_short(in, result->hash, sizeof(result->hash));
	if (str_eq(key, "cmd"))
		return read_cmd(in, result);
	if (str_eq(key, "args"))
		return read_list(in, &result->args);
	if (str_eq(key, "env"))
		return read_map(in, &result->env);
	if (str_eq(key, "cwd"))
		return read_text(in, &result->cwd);
	if (str_eq(key, "stdin"))
		return read_text(in, &result->stdin_path);
	if (str_eq(key, "group"))
		return read_text(in, &result->group);
	if (str_eq(key, "width"))
		return read_small(in, &result->width);
	if (str_eq(key, "attempt"))
		return read_small(in, &result->attempt);
	if (str_eq(key, "run"))
		return read_small(in, &result->run);
	if (str_eq(key, "warmup"))
		return json_in_bool(in, &result->warmup);
	if (str_eq(key, "variant"))
		return read_short(in, result->variant, sizeof(result->variant));
	if (str_eq(key, "block"))
		return read_small(in, &result->block);
	if (str_eq(key, "reason"))
		return read_reason(in, result);
	if (str_eq(key, "exit"))
		return read_exit(in, result);
	if (str_eq(key, "signal"))
		return read_signal(in, result);
	if (str_eq(key, "core_dumped"))
		return json_in_bool(in, &result->status.core_dumped);
	if (str_eq(key, "start"))
		return read_short(in, result->start, sizeof(result->start));
	if (str_eq(key, "cores"))
		return read_text(in, &result->cores);
	if (str_eq(key, "counts"))
		return read_counts(in, result);
	if (str_eq(key, "suspect"))
		return read_list(in, &result->suspect);
	if (str_eq(key, "stdout"))
		return read_output(in, &result->out);
	if (str_eq(key, "stderr"))
		return read_output(in, &result->err_out);
	if (str_eq(key, "missing"))
		return read_map(in, &result->missing);
	int value = result_value_parse(key);
	return value >= 0 ? read_number(in, result, (enum result_value)value) : json_in_skip(in);
}

int result_read(const char *line, size_t len, struct result *ret_result, struct err *err)
{
	AUTO(buf_done) struct buf key = BUF_INIT;
	struct json_in in;
	bool other = false, has_reason = false;

	*ret_result = RESULT_INIT;
	json_in_init(&in, line, len);
	int r = json_in_enter(&in, '{');
	while (r >= 0 && (r = json_in_member(&in, &key)) > 0) {
		other = other || str_eq(buf_str(&key), "muster");
		has_reason = has_reason || str_eq(buf_str(&key), "reason");
		r = read_key(&in, buf_str(&key), ret_result);
	}
	if (r >= 0)
		r = json_in_end(&in);
	if (r < 0)
		return err_set(err, EINVAL, "column %zu%s%s: not a line of a result file",
			       json_in_column(&in), buf_len(&key) ? ", key " : "", buf_str(&key));
	if (other)
		return 0;
	if (!ret_result->id || !has_reason)
		return err_set(err, EINVAL, "no '%s': not a line of a result file",
			       ret_result->id ? "reason" : "id");
	return 1;
}

static int read_line(const char *line, size_t len, result_fn *on_result, void *arg, struct err *err)
{
	AUTO(result_done) struct result result = RESULT_INIT;
	int r = result_read(line, len, &result, err);
	return r > 0 ? on_result(arg, &result, err) : r;
}

int result_read_file(const char *path, result_fn *on_result, void *arg, struct buf *ret_header,
		     uint64_t *ret_end, struct err *err)
{
	FILE *file = fopen(path, "re");
	if (!file)
		return err_set(err, errno, "%s: %m", path);
	AUTO_FREE char *line = NULL;
	size_t cap = 0, number = 0;
	uint64_t end = 0;
	int r = 0;
	errno = 0;
	for (ssize_t len;
	     r >= 0 && (len = getline(&line, &cap, file)) > 0 && line[len - 1] == '\n';) {
		number++;
		if ((size_t)len > RESULT_LINE_MAX)
			r = err_set(err, EFBIG, "longer than %zu bytes", RESULT_LINE_MAX);
		else
			r = read_line(line, (size_t)len, on_result, arg, err);
		if (r < 0)
			err_wrap(err, "%s:%zu", path, number);
		if (number == 1 && ret_header)
			buf_append(ret_header, line, (size_t)len - 1);
		end += (uint64_t)len;
		errno = 0;
	}
	if (r >= 0 && ferror(file))
		r = err_set(err, errno ? errno : EIO, "%s: %m", path);
	fclose(file);
	if (r >= 0 && ret_end)
		*ret_end = end;
	return r < 0 ? r : 0;
}
