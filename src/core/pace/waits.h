/* Who is waited for in the collectives of a group: its ranks wait for each other, so only the order
 * in which they come tells who holds the others up.
 *
 * A mark (core/pace/step_times.h) is a collective that all members have come to. It is a trial of
 * the sign test (core/pace/straggler.h) if somebody was waited for: the last one came so long after
 * the others that it matters. It counts against that rank if the lag is longer than the clocks of
 * the hosts may be wrong. A program may
 * have many collectives of which few are waited for, so a rank is named only if the others also
 * wait for it for a part of the time that matters. It stays named until they hardly do, or have not
 * for many times as long as they used to, or the test no longer says so. Marks may be a sample of
 * all collectives. Looks at the same wait (core/pace/looks.h) are
 * one trial: a long one proves no more than a short one. Pure. */
#ifndef CORE_PACE_WAITS_H
#define CORE_PACE_WAITS_H

#include "core/pace/straggler.h"

#define WAITS_PART STRAGGLER_STEP_PART /* of the time that others wait for a rank: it is named, */
#define WAITS_PART_GONE 40	       /* and until they wait for less than this part of it */
#define WAITS_GAPS_GONE 16	       /* or not, for so many times the usual gap between waits */

/* Where a collective was in the course of them. */
struct wait_moment {
	uint64_t seq, at_ns; /* when the last one came */
	uint64_t marks;	     /* added before it */
};

struct waits {
	struct stragglers stragglers;
	struct wait_moment moments[STRAGGLER_TRIALS]; /* of its trials, at the same places */
	struct wait_moment last;		      /* the latest collective */
	uint32_t last_wait;			      /* of a look: the wait of the last trial */
	uint32_t named[STRAGGLER_NAMED_MAX];
	size_t named_count;
};

void waits_begin(struct waits *waits, uint32_t size);

/* Collectives come in the order of their numbers. `error_ns` as in stragglers_add(). Returns
 * whether there are news; at most one at a time, the rest come with the next mark. */
bool waits_add(struct waits *waits, const struct step_mark *mark, uint64_t error_ns,
	       struct straggler_news *ret_news);

/* ---- many groups ---- */

#define WAIT_GROUPS_MAX 64 /* later ones are not looked at */

struct wait_group {
	uint64_t key;
	uint32_t size;
	struct step_marks marks;
	struct waits waits;
};

struct wait_groups {
	struct wait_group **items;
	size_t count, cap;
};

void wait_groups_done(struct wait_groups *groups);

/* The part of the time for which the others waited for a rank of that group. */
double wait_groups_part(const struct wait_groups *groups, uint64_t key, uint32_t rank);

/* What some members of a group of `size` ranks tell of a collective. Returns whether there are
 * news, which name the group. */
bool wait_groups_add(struct wait_groups *groups, uint64_t key, uint32_t size,
		     const struct step_mark *mark, struct straggler_news *ret_news);

#endif
