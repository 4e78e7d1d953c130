/* One self-contained page. Every order is an element with its name and compact data, which
 * compare_page.js turns into drawings when it comes into view: 10,000 orders are less than 3 MB. */
#include <math.h>
#include <string.h>

#include "base/map.h"
#include "base/str.h"
#include "batch/compare/compare_page.h"
#include "batch/compare/compare_report.h"
#include "batch/markup.h"
#include "batch/page.h"
#include "core/batch/stats.h"
#include "proto/json_out.h"

#define RUNS_SHOWN 200 /* of one side; more are thinned out */
#define STEPS 1295     /* between the least and the largest value: two digits to the base 36 */

static const char *const marks[VERDICT_COUNT] = {
	[VERDICT_UNDECIDED] = "?",
	[VERDICT_SAME] = "=",
	[VERDICT_FASTER] = "▼",
	[VERDICT_SLOWER] = "▲",
};

/* ---- one order ---- */

/* "-" for what is not known. */
static void put_number(struct buf *out, double value, bool exact)
{
	if (isnan(value))
		buf_append_str(out, " -");
	else if (isinf(value))
		buf_append_str(out, " Infinity");
	else
		buf_printf(out, exact ? " %.0f" : " %.5g", value);
}

struct range {
	double least, most;
};

static bool is_of(const struct sample_run *run, const struct compare_side *side, enum metric metric)
{
	return (!side->variant || run->variant == side->variant) && !isnan(run->values[metric]);
}

static void widen(struct range *range, const struct compare_row *row,
		  const struct sample_order *order, const struct compare_side *side)
{
	for (size_t i = 0; i < order->run_count; i++) {
		if (!is_of(&order->runs[i], side, row->metric))
			continue;
		range->least = fmin(range->least, order->runs[i].values[row->metric]);
		range->most = fmax(range->most, order->runs[i].values[row->metric]);
	}
}

/* The runs in the order in which they were made; a suspect one that did not count has a "~". */
static void put_runs(struct buf *out, const struct comparison *c, const struct compare_row *row,
		     const struct sample_order *order, const struct compare_side *side,
		     const struct range *range)
{
	static const char digits[] = "0123456789abcdefghijklmnopqrstuvwxyz";
	size_t total = 0, number = 0;
	for (size_t i = 0; i < order->run_count; i++)
		total += is_of(&order->runs[i], side, row->metric);
	size_t step = (total + RUNS_SHOWN - 1) / RUNS_SHOWN;
	double span = range->most - range->least;
	for (size_t i = 0; i < order->run_count; i++) {
		const struct sample_run *run = &order->runs[i];
		if (!is_of(run, side, row->metric) || number++ % step != 0)
			continue;
		double part = span > 0 ? (run->values[row->metric] - range->least) / span : 0;
		unsigned place = (unsigned)lround(part * STEPS);
		bool counts =
			!run->suspect || c->options.suspects || metric_table[row->metric].counted;
		buf_printf(out, "%s%c%c", counts ? "" : "~", digits[place / 36],
			   digits[place % 36]);
	}
}

static void put_attribute(struct buf *out, const char *name, const char *value)
{
	buf_printf(out, " data-%s=\"", name);
	markup_escape(out, value);
	buf_append_char(out, '"');
}

static void put_commands(struct buf *out, const struct comparison *c, const struct compare_row *row)
{
	const char *a = samples_command(row->a_order, c->a.variant ? c->a.variant : 'A');
	const char *b = samples_command(row->b_order, c->b.variant ? c->b.variant : 'A');
	if (*a)
		put_attribute(out, "c", a);
	if (*b && !str_eq(a, b))
		put_attribute(out, "d", b);
}

/* Labels are written once for the page and named by their numbers. */
static void put_labels(struct buf *out, const struct compare_row *row, const struct map *numbers)
{
	const struct strv *labels = &row->a_order->labels;
	for (size_t i = 0; i < labels->count; i++) {
		uintptr_t number =
			(uintptr_t)map_get(numbers, labels->items[i], strlen(labels->items[i]));
		buf_printf(out, "%s%zu", i ? " " : " data-l=\"", (size_t)number - 1);
	}
	buf_append_str(out, labels->count ? "\"" : "");
}

