#include "batch/many/order_needs.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/procfs.h"

#define MEMORY_STEPS 16 /* between a size and its double */

void order_kinds_done(struct order_kinds *kinds)
{
	free(kinds->items);
	*kinds = (struct order_kinds){ .items = NULL };
}

/* Rounded up, so that orders that need about the same are of one kind. */
static uint64_t round_memory(uint64_t bytes)
{
	uint64_t step = 1;
	while (bytes / step >= MEMORY_STEPS)
		step *= 2;
	return (bytes + step - 1) / step * step;
}

static struct order_kind kind_of(const struct order *order, int width)
{
	const struct order_extra *extra = order->extra;
	struct order_kind kind = { .width = width };
	if (!extra)
		return kind;
	kind.memory = round_memory(extra->memory);
	kind.files = order_moves_files(order);
	kind.needs.hosts = extra->hosts.count ? strv_argv(&extra->hosts) : NULL;
	kind.needs.features = extra->features.count ? strv_argv(&extra->features) : NULL;
	return kind;
}

uint32_t order_kinds_add(struct order_kinds *kinds, const struct order *order, int width)
{
	const struct order_kind kind = kind_of(order, width);
	for (size_t i = 0; i < kinds->count; i++) {
		const struct order_kind *known = &kinds->items[i];
		if (known->width == kind.width && known->memory == kind.memory &&
		    known->files == kind.files && needs_equal(&known->needs, &kind.needs))
			return (uint32_t)i;
	}
	ARRAY_RESERVE(kinds->items, kinds->count, kinds->cap);
	kinds->items[kinds->count] = kind;
	return (uint32_t)kinds->count++;
}

uint64_t order_kinds_memory(const struct order_kinds *kinds)
{
	uint64_t memory = procfs_memory_available();
	for (size_t i = 0; i < kinds->count; i++)
		memory = MAX(memory, kinds->items[i].memory);
	return memory;
}

static int check(const struct order *order, const char *name, const char *features, struct err *err)
{
	AUTO(buf_done) struct buf id = BUF_INIT, what = BUF_INIT;
	const struct needs needs = {
		.hosts = order->extra->hosts.count ? strv_argv(&order->extra->hosts) : NULL,
		.features = order->extra->features.count ? strv_argv(&order->extra->features) : NULL
	};
	order_append_id(order, &id);
	if (!needs_met(&needs, name, features)) {
		needs_describe(&needs, &what);
		return err_set(err, EINVAL, "order %s needs %s; this is %s%s%s", buf_str(&id),
			       buf_str(&what), name, *features ? " with " : ", without --features",
			       features);
	}
	uint64_t total = procfs_memory_total();
	if (order->extra->memory > total)
		return err_set(err, EINVAL,
			       "order %s needs %llu MiB of memory; this host has %llu MiB",
			       buf_str(&id), (unsigned long long)(order->extra->memory >> 20),
			       (unsigned long long)(total >> 20));
	return 0;
}

int order_needs_check(const struct orders *orders, const char *name, const char *features,
		      struct err *err)
{
	for (size_t i = 0; i < orders->count; i++) {
		int r = orders->items[i].extra
				? check(&orders->items[i], name, features ? features : "", err)
				: 0;
		if (r < 0)
			return r;
	}
	return 0;
}
