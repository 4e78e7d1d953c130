#include "proto/deal/work_msg.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "core/deal/files.h"
#include "proto/json_out.h"
#include "proto/pack.h"

#define HEAD_SIZE 30 /* length of the text (4), type, flags, four numbers (16), value (8) */

static void pack_head(struct pack *p, struct work_msg *msg, uint32_t *len)
{
	pack_u32(p, len);
	pack_require(p, *len <= WORK_MSG_MAX);
	PACK_ENUM(p, msg->type, WORK_TYPE_COUNT);
	pack_u8(p, &msg->flags);
	pack_require(p, msg->flags <= (WORK_FINAL | WORK_OK | WORK_UNRUN | WORK_FAILED | WORK_LIST |
				       WORK_LINK));
	pack_u32(p, &msg->order);
	pack_u32(p, &msg->lease);
	pack_u32(p, &msg->number);
	pack_u32(p, &msg->count);
	pack_u64(p, &msg->value);
}

void work_put(struct buf *out, const struct work_msg *msg)
{
	unsigned char head[HEAD_SIZE];
	struct pack p = pack_writer(head, sizeof(head));
	uint32_t len = (uint32_t)msg->len;
	pack_head(&p, (struct work_msg *)msg, &len); /* a walk that writes changes nothing */
	assert(!p.bad && p.at == p.end);
	buf_append(out, head, sizeof(head));
	buf_append(out, msg->text ? msg->text : "", msg->len);
}

int work_next(const void *data, size_t len, struct work_msg *ret_msg, size_t *ret_size,
	      struct err *err)
{
	struct work_msg msg = { .text = NULL };
	uint32_t text_len = 0;
	if (len < HEAD_SIZE)
		return 0;
	struct pack p = pack_reader(data, HEAD_SIZE);
	pack_head(&p, &msg, &text_len);
	if (p.bad)
		return err_set(err, EPROTO, "a message of a batch with a value out of range");
	if (len - HEAD_SIZE < text_len)
		return 0;
	msg.text = (const unsigned char *)data + HEAD_SIZE;
	msg.len = text_len;
	*ret_msg = msg;
	*ret_size = HEAD_SIZE + text_len;
	return 1;
}

static void pack_hello(struct pack *p, struct work_hello *hello)
{
	struct host_facts *facts = &hello->facts;
	pack_u64(p, &hello->id.hi);
	pack_u64(p, &hello->id.lo);
	pack_i32(p, &facts->cores);
	pack_i32(p, &facts->max_width);
	pack_i32(p, &facts->jobs);
	pack_require(p, facts->cores >= 1 && facts->cores <= MSG_NPROC_MAX &&
				facts->max_width >= 1 && facts->max_width <= facts->cores &&
				facts->jobs >= 1 && facts->jobs <= MSG_NPROC_MAX);
	pack_u64(p, &facts->memory);
	pack_text(p, hello->name, sizeof(hello->name));
	pack_u32(p, &hello->held_count);
	pack_require(p, hello->held_count <= WORK_HELD_MAX);
	for (uint32_t i = 0; !p->bad && i < hello->held_count; i++)
		pack_u32(p, &hello->held[i]);
	if (p->writing || p->at < p->end) /* since minor 6 */
		pack_text(p, hello->features, sizeof(hello->features));
	pack_require(p, !*hello->features || needs_features_ok(hello->features));
	if (p->writing || p->at < p->end) /* since minor 10 */
		pack_bool(p, &facts->files);
	if (p->writing || p->at < p->end) /* since minor 11 */
		pack_bool(p, &facts->trees);
}

void work_put_hello(struct buf *out, const struct work_hello *hello)
{
	size_t room = 128 + WORK_NAME_MAX + NEEDS_FEATURES_MAX + 4 * (size_t)hello->held_count;
	unsigned char *data = (unsigned char *)buf_reserve(out, room);
	struct pack p = pack_writer(data, room);
	pack_hello(&p, (struct work_hello *)hello);
	assert(!p.bad);
	buf_commit(out, (size_t)(p.at - data));
}

