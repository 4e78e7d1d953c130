#include "batch/compare/compare_report.h"
#include "core/batch/stats.h"
#include "proto/json_out.h"

static void put_values(struct json_out *out, const char *key, const double *sorted, size_t n)
{
	json_out_open(out, key, '{');
	json_out_int(out, "runs", (int64_t)n);
	json_out_real(out, "median", stats_median(sorted, n));
	json_out_real(out, "min", sorted[0]);
	json_out_real(out, "max", sorted[n - 1]);
	json_out_real(out, "mad", stats_mad(sorted, n));
	json_out_close(out, '}');
}

static void put_row(struct json_out *out, const struct comparison *c, const struct compare_row *row)
{
	json_out_open(out, NULL, '{');
	json_out_text(out, "id", row->a_order->id);
	json_out_text(out, "command", samples_command(row->b_order, c->b.variant));
	if (row->a_order->labels.count > 0)
		json_out_map(out, "labels", &row->a_order->labels);
	json_out_text(out, "metric", metric_table[row->metric].name);
	put_values(out, "a", row->a, row->m);
	put_values(out, "b", row->b, row->n);
	json_out_real(out, "ratio", row->ratio.value);
	json_out_real(out, "low", row->ratio.low);
	json_out_real(out, "high", row->ratio.high);
	json_out_real(out, "p", row->p);
	json_out_real(out, "q", row->q);
	json_out_text(out, "verdict", verdict_name(row->verdict));
	json_out_bool(out, "regression", row->regression);
	if (row->blocks)
		json_out_int(out, "blocks", (int64_t)row->blocks);
	if (row->left_out)
		json_out_int(out, "suspect_left_out", (int64_t)row->left_out);
	if (row->more_runs && row->more_runs < VERDICT_RUNS_MANY)
		json_out_int(out, "more_runs", (int64_t)row->more_runs);
	if (row->reason)
		json_out_text(out, "reason", row->reason);
	if (metric_table[row->metric].counted)
		json_out_text(out, "source", row->b_order->counts.source);
	json_out_close(out, '}');
}

/* Improved, regressed, or some of both: the one word for a whole metric. Unchanged only if that was
 * found for at least one order. */
static const char *overall(const struct compare_summary *summary)
{
	bool slower = summary->verdicts[VERDICT_SLOWER], faster = summary->verdicts[VERDICT_FASTER];
	bool undecided = summary->verdicts[VERDICT_SAME] == 0;
	return slower && faster ? "mixed"
	       : slower		? "regressed"
	       : faster		? "improved"
	       : undecided	? "undecided"
				: "unchanged";
}

static void put_summary(struct json_out *out, const struct compare_summary *summary,
			enum metric metric)
{
	json_out_open(out, NULL, '{');
	json_out_text(out, "metric", metric_table[metric].name);
	json_out_text(out, "overall", overall(summary));
	json_out_real(out, "geomean", summary->geomean);
	json_out_real(out, "noise", summary->noise);
	json_out_bool(out, "noise_learned", summary->learned);
	json_out_real(out, "drift_a", summary->drift_a);
	json_out_real(out, "drift_b", summary->drift_b);
	for (int i = 0; i < VERDICT_COUNT; i++)
		json_out_int(out, verdict_name((enum verdict)i), (int64_t)summary->verdicts[i]);
	json_out_close(out, '}');
}

static void put_orders(struct json_out *out, const char *key,
		       const struct sample_order *const *orders, size_t n)
{
	json_out_open(out, key, '[');
	for (size_t i = 0; i < n; i++)
		json_out_text(out, NULL, orders[i]->id);
	json_out_close(out, ']');
}

/* A line for each row. */
void compare_json(const struct comparison *c, struct buf *text)
{
	struct json_out json = JSON_OUT(text, .indent = 1, .flat = 3), *out = &json;
	json_out_open(out, NULL, '{');
	json_out_text(out, "muster", "compare");
	json_out_int(out, "v", 1);
	json_out_text(out, "a", c->a.label);
	json_out_text(out, "b", c->b.label);
	json_out_real(out, "alpha", c->options.alpha);
	json_out_int(out, "regressions", (int64_t)c->regressions);
	json_out_open(out, "summary", '[');
	for (enum metric metric = 0; metric < METRIC_COUNT; metric++)
		if (c->summaries[metric].present)
			put_summary(out, &c->summaries[metric], metric);
	json_out_close(out, ']');
	json_out_open(out, "rows", '[');
	for (size_t i = 0; i < c->row_count; i++)
		put_row(out, c, &c->rows[i]);
	json_out_close(out, ']');
	put_orders(out, "broken", c->broken, c->broken_count);
	put_orders(out, "only_a", c->only_a, c->only_a_count);
	put_orders(out, "only_b", c->only_b, c->only_b_count);
	json_out_close(out, '}');
	buf_append_char(text, '\n');
}
