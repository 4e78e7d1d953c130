#include "nodes/discovery.h"

#include <stdlib.h>

#include "base/mem.h"

struct discovery *discovery_new(struct event_base *base, const struct rendezvous *rdzv,
				const struct link_self *self,
				const struct discovery_handler *handler, void *arg)
{
	const struct discovery_ops *ops =
		rdzv->kind == RENDEZVOUS_PROGRAM ? &discovery_program : &discovery_endpoints;
	struct discovery *discovery = mem_alloc(ops->size);
	*discovery = (struct discovery){ ops, base, rdzv, self, handler, arg };
	return discovery;
}

void discovery_free(struct discovery *discovery)
{
	if (!discovery)
		return;
	discovery->ops->done(discovery);
	free(discovery);
}