int work_get_hello(const void *text, size_t len, struct work_hello *ret_hello, struct err *err)
{
	struct pack p = pack_reader(text, len);
	memset(ret_hello, 0, sizeof(*ret_hello));
	pack_hello(&p, ret_hello);
	if (p.bad || !*ret_hello->name)
		return err_set(err, EPROTO, "a HELLO with a value out of range");
	return 0;
}

/* ---- orders ---- */

static void put_time(struct json_out *json, const char *key, uint64_t ns)
{
	AUTO_FREE char *text = mem_printf("%lluns", (unsigned long long)ns);
	if (ns)
		json_out_text(json, key, text);
}

/* The host is told its own names. */
static void put_names(struct json_out *json, const char *key, const struct strv *paths)
{
	if (paths->count == 0)
		return;
	json_out_open(json, key, '[');
	for (size_t i = 0; i < paths->count; i++)
		json_out_text(json, NULL, files_name(paths->items[i]));
	json_out_close(json, ']');
}

void work_put_order(struct buf *out, const struct order *order)
{
	struct json_out json = JSON_OUT(out);
	const struct order_extra *extra = order->extra;
	char hash[ORDER_HASH_TEXT];
	order_hash_text(order, hash);
	buf_append(out, hash, ORDER_HASH_TEXT - 1);
	json_out_open(&json, NULL, '{');
	json_out_text_if(&json, "id", order->id);
	if (order->shell) {
		json_out_text(&json, "cmd", order->shell);
	} else {
		json_out_open(&json, "cmd", '[');
		for (char **word = order->argv; *word; word++)
			json_out_text(&json, NULL, *word);
		json_out_close(&json, ']');
	}
	if (order->cores)
		json_out_int(&json, "cores", order->cores);
	put_time(&json, "timeout", order->timeout_ns);
	put_time(&json, "cpu_timeout", order->cpu_timeout_ns);
	if (order->timeout_percent) {
		AUTO_FREE char *text = mem_printf("%u%%", order->timeout_percent);
		json_out_text(&json, "timeout", text);
	}
	if (order->retries >= 0)
		json_out_int(&json, "retries", order->retries);
	if (order->runs)
		json_out_int(&json, "runs", order->runs);
	if (extra && extra->env.count > 0)
		json_out_map(&json, "env", &extra->env);
	if (extra) {
		json_out_text_if(&json, "cwd", extra->cwd);
		json_out_text_if(&json, "stdin", extra->stdin_path);
		json_out_text_if(&json, "group", extra->group);
		put_names(&json, "transfer", &extra->transfer);
		put_names(&json, "return", &extra->returns);
		if (extra->cleanup)
			json_out_bool(&json, "cleanup", true);
	}
	json_out_close(&json, '}');
}

static int hex_digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static int get_order(const char *text, size_t len, struct orders *orders, struct err *err)
{
	const char *digits = text;
	unsigned char hash[ORDER_HASH_BYTES];
	size_t front = ORDER_HASH_TEXT - 1, before = orders->count;
	if (len <= front || digits[front] != '{')
		return err_set(err, EPROTO, "an order without its identity");
	for (size_t i = 0; i < ORDER_HASH_BYTES; i++) {
		int high = hex_digit(digits[2 * i]), low = hex_digit(digits[2 * i + 1]);
		if (high < 0 || low < 0)
			return err_set(err, EPROTO, "an order without its identity");
		hash[i] = (unsigned char)(high << 4 | low);
	}
	int r = orders_add_line(orders, digits + front, len - front, 0, err);
	if (r < 0 || orders->count != before + 1)
		return r < 0 ? r : err_set(err, EPROTO, "an order without a command");
	struct order *order = &orders->items[before];
	memcpy(order->hash, hash, sizeof(hash));
	order->uses_slot = order->shell && strchr(order->shell, ORDER_SLOT_MARK);
	return 0;
}

int work_get_orders(const void *text, size_t len, struct orders *orders, struct err *err)
{
	const char *rest = text, *end = rest + len, *newline;
	for (int i = 0; i < WORK_VARIANTS_MAX; i++) {
		newline = memchr(rest, '\n', (size_t)(end - rest));
		int r = get_order(rest, (size_t)((newline ? newline : end) - rest), orders, err);
		if (r < 0 || !newline)
			return r;
		rest = newline + 1;
	}
	return err_set(err, EPROTO, "an order with too many variants");
}
