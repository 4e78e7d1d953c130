#include "batch/many/alone.h"

#include <errno.h>
#include <unistd.h>

#include "core/deal/needs.h"

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
	uint64_t total = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
	if (order->extra->memory > total)
		return err_set(err, EINVAL,
			       "order %s needs %llu MiB of memory; this host has %llu MiB",
			       buf_str(&id), (unsigned long long)(order->extra->memory >> 20),
			       (unsigned long long)(total >> 20));
	return 0;
}

int alone_check(const struct orders *orders, const char *features, struct err *err)
{
	char name[NEEDS_NAME_MAX] = "localhost";
	gethostname(name, sizeof(name) - 1);
	for (size_t i = 0; i < orders->count; i++) {
		int r = orders->items[i].extra
				? check(&orders->items[i], name, features ? features : "", err)
				: 0;
		if (r < 0)
			return r;
	}
	return 0;
}
