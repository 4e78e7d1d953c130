/* What a host tells of the order in which its ranks come to collectives, from the flight records of
 * its workers (core/collectives/record.h), which it reads now and then.
 *
 * Groups whose ranks are all here are judged here (core/pace/waits.h). Of others the coordinator is
 * told: a sample of the collectives that all ranks here have come to since the last look. All hosts
 * pick the same ones, by their numbers, whenever they look: a host that picks fewer picks some of
 * those that another picks. Pure. */
#ifndef CORE_COLLECTIVES_HOST_ARRIVALS_H
#define CORE_COLLECTIVES_HOST_ARRIVALS_H

#include "core/collectives/record.h"
#include "core/pace/waits.h"

#define ARRIVALS_MARKS 32	/* of a group, in a look: half of what is kept of it */
#define ARRIVALS_TOLD 8		/* groups that the coordinator is told of: the largest */
#define ARRIVALS_IN_ALL 32768	/* marks that all hosts tell, between two looks */
#define ARRIVALS_HOST_MAX 128	/* that a host tells, where nodes are few, */
#define ARRIVALS_HOST_MIN 16	/* and where they are many */
#define ARRIVALS_GROUPS_MAX 256 /* that a host looks at */

struct arrival_group {
	uint64_t key;	     /* the same on all hosts; never 0 */
	uint32_t size, here; /* its ranks, and those of this host */
	char *name;	     /* for people */
	uint64_t seen;	     /* the last collective that was looked at */
	/* Of the last look, on this host's clock. */
	struct step_mark marks[ARRIVALS_MARKS];
	size_t mark_count;
	const struct record_group **views; /* of the ranks of this host, during a look */
};

struct host_arrivals {
	uint32_t rank_base, workers, world_size;
	size_t limit;
	int64_t wall_shift_ns; /* core/pace/clock_offset.h, at the last look */
	struct arrival_group *groups;
	size_t count, cap;
	struct wait_groups judges; /* of groups whose ranks are all here */
	/* Of the last look. */
	struct straggler_news *news;
	size_t news_count, news_cap;
	uint64_t error_ns; /* by which the times may be wrong, besides what is known of the clock */
};

#define HOST_ARRIVALS_INIT ((struct host_arrivals){ .groups = NULL })

/* A round of so many nodes begins. */
void host_arrivals_begin(struct host_arrivals *arrivals, uint32_t rank_base, uint32_t workers,
			 uint32_t world_size, uint32_t nodes, int64_t wall_shift_ns);
void host_arrivals_done(struct host_arrivals *arrivals);

/* `records`: of each worker, by local rank; those that are not known are empty. Returns whether any
 * worker has come to a collective. */
bool host_arrivals_look(struct host_arrivals *arrivals, const struct record *records,
			int64_t wall_shift_ns, uint64_t now_ns);

/* Whether the coordinator is to be told the marks of this group. */
bool host_arrivals_tells(const struct host_arrivals *arrivals, const struct arrival_group *group);

/* NULL: there is no such group. */
const struct arrival_group *host_arrivals_find(const struct host_arrivals *arrivals, uint64_t key);

#endif
