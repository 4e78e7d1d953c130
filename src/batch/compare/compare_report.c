#include "batch/compare/compare_report.h"

#include <math.h>

#define SHORT_LIST 40 /* rows of a metric that are always shown in full */

static size_t rows_of(const struct comparison *c, enum metric metric)
{
	const struct compare_summary *summary = &c->summaries[metric];
	size_t rows = 0;
	for (int i = 0; i < VERDICT_COUNT; i++)
		rows += summary->verdicts[i];
	return rows;
}

bool compare_shows(const struct comparison *c, const struct compare_row *row, bool all)
{
	return all || row->regression || row->verdict == VERDICT_FASTER ||
	       row->verdict == VERDICT_SLOWER || rows_of(c, row->metric) <= SHORT_LIST;
}

void compare_verdict(const struct compare_row *row, struct buf *out)
{
	buf_append_str(out, verdict_name(row->verdict));
	if (row->reason)
		buf_printf(out, ": %s", row->reason);
	else if (row->more_runs >= VERDICT_RUNS_MANY)
		buf_append_str(out, ": too close to the threshold");
	else if (row->more_runs)
		buf_printf(out, ": about %zu more %s", row->more_runs,
			   row->blocks		 ? "blocks"
			   : row->more_runs == 1 ? "run"
						 : "runs");
}

static void put_drift(const struct compare_summary *summary, struct buf *out)
{
	bool a = summary->drift_a > 0, b = summary->drift_b > 0;
	if (!a && !b)
		return;
	buf_printf(out,
		   "; the runs of %s drift (correlation of neighbours %.2f), which looks like "
		   "a change: measure in blocks (muster batch --ab)%s",
		   a && b ? "A and B"
		   : a	  ? "A"
			  : "B",
		   MAX(summary->drift_a, summary->drift_b),
		   summary->learned ? "" : ", or ask more of a change (--noise=learn)");
}

void compare_summarise(const struct comparison *c, enum metric metric, struct buf *out)
{
	const struct compare_summary *summary = &c->summaries[metric];
	static const enum verdict order[] = { VERDICT_SLOWER, VERDICT_FASTER, VERDICT_SAME,
					      VERDICT_UNDECIDED };
	static_assert(ARRAY_LEN(order) == VERDICT_COUNT, "every verdict is counted");
	for (size_t i = 0; i < ARRAY_LEN(order); i++)
		buf_printf(out, "%s%zu %s", i ? ", " : "", summary->verdicts[order[i]],
			   verdict_name(order[i]));
	if (!isnan(summary->geomean))
		buf_printf(out, "; geometric mean %.4f", summary->geomean);
	buf_printf(out, "; a change is more than %.2f %%", 100 * summary->noise);
	if (summary->learned)
		buf_printf(out, " (learned from %zu comparisons of equal programs)",
			   summary->learned_from);
	put_drift(summary, out);
}
