#include "core/collectives/join.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/collectives/join_private.h"
#include "core/lines/ranges.h"

/* ---- lists of ranks ---- */

void rank_list_add(struct rank_list *list, uint32_t rank)
{
	ARRAY_RESERVE(list->items, list->count, list->cap);
	list->items[list->count++] = rank;
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

void join_set_clock(struct join *join, uint32_t rank, const struct wall_offset *clock)
{
	if (rank < join->world_size)
		join->ranks[rank].clock = *clock;
}

/* ---- findings ---- */

/* The finding's times: since the first of those who came, and from the first to the last. */
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

void finding_add_came(const struct join *join, struct finding *finding, uint32_t rank,
		      const struct record_entry *entry)
{
	note_age(finding, &join->ranks[rank], entry);
	rank_list_add(&finding->came, rank);
}

void finding_add_absent(const struct join *join, struct finding *finding, uint32_t rank)
{
	const struct join_rank *known = rank < join->world_size ? &join->ranks[rank] : NULL;
	if (known && known->record)
		rank_list_add(&finding->missing, rank);
	else
		rank_list_add(known && known->why ? &finding->silent : &finding->unasked, rank);
}

struct finding finding_of(const struct shared *shared, enum finding_kind kind,
			  const struct record_entry *entry)
{
	return (struct finding){ .kind = kind,
				 .entry = entry,
				 .group = shared->known,
				 .size = shared->members.count,
				 .size_known = shared->size_known };
}

void findings_add(struct findings *findings, const struct finding *finding)
{
	ARRAY_RESERVE(findings->items, findings->count, findings->cap);
	findings->items[findings->count++] = *finding;
}

/* ---- what most came with ---- */

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
			shared->views[i] ? record_find(shared->views[i], seq) : NULL;
		size_t at = 0;
		if (!entry)
			continue;
		while (at < count && entry_compare(kinds[at].entry, entry) != DIFFERENCE_NONE)
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

/* The first collective after `after` that a member has under way; 0: none. */
static uint64_t next_open(const struct shared *shared, uint64_t after)
{
	uint64_t seq = 0;
	for (size_t i = 0; i < shared->members.count; i++) {
		const struct record_group *view = shared->views[i];
		for (size_t j = 0; view && j < view->open_count; j++) {
			uint64_t open = view->open[j].seq;
			if (!view->open[j].p2p && open > after && (seq == 0 || open < seq))
				seq = open;
		}
	}
	return seq;
}

/* Nobody can leave it before all have come, and a member has left it. */
static bool was_left(const struct shared *shared, uint64_t seq)
{
	static const char *const ops[] = { "all_reduce", "allreduce",  "all_gather",
					   "barrier",	 "all_to_all", "reduce_scatter" };
	for (size_t i = 0; i < shared->members.count; i++) {
		const struct record_group *view = shared->views[i];
		const struct record_entry *entry = view ? record_find(view, seq) : NULL;
		for (size_t j = 0; entry && entry->complete && j < ARRAY_LEN(ops); j++)
			if (str_starts(entry->op, ops[j]))
				return true;
	}
	return false;
}

/* All members came, with the same, as far as their records are known. */
static bool is_whole(const struct join *join, const struct shared *shared, uint64_t seq)
{
	bool most, left = was_left(shared, seq);
	const struct record_entry *usual = usual_entry(shared, seq, &most);
	for (size_t i = 0; i < shared->members.count; i++) {
		const struct record_group *view = shared->views[i];
		const struct record_entry *entry = view ? record_find(view, seq) : NULL;
		uint32_t rank = shared->members.items[i];
		bool known = rank < join->world_size && join->ranks[rank].record;
		if (entry && entry_compare(usual, entry) != DIFFERENCE_NONE)
			return false;
		if (!entry && (known ? !view || view->last_seq < seq : !left))
			return false;
	}
	return true;
}

/* The collective that the group is about: the first under way that not all have come to with the
 * same. Those before it are over, or will be: gloo's threads are late in saying so. If there is
 * none, the first under way; 0: none is. */
static uint64_t waiting_seq(const struct join *join, const struct shared *shared)
{
	uint64_t first = next_open(shared, 0);
	for (uint64_t seq = first; seq; seq = next_open(shared, seq))
		if (!is_whole(join, shared, seq))
			return seq;
	return first;
}

static void place_member(const struct join *join, const struct shared *shared, size_t at,
			 uint64_t seq, struct finding *finding)
{
	uint32_t rank = shared->members.items[at];
	const struct record_group *view = shared->views[at];
	const struct record_entry *entry = view ? record_find(view, seq) : NULL;
	if (!entry) {
		if (!view || view->last_seq < seq)
			finding_add_absent(join, finding, rank);
		return;
	}
	enum difference difference = entry_compare(finding->entry, entry);
	if (difference != DIFFERENCE_NONE) {
		rank_list_add(&finding->odd, rank);
		if (!finding->odd_entry) {
			finding->odd_entry = entry;
			finding->difference = difference;
		}
	}
	if (!entry->complete)
		finding_add_came(join, finding, rank, entry);
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

uint64_t shared_usual_ns(const struct shared *shared, uint64_t patience_ns)
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
	uint64_t seq = waiting_seq(join, shared);
	if (seq == 0)
		return;
	bool most;
	struct finding finding =
		finding_of(shared, FINDING_ALL_CAME, usual_entry(shared, seq, &most));
	for (size_t i = 0; i < shared->members.count; i++)
		place_member(join, shared, i, seq, &finding);
	if (finding.odd.count)
		finding.kind = FINDING_DIFFERS;
	else if (finding.missing.count + finding.silent.count + finding.unasked.count)
		finding.kind = FINDING_WAITS;
	finding.early = finding.age_ns < shared_usual_ns(shared, patience_ns);
	if (finding.kind == FINDING_DIFFERS && most) /* that never heals */
		for (size_t i = 0; i < finding.odd.count; i++)
			rank_list_add(&finding.culprits, finding.odd.items[i]);
	findings_add(findings, &finding);
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
			shared->views[i] ? record_find(shared->views[i], seq) : NULL;
		if (entry && !entry->complete)
			return false;
		enum difference difference = entry ? entry_compare(usual, entry) : DIFFERENCE_NONE;
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
		const struct record_entry *usual = usual_entry(shared, done->seq, &most);
		if (!ended_unlike(shared, done->seq, usual))
			continue;
		struct finding finding = finding_of(shared, FINDING_DIFFERS, usual);
		for (size_t k = 0; k < shared->members.count; k++)
			place_member(join, shared, k, done->seq, &finding);
		for (size_t k = 0; most && k < finding.odd.count; k++)
			rank_list_add(&finding.culprits, finding.odd.items[k]);
		findings_add(findings, &finding);
		return;
	}
}

/* ---- causes ---- */

/* Which ranks wait in one of the findings. What all have come to is over soon, or will never be; a
 * part of them still in it is only late in saying that it is over. */
static bool *mark_waiting(const struct join *join, const struct findings *findings)
{
	bool *waits = mem_alloc(join->world_size + 1);
	for (size_t i = 0; i < findings->count; i++) {
		const struct finding *finding = &findings->items[i];
		if (finding->kind == FINDING_ALL_CAME && finding->came.count < finding->size)
			continue;
		for (size_t j = 0; j < finding->came.count; j++)
			waits[finding->came.items[j]] = true;
	}
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
	AUTO(shared_list_done) struct shared_list list = SHARED_LIST_INIT;
	*ret_findings = FINDINGS_INIT;
	shared_list_fill(&list, join);
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
}
