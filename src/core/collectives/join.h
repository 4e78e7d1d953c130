/* Joins the flight records of a job's ranks: which collective is not complete, who is in it, who
 * never came, and who came with something else.
 *
 *     struct join join = JOIN_INIT(world_size);
 *     join_add(&join, 0, &record, fetched_ns);
 *     join_add_silent(&join, 5, "it did not answer in time");
 *     join_judge(&join, JOIN_PATIENCE_NS, &findings);
 *
 * A group's first collective that is not complete is a finding. A rank that never came to one
 * collective may wait in another: then the other is nearer to the cause. A finding names culprits
 * only if the records support it; otherwise it lists what is known. So a collective that waits no
 * longer than is usual in its group has no culprit: a slow job is healthy.
 */
#ifndef CORE_COLLECTIVES_JOIN_H
#define CORE_COLLECTIVES_JOIN_H

#include "base/clock.h"
#include "core/collectives/record.h"
#include "core/pace/clock_offset.h"

#define JOIN_PATIENCE_NS (5 * NS_PER_S)
#define JOIN_USUAL_TIMES 3 /* as long as the longest of the last pauses is not usual any more */

struct rank_list {
	uint32_t *items; /* ascending */
	size_t count, cap;
};

enum finding_kind {
	FINDING_WAITS,	  /* ranks came, and wait for others */
	FINDING_DIFFERS,  /* ranks came with another operation, size or type; `came` is empty if
			   * it ended all the same */
	FINDING_ALL_CAME, /* nobody is missing: the transport holds it up, or it has just begun */
	FINDING_KIND_COUNT,
};

enum difference {
	DIFFERENCE_NONE,
	DIFFERENCE_OP,
	DIFFERENCE_SIZE,
	DIFFERENCE_TYPE,
	DIFFERENCE_COUNT,
};

struct finding {
	enum finding_kind kind;
	const struct record_group *group; /* as one member describes it; borrowed from its record */
	const struct record_entry *entry; /* what most ranks came with; borrowed as well */
	size_t size;			  /* members of the group */
	bool size_known;		  /* else those that were ever seen in it */
	struct rank_list came, missing;
	struct rank_list silent;  /* asked for their records, in vain */
	struct rank_list unasked; /* nothing is known about them */
	/* DIFFERS: those unlike the most, or unlike `entry` if no kind of entry has the most. */
	struct rank_list odd;
	const struct record_entry *odd_entry; /* of the first of them */
	enum difference difference;
	uint64_t age_ns, spread_ns; /* since the first of `came` came; from the first to the last */
	/* Who holds the others up. Empty: the records do not say. */
	struct rank_list culprits;
	/* Fewer came than did not, and those others wait nowhere: the few may be ahead. */
	bool ahead;
	bool cycle; /* all who are missing wait in other groups, and none of those has a culprit */
	/* It waits no longer than is usual, or the program may not wait for it yet (isend, irecv):
	 * nobody is to blame yet. */
	bool early;
	bool pair; /* a send or a receive, which waits for one rank, or for whoever sends */
};

struct findings {
	struct finding *items; /* those with culprits first, then by age */
	size_t count, cap;
};

#define FINDINGS_INIT ((struct findings){ .items = NULL })
void findings_done(struct findings *findings);

struct join_rank {
	const struct record *record; /* borrowed; NULL: there is none */
	const char *why;	     /* there is none; borrowed; NULL: it was not asked */
	uint64_t fetched_ns;
	struct wall_offset clock; /* one clock for all minus its host's */
};

struct join {
	struct join_rank *ranks;
	size_t world_size;
};

void join_init(struct join *join, size_t world_size);
void join_done(struct join *join);

/* `fetched_ns`: when the record was read, by the clock that its entries have their times from. */
void join_add(struct join *join, uint32_t rank, const struct record *record, uint64_t fetched_ns);
void join_add_silent(struct join *join, uint32_t rank, const char *why);

/* How far the clock of its host is from one that all are compared with; without it nothing is known
 * of that. */
void join_set_clock(struct join *join, uint32_t rank, const struct wall_offset *clock);

/* `patience_ns`: nobody is blamed before, nor within JOIN_USUAL_TIMES the longest of the group's
 * last pauses between two collectives. 0: it is known that the job hangs. */
void join_judge(const struct join *join, uint64_t patience_ns, struct findings *ret_findings);

void rank_list_print(const struct rank_list *list, struct buf *out); /* "0-2, 5" */

#endif
