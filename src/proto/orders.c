#include "proto/orders.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "proto/shell.h"

#define ID_HASH_DIGITS 12 /* of an id made from the hash */

static void free_words(char **words)
{
	for (size_t i = 0; words && words[i]; i++)
		free(words[i]);
	free(words);
}

static void extra_free(struct order_extra *extra)
{
	if (!extra)
		return;
	strv_done(&extra->env);
	strv_done(&extra->args);
	strv_done(&extra->labels);
	strv_done(&extra->hosts);
	strv_done(&extra->features);
	strv_done(&extra->transfer);
	strv_done(&extra->returns);
	free(extra->cwd);
	free(extra->stdin_path);
	free(extra->group);
	free(extra->source);
	free(extra->variant);
	strv_done(&extra->arg_names);
	free(extra->tag);
	free(extra->output_path);
	free(extra);
}

static void order_done(struct order *order)
{
	free(order->id);
	free(order->shell);
	free_words(order->argv);
	extra_free(order->extra);
}

void orders_done(struct orders *orders)
{
	for (size_t i = 0; i < orders->count; i++)
		order_done(&orders->items[i]);
	free(orders->items);
	*orders = ORDERS_INIT;
}

struct order *orders_append(struct orders *orders)
{
	ARRAY_RESERVE(orders->items, orders->count, orders->cap);
	struct order *order = &orders->items[orders->count++];
	*order = (struct order){ .retries = -1 };
	return order;
}

struct order *orders_renew(struct orders *orders, size_t index)
{
	struct order *order = &orders->items[index];
	order_done(order);
	*order = (struct order){ .retries = -1 };
	return order;
}

struct order_extra *order_extra(struct order *order)
{
	if (!order->extra)
		order->extra = NEW(struct order_extra);
	return order->extra;
}

const char *order_group(const struct order *order)
{
	return order->extra && order->extra->group ? order->extra->group : "";
}

const char *order_source(const struct order *order)
{
	return order->extra && order->extra->source ? order->extra->source : "";
}

char *order_program(const struct order *order)
{
	return shell_program(order->shell, order_source(order), order->argv);
}

struct label_of order_labels(const struct order *order, const char *program)
{
	const struct order_extra *extra = order->extra;
	struct label_of of = { .id = order->id, .program = program, .cores = order->cores };
	if (extra) {
		of.labels = &extra->labels;
		of.args = &extra->args;
		of.arg_names = &extra->arg_names;
		of.source = extra->source;
		of.group = extra->group;
		of.variant = extra->variant;
	}
	return of;
}

/* ---- identity ---- */

static void hash_text(crypto_generichash_state *state, const char *label, const char *text)
{
	/* The NULs keep neighbours apart: neither labels nor texts contain one. */
	crypto_generichash_update(state, (const unsigned char *)label, strlen(label) + 1);
	crypto_generichash_update(state, (const unsigned char *)text, strlen(text) + 1);
}

