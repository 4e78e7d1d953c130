#include <math.h>

#include "batch/compare/compare_report.h"
#include "batch/markup.h"
#include "core/batch/stats.h"

static const char *const marks[VERDICT_COUNT] = {
	[VERDICT_UNDECIDED] = "❔",
	[VERDICT_SAME] = "",
	[VERDICT_FASTER] = "✅",
	[VERDICT_SLOWER] = "❌",
};

static void put_indent(struct buf *out, size_t depth)
{
	for (; depth > 0; depth--)
		buf_append_str(out, "&emsp;");
}

/* The groups that begin with this row, as rows that have nothing else. */
static void put_groups(struct buf *out, const struct compare_row *row,
		       const struct compare_row *before)
{
	for (size_t i = compare_shared_groups(row, before); i < row->groups.count; i++) {
		buf_append_str(out, "| ");
		put_indent(out, i);
		markup_markdown(out, row->groups.items[i]);
		buf_append_str(out, " | | | | | |\n");
	}
}

static void put_row(struct buf *out, const struct compare_row *row)
{
	char a[METRIC_TEXT_MAX], b[METRIC_TEXT_MAX];
	metric_format(row->metric, stats_median(row->a, row->m), a);
	metric_format(row->metric, stats_median(row->b, row->n), b);
	buf_append_str(out, "| ");
	put_indent(out, row->groups.count);
	markup_markdown(out, row->name);
	buf_printf(out, " | %s | %s | ", a, b);
	if (isfinite(row->ratio.high))
		buf_printf(out, "%.3f | %.3f to %.3f", row->ratio.value, row->ratio.low,
			   row->ratio.high);
	else if (isnan(row->ratio.value))
		buf_append_str(out, "- | -");
	else
		buf_printf(out, "%.3f | -", row->ratio.value);
	buf_printf(out, " | %s%s", marks[row->verdict], *marks[row->verdict] ? " " : "");
	compare_verdict(row, out);
	buf_append_str(out, " |\n");
}

static void put_metric(struct buf *out, const struct comparison *c, enum metric metric,
		       const struct compare_style *style)
{
	buf_printf(out, "\n### %s\n\n", metric_table[metric].title);
	compare_summarise(c, metric, out);
	buf_printf(out,
		   ".\n\n| order | A | B | B/A | %s | verdict |\n"
		   "| :--- | ---: | ---: | ---: | :---: | :--- |\n",
		   metric_table[metric].counted ? "range" : "interval");
	const struct compare_row *before = NULL;
	for (size_t i = 0; i < c->row_count; i++) {
		const struct compare_row *row = &c->rows[i];
		if (row->metric != metric || !compare_shows(c, row, style->all))
			continue;
		put_groups(out, row, before);
		put_row(out, row);
		before = row;
	}
}

static void put_orders(struct buf *out, const char *title, const struct sample_order *const *orders,
		       size_t n)
{
	if (n)
		buf_printf(out, "\n%s:\n\n", title);
	for (size_t i = 0; i < n; i++) {
		buf_append_str(out, "- ");
		markup_markdown(out, compare_order_name(orders[i]));
		buf_append_char(out, '\n');
	}
}

void compare_markdown(const struct comparison *c, const struct compare_style *style,
		      struct buf *out)
{
	buf_append_str(out, "A: ");
	markup_markdown(out, c->a.label);
	buf_append_str(out, ", B: ");
	markup_markdown(out, c->b.label);
	buf_append_char(out, '\n');
	for (enum metric metric = 0; metric < METRIC_COUNT; metric++)
		if (c->summaries[metric].present)
			put_metric(out, c, metric, style);
	put_orders(out, "Every attempt failed in B", c->broken, c->broken_count);
	put_orders(out, "Only in A", c->only_a, c->only_a_count);
	put_orders(out, "Only in B", c->only_b, c->only_b_count);
}
