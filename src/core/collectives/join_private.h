/* What the parts of core/collectives share: join.c looks for the collective that waits in each
 * group and for who is to blame, pairs.c for what PyTorch's recorder numbers apart. */
#ifndef CORE_COLLECTIVES_JOIN_PRIVATE_H
#define CORE_COLLECTIVES_JOIN_PRIVATE_H

#include "base/map.h"
#include "core/collectives/join.h"

/* A process group with what each member's record says about it. */
struct shared {
	const struct record_group *known; /* a description of it */
	struct rank_list members;
	const struct record_group **views; /* of each member; NULL: it never used the group */
	bool size_known;
};

struct shared_list {
	struct shared *items;
	size_t count, cap;
	struct map by_key;
};

#define SHARED_LIST_INIT ((struct shared_list){ .items = NULL, .by_key = MAP_INIT })
void shared_list_done(struct shared_list *list);

/* The groups of all records, each once. */
void shared_list_fill(struct shared_list *list, const struct join *join);

/* ---- for findings ---- */

void rank_list_add(struct rank_list *list, uint32_t rank);

/* How the second differs from the first, which is the usual one. */
enum difference entry_compare(const struct record_entry *usual, const struct record_entry *entry);

/* A finding about that entry of the group, with nobody in its lists. */
struct finding finding_of(const struct shared *shared, enum finding_kind kind,
			  const struct record_entry *entry);
void findings_add(struct findings *findings, const struct finding *finding);

/* The rank is in the operation that the finding is about. */
void finding_add_came(const struct join *join, struct finding *finding, uint32_t rank,
		      const struct record_entry *entry);

/* The rank has not come, or it is not known whether it has. */
void finding_add_absent(const struct join *join, struct finding *finding, uint32_t rank);

/* How long an operation of this group may wait before that is told as a fault. */
uint64_t shared_usual_ns(const struct shared *shared, uint64_t patience_ns);

/* Adds a finding for each send or receive that nobody answers, and for a monitored barrier. */
void look_at_pairs(const struct join *join, const struct shared *shared, uint64_t patience_ns,
		   struct findings *findings);

#endif
