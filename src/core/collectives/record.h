/* What one rank's flight recorder says about its collectives: the end of it, which is what a hang
 * is about.
 *
 * PyTorch's recorder is a ring of the last operations, oldest first. Per process group a record
 * keeps every operation that is not complete (the oldest RECORD_OPEN_MAX of them), the last
 * RECORD_DONE_MAX collectives that are, and of sends and receives the last of each pair and
 * direction, so its size does not depend on the ring's. Of the last RECORD_TIMES_MAX collectives it
 * knows when the rank came to them.
 *
 * What the recorder leaves out (with gloo: sends, receives, monitored barriers) our hook in the
 * worker notes, with numbers of its own.
 *
 *     struct record_entry entry = { .seq = 5, ... };
 *     record_add(&record, "0", &entry);
 */
#ifndef CORE_COLLECTIVES_RECORD_H
#define CORE_COLLECTIVES_RECORD_H

#include "base/buf.h"

#define RECORD_OPEN_MAX 64 /* a rank that has more under way does not wait for the later ones */
#define RECORD_DONE_MAX 8
#define RECORD_PAIRS_MAX 256
#define RECORD_TIMES_MAX 1024
#define RECORD_GROUPS_MAX 4096
#define RECORD_RANKS_MAX 1000000 /* of a group */
#define RECORD_TEXT_MAX 256	 /* longer texts are cut */

#define RECORD_DEFAULT_GROUP "0" /* as PyTorch names the group of all ranks */

/* Sizes and types of the tensors, as text: "[[4, 3]]", "[Float]". */
struct record_shape {
	char *in_sizes, *out_sizes, *in_types, *out_types;
};

struct record_entry {
	/* Counts the group's collectives, or this rank's sends and receives in it. What was noted
	 * counts by its name: the third "send 0->1" is the one that the third "recv 1<-0" gets. */
	uint64_t seq;
	uint64_t created_ns; /* wall clock of its host */
	char *op;	     /* "all_reduce"; "send 0->1", "irecv 1<-0" by ranks of the group */
	struct record_shape shape;
	bool p2p; /* it is no part of the count of collectives */
	bool noted;
	bool complete;
};

/* When the rank came to a collective. */
struct record_time {
	uint64_t seq;
	uint64_t ns; /* wall clock of its host */
};

struct record_group {
	char *name, *desc;
	uint32_t *ranks; /* its members, ascending; NULL: not known */
	size_t rank_count;
	struct record_entry *open, *done; /* both oldest first; `done` has collectives only */
	size_t open_count, done_count;
	struct record_entry *pairs; /* complete: the last of each name that does not count */
	size_t pair_count;
	struct record_time *times; /* ascending; see record_times() */
	size_t time_count;
	uint64_t last_seq; /* of the latest collective; 0: none */
};

struct record {
	struct record_group *groups;
	size_t count, cap;
};

#define RECORD_INIT ((struct record){ .groups = NULL })
void record_done(struct record *record);

/* The group of that name, made if it is new. NULL: there are too many. */
struct record_group *record_group(struct record *record, const char *name);

/* Replaces what is known of its members. Sorts them, each once; an empty list is ignored. */
void record_set_ranks(struct record_group *group, const uint32_t *ranks, size_t count);
void record_set_desc(struct record_group *group, const char *desc);

/* Entries come oldest first. Takes over the texts of `entry`; those that are NULL become "". */
void record_add(struct record_group *group, struct record_entry *entry);

/* Adds a collective to those of which the time is known, unless a later one, or it, is there. */
void record_add_time(struct record_group *group, const struct record_time *time);

/* The last ones, at most RECORD_TIMES_MAX. */
const struct record_time *record_times(const struct record_group *group, size_t *ret_count);

/* When the rank came to that one; NULL: it has not, or that is not known any more. */
const struct record_time *record_time_of(const struct record_group *group, uint64_t seq);

/* The rank died in its last collective, which PyTorch then calls complete: it is not. */
void record_reopen_last(struct record *record);

/* The collective of that number, or NULL if the rank has not come so far or it is no longer kept.
 */
const struct record_entry *record_find(const struct record_group *group, uint64_t seq);

void record_entry_done(struct record_entry *entry);

#endif