static void put_card(struct buf *out, const struct comparison *c, const struct compare_row *row,
		     const struct map *labels)
{
	bool exact = metric_table[row->metric].counted;
	struct range range = { INFINITY, -INFINITY };
	widen(&range, row, row->a_order, &c->a);
	widen(&range, row, row->b_order, &c->b);
	buf_printf(out, "<article class=\"card\" data-r=\"%d", (int)row->verdict);
	put_number(out, stats_median(row->a, row->m), exact);
	put_number(out, stats_median(row->b, row->n), exact);
	put_number(out, row->ratio.value, false);
	put_number(out, row->ratio.low, false);
	put_number(out, row->ratio.high, false);
	put_number(out, row->q, false);
	put_number(out, range.least, exact);
	put_number(out, range.most, exact);
	buf_printf(out, " %zu %zu\" data-a=\"", row->left_out, row->blocks);
	put_runs(out, c, row, row->a_order, &c->a, &range);
	buf_append_str(out, "\" data-b=\"");
	put_runs(out, c, row, row->b_order, &c->b, &range);
	buf_append_char(out, '"');
	put_commands(out, c, row);
	put_labels(out, row, labels);
	if (row->verdict == VERDICT_UNDECIDED && (row->reason || row->more_runs)) {
		AUTO(buf_done) struct buf why = BUF_INIT;
		compare_verdict(row, &why);
		put_attribute(out, "w", buf_str(&why));
	}
	buf_append_char(out, '>');
	markup_escape(out, compare_order_name(row->a_order));
	buf_append_str(out, "</article>\n");
}

/* ---- the page ---- */

static void put_tiles(struct buf *out, const struct compare_summary *summary, enum metric metric)
{
	static const enum verdict order[] = { VERDICT_SLOWER, VERDICT_FASTER, VERDICT_SAME,
					      VERDICT_UNDECIDED };
	static_assert(ARRAY_LEN(order) == VERDICT_COUNT, "every verdict has a tile");
	buf_append_str(out, "<div class=\"tiles\">");
	for (size_t i = 0; i < ARRAY_LEN(order); i++) {
		const char *name = verdict_name(order[i]);
		buf_printf(out,
			   "<button aria-pressed=\"false\" data-metric=\"%s\" "
			   "data-verdict=\"%s\"><b class=\"%s\">"
			   "%zu</b>%s %s</button>",
			   metric_table[metric].name, name, name, summary->verdicts[order[i]],
			   marks[order[i]], name);
	}
	buf_append_str(out, "</div>\n");
}

static void put_left_out(struct buf *out, const struct comparison *c, enum metric metric)
{
	size_t runs = 0, orders = 0;
	for (size_t i = 0; i < c->row_count; i++) {
		runs += c->rows[i].metric == metric ? c->rows[i].left_out : 0;
		orders += c->rows[i].metric == metric && c->rows[i].left_out;
	}
	if (runs)
		buf_printf(out,
			   "<p class=\"undecided\">%zu suspect run%s of %zu order%s left out: the "
			   "host "
			   "was not quiet</p>\n",
			   runs, runs == 1 ? "" : "s", orders, orders == 1 ? "" : "s");
}

static void put_metric(struct buf *out, const struct comparison *c, enum metric metric,
		       const struct map *labels)
{
	static const char *const units[] = {
		[METRIC_NS] = "ns", [METRIC_KIB] = "kib", [METRIC_EVENTS] = "events"
	};
	const struct strv *groups = &c->options.groups.labels;
	const char *group = groups->count	      ? groups->items[0]
			    : c->options.groups.given ? "none"
						      : "";
	buf_printf(out, "<section data-unit=\"%s\" data-noise=\"%g\"",
		   units[metric_table[metric].unit], c->summaries[metric].noise);
	put_attribute(out, "group", group);
	buf_printf(out, "><h2>%s</h2>\n<p class=\"soft\">", metric_table[metric].title);
	compare_summarise(c, metric, out);
	buf_append_str(out, "</p>\n");
	put_left_out(out, c, metric);
	put_tiles(out, &c->summaries[metric], metric);
	buf_append_str(out, "<div class=\"panel\"></div>\n<h2>Orders</h2><div class=\"controls\">"
			    "</div><div class=\"cards\">\n");
	for (size_t i = 0; i < c->row_count; i++)
		if (c->rows[i].metric == metric)
			put_card(out, c, &c->rows[i], labels);
	buf_append_str(out, "</div></section>\n");
}

