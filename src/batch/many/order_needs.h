/* What the orders of a list need of a host. */
#ifndef BATCH_MANY_ORDER_NEEDS_H
#define BATCH_MANY_ORDER_NEEDS_H

#include "core/dispatch/needs.h"
#include "proto/orders.h"

/* Of a list; they borrow from its orders. */
struct order_kinds {
	struct order_kind *items;
	size_t count, cap;
};

void order_kinds_done(struct order_kinds *kinds);

/* The number of its kind. */
uint32_t order_kinds_add(struct order_kinds *kinds, const struct order *order, int width);

/* The memory of this host for all that run at a time: what is free now, but enough for each kind
 * alone. */
uint64_t order_kinds_memory(const struct order_kinds *kinds);

/* For a batch on this host alone: fails if it can't serve one of the orders. */
int order_needs_check(const struct orders *orders, const char *name, const char *features,
		      struct err *err);

#endif
