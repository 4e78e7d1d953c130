#include "run/tell/finding_text.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

#define PLACES_MAX 3 /* more of them would hide the sentence */

static void say_ranks(const struct rank_list *list, struct buf *out)
{
	buf_append_str(out, list->count == 1 ? "rank " : "ranks ");
	rank_list_print(list, out);
}

static void say_name(const struct record_group *group, struct buf *out)
{
	if (str_eq(group->desc, "default_pg"))
		buf_append_str(out, "the default group");
	else
		buf_printf(out, "group '%s'", *group->desc ? group->desc : group->name);
}

static void say_group(const struct finding *finding, struct buf *out)
{
	buf_printf(out, "%s #%" PRIu64 " of ", finding->entry->op, finding->entry->seq);
	say_name(finding->group, out);
	if (finding->pair)
		return;
	buf_printf(out, " (%zu rank%s%s)", finding->size, finding->size == 1 ? "" : "s",
		   finding->size_known ? "" : ", as far as was seen");
}

static void say_time(uint64_t ns, struct buf *out)
{
	char text[CLOCK_HUMAN_MAX];
	clock_human(ns, text);
	buf_append_str(out, text);
}

/* What the functions below need beside the finding. */
struct telling_of {
	const struct join *join;
	finding_where_fn *where;
	void *arg;
};

static struct finding_spot spot_of(const struct telling_of *t, uint32_t rank)
{
	return t->where ? t->where(t->arg, rank) : (struct finding_spot){ .place = NULL };
}

/* The host that all these ranks are on; NULL: not known, or several. */
static const char *common_host(const struct rank_list *list, const struct telling_of *t)
{
	const char *host = list->count ? spot_of(t, list->items[0]).host : NULL;
	for (size_t i = 1; host && i < list->count; i++) {
		const char *other = spot_of(t, list->items[i]).host;
		if (!other || !str_eq(other, host))
			return NULL;
	}
	return host;
}

/* "rank 5 on node3" */
static void say_ranks_on(const struct rank_list *list, const struct telling_of *t, struct buf *out)
{
	const char *host = common_host(list, t);
	say_ranks(list, out);
	if (host)
		buf_printf(out, " on %s", host);
}

/* "at data.py:88 in read() (waiting for a lock)" */
static void say_spot(const struct finding_spot *spot, struct buf *out)
{
	if (!spot->place)
		buf_append_str(out, spot->state);
	else if (!spot->state)
		buf_printf(out, "at %s", spot->place);
	else
		buf_printf(out, "at %s (%s)", spot->place, spot->state);
}

static void say_places(const struct rank_list *list, const struct telling_of *t, struct buf *out)
{
	bool one_host = common_host(list, t);
	size_t said = 0;
	for (size_t i = 0; i < list->count && said < PLACES_MAX; i++) {
		struct finding_spot spot = spot_of(t, list->items[i]);
		if (!spot.place && !spot.state)
			continue;
		said++;
		if (list->count == 1) {
			buf_append_str(out, "; it is ");
			say_spot(&spot, out);
			continue;
		}
		buf_printf(out, "; rank %u", list->items[i]);
		if (spot.host && !one_host)
			buf_printf(out, " on %s", spot.host);
		buf_append_str(out, " is ");
		say_spot(&spot, out);
	}
}

static void say_came(const struct finding *finding, struct buf *out)
{
	if (finding->came.count == 0)
		return;
	buf_append_str(out, "; ");
	say_ranks(&finding->came, out);
	buf_append_str(out, " came");
	if (finding->came.count > 1) {
		buf_append_str(out, " within ");
		say_time(finding->spread_ns, out);
	}
}

static void say_silent(const struct finding *finding, const struct telling_of *t, struct buf *out)
{
	const struct join *join = t->join;
	for (size_t i = 0; i < finding->silent.count; i++) {
		uint32_t rank = finding->silent.items[i];
		const char *why = rank < join->world_size ? join->ranks[rank].why : NULL;
		bool last = i + 1 == finding->silent.count || i + 1 == PLACES_MAX;
		const char *host = spot_of(t, rank).host;
		buf_printf(out, "rank %u%s%s gives no record (%s)", rank, host ? " on " : "",
			   host ? host : "", why ? why : "not asked");
		if (last && i + 1 < finding->silent.count)
			buf_printf(out, " and %zu more", finding->silent.count - i - 1);
		if (last)
			break;
		buf_append_str(out, ", ");
	}
}

static void say_waits(const struct finding *finding, const struct telling_of *t, struct buf *out)
{
	buf_append_str(out, finding->early ? " has waited " : " waits ");
	say_time(finding->age_ns, out);
	buf_append_str(out, finding->early ? " so far: " : ": ");
	if (finding->ahead && !finding->early) {
		say_ranks_on(&finding->came, t, out);
		buf_append_str(out, " came alone; ");
		say_ranks(&finding->missing, out);
		buf_append_str(out, " did not, and wait in no recorded collective");
		say_places(&finding->missing, t, out);
		return;
	}
	if (finding->missing.count) {
		say_ranks_on(&finding->missing, t, out);
		buf_append_str(out, finding->early	     ? " did not come yet"
				    : finding->unasked.count ? " did not come"
							     : " never came");
		if (finding->early)
			return;
		if (finding->cycle)
			buf_append_str(out, ", waiting in another collective for ranks that wait "
					    "in this one");
		else if (finding->culprits.count == 0)
			buf_append_str(out, ", waiting in another collective");
		say_places(&finding->missing, t, out);
	}
	if (finding->missing.count && finding->silent.count)
		buf_append_str(out, "; ");
	say_silent(finding, t, out);
	if (finding->unasked.count) {
		if (finding->missing.count + finding->silent.count)
			buf_append_str(out, "; ");
		say_ranks(&finding->unasked, out);
		buf_append_str(out,
			       finding->unasked.count == 1 ? " was not asked" : " were not asked");
	}
	say_came(finding, out);
}

