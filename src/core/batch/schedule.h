/* Which order is next: the first in line that fits now where it is to run, in a pool of cores or on
 * a host elsewhere. Others overtake a wide one that does not fit (reserving cores for it at once
 * cost 39 % of the makespan when measured), but only so many: then nothing starts there until it
 * fits, so that none waits for ever.
 *
 * The line is sorted by a key, smaller first; schedule_key() makes one. Equal keys leave in the
 * order in which they came. */
#ifndef CORE_BATCH_SCHEDULE_H
#define CORE_BATCH_SCHEDULE_H

#include "base/heap.h"
#include "core/host/corepool.h"

enum schedule_order {
	SCHEDULE_LONGEST, /* time x width; without history: the widest, then as listed */
	SCHEDULE_LISTED,
	SCHEDULE_RANDOM,
};

/* Embedded in what is scheduled. */
struct schedule_item {
	struct heap_node node;
	uint32_t index; /* place in the list */
	int width;
	uint32_t kind; /* those of one kind and width fit alike */
};

struct schedule_lane;

struct schedule {
	struct schedule_lane *lanes; /* one per kind and width */
	size_t count, cap;
	size_t queued;
};

#define SCHEDULE_INIT ((struct schedule){ .lanes = NULL })

enum schedule_fit {
	SCHEDULE_NEVER, /* it cannot run there, so it is not in line there */
	SCHEDULE_LATER,
	SCHEDULE_NOW,
};

/* Where orders run. */
struct schedule_taker {
	enum schedule_fit (*fit)(void *arg, const struct schedule_item *item);
	void *arg;
	int cores; /* that orders can have there together */
	/* --- */
	const struct schedule_item *first; /* in line, and did not fit; NULL: none */
	size_t overtaken;		   /* by so many others since it is first */
};

/* How many may overtake the first in line, for each core. */
#define SCHEDULE_OVERTAKE 8

void schedule_done(struct schedule *schedule); /* does not touch the items */

/* The key of an item under a rule. `estimate_ns` 0: unknown; `seed` is for SCHEDULE_RANDOM. */
uint64_t schedule_key(const struct schedule_item *item, enum schedule_order order,
		      uint64_t estimate_ns, uint64_t seed);

void schedule_add(struct schedule *schedule, struct schedule_item *item, uint64_t key);

/* Takes an item out that is in line. */
void schedule_remove(struct schedule *schedule, struct schedule_item *item);

/* Takes the next item out; NULL when nothing fits. */
struct schedule_item *schedule_next(struct schedule *schedule, struct schedule_taker *taker);

/* The first in line whose kind `what` holds for; stays there. NULL: there is none. */
typedef bool schedule_test_fn(void *arg, const struct schedule_item *item);
struct schedule_item *schedule_find(const struct schedule *schedule, schedule_test_fn *what,
				    void *arg);

/* The first in line, whether it fits or not; stays there. NULL: there is none. */
struct schedule_item *schedule_first(const struct schedule *schedule);

/* A pool of cores as the place, and the next item together with its cores. */
struct schedule_taker schedule_pool_taker(struct corepool *pool);
struct schedule_item *schedule_place(struct schedule *schedule, struct schedule_taker *taker,
				     struct corepool *pool, struct placement *ret_placement);

/* Expected duration of an item in nanoseconds. */
typedef uint64_t schedule_estimate_fn(void *arg, const struct schedule_item *item);

struct schedule_running {
	struct placement placement;
	uint64_t left_ns; /* expected */
};

/* The time until everything is done, found by playing the rest of the schedule: `running` orders
 * hold their cores in `pool`, and at most `jobs` run at a time. Beyond REPLAY_MAX queued items it
 * divides the work by the cores instead, which is as good then. */
#define SCHEDULE_REPLAY_MAX 10000
uint64_t schedule_eta(const struct schedule *schedule, const struct corepool *pool,
		      const struct schedule_running *running, size_t running_count, int jobs,
		      schedule_estimate_fn *estimate, void *arg);

#endif
