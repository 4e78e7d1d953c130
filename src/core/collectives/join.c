#include "core/collectives/join.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/lines/ranges.h"

#define DEFAULT_GROUP "0" /* as PyTorch names the group of all ranks */

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
};

/* ---- lists of ranks ---- */

static void rank_list_add(struct rank_list *list, uint32_t rank)
{
	ARRAY_RESERVE(list->items, list->count, list->cap);
	list->items[list->count++] = rank;
}

static size_t place_of(const struct rank_list *list, uint32_t rank)
{
	size_t low = 0, high = list->count;
	while (low < high) {
		size_t middle = low + (high - low) / 2;
		if (list->items[middle] < rank)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

void rank_list_print(const struct rank_list *list, struct buf *out)
{
	struct ranges ranges = RANGES(out, ", ", 3);
	for (size_t i = 0; i < list->count; i++)
		ranges_add(&ranges, list->items[i]);
	ranges_end(&ranges);
}

/* ---- life ---- */

static void finding_done(struct finding *finding)
{
	free(finding->came.items);
	free(finding->missing.items);
	free(finding->silent.items);
	free(finding->unasked.items);
	free(finding->odd.items);
	free(finding->culprits.items);
}

void findings_done(struct findings *findings)
{
	for (size_t i = 0; i < findings->count; i++)
		finding_done(&findings->items[i]);
	free(findings->items);
	*findings = FINDINGS_INIT;
}

void join_init(struct join *join, size_t world_size)
{
	*join = (struct join){ .world_size = world_size };
	join->ranks = mem_alloc((world_size + 1) * sizeof(*join->ranks));
}

void join_done(struct join *join)
{
	free(join->ranks);
	*join = (struct join){ .ranks = NULL };
}

void join_add(struct join *join, uint32_t rank, const struct record *record, uint64_t fetched_ns)
{
	if (rank < join->world_size)
		join->ranks[rank] =
			(struct join_rank){ .record = record, .fetched_ns = fetched_ns };
}

void join_add_silent(struct join *join, uint32_t rank, const char *why)
{
	if (rank < join->world_size)
		join->ranks[rank] = (struct join_rank){ .why = why };
}

/* ---- groups that ranks share ---- */

static void shared_done(struct shared_list *list, struct map *by_key)
{
	for (size_t i = 0; i < list->count; i++) {
		free(list->items[i].members.items);
		free(list->items[i].views);
	}
	free(list->items);
	map_done(by_key);
}

/* Two groups may have one name on different ranks; their members tell them apart. */
static void make_key(const struct record_group *group, struct buf *ret_key)
{
	buf_clear(ret_key);
	buf_append(ret_key, group->name, strlen(group->name) + 1);
	if (group->rank_count)
		buf_append(ret_key, group->ranks, group->rank_count * sizeof(*group->ranks));
}

static struct shared *find_or_add(struct shared_list *list, struct map *by_key,
				  const struct record_group *group)
{
	AUTO(buf_done) struct buf key = BUF_INIT;
	make_key(group, &key);
	/* An index into a growing list, plus 1: 0 is not found. */
	uintptr_t found = (uintptr_t)map_get(by_key, buf_data(&key), buf_len(&key));
	if (found)
		return &list->items[found - 1];
	ARRAY_RESERVE(list->items, list->count, list->cap);
	struct shared *shared = &list->items[list->count++];
	*shared = (struct shared){ .known = group, .size_known = group->rank_count > 0 };
	for (size_t i = 0; i < group->rank_count; i++)
		rank_list_add(&shared->members, group->ranks[i]);
	map_put(by_key, buf_data(&key), buf_len(&key), (void *)(uintptr_t)list->count);
	return shared;
}

/* The members of the default group are known; of another group without a list, those that were
 * seen in it. */
static void complete_members(const struct join *join, struct shared *shared)
{
	if (shared->size_known)
		return;
	bool all = str_eq(shared->known->name, DEFAULT_GROUP);
	for (uint32_t rank = 0; rank < join->world_size; rank++) {
		const struct record *record = join->ranks[rank].record;
		bool seen = all;
		for (size_t i = 0; record && !seen && i < record->count; i++)
			seen = record->groups[i].rank_count == 0 &&
			       str_eq(record->groups[i].name, shared->known->name);
		if (seen)
			rank_list_add(&shared->members, rank);
	}
	shared->size_known = all;
}

static void add_view(struct shared *shared, uint32_t rank, const struct record_group *view)
{
	size_t at = place_of(&shared->members, rank);
	if (at < shared->members.count && shared->members.items[at] == rank)
		shared->views[at] = view;
}

static void share_groups(const struct join *join, struct shared_list *list, struct map *by_key)
{
	for (int pass = 0; pass < 2; pass++) {
		for (uint32_t rank = 0; rank < join->world_size; rank++) {
			const struct record *record = join->ranks[rank].record;
			for (size_t i = 0; record && i < record->count; i++) {
				struct shared *shared =
					find_or_add(list, by_key, &record->groups[i]);
				if (pass == 1)
					add_view(shared, rank, &record->groups[i]);
			}
		}
		for (size_t i = 0; pass == 0 && i < list->count; i++) {
			struct shared *shared = &list->items[i];
			complete_members(join, shared);
			shared->views = mem_alloc((shared->members.count + 1) *
						  sizeof(struct record_group *));
		}
	}
}

/* ---- what differs ---- */

static bool is_one_of(const char *op, const char *const *names)
{
	for (size_t i = 0; names[i]; i++)
		if (str_starts(op, names[i]))
			return true;
	return false;
}

static bool empty_list(const char *json)
{
	return !*json || str_eq(json, "[]") || str_eq(json, "[[]]");
}

/* Roots and the others give and get different tensors in some operations. */
static enum difference compare(const struct record_entry *a, const struct record_entry *b)
{
	static const char *const own_input[] = { "all_to_all", "alltoall", "scatter", NULL };
	static const char *const own_output[] = { "all_to_all", "alltoall", "gather", NULL };
	static const char *const one_input[] = { "scatter", "broadcast", NULL };
	static const char *const one_output[] = { "gather", NULL };
	const struct record_shape *x = &a->shape, *y = &b->shape;
	if (!str_eq(a->op, b->op))
		return DIFFERENCE_OP;
	if (!is_one_of(a->op, own_input) && !str_eq(x->in_sizes, y->in_sizes))
		return DIFFERENCE_SIZE;
	if (!is_one_of(a->op, own_output) && !str_eq(x->out_sizes, y->out_sizes))
		return DIFFERENCE_SIZE;
	if (!is_one_of(a->op, one_input) && !empty_list(x->in_types) && !empty_list(y->in_types) &&
	    !str_eq(x->in_types, y->in_types))
		return DIFFERENCE_TYPE;
	if (!is_one_of(a->op, one_output) && !empty_list(x->out_types) &&
	    !empty_list(y->out_types) && !str_eq(x->out_types, y->out_types))
		return DIFFERENCE_TYPE;
	return DIFFERENCE_NONE;
}

/* Entries that are alike. */
struct kind {
	const struct record_entry *entry;
	size_t count;
};

static struct kind *count_kinds(const struct shared *shared, uint64_t seq, size_t *ret_count)
{
	struct kind *kinds = NULL;
	size_t count = 0, cap = 0;
	for (size_t i = 0; i < shared->members.count; i++) {
		const struct record_entry *entry =
			shared->views[i] ? record_find(shared->views[i], seq, false) : NULL;
		size_t at = 0;
		if (!entry)
			continue;
		while (at < count && compare(kinds[at].entry, entry) != DIFFERENCE_NONE)
			at++;
		if (at == count) {
			ARRAY_RESERVE(kinds, count, cap);
			kinds[count++] = (struct kind){ .entry = entry };
		}
		kinds[at].count++;
	}
	*ret_count = count;
	return kinds;
}

/* The kind of entry that most ranks came with; `ret_most`: it has more than each other one. */
static const struct record_entry *usual_entry(const struct shared *shared, uint64_t seq,
					      bool *ret_most)
{
	size_t count, best = 0;
	AUTO_FREE struct kind *kinds = count_kinds(shared, seq, &count);
	*ret_most = true;
	for (size_t i = 1; i < count; i++) {
		if (kinds[i].count > kinds[best].count) {
			best = i;
			*ret_most = true;
		} else if (kinds[i].count == kinds[best].count) {
			*ret_most = false;
		}
	}
	return kinds[best].entry;
}

/* ---- one group ---- */

/* The first collective that a member has under way; 0: none. */
static uint64_t first_open(const struct shared *shared)
{
	uint64_t seq = 0;
	for (size_t i = 0; i < shared->members.count; i++) {
		const struct record_group *view = shared->views[i];
		for (size_t j = 0; view && j < view->open_count; j++)
			if (!view->open[j].p2p && (seq == 0 || view->open[j].seq < seq))
				seq = view->open[j].seq;
	}
	return seq;
}

static void note_age(struct finding *finding, const struct join_rank *rank,
		     const struct record_entry *entry)
{
	uint64_t age_ns = rank->fetched_ns - MIN(rank->fetched_ns, entry->created_ns);
	if (finding->came.count == 0) {
		finding->age_ns = age_ns;
		finding->spread_ns = 0;
		return;
	}
	uint64_t newest_ns = finding->age_ns - finding->spread_ns;
	finding->age_ns = MAX(finding->age_ns, age_ns);
	finding->spread_ns = finding->age_ns - MIN(newest_ns, age_ns);
}

static bool is_unknown(const struct join *join, uint32_t rank)
{
	return rank >= join->world_size || !join->ranks[rank].record;
}

/* Where a rank without a record belongs. */
static struct rank_list *absent_list(const struct join *join, uint32_t rank,
				     struct finding *finding)
{
	bool asked = rank < join->world_size && join->ranks[rank].why;
	return asked ? &finding->silent : &finding->unasked;
}

static void place_member(const struct join *join, const struct shared *shared, size_t at,
			 uint64_t seq, struct finding *finding)
{
	uint32_t rank = shared->members.items[at];
	const struct record_group *view = shared->views[at];
	const struct record_entry *entry = view ? record_find(view, seq, false) : NULL;
	if (is_unknown(join, rank)) {
		rank_list_add(absent_list(join, rank, finding), rank);
	} else if (entry) {
		enum difference difference = compare(finding->entry, entry);
		if (difference != DIFFERENCE_NONE) {
			rank_list_add(&finding->odd, rank);
			if (!finding->odd_entry) {
				finding->odd_entry = entry;
				finding->difference = difference;
			}
		}
		if (!entry->complete) {
			note_age(finding, &join->ranks[rank], entry);
			rank_list_add(&finding->came, rank);
		}
	} else if (!view || view->last_seq < seq) {
		rank_list_add(&finding->missing, rank);
	}
}

/* The longest pause between two of a rank's last collectives. */
static uint64_t longest_pause_ns(const struct record_group *view)
{
	uint64_t longest_ns = 0, last_ns = 0;
	for (size_t i = 0; i < view->done_count; i++) {
		uint64_t created_ns = view->done[i].created_ns;
		if (last_ns && created_ns > last_ns)
			longest_ns = MAX(longest_ns, created_ns - last_ns);
		last_ns = created_ns;
	}
	return longest_ns;
}

/* How long a collective of this group may wait before that is told as a fault. */
static uint64_t impatient_ns(const struct shared *shared, uint64_t patience_ns)
{
	uint64_t longest_ns = 0;
	for (size_t i = 0; patience_ns && i < shared->members.count; i++)
		if (shared->views[i])
			longest_ns = MAX(longest_ns, longest_pause_ns(shared->views[i]));
	return MAX(patience_ns, longest_ns * JOIN_USUAL_TIMES);
}

static void look_at_group(const struct join *join, const struct shared *shared,
			  uint64_t patience_ns, struct findings *findings)
{
	uint64_t seq = first_open(shared);
	if (seq == 0)
		return;
	bool most;
	struct finding finding = {
		.entry = usual_entry(shared, seq, &most),
		.group = shared->known,
		.size = shared->members.count,
		.size_known = shared->size_known,
	};
	for (size_t i = 0; i < shared->members.count; i++)
		place_member(join, shared, i, seq, &finding);
	size_t absent = finding.missing.count + finding.silent.count + finding.unasked.count;
	finding.kind = finding.odd.count ? FINDING_DIFFERS
		       : absent		 ? FINDING_WAITS
					 : FINDING_ALL_CAME;
	finding.early = finding.age_ns < impatient_ns(shared, patience_ns);
	if (finding.kind == FINDING_DIFFERS && most) /* that never heals */
		for (size_t i = 0; i < finding.odd.count; i++)
			rank_list_add(&finding.culprits, finding.odd.items[i]);
	ARRAY_RESERVE(findings->items, findings->count, findings->cap);
	findings->items[findings->count++] = finding;
}

/* ---- collectives that are over ---- */

/* Ranks came to it with another operation or type, and it ended all the same: gloo adds up what it
 * gets. Sizes do not count here: those of some operations may differ. */
static bool ended_unlike(const struct shared *shared, uint64_t seq,
			 const struct record_entry *usual)
{
	bool unlike = false;
	for (size_t i = 0; i < shared->members.count; i++) {
		const struct record_entry *entry =
			shared->views[i] ? record_find(shared->views[i], seq, false) : NULL;
		if (entry && !entry->complete)
			return false;
		enum difference difference = entry ? compare(usual, entry) : DIFFERENCE_NONE;
		unlike |= difference == DIFFERENCE_OP || difference == DIFFERENCE_TYPE;
	}
	return unlike;
}

/* The first of the last collectives that ended so. */
static void look_at_past(const struct join *join, const struct shared *shared,
			 struct findings *findings)
{
	const struct record_group *view = NULL;
	for (size_t i = 0; i < shared->members.count && !view; i++)
		view = shared->views[i];
	for (size_t i = 0; view && i < view->done_count; i++) {
		const struct record_entry *done = &view->done[i];
		bool most;
		const struct record_entry *usual =
			done->p2p ? NULL : usual_entry(shared, done->seq, &most);
		if (!usual || !ended_unlike(shared, done->seq, usual))
			continue;
		struct finding finding = { .kind = FINDING_DIFFERS,
					   .entry = usual,
					   .group = shared->known,
					   .size = shared->members.count,
					   .size_known = shared->size_known };
		for (size_t k = 0; k < shared->members.count; k++)
			place_member(join, shared, k, done->seq, &finding);
		for (size_t k = 0; most && k < finding.odd.count; k++)
			rank_list_add(&finding.culprits, finding.odd.items[k]);
		ARRAY_RESERVE(findings->items, findings->count, findings->cap);
		findings->items[findings->count++] = finding;
		return;
	}
}

/* ---- sends and receives ---- */

/* "send 0->1" and "recv 1<-0", in ranks of the group: this rank's place, and the other's. */
static bool parse_pair(const struct record_entry *entry, unsigned *ret_self, unsigned *ret_peer,
		       bool *ret_sends)
{
	*ret_sends = str_starts(entry->op, "send ");
	return sscanf(entry->op, *ret_sends ? "send %u->%u" : "recv %u<-%u", ret_self, ret_peer) ==
	       2;
}

static bool answers(const struct record_group *view, const struct record_entry *to, unsigned self,
		    unsigned peer, bool sends)
{
	const struct record_entry *entry = view ? record_find(view, to->seq, true) : NULL;
	unsigned its_self, its_peer;
	bool its_sends;
	return entry && parse_pair(entry, &its_self, &its_peer, &its_sends) && its_self == peer &&
	       its_peer == self && its_sends != sends;
}

static void look_at_pair(const struct join *join, const struct shared *shared, size_t at,
			 const struct record_entry *entry, uint64_t patience_ns,
			 struct findings *findings)
{
	unsigned self, peer;
	bool sends;
	if (!parse_pair(entry, &self, &peer, &sends) || peer >= shared->members.count ||
	    answers(shared->views[peer], entry, self, peer, sends))
		return;
	uint32_t rank = shared->members.items[at], other = shared->members.items[peer];
	struct finding finding = { .kind = FINDING_WAITS,
				   .entry = entry,
				   .group = shared->known,
				   .size = 2,
				   .size_known = true };
	note_age(&finding, &join->ranks[rank], entry);
	rank_list_add(&finding.came, rank);
	rank_list_add(is_unknown(join, other) ? absent_list(join, other, &finding)
					      : &finding.missing,
		      other);
	finding.early = finding.age_ns < patience_ns;
	ARRAY_RESERVE(findings->items, findings->count, findings->cap);
	findings->items[findings->count++] = finding;
}

static void look_at_pairs(const struct join *join, const struct shared *shared,
			  uint64_t patience_ns, struct findings *findings)
{
	for (size_t i = 0; i < shared->members.count; i++) {
		const struct record_group *view = shared->views[i];
		for (size_t j = 0; view && j < view->open_count; j++)
			if (view->open[j].p2p)
				look_at_pair(join, shared, i, &view->open[j], patience_ns,
					     findings);
	}
}

/* ---- causes ---- */

/* Which ranks wait in one of the findings. */
static bool *mark_waiting(const struct join *join, const struct findings *findings)
{
	bool *waits = mem_alloc(join->world_size + 1);
	for (size_t i = 0; i < findings->count; i++)
		for (size_t j = 0; j < findings->items[i].came.count; j++)
			waits[findings->items[i].came.items[j]] = true;
	return waits;
}

/* A rank that is missing and waits nowhere holds the others up; one that gives no record does, if
 * nobody else can. */
static void blame(struct finding *finding, const bool *waits)
{
	size_t idle = 0;
	for (size_t i = 0; i < finding->missing.count; i++)
		idle += !waits[finding->missing.items[i]];
	finding->ahead = idle > finding->came.count && finding->came.count > 0;
	finding->cycle = finding->missing.count > 0 && idle == 0 && finding->silent.count == 0;
	if (finding->ahead || finding->early)
		return;
	for (size_t i = 0; i < finding->missing.count; i++)
		if (!waits[finding->missing.items[i]])
			rank_list_add(&finding->culprits, finding->missing.items[i]);
	if (finding->missing.count + finding->unasked.count == 0 &&
	    finding->silent.count <= finding->came.count)
		for (size_t i = 0; i < finding->silent.count; i++)
			rank_list_add(&finding->culprits, finding->silent.items[i]);
}

static int by_worth(const void *a, const void *b)
{
	const struct finding *x = a, *y = b;
	if ((x->culprits.count > 0) != (y->culprits.count > 0))
		return x->culprits.count > 0 ? -1 : 1;
	if (x->kind != y->kind && (x->kind == FINDING_ALL_CAME || y->kind == FINDING_ALL_CAME))
		return y->kind == FINDING_ALL_CAME ? -1 : 1;
	if (x->age_ns != y->age_ns)
		return x->age_ns > y->age_ns ? -1 : 1;
	return strcmp(x->group->name, y->group->name);
}

/* Those who wait for each other in a circle have no culprit among them, but a finding elsewhere
 * may have one that they all wait for. */
static void settle_cycles(struct findings *findings)
{
	bool explained = false;
	for (size_t i = 0; i < findings->count; i++)
		explained |= findings->items[i].culprits.count > 0;
	for (size_t i = 0; i < findings->count; i++)
		findings->items[i].cycle &= !explained;
}

void join_judge(const struct join *join, uint64_t patience_ns, struct findings *ret_findings)
{
	struct shared_list list = { .items = NULL };
	struct map by_key = MAP_INIT;
	*ret_findings = FINDINGS_INIT;
	share_groups(join, &list, &by_key);
	for (size_t i = 0; i < list.count; i++) {
		look_at_group(join, &list.items[i], patience_ns, ret_findings);
		look_at_pairs(join, &list.items[i], patience_ns, ret_findings);
		look_at_past(join, &list.items[i], ret_findings);
	}
	AUTO_FREE bool *waits = mark_waiting(join, ret_findings);
	for (size_t i = 0; i < ret_findings->count; i++)
		if (ret_findings->items[i].kind == FINDING_WAITS)
			blame(&ret_findings->items[i], waits);
	settle_cycles(ret_findings);
	if (ret_findings->count > 1)
		qsort(ret_findings->items, ret_findings->count, sizeof(ret_findings->items[0]),
		      by_worth);
	shared_done(&list, &by_key);
}