static const char *what_differs(enum difference difference, const struct record_entry *entry)
{
	const struct record_shape *shape = &entry->shape;
	switch (difference) {
	case DIFFERENCE_SIZE:
		return *shape->in_sizes ? shape->in_sizes : shape->out_sizes;
	case DIFFERENCE_TYPE:
		return *shape->in_types ? shape->in_types : shape->out_types;
	case DIFFERENCE_OP:
	case DIFFERENCE_NONE:
	case DIFFERENCE_COUNT:
		break;
	}
	return entry->op;
}

static void say_differs(const struct finding *finding, const struct telling_of *t, struct buf *out)
{
	static const char *const names[] = {
		[DIFFERENCE_NONE] = "",
		[DIFFERENCE_OP] = "",
		[DIFFERENCE_SIZE] = "size ",
		[DIFFERENCE_TYPE] = "type ",
	};
	static_assert(ARRAY_LEN(names) == DIFFERENCE_COUNT, "every difference needs a name");
	buf_append_str(out,
		       finding->came.count ? " does not match: " : " ended, but did not match: ");
	say_ranks_on(&finding->odd, t, out);
	bool most =
		finding->culprits.count; /* came with what is usual; else who is wrong is open */
	buf_printf(out, " came with %s%s, %sothers with %s", names[finding->difference],
		   what_differs(finding->difference, finding->odd_entry), most ? "the " : "",
		   what_differs(finding->difference, finding->entry));
	if (!most)
		buf_append_str(out, ", and neither are the most");
	say_places(&finding->odd, t, out);
	if (finding->missing.count) {
		buf_append_str(out, "; ");
		say_ranks(&finding->missing, out);
		buf_append_str(out, " did not come");
	}
	if (finding->silent.count) {
		buf_append_str(out, "; ");
		say_silent(finding, t, out);
	}
}

void finding_text(const struct finding *finding, const struct join *join, finding_where_fn *where,
		  void *arg, struct buf *out)
{
	const struct telling_of t = { join, where, arg };
	say_group(finding, out);
	switch (finding->kind) {
	case FINDING_WAITS:
		say_waits(finding, &t, out);
		break;
	case FINDING_DIFFERS:
		say_differs(finding, &t, out);
		break;
	case FINDING_ALL_CAME:
		buf_append_str(out, " is under way for ");
		say_time(finding->age_ns, out);
		buf_append_str(out, ": all ranks have come");
		break;
	case FINDING_KIND_COUNT:
		break;
	}
}

/* It has no cause of its own: the ranks that are missing wait in a collective that has. */
static bool only_follows(const struct findings *findings, const struct finding *finding)
{
	return findings->items[0].culprits.count > 0 && finding->culprits.count == 0;
}

void findings_text(const struct findings *findings, const struct join *join,
		   finding_where_fn *where, void *arg, struct buf *out)
{
	size_t more = 0;
	for (size_t i = 0; i < findings->count; i++) {
		const struct finding *finding = &findings->items[i];
		if (only_follows(findings, finding)) {
			more++;
			continue;
		}
		finding_text(finding, join, where, arg, out);
		buf_append_char(out, '\n');
	}
	if (more)
		buf_printf(out, "%zu more collective%s because of that\n", more,
			   more == 1 ? " waits" : "s wait");
}

/* ---- places ---- */

void finding_place(const struct stack_process *stack, struct buf *out)
{
	const struct stack_frame *frame = stack_own_frame(stack);
	if (!frame || frame->kind != FRAME_PYTHON)
		return;
	const char *slash = strrchr(frame->file, '/');
	buf_printf(out, "%s:%u in %s()", slash ? slash + 1 : frame->file, frame->line, frame->name);
}

void laggard_text(const struct laggard *laggard, finding_where_fn *where, void *arg,
		  struct buf *out)
{
	const struct straggler_news *news = &laggard->news;
	struct finding_spot spot =
		where ? where(arg, news->rank) : (struct finding_spot){ .place = NULL };
	buf_printf(out,
		   "rank %u%s%s holds the others up: it came last to %u of the last %u collectives "
		   "of ",
		   news->rank, spot.host ? " on " : "", spot.host ? spot.host : "", news->times,
		   news->of);
	say_name(laggard->group, out);
	buf_printf(out, " that were waited for, %.1f ms after the others%s%s\n",
		   (double)news->lag_ns / 1e6, spot.place ? "; it is at " : "",
		   spot.place ? spot.place : "");
}
