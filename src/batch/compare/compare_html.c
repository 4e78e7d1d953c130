/* Drawings are plain SVG, shapes only: text stays in HTML, so that it keeps its size when a phone
 * shrinks the drawing. */
#include <math.h>

#include "batch/compare/compare_report.h"
#include "batch/markup.h"
#include "batch/page.h"
#include "core/batch/stats.h"

#define STRIP_WIDTH 480
#define STRIP_HEIGHT 84
#define STRIP_MARGIN 12
#define STRIP_DOTS 200 /* of one side; more are thinned out */
#define OVERVIEW_WIDTH 1000
#define OVERVIEW_HEIGHT 260

static const char *const marks[VERDICT_COUNT] = {
	[VERDICT_UNDECIDED] = "?",
	[VERDICT_SAME] = "=",
	[VERDICT_FASTER] = "▼",
	[VERDICT_SLOWER] = "▲",
};

/* ---- two distributions of one order ---- */

struct strip {
	double low, high; /* the values at the two ends of the axis */
};

static double strip_x(const struct strip *strip, double value)
{
	double span = strip->high - strip->low;
	double part = span > 0 ? (value - strip->low) / span : 0.5;
	return STRIP_MARGIN + part * (STRIP_WIDTH - 2 * STRIP_MARGIN);
}

/* Whiskers, box, median, and every value as a dot; dots spread over a few rows to stay visible. */
static void put_lane(struct buf *out, const struct strip *strip, const double *sorted, size_t n,
		     double y, char side)
{
	double q1 = strip_x(strip, stats_quantile(sorted, n, 0.25));
	double q3 = strip_x(strip, stats_quantile(sorted, n, 0.75));
	double middle = strip_x(strip, stats_median(sorted, n));
	buf_printf(out, "<line class=\"s%c\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%g\" y2=\"%g\"/>", side,
		   strip_x(strip, sorted[0]), strip_x(strip, sorted[n - 1]), y, y);
	buf_printf(out,
		   "<rect class=\"f%c\" opacity=\".22\" x=\"%.1f\" width=\"%.1f\" y=\"%g\" "
		   "height=\"28\"/>",
		   side, q1, MAX(q3 - q1, 1.0), y - 14);
	buf_printf(out, "<g class=\"f%c\" opacity=\".6\">", side);
	size_t step = (n + STRIP_DOTS - 1) / STRIP_DOTS;
	for (size_t i = 0; i < n; i += step)
		buf_printf(out, "<circle cx=\"%.1f\" cy=\"%g\" r=\"3.2\"/>",
			   strip_x(strip, sorted[i]), y + ((double)(i / step * 5 % 7) - 3) * 3);
	buf_printf(out,
		   "</g><line class=\"s%c\" stroke-width=\"4\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%g\" "
		   "y2=\"%g\"/>\n",
		   side, middle, middle, y - 16, y + 16);
}

static void put_strip(struct buf *out, const struct compare_row *row)
{
	struct strip strip = { .low = MIN(row->a[0], row->b[0]),
			       .high = MAX(row->a[row->m - 1], row->b[row->n - 1]) };
	char low[METRIC_TEXT_MAX], high[METRIC_TEXT_MAX];
	metric_format(row->metric, strip.low, low);
	metric_format(row->metric, strip.high, high);
	buf_printf(out, "<svg viewBox=\"0 0 %d %d\" stroke-width=\"1.5\" aria-hidden=\"true\">",
		   STRIP_WIDTH, STRIP_HEIGHT);
	put_lane(out, &strip, row->a, row->m, 22, 'a');
	put_lane(out, &strip, row->b, row->n, 62, 'b');
	buf_printf(out, "</svg><div class=\"axis\"><span>%s</span><span>%s</span></div>\n", low,
		   high);
}

static void put_numbers(struct buf *out, const struct compare_row *row)
{
	char a[METRIC_TEXT_MAX], b[METRIC_TEXT_MAX];
	metric_format(row->metric, stats_median(row->a, row->m), a);
	metric_format(row->metric, stats_median(row->b, row->n), b);
	buf_printf(out,
		   "<div class=\"nums\"><span><span class=\"key a\"></span>%s <span "
		   "class=\"soft\">n %zu"
		   "</span></span><span><span class=\"key b\"></span>%s <span class=\"soft\">n "
		   "%zu</span></span>",
		   a, row->m, b, row->n);
	if (!isnan(row->ratio.value))
		buf_printf(out, "<span><b>%+.2f %%</b>", 100 * (row->ratio.value - 1));
	if (!isnan(row->ratio.value) && isfinite(row->ratio.high))
		buf_printf(out, " <span class=\"soft\">%+.2f to %+.2f</span>",
			   100 * (row->ratio.low - 1), 100 * (row->ratio.high - 1));
	if (!isnan(row->ratio.value))
		buf_append_str(out, "</span>");
	if (!isnan(row->q))
		buf_printf(out, "<span class=\"soft\">q %.2g</span>", row->q);
	buf_append_str(out, "</div>\n");
}

static void put_card(struct buf *out, const struct compare_row *row)
{
	const char *verdict = verdict_name(row->verdict);
	buf_printf(out,
		   "<article class=\"card\" data-metric=\"%s\" data-verdict=\"%s\"><div "
		   "class=\"top\"><h3>",
		   metric_table[row->metric].name, verdict);
	markup_escape(out, compare_name(row->a_order));
	buf_printf(out, "</h3><span class=\"verdict %s\">%s %s</span></div>\n", verdict,
		   marks[row->verdict], verdict);
	put_numbers(out, row);
	put_strip(out, row);
	if (row->verdict == VERDICT_UNDECIDED) {
		buf_append_str(out, "<p class=\"soft\">");
		compare_verdict(row, out);
		buf_append_str(out, "</p>");
	}
	buf_append_str(out, "</article>\n");
}

