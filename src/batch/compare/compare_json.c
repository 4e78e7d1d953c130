#include <math.h>

#include "batch/compare/compare_report.h"
#include "core/batch/stats.h"
#include "proto/json.h"

static void put_number(struct buf *out, const char *key, double value)
{
	if (isfinite(value))
		buf_printf(out, ",\"%s\":%.17g", key, value);
	else
		buf_printf(out, ",\"%s\":null", key);
}

static void put_string(struct buf *out, const char *key, const char *value)
{
	buf_printf(out, ",\"%s\":", key);
	json_quote(out, value);
}

static void put_values(struct buf *out, const char *key, const double *sorted, size_t n)
{
	buf_printf(out, ",\"%s\":{\"runs\":%zu", key, n);
	put_number(out, "median", stats_median(sorted, n));
	put_number(out, "min", sorted[0]);
	put_number(out, "max", sorted[n - 1]);
	put_number(out, "mad", stats_mad(sorted, n));
	buf_append_char(out, '}');
}

static void put_row(struct buf *out, const struct comparison *c, const struct compare_row *row)
{
	buf_append_str(out, "{\"id\":");
	json_quote(out, row->a_order->id);
	put_string(out, "command", samples_command(row->b_order, c->b.variant));
	put_string(out, "metric", metric_table[row->metric].name);
	put_values(out, "a", row->a, row->m);
	put_values(out, "b", row->b, row->n);
	put_number(out, "ratio", row->ratio.value);
	put_number(out, "low", row->ratio.low);
	put_number(out, "high", row->ratio.high);
	put_number(out, "p", row->p);
	put_number(out, "q", row->q);
	put_string(out, "verdict", verdict_name(row->verdict));
	buf_printf(out, ",\"regression\":%s", row->regression ? "true" : "false");
	if (row->blocks)
		buf_printf(out, ",\"blocks\":%zu", row->blocks);
	if (row->left_out)
		buf_printf(out, ",\"suspect_left_out\":%zu", row->left_out);
	if (row->more_runs && row->more_runs < VERDICT_RUNS_MANY)
		buf_printf(out, ",\"more_runs\":%zu", row->more_runs);
	if (row->reason)
		put_string(out, "reason", row->reason);
	if (metric_table[row->metric].counted)
		put_string(out, "source", row->b_order->counts.source);
	buf_append_char(out, '}');
}

/* Improved, regressed, or some of both: the one word for a whole metric. */
static const char *overall(const struct compare_summary *summary)
{
	bool slower = summary->verdicts[VERDICT_SLOWER], faster = summary->verdicts[VERDICT_FASTER];
	return slower && faster ? "mixed"
	       : slower		? "regressed"
	       : faster		? "improved"
				: "unchanged";
}

static void put_summary(struct buf *out, const struct compare_summary *summary, enum metric metric)
{
	buf_append_str(out, "{\"metric\":");
	json_quote(out, metric_table[metric].name);
	put_string(out, "overall", overall(summary));
	put_number(out, "geomean", summary->geomean);
	put_number(out, "noise", summary->noise);
	buf_printf(out, ",\"noise_learned\":%s", summary->learned ? "true" : "false");
	for (int i = 0; i < VERDICT_COUNT; i++)
		buf_printf(out, ",\"%s\":%zu", verdict_name((enum verdict)i), summary->verdicts[i]);
	buf_append_char(out, '}');
}

static void put_orders(struct buf *out, const char *key, const struct sample_order *const *orders,
		       size_t n)
{
	buf_printf(out, ",\n\"%s\":[", key);
	for (size_t i = 0; i < n; i++) {
		buf_append_str(out, i ? "," : "");
		json_quote(out, orders[i]->id);
	}
	buf_append_char(out, ']');
}

void compare_json(const struct comparison *c, struct buf *out)
{
	buf_append_str(out, "{\"muster\":\"compare\",\"v\":1");
	put_string(out, "a", c->a.label);
	put_string(out, "b", c->b.label);
	put_number(out, "alpha", c->options.alpha);
	buf_printf(out, ",\"regressions\":%zu,\n\"summary\":[", c->regressions);
	bool first = true;
	for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
		if (!c->summaries[metric].present)
			continue;
		buf_append_str(out, first ? "" : ",\n");
		put_summary(out, &c->summaries[metric], metric);
		first = false;
	}
	buf_append_str(out, "],\n\"rows\":[");
	for (size_t i = 0; i < c->row_count; i++) {
		buf_append_str(out, i ? ",\n" : "\n");
		put_row(out, c, &c->rows[i]);
	}
	buf_append_char(out, ']');
	put_orders(out, "broken", c->broken, c->broken_count);
	put_orders(out, "only_a", c->only_a, c->only_a_count);
	put_orders(out, "only_b", c->only_b, c->only_b_count);
	buf_append_str(out, "}\n");
}
