/* Whatever arrives from a host of a batch or its coordinator: no crash, and what is accepted lies
 * in the input. */
#include <stdlib.h>
#include <string.h>

#include "core/deal/files.h"
#include "proto/deal/work_msg.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A host opens no other. */
static void check_files(const struct order *order)
{
	const struct order_extra *extra = order->extra;
	for (size_t i = 0; extra && i < extra->transfer.count; i++)
		if (!files_path_ok(extra->transfer.items[i]) || extra->transfer.count > FILES_MAX)
			abort();
	for (size_t i = 0; extra && i < extra->returns.count; i++)
		if (!files_path_ok(extra->returns.items[i]) || extra->returns.count > FILES_MAX)
			abort();
}

static void read_all_ways(const struct work_msg *msg)
{
	static struct work_hello hello;
	AUTO(orders_done) struct orders orders = ORDERS_INIT;
	if (work_get_hello(msg->text, msg->len, &hello, NULL) == 0 &&
	    (hello.held_count > WORK_HELD_MAX || hello.facts.max_width > hello.facts.cores ||
	     strnlen(hello.name, sizeof(hello.name)) == sizeof(hello.name) ||
	     strnlen(hello.features, sizeof(hello.features)) == sizeof(hello.features)))
		abort();
	if (work_get_orders(msg->text, msg->len, &orders, NULL) == 0 &&
	    (orders.count < 1 || orders.count > WORK_VARIANTS_MAX))
		abort();
	for (size_t i = 0; i < orders.count; i++)
		check_files(&orders.items[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct work_msg msg;
	size_t used = 0, one;
	while (work_next(data + used, size - used, &msg, &one, NULL) > 0) {
		const uint8_t *text = msg.text;
		if (text < data || text + msg.len > data + size || one < msg.len ||
		    msg.type >= WORK_TYPE_COUNT)
			abort();
		read_all_ways(&msg);
		used += one;
	}
	return 0;
}
