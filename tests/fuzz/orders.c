/* Any bytes as an order list: no crash, and what is accepted has one command and a stable
 * identity. */
#include <stdlib.h>
#include <string.h>

#include "proto/orders.h"
#include "proto/shell.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct orders orders = ORDERS_INIT;
	struct err err = ERR_INIT;
	uint32_t number = 0;
	for (const uint8_t *p = data, *end = data + size; p < end;) {
		const uint8_t *newline = memchr(p, '\n', (size_t)(end - p));
		size_t len = newline ? (size_t)(newline - p) : (size_t)(end - p);
		if (orders_add_line(&orders, (const char *)p, len, ++number, &err) < 0)
			break;
		p += len + 1;
	}
	/* The last one may be half-read after an error. */
	size_t whole = err.code && orders.count ? orders.count - 1 : orders.count;
	for (size_t i = 0; i < whole; i++) {
		struct order *order = &orders.items[i];
		struct buf text = BUF_INIT;
		struct strv words = STRV_INIT;
		unsigned char before[ORDER_HASH_BYTES];
		if (!order->shell == !order->argv)
			abort();
		order_append_command(order, 1, &text);
		shell_split_plain(buf_str(&text), &words);
		memcpy(before, order->hash, sizeof(before));
		order_close(order);
		if (memcmp(before, order->hash, sizeof(before)) != 0)
			abort();
		strv_done(&words);
		buf_done(&text);
	}
	if (!err.code)
		orders_check_unique(&orders, size % 2, &err);
	orders_done(&orders);
	return 0;
}
