/* Text, JSON and a page. */
#include <math.h>

#include "batch/bisect/bisect_run.h"
#include "batch/markup.h"
#include "batch/page.h"
#include "proto/json_out.h"

#define CHART_WIDTH 1000
#define CHART_HEIGHT 220
#define CHART_MARGIN 8

static const char *const results[] = { [BISECT_FOUND] = "found",
				       [BISECT_RANGE] = "range",
				       [BISECT_NO_CHANGE] = "no-change",
				       [BISECT_BROKEN] = "broken" };

static const struct bisect_commit *state_of(const struct bisect_run *run, size_t commit)
{
	return &run->bisect.commits[commit];
}

static bool was_measured(const struct bisect_commit *commit)
{
	return commit->ratio.value > 0;
}

static void put_effect(const struct bisect_commit *commit, struct buf *out)
{
	const struct ratio *ratio = &commit->ratio;
	buf_printf(out, "%+.2f %%", 100 * (ratio->value - 1));
	if (ratio->high > ratio->low)
		buf_printf(out, " (%+.2f to %+.2f)", 100 * (ratio->low - 1),
			   100 * (ratio->high - 1));
}

void bisect_run_line(const struct bisect_run *run, size_t commit, struct buf *out)
{
	const struct bisect_commit *state = state_of(run, commit);
	buf_printf(out, "%s %-9s ", run->commits[commit].hash, bisect_state_name(state->state));
	if (was_measured(state)) {
		put_effect(state, out);
		buf_printf(out, ", %zu pair%s, ", state->pairs, state->pairs == 1 ? "" : "s");
	}
	buf_append_str(out, run->commits[commit].subject);
}

static bool is_evidence(const struct bisect_commit *state)
{
	return was_measured(state) || state->state == BISECT_SKIPPED;
}

static void put_no_change(const struct bisect_run *run, struct buf *out)
{
	const struct bisect_commit *bad = state_of(run, run->count - 1);
	const char *first = run->commits[0].hash, *last = run->commits[run->count - 1].hash;
	if (bad->state == BISECT_UNDECIDED)
		buf_printf(out,
			   "whether %s and %s differ could not be decided with %zu pairs; --resume "
			   "with a larger --max-pairs goes on, --count does not depend on noise: ",
			   first, last, bad->pairs);
	else
		buf_printf(out, "%s and %s do not differ by more than %g %%: ", first, last,
			   100 * run->options->min_change);
}

static void put_verdict(const struct bisect_run *run, struct buf *out)
{
	const struct bisect *bisect = &run->bisect;
	const struct bisect_run_commit *bad = &run->commits[bisect->first_bad];
	switch (run->result) {
	case BISECT_FOUND:
		buf_printf(out, "%s is the first bad commit: ", bad->full);
		break;
	case BISECT_RANGE:
		buf_printf(out,
			   "the first bad commit is one of %zu after %s up to %s; those between "
			   "do not build or could not be decided. The last of them: ",
			   bisect->first_bad - bisect->last_good,
			   run->commits[bisect->last_good].hash, bad->hash);
		break;
	case BISECT_NO_CHANGE:
		bad = &run->commits[run->count - 1];
		put_no_change(run, out);
		break;
	case BISECT_BROKEN:
		buf_append_str(out, "the good or the bad commit does not build or run\n");
		return;
	}
	const struct bisect_commit *state = state_of(run, (size_t)(bad - run->commits));
	put_effect(state, out);
	buf_printf(out, ", %s\n", bad->subject);
}

void bisect_run_text(const struct bisect_run *run, struct buf *out)
{
	buf_printf(out, "%zu commits, %s against the good one:\n", run->count,
		   metric_table[run->options->metric].title);
	for (size_t i = 0; i < run->count; i++) {
		if (!is_evidence(state_of(run, i)))
			continue;
		buf_append_str(out, "  ");
		bisect_run_line(run, i, out);
		buf_append_char(out, '\n');
	}
	put_verdict(run, out);
}

void bisect_run_json(const struct bisect_run *run, struct buf *out)
{
	struct json_out json = JSON_OUT(out);
	json_out_open(&json, NULL, '{');
	json_out_text(&json, "muster", "bisect");
	json_out_int(&json, "v", 1);
	json_out_text(&json, "result", results[run->result]);
	json_out_text(&json, "metric", metric_table[run->options->metric].name);
	json_out_text(&json, "last_good", run->commits[run->bisect.last_good].full);
	json_out_text(&json, "first_bad", run->commits[run->bisect.first_bad].full);
	json_out_open(&json, "commits", '[');
	for (size_t i = 0; i < run->count; i++) {
		const struct bisect_commit *state = state_of(run, i);
		json_out_open(&json, NULL, '{');
		json_out_text(&json, "commit", run->commits[i].full);
		json_out_text(&json, "subject", run->commits[i].subject);
		json_out_text(&json, "state", bisect_state_name(state->state));
		if (was_measured(state)) {
			json_out_int(&json, "pairs", (int64_t)state->pairs);
			json_out_real(&json, "ratio", state->ratio.value);
			json_out_real(&json, "low", state->ratio.low);
			json_out_real(&json, "high", state->ratio.high);
		}
		json_out_close(&json, '}');
	}
	json_out_close(&json, ']');
	json_out_close(&json, '}');
	buf_append_char(out, '\n');
}

