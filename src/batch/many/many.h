/* A batch on many hosts: this process runs orders that a coordinator gives it, or is that
 * coordinator itself, and then has the list. core/deal decides; nodes/peer_links.h has the
 * connections; the runner runs the orders. */
#ifndef BATCH_MANY_MANY_H
#define BATCH_MANY_MANY_H

#include "batch/dispatch.h"
#include "nodes/rendezvous.h"

struct many_hooks {
	/* This process coordinates: read the orders, open the result file. `again`: it takes over
	 * from another one, of which it knows only that file. */
	int (*load)(void *arg, bool again, struct dispatch_job *ret_job, struct err *err);
	/* The limits of an order that was given to this host, and how it is repeated: todo->number
	 * is its number in the list. `places` bounds todo->item.index. */
	void (*fill)(void *arg, const struct order *order, uint32_t variants, size_t places,
		     struct batch_order *todo);
};

struct many;

/* All is borrowed. `plan` says what this host has. */
struct many *many_new(const struct batch_config *config, const struct rendezvous *rdzv,
		      const struct batch_plan *plan, const struct many_hooks *hooks, void *arg);
void many_free(struct many *many);

/* Where the runner gets its orders from, and the commands around them. */
void many_job(struct many *many, const struct orders *around, struct runner_job *job);

/* This process coordinated, so that the result file is its own. */
bool many_coordinated(const struct many *many);

#endif
