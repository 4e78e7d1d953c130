#include "lib/batch_orders.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "proto/json_out.h"

void batch_orders_done(struct batch_orders *orders)
{
	buf_done(&orders->list);
	map_done(&orders->by_id);
}

static struct strv copy_of(const char *const *texts)
{
	struct strv copy = STRV_INIT;
	for (; texts && *texts; texts++)
		strv_add(&copy, *texts);
	return copy;
}

static void put_list(struct json_out *out, const char *key, const char *const *texts, bool as_map)
{
	AUTO(strv_done) struct strv list = copy_of(texts);
	if (list.count == 0)
		return;
	if (as_map)
		json_out_map(out, key, &list);
	else
		json_out_list(out, key, &list);
}

static void put_number(struct json_out *out, const char *key, int number)
{
	if (number)
		json_out_int(out, key, number);
}

/* All members of the object but its id. */
static void put_order(struct json_out *out, const struct muster_order *order)
{
	if (order->shell)
		json_out_text(out, "cmd", order->shell);
	else
		put_list(out, "cmd", order->argv, false);
	put_list(out, "labels", order->labels, true);
	put_list(out, "env", order->env, true);
	json_out_text_if(out, "source", order->source);
	json_out_text_if(out, "cwd", order->cwd);
	json_out_text_if(out, "stdin", order->stdin_path);
	json_out_text_if(out, "group", order->group);
	json_out_text_if(out, "variant", order->variant);
	if (order->timeout != 0)
		json_out_real(out, "timeout", order->timeout);
	put_number(out, "cores", order->cores);
	put_number(out, "retries", order->retries);
	put_number(out, "runs", order->runs);
}

static char *key_of(const char *id, const char *variant)
{
	return mem_printf("%s\n%s", id, variant ? variant : "");
}

/* The id that was given, or one that stays the same as long as the order does; equal orders are
 * numbered. */
static char *id_of(const struct batch_orders *orders, const struct muster_order *order)
{
	static const uint64_t key[2] = { 0, 0 };
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct json_out out = JSON_OUT(&text);
	if (order->id)
		return mem_strdup(order->id);
	json_out_open(&out, NULL, '{');
	put_order(&out, order);
	json_out_close(&out, '}');
	unsigned long long hash = map_hash(key, buf_data(&text), buf_len(&text));
	char *id = mem_printf("%016llx", hash);
	for (int copy = 2; batch_orders_find(orders, id, order->variant) >= 0; copy++) {
		free(id);
		id = mem_printf("%016llx-%d", hash, copy);
	}
	return id;
}

static int add(struct batch_orders *orders, const struct muster_order *order, size_t place,
	       struct err *err)
{
	if (!order->shell == !(order->argv && order->argv[0]))
		return err_set(err, EINVAL, "order %zu has %s command", place,
			       order->shell ? "more than one" : "no");
	AUTO_FREE char *id = id_of(orders, order);
	AUTO_FREE char *key = key_of(id, order->variant);
	if (map_get(&orders->by_id, key, strlen(key)))
		return err_set(err, EEXIST, "order %zu has the id of another one: '%s'", place, id);
	map_put(&orders->by_id, key, strlen(key), (void *)(uintptr_t)(place + 1));
	struct json_out out = JSON_OUT(&orders->list);
	json_out_open(&out, NULL, '{');
	json_out_text(&out, "id", id);
	put_order(&out, order);
	json_out_close(&out, '}');
	buf_append_char(&orders->list, '\n');
	return 0;
}

int batch_orders_make(struct batch_orders *orders, const struct muster_order *given, size_t count,
		      size_t size, struct err *err)
{
	int r = 0;
	for (size_t i = 0; i < count && r == 0; i++) {
		struct muster_order order = { 0 };
		memcpy(&order, (const char *)given + i * size, MIN(size, sizeof(order)));
		r = add(orders, &order, i, err);
	}
	return r;
}

int64_t batch_orders_find(const struct batch_orders *orders, const char *id, const char *variant)
{
	AUTO_FREE char *key = key_of(id, variant);
	return (int64_t)(uintptr_t)map_get(&orders->by_id, key, strlen(key)) - 1;
}
