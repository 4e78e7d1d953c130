/* The list of a batch: which orders wait, for what, how many are over and how, and whether more may
 * start. The slots of this host (core/dispatch/batch.h) and the hosts elsewhere (core/deal/deal.h)
 * take from it and tell it what came of it; it is a part of their steps and has none of its own.
 *
 * What one of them does to the list may be of use to the other: after a step that has changed it
 * (worklist_changes()), the shell gives the other a step, too (BATCH_LOOK, DEAL_EV_LOOK). */
#ifndef CORE_DISPATCH_WORKLIST_H
#define CORE_DISPATCH_WORKLIST_H

#include "core/batch/batch_rules.h"
#include "core/batch/learned.h"
#include "core/dispatch/needs.h"
#include "core/dispatch/order.h"

struct worklist_opts {
	enum schedule_order order;
	uint64_t seed;
	struct halt_rule halt;
	uint64_t deadline_ns;	/* of the whole batch; NS_NEVER: none */
	uint64_t hold_until_ns; /* none starts before: hosts of an earlier coordinator may still
				 * run what they had; 0: at once */
	uint32_t groups, gates; /* how many of each; number 0 is one of them */
	const struct order_kind *kinds; /* by item.kind, borrowed; NULL: nothing but a width */
	bool shared;			/* hosts elsewhere take from it, too */
	bool once; /* each host gets one order; the others wait for hosts to come */
	/* The orders come one by one, and nothing is known of those to come. The list has as many
	 * places, used again when theirs are over, at least 2 for each that can run. */
	bool open;
};

/* What becomes of those that run when no more may start. */
enum worklist_halt {
	WORKLIST_GO,
	WORKLIST_DRAIN, /* they go on to their end */
	WORKLIST_STOP,
	WORKLIST_KILL,
	WORKLIST_HALT_COUNT,
};

/* Why. */
enum batch_stop {
	BATCH_GO,
	BATCH_STOP_DRAIN,
	BATCH_STOP_HALT,
	BATCH_STOP_DEADLINE,
	BATCH_STOP_INTERRUPT,
	BATCH_STOP_FATAL,
};

struct worklist {
	struct worklist_opts opts;
	struct batch_order *orders;
	size_t count;
	struct schedule schedule; /* those that may start */
	struct heap waiting;	  /* those that wait for their next attempt, by time */
	struct learned *learned;  /* one per group; 0: all orders */
	struct worklist_gate {
		bool open;
		uint32_t held; /* orders that wait for the gate */
	} * gates;
	bool fetching, closed; /* of an open list: one is asked for; all have come */
	enum worklist_halt halt;
	enum batch_stop stop;
	uint64_t ok, failed, skipped, total; /* orders of the list, without canaries */
	uint64_t added, changes;	     /* orders that could start; those, ends and stops */
};

/* A kind of its own in a shared list: it has begun here, and goes on here. */
#define WORKLIST_HERE (1u << 31)

/* `orders` are borrowed for the life of the list. */
void worklist_init(struct worklist *list, const struct worklist_opts *opts,
		   struct batch_order *orders, size_t count);
void worklist_done(struct worklist *list);

/* An order, filled in anew, is there: it may start, or waits for its gate. */
void worklist_admit(struct worklist *list, struct batch_order *order);
/* It may start (again), now or then. */
void worklist_enqueue(struct worklist *list, struct batch_order *order);
void worklist_postpone(struct worklist *list, struct batch_order *order, uint64_t until_ns);
/* It is not to start any more. */
void worklist_withdraw(struct worklist *list, struct batch_order *order);

/* It has begun in the slots of this host, so no other gets it. */
void worklist_bind(struct worklist *list, struct batch_order *order);
/* It was lost with the host that had it: its next attempt begins anew. */
void worklist_lose(struct worklist *list, struct batch_order *order);

/* It is over: counts it, opens the gate that it guards, and checks the rule of --halt. */
void worklist_settle(struct worklist *list, struct batch_order *order, bool ok);

/* It was stopped, so it counts as not run. */
void worklist_leave(struct worklist *list, struct batch_order *order);

/* No more start. What is asked for later counts if it is worse. */
void worklist_stop(struct worklist *list, enum worklist_halt halt, enum batch_stop why);
/* A second Ctrl-C kills. */
void worklist_interrupt(struct worklist *list);

/* Time has passed: what waited for it may start, and the deadline may be over. */
void worklist_tick(struct worklist *list, uint64_t now_ns);
uint64_t worklist_deadline_ns(const struct worklist *list);

/* Of an open list: the place to fill in next, unless `ahead` orders wait already; NULL: none. It is
 * asked for once, until worklist_offer() or worklist_close(). */
struct batch_order *worklist_fetch(struct worklist *list, size_t ahead);
void worklist_offer(struct worklist *list, struct batch_order *order);
void worklist_close(struct worklist *list);
static inline bool worklist_is_open(const struct worklist *list)
{
	return list->opts.open && !list->closed;
}

/* What it needs of a host; NULL: nothing but its width. */
static inline const struct order_kind *worklist_kind(const struct worklist *list,
						     const struct schedule_item *item)
{
	return list->opts.kinds ? &list->opts.kinds[item->kind & ~WORKLIST_HERE] : NULL;
}

/* None starts for now, because of hold_until_ns. */
static inline bool worklist_is_held(const struct worklist *list)
{
	return list->opts.hold_until_ns > 0;
}

/* Whether any may start, now or later. */
bool worklist_has_more(const struct worklist *list);

/* A good run took so long. */
void worklist_learn(struct worklist *list, const struct batch_order *order, uint64_t ns);
/* How long one run takes, from history or from those before; 0: unknown. */
uint64_t worklist_expected_ns(const struct worklist *list, const struct batch_order *order);
uint64_t worklist_median_ns(const struct worklist *list, const struct batch_order *order);

/* All runs of an order that are still to come. */
uint64_t worklist_estimate_ns(const struct worklist *list, const struct batch_order *order);
/* The same of one that runs since `passed_ns`. */
uint64_t worklist_left_ns(const struct worklist *list, const struct batch_order *order,
			  uint64_t passed_ns);

/* Time until everything is done; NS_NEVER while there is no estimate. `running` is what runs, on
 * cores of `pool`, at most `jobs` at a time. */
uint64_t worklist_eta(const struct worklist *list, const struct corepool *pool,
		      const struct schedule_running *running, size_t running_count, int jobs);

#endif
