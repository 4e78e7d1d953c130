/* The orders of a caller as an order list, and which of them a result is about. */
#ifndef LIB_BATCH_ORDERS_H
#define LIB_BATCH_ORDERS_H

#include <muster/muster.h>
#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"

struct batch_orders {
	struct buf list;  /* muster-batch(5) */
	struct map by_id; /* "id\nvariant" -> its place + 1 as a pointer */
};

#define BATCH_ORDERS_INIT ((struct batch_orders){ .list = BUF_INIT, .by_id = MAP_INIT })

/* `size`: of struct muster_order in the caller's version. */
int batch_orders_make(struct batch_orders *orders, const struct muster_order *given, size_t count,
		      size_t size, struct err *err);
void batch_orders_done(struct batch_orders *orders);

/* The place of an order; -1: it is not one of them. */
int64_t batch_orders_find(const struct batch_orders *orders, const char *id, const char *variant);

#endif