static int compare_texts(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

static void hash_extra(crypto_generichash_state *state, const struct order_extra *extra)
{
	size_t count = extra->env.count;
	AUTO_FREE char **sorted = NEW_ARRAY(char *, count + 1);
	for (size_t i = 0; i < count; i++)
		sorted[i] = extra->env.items[i];
	qsort(sorted, count, sizeof(*sorted), compare_texts);
	for (size_t i = 0; i < count; i++)
		hash_text(state, "env", sorted[i]);
	if (extra->cwd)
		hash_text(state, "cwd", extra->cwd);
	if (extra->stdin_path)
		hash_text(state, "stdin", extra->stdin_path);
}

static void compute_hash(struct order *order, uint64_t copy)
{
	crypto_generichash_state state;
	crypto_generichash_init(&state, NULL, 0, ORDER_HASH_BYTES);
	if (order->shell)
		hash_text(&state, "shell", order->shell);
	for (size_t i = 0; order->argv && order->argv[i]; i++)
		hash_text(&state, "argv", order->argv[i]);
	if (order->extra)
		hash_extra(&state, order->extra);
	if (copy > 0) {
		AUTO_FREE char *text = mem_printf("%llu", (unsigned long long)copy);
		hash_text(&state, "copy", text);
	}
	crypto_generichash_final(&state, order->hash, ORDER_HASH_BYTES);
}

void order_set_shell(struct order *order, char *line)
{
	free(order->shell);
	free_words(order->argv);
	order->argv = NULL;
	order->shell = line;
}

void order_close(struct order *order)
{
	size_t len = order->shell && !*order_source(order) ? shell_source_len(order->shell) : 0;
	if (len > 0)
		order_extra(order)->source = mem_strndup(order->shell, len);
	compute_hash(order, 0);
}

void order_set_copy(struct order *order, uint64_t copy)
{
	compute_hash(order, copy);
}

void order_hash_text(const struct order *order, char text[ORDER_HASH_TEXT])
{
	sodium_bin2hex(text, ORDER_HASH_TEXT, order->hash, ORDER_HASH_BYTES);
}

void order_append_id(const struct order *order, struct buf *out)
{
	char hash[ORDER_HASH_TEXT];
	if (order->id) {
		buf_append_str(out, order->id);
		return;
	}
	order_hash_text(order, hash);
	buf_append(out, hash, ID_HASH_DIGITS);
}

static int refuse_twins(const struct order *first, const struct order *second, struct err *err)
{
	AUTO(buf_done) struct buf command = BUF_INIT;
	order_append_command(second, 0, &command);
	return err_set(err, EEXIST, "order %u runs the same as order %u: %s", second->line,
		       first->line, buf_str(&command));
}

/* What makes an order another one for people: another id, or another number of cores. */
static void twin_key(const struct order *order, struct buf *key)
{
	buf_clear(key);
	buf_append(key, order->hash, ORDER_HASH_BYTES);
	buf_append_int(key, order->cores);
	buf_append_char(key, ' ');
	buf_append_str(key, order->id ? order->id : "");
}

static int check_hashes(struct orders *orders, bool allow_duplicates, struct err *err)
{
	AUTO(buf_done) struct buf key = BUF_INIT;
	AUTO(map_done) struct map twins = MAP_INIT;  /* twin_key() -> order */
	AUTO(map_done) struct map seen = MAP_INIT;   /* hash -> order */
	AUTO(map_done) struct map copies = MAP_INIT; /* hash without a number -> copies so far */
	for (size_t i = 0; i < orders->count; i++) {
		struct order *order = &orders->items[i];
		struct order *first = map_get(&seen, order->hash, ORDER_HASH_BYTES);
		twin_key(order, &key);
		const struct order *twin = map_get(&twins, buf_data(&key), buf_len(&key));
		if (twin && !allow_duplicates)
			return refuse_twins(twin, order, err);
		map_put(&twins, buf_data(&key), buf_len(&key), order);
		if (first) {
			/* The second one gets number 1, the third number 2, …: the same in every
			 * run. */
			uintptr_t copy =
				(uintptr_t)map_get(&copies, order->hash, ORDER_HASH_BYTES) + 1;
			map_put(&copies, order->hash, ORDER_HASH_BYTES, (void *)copy);
			compute_hash(order, copy);
		}
		map_put(&seen, order->hash, ORDER_HASH_BYTES, order);
	}
	return 0;
}

static int check_ids(const struct orders *orders, struct err *err)
{
	AUTO(map_done) struct map seen = MAP_INIT;
	AUTO(buf_done) struct buf key = BUF_INIT;
	for (size_t i = 0; i < orders->count; i++) {
		struct order *order = &orders->items[i];
		if (!order->id)
			continue;
		/* The variants of a measurement share its id. The NUL keeps the two apart. */
		buf_clear(&key);
		buf_append(&key, order->id, strlen(order->id) + 1);
		if (order->extra && order->extra->variant)
			buf_append_str(&key, order->extra->variant);
		struct order *first = map_get(&seen, buf_data(&key), buf_len(&key));
		if (first)
			return err_set(err, EEXIST, "orders %u and %u have the same id '%s'",
				       first->line, order->line, order->id);
		map_put(&seen, buf_data(&key), buf_len(&key), order);
	}
	return 0;
}

int orders_check_unique(struct orders *orders, bool allow_duplicates, struct err *err)
{
	int r = check_hashes(orders, allow_duplicates, err);
	return r < 0 ? r : check_ids(orders, err);
}

void orders_filter(struct orders *orders, const struct strv *filter)
{
	size_t kept = 0;
	for (size_t i = 0; filter->count > 0 && i < orders->count; i++) {
		struct order *order = &orders->items[i];
		AUTO_FREE char *program = order_program(order);
		struct label_of labels = order_labels(order, program);
		if (label_filter_holds(filter, &labels))
			orders->items[kept++] = *order;
		else
			order_done(order);
	}
	if (filter->count > 0)
		orders->count = kept;
}

/* ---- for people ---- */

static void append_marked(const char *text, int slot, struct buf *out)
{
	for (; *text; text++) {
		if (*text != ORDER_SLOT_MARK)
			buf_append_char(out, *text);
		else if (slot > 0)
			buf_printf(out, "%d", slot);
		else
			buf_append_str(out, "{%}");
	}
}

void order_append_command(const struct order *order, int slot, struct buf *out)
{
	if (!order->shell)
		shell_join(out, order->argv);
	else if (order->uses_slot)
		append_marked(order->shell, slot, out);
	else
		buf_append_str(out, order->shell);
}

int order_parse_timeout(const char *text, uint64_t *ret_ns, uint32_t *ret_percent, struct err *err)
{
	uint64_t ns = 0, percent = 0;
	if (str_ends(text, "%")) {
		AUTO_FREE char *number = mem_strndup(text, strlen(text) - 1);
		if (str_to_u64(number, &percent) < 0 || percent == 0 || percent > 1000000)
			return err_set(err, EINVAL, "invalid percentage '%s'", text);
	} else if (str_to_duration_ns(text, &ns) < 0 || ns == 0) {
		return err_set(err, EINVAL, "invalid time '%s' (such as 30, 1.5s, 2m or 200%%)",
			       text);
	}
	*ret_ns = ns;
	*ret_percent = (uint32_t)percent;
	return 0;
}