/* The command of a side: of its only order, or of the first with the number of the others. */
static void put_command(struct buf *out, const struct compare_side *side)
{
	AUTO(map_done) struct map seen = MAP_INIT;
	const char *first = NULL;
	for (size_t i = 0; i < side->samples->order_count; i++) {
		const char *command = samples_command(side->samples->orders[i],
						      side->variant ? side->variant : 'A');
		if (!*command)
			continue;
		first = first ? first : command;
		map_put(&seen, command, strlen(command), side->samples->orders[i]);
	}
	if (!first)
		return;
	size_t others = seen.count - 1;
	buf_append_str(out, "<code class=\"command\">");
	markup_escape(out, first);
	buf_append_str(out, "</code>");
	if (others)
		buf_printf(out, "<span class=\"soft\">and %zu more command%s</span>", others,
			   others == 1 ? "" : "s");
}

static void put_side(struct buf *out, const struct compare_side *side, const char *letter,
		     char class)
{
	buf_printf(out, "<p class=\"file\"><span class=\"key %c\"></span><b>%s</b> ", class,
		   letter);
	markup_escape(out, side->label);
	buf_append_str(out, " <span class=\"soft\">");
	markup_escape(out, side->samples->host);
	buf_append_str(out, " ");
	markup_escape(out, side->samples->started);
	buf_append_str(out, "</span></p>\n");
	put_command(out, side);
}

static void put_orders(struct buf *out, const char *title, const struct sample_order *const *orders,
		       size_t n)
{
	if (n == 0)
		return;
	buf_printf(out, "<h2>%s (%zu)</h2><ul>", title, n);
	for (size_t i = 0; i < n; i++) {
		buf_append_str(out, "<li>");
		markup_escape(out, compare_order_name(orders[i]));
		buf_append_str(out, "</li>");
	}
	buf_append_str(out, "</ul>\n");
}

/* A list of texts for the script; "<" must not end it. */
static void put_label_list(struct buf *out, const struct comparison *c, struct map *ret_numbers)
{
	AUTO(buf_done) struct buf json = BUF_INIT;
	struct json_out list = JSON_OUT(&json);
	json_out_open(&list, NULL, '[');
	for (size_t i = 0; i < c->row_count; i++) {
		const struct strv *labels = &c->rows[i].a_order->labels;
		for (size_t k = 0; k < labels->count; k++) {
			const char *label = labels->items[k];
			if (map_get(ret_numbers, label, strlen(label)))
				continue;
			json_out_text(&list, NULL, label);
			map_put(ret_numbers, label, strlen(label),
				(void *)(uintptr_t)(ret_numbers->count + 1));
		}
	}
	json_out_close(&list, ']');
	for (const char *p = buf_str(&json); *p; p++) {
		if (*p == '<')
			buf_append_str(out, "\\u003c");
		else
			buf_append_char(out, *p);
	}
}

void compare_html(const struct comparison *c, struct buf *out)
{
	AUTO(buf_done) struct buf labels = BUF_INIT;
	AUTO(map_done) struct map numbers = MAP_INIT;
	put_label_list(&labels, c, &numbers);
	page_open(out, "muster compare");
	put_side(out, &c->a, "A", 'a');
	put_side(out, &c->b, "B", 'b');
	put_orders(out, "Every attempt failed in B", c->broken, c->broken_count);
	for (enum metric metric = 0; metric < METRIC_COUNT; metric++)
		if (c->summaries[metric].present)
			put_metric(out, c, metric, &numbers);
	put_orders(out, "Only in A", c->only_a, c->only_a_count);
	put_orders(out, "Only in B", c->only_b, c->only_b_count);
	buf_printf(out, "<script>\nconst labels=%s;\n", buf_str(&labels));
	buf_append_str(out, compare_page_script);
	buf_append_str(out, "</script></main></body></html>\n");
}