/* ----------------------------------------------------------------------- page */

static const char *class_of(const struct bisect_commit *state)
{
	return state->state == BISECT_BAD    ? "slower"
	       : state->state == BISECT_GOOD ? "faster"
					     : "undecided";
}

static double reach_of(const struct bisect_run *run)
{
	double reach = 0.01;
	for (size_t i = 0; i < run->count; i++)
		if (was_measured(state_of(run, i)))
			reach = fmax(reach, fabs(log(state_of(run, i)->ratio.value)));
	return 1.6 * reach;
}

static double chart_y(double ratio, double reach)
{
	return CHART_HEIGHT / 2.0 * (1 - fmax(-1, fmin(1, log(ratio) / reach)));
}

static void put_chart(const struct bisect_run *run, struct buf *out)
{
	double step = (CHART_WIDTH - 2.0 * CHART_MARGIN) / (double)run->count,
	       reach = reach_of(run);
	buf_printf(out,
		   "<div class=\"panel\"><div class=\"axis\"><span>%+.1f %%: more than the good "
		   "commit</span><span>%zu commits</span></div><svg viewBox=\"0 0 %d %d\" "
		   "stroke-width=\"3\" role=\"img\" aria-label=\"effect of the commits that were "
		   "measured\"><line class=\"grid\" x1=\"0\" x2=\"%d\" y1=\"%d\" y2=\"%d\"/>\n",
		   100 * expm1(reach), run->count, CHART_WIDTH, CHART_HEIGHT, CHART_WIDTH,
		   CHART_HEIGHT / 2, CHART_HEIGHT / 2);
	for (size_t i = 0; i < run->count; i++) {
		const struct bisect_commit *state = state_of(run, i);
		double x = CHART_MARGIN + ((double)i + 0.5) * step;
		if (!is_evidence(state))
			continue;
		buf_printf(out, "<g class=\"%s\"><title>", class_of(state));
		AUTO(buf_done) struct buf line = BUF_INIT;
		bisect_run_line(run, i, &line);
		markup_escape(out, buf_str(&line));
		buf_append_str(out, "</title>");
		if (was_measured(state))
			buf_printf(out,
				   "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/><circle "
				   "cx=\"%.1f\" cy=\"%.1f\" r=\"6\"/>",
				   x, x, chart_y(state->ratio.low, reach),
				   chart_y(state->ratio.high, reach), x,
				   chart_y(state->ratio.value, reach));
		else
			buf_printf(out,
				   "<circle cx=\"%.1f\" cy=\"%d\" r=\"4\" fill-opacity=\"0\"/>", x,
				   CHART_HEIGHT / 2);
		buf_append_str(out, "</g>\n");
	}
	buf_append_str(out,
		       "</svg><div class=\"axis\"><span>good</span><span>bad</span></div></div>\n");
}

void bisect_run_html(const struct bisect_run *run, struct buf *out)
{
	AUTO(buf_done) struct buf verdict = BUF_INIT;
	put_verdict(run, &verdict);
	page_open(out, "muster bisect");
	buf_append_str(out, "<p><b>");
	markup_escape(out, buf_str(&verdict));
	buf_printf(out, "</b></p><p class=\"soft\">%s of <code>",
		   metric_table[run->options->metric].title);
	markup_escape(out, run->options->bench);
	buf_append_str(out, "</code>, in pairs with the good commit</p>\n");
	put_chart(run, out);
	page_search(out, "find a commit");
	buf_append_str(out, "<div class=\"cards\">\n");
	for (size_t i = 0; i < run->count; i++) {
		const struct bisect_commit *state = state_of(run, i);
		if (!is_evidence(state))
			continue;
		bool first = run->result == BISECT_FOUND && i == run->bisect.first_bad;
		buf_printf(out, "<article class=\"card%s\"><div class=\"top\"><h3><code>%s</code> ",
			   first ? " here" : "", run->commits[i].hash);
		markup_escape(out, run->commits[i].subject);
		buf_printf(out,
			   "</h3><span class=\"verdict %s\">%s%s</span></div><p class=\"soft\">",
			   class_of(state), first ? "first " : "", bisect_state_name(state->state));
		if (was_measured(state)) {
			put_effect(state, out);
			buf_printf(out, ", %zu pair%s", state->pairs, state->pairs == 1 ? "" : "s");
		}
		buf_append_str(out, "</p></article>\n");
	}
	buf_append_str(out, "</div>\n");
	page_close(out);
}