/* ---- all orders of one metric at a glance ---- */

/* The largest effect, or the largest interval end that is not far beyond the effects. */
static double overview_reach(const struct comparison *c, enum metric metric)
{
	double effect = 0, interval = 0;
	for (size_t i = 0; i < c->row_count; i++) {
		const struct ratio *ratio = &c->rows[i].ratio;
		if (c->rows[i].metric != metric || isnan(ratio->value))
			continue;
		effect = fmax(effect, fabs(log(ratio->value)));
		if (isfinite(ratio->high))
			interval =
				fmax(interval, fmax(fabs(log(ratio->low)), fabs(log(ratio->high))));
	}
	double noise = log1p(c->summaries[metric].noise);
	return 1.1 * fmax(fmin(interval, 2.5 * fmax(effect, noise)), fmax(effect, 1.5 * noise));
}

static double overview_y(double ratio, double reach)
{
	double part = fmax(-1, fmin(1, log(ratio) / reach));
	return OVERVIEW_HEIGHT / 2.0 * (1 - part);
}

static void put_overview_row(struct buf *out, const struct compare_row *row, double x, double reach,
			     double radius)
{
	buf_printf(out, "<g class=\"%s\"><title>", verdict_name(row->verdict));
	markup_escape(out, compare_name(row->a_order));
	buf_printf(out, ": %+.2f %%, %s</title>", 100 * (row->ratio.value - 1),
		   verdict_name(row->verdict));
	if (isfinite(row->ratio.high))
		buf_printf(out, "<line x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>", x, x,
			   overview_y(row->ratio.low, reach), overview_y(row->ratio.high, reach));
	buf_printf(out, "<circle cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"/></g>\n", x,
		   overview_y(row->ratio.value, reach), radius);
}

static void put_overview(struct buf *out, const struct comparison *c, enum metric metric)
{
	size_t rows = 0, at = 0;
	for (size_t i = 0; i < c->row_count; i++)
		rows += c->rows[i].metric == metric && !isnan(c->rows[i].ratio.value);
	double reach = overview_reach(c, metric), noise = c->summaries[metric].noise;
	double step = (double)OVERVIEW_WIDTH / (double)MAX(rows, (size_t)1);
	double top = overview_y(1 + noise, reach), bottom = overview_y(1 / (1 + noise), reach);
	buf_printf(out,
		   "<div class=\"panel\"><div class=\"axis\"><span>%+.1f %%: more in "
		   "B</span><span>%zu orders by "
		   "effect</span></div>\n<svg viewBox=\"0 0 %d %d\" stroke-width=\"%.2f\" "
		   "role=\"img\" "
		   "aria-label=\"ratio of every order with its interval\">\n"
		   "<rect class=\"band\" stroke=\"none\" x=\"0\" width=\"%d\" y=\"%.1f\" "
		   "height=\"%.1f\"/>"
		   "<line class=\"grid\" stroke-width=\"1.5\" x1=\"0\" x2=\"%d\" y1=\"%d\" "
		   "y2=\"%d\"/>\n",
		   100 * expm1(reach), rows, OVERVIEW_WIDTH, OVERVIEW_HEIGHT,
		   MAX(0.3, MIN(3.0, step / 4)), OVERVIEW_WIDTH, top, bottom - top, OVERVIEW_WIDTH,
		   OVERVIEW_HEIGHT / 2, OVERVIEW_HEIGHT / 2);
	double radius = MAX(1.5, MIN(7.0, step / 2.5));
	for (size_t i = 0; i < c->row_count; i++)
		if (c->rows[i].metric == metric && !isnan(c->rows[i].ratio.value))
			put_overview_row(out, &c->rows[i], ((double)at++ + 0.5) * step, reach,
					 radius);
	buf_printf(out,
		   "</svg><div class=\"axis\"><span>%+.1f %%: less in B</span><span>band: no change"
		   "</span></div></div>\n",
		   100 * expm1(-reach));
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

static void put_metric(struct buf *out, const struct comparison *c, enum metric metric)
{
	buf_printf(out, "<section><h2>%s</h2>\n<p class=\"soft\">", metric_table[metric].title);
	compare_summarise(c, metric, out);
	buf_append_str(out, "</p>\n");
	put_tiles(out, &c->summaries[metric], metric);
	put_overview(out, c, metric);
	buf_append_str(out, "<h2>Orders</h2><div class=\"cards\">\n");
	for (size_t i = 0; i < c->row_count; i++)
		if (c->rows[i].metric == metric)
			put_card(out, &c->rows[i]);
	buf_append_str(out, "</div></section>\n");
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
}

static void put_orders(struct buf *out, const char *title, const struct sample_order *const *orders,
		       size_t n)
{
	if (n == 0)
		return;
	buf_printf(out, "<h2>%s (%zu)</h2><ul>", title, n);
	for (size_t i = 0; i < n; i++) {
		buf_append_str(out, "<li>");
		markup_escape(out, compare_name(orders[i]));
		buf_append_str(out, "</li>");
	}
	buf_append_str(out, "</ul>\n");
}

void compare_html(const struct comparison *c, struct buf *out)
{
	page_open(out, "muster compare");
	put_side(out, &c->a, "A", 'a');
	put_side(out, &c->b, "B", 'b');
	page_search(out, "find an order");
	put_orders(out, "Every attempt failed in B", c->broken, c->broken_count);
	for (enum metric metric = 0; metric < METRIC_COUNT; metric++)
		if (c->summaries[metric].present)
			put_metric(out, c, metric);
	put_orders(out, "Only in A", c->only_a, c->only_a_count);
	put_orders(out, "Only in B", c->only_b, c->only_b_count);
	page_close(out);
}
