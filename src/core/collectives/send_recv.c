/* Sends, receives and monitored barriers: the recorder does not count them among the collectives.
 */
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "core/collectives/join_private.h"

/* A side of a transfer, in ranks of the group: "send 0->1", "recv 1<-0". */
struct side {
	unsigned self, peer;
	bool sends;
	bool any;   /* it receives from whoever sends: "recv 1<-any" */
	bool posts; /* "isend", "irecv": it is not known whether the program waits for it */
};

static bool parse_side(const struct record_entry *entry, struct side *ret_side)
{
	struct side side = { .posts = entry->op[0] == 'i' };
	const char *op = entry->op + side.posts;
	side.sends = str_starts(op, "send ");
	if (sscanf(op, side.sends ? "send %u->%u" : "recv %u<-%u", &side.self, &side.peer) != 2) {
		side.any = str_starts(op, "recv ") && str_ends(op, "<-any");
		if (!side.any)
			return false;
	}
	*ret_side = side;
	return true;
}

static bool is_other_side(const struct record_entry *entry, const struct side *side)
{
	struct side other;
	return parse_side(entry, &other) && other.sends != side->sends &&
	       (side->any || other.self == side->peer) && (other.any || other.peer == side->self);
}

/* This rank is in the other side, or has passed it. */
static bool is_with(const struct record_group *view, const struct record_entry *entry,
		    const struct side *side)
{
	for (size_t i = 0; view && i < view->open_count; i++)
		if (view->open[i].p2p && is_other_side(&view->open[i], side))
			return true;
	for (size_t i = 0; view && !side->any && i < view->pair_count; i++) {
		const struct record_entry *done = &view->pairs[i];
		if (is_other_side(done, side) &&
		    (entry->noted ? done->seq >= entry->seq : done->seq == entry->seq))
			return true;
	}
	return false;
}

static bool is_answered(const struct shared *shared, const struct record_entry *entry,
			const struct side *side)
{
	if (!side->any && side->peer >= shared->members.count)
		return true; /* that is not a group whose members are known */
	for (size_t i = 0; i < shared->members.count; i++)
		if ((side->any || i == side->peer) && is_with(shared->views[i], entry, side))
			return true;
	return false;
}

/* It waits no longer than the group's collectives do, nor much longer than the last time. */
static bool is_usual(const struct shared *shared, size_t at, const struct record_entry *entry,
		     const struct finding *finding, uint64_t patience_ns)
{
	const struct record_group *view = shared->views[at];
	uint64_t usual_ns = shared_usual_ns(shared, patience_ns);
	for (size_t i = 0; patience_ns && i < view->pair_count; i++) {
		const struct record_entry *last = &view->pairs[i];
		if (str_eq(last->op, entry->op) && last->created_ns < entry->created_ns)
			usual_ns = MAX(usual_ns,
				       JOIN_USUAL_TIMES * (entry->created_ns - last->created_ns));
	}
	return finding->age_ns < usual_ns;
}

static void look_at_side(const struct join *join, const struct shared *shared, size_t at,
			 const struct record_entry *entry, const struct side *side,
			 uint64_t patience_ns, struct findings *findings)
{
	struct finding finding = finding_of(shared, FINDING_WAITS, entry);
	finding.pair = true;
	finding_add_came(join, &finding, shared->members.items[at], entry);
	for (size_t i = 0; i < shared->members.count; i++)
		if (side->any ? i != at : i == side->peer)
			finding_add_absent(join, &finding, shared->members.items[i]);
	finding.early = is_usual(shared, at, entry, &finding, patience_ns) ||
			(side->posts && patience_ns > 0);
	findings_add(findings, &finding);
}

/* ---- monitored barriers ---- */

static const struct record_entry *find_open(const struct record_group *view, const char *op,
					    uint64_t seq)
{
	for (size_t i = 0; view && i < view->open_count; i++)
		if (view->open[i].p2p && view->open[i].seq == seq && str_eq(view->open[i].op, op))
			return &view->open[i];
	return NULL;
}

static bool has_passed(const struct record_group *view, const char *op, uint64_t seq)
{
	for (size_t i = 0; view && i < view->pair_count; i++)
		if (view->pairs[i].seq >= seq && str_eq(view->pairs[i].op, op))
			return true;
	return false;
}

/* `entry` is that of the first member that is in it; the others have theirs told with it. */
static void look_at_barrier(const struct join *join, const struct shared *shared, size_t first,
			    const struct record_entry *entry, uint64_t patience_ns,
			    struct findings *findings)
{
	for (size_t i = 0; i < first; i++)
		if (find_open(shared->views[i], entry->op, entry->seq))
			return;
	struct finding finding = finding_of(shared, FINDING_ALL_CAME, entry);
	for (size_t i = 0; i < shared->members.count; i++) {
		const struct record_group *view = shared->views[i];
		const struct record_entry *its = find_open(view, entry->op, entry->seq);
		if (its)
			finding_add_came(join, &finding, shared->members.items[i], its);
		else if (!has_passed(view, entry->op, entry->seq))
			finding_add_absent(join, &finding, shared->members.items[i]);
	}
	if (finding.missing.count + finding.silent.count + finding.unasked.count)
		finding.kind = FINDING_WAITS;
	finding.early = is_usual(shared, first, entry, &finding, patience_ns);
	findings_add(findings, &finding);
}

void look_at_pairs(const struct join *join, const struct shared *shared, uint64_t patience_ns,
		   struct findings *findings)
{
	for (size_t i = 0; i < shared->members.count; i++) {
		const struct record_group *view = shared->views[i];
		for (size_t j = 0; view && j < view->open_count; j++) {
			const struct record_entry *entry = &view->open[j];
			struct side side;
			if (!entry->p2p)
				continue;
			if (!parse_side(entry, &side))
				look_at_barrier(join, shared, i, entry, patience_ns, findings);
			else if (!is_answered(shared, entry, &side))
				look_at_side(join, shared, i, entry, &side, patience_ns, findings);
		}
	}
}
