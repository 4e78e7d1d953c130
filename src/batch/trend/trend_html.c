/* One page: the newest verdicts as tiles, then a card with a chart for every series. Shapes are
 * SVG, text stays in HTML. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "batch/markup.h"
#include "batch/page.h"
#include "batch/trend/trend.h"

#define CHART_WIDTH 640
#define CHART_HEIGHT 150
#define CHART_MARGIN 8
#define CARDS_MAX 500 /* charts on a page; the rest is in --json */

static const char *const classes[] = { [VERDICT_UNDECIDED] = "undecided",
				       [VERDICT_SAME] = "same",
				       [VERDICT_FASTER] = "faster",
				       [VERDICT_SLOWER] = "slower" };
static const char *const marks[] = { [VERDICT_UNDECIDED] = "?",
				     [VERDICT_SAME] = "=",
				     [VERDICT_FASTER] = "✓",
				     [VERDICT_SLOWER] = "✗" };
static_assert(ARRAY_LEN(classes) == VERDICT_COUNT && ARRAY_LEN(marks) == VERDICT_COUNT,
	      "every verdict has a class and a mark");

struct chart {
	const struct trend_series *series;
	double low, high;
};

static double chart_x(const struct chart *chart, double value)
{
	double last = (double)MAX(chart->series->count, (size_t)2) - 1;
	return CHART_MARGIN + value / last * (CHART_WIDTH - 2 * CHART_MARGIN);
}

static double chart_y(const struct chart *chart, double value)
{
	double span = chart->high - chart->low;
	double part = span > 0 ? (value - chart->low) / span : 0.5;
	return CHART_HEIGHT - CHART_MARGIN - part * (CHART_HEIGHT - 2 * CHART_MARGIN);
}

/* Dots are strokes of no length with round ends: a few bytes each. */
static void put_dots(const struct chart *chart, struct buf *out)
{
	buf_append_str(out, "<path class=\"sa\" fill=\"none\" stroke-width=\"4.5\" "
			    "stroke-linecap=\"round\" opacity=\".75\" d=\"");
	for (size_t i = 0; i < chart->series->count; i++)
		buf_printf(out, "M%.1f %.1fh0", chart_x(chart, (double)i),
			   chart_y(chart, chart->series->values[i]));
	buf_append_str(out, "\"/>\n");
}

static void put_level(const struct chart *chart, size_t from, size_t to, double value,
		      struct buf *out)
{
	double y = chart_y(chart, value);
	buf_printf(out, "<line class=\"sb\" x1=\"%.1f\" x2=\"%.1f\" y1=\"%.1f\" y2=\"%.1f\"/>",
		   chart_x(chart, (double)from - 0.5), chart_x(chart, (double)to - 0.5), y, y);
}

static double mean_level(const struct trend_series *series)
{
	double sum = 0;
	for (size_t i = 0; i < series->count; i++)
		sum += log(series->values[i]);
	return exp(sum / (double)series->count);
}

static void put_levels(const struct chart *chart, struct buf *out)
{
	const struct change_points *changes = &chart->series->changes;
	size_t n = chart->series->count;
	if (changes->count == 0) {
		put_level(chart, 0, n, mean_level(chart->series), out);
		return;
	}
	put_level(chart, 0, changes->items[0].at, changes->items[0].before, out);
	for (size_t i = 0; i < changes->count; i++) {
		size_t end = i + 1 < changes->count ? changes->items[i + 1].at : n;
		put_level(chart, changes->items[i].at, end, changes->items[i].after, out);
	}
}

static bool is_worse(const struct trend_series *series, const struct change *change)
{
	return (change->ratio.value > 1) != series->more_is_better;
}

static void put_marks(const struct chart *chart, struct buf *out)
{
	const struct trend_series *series = chart->series;
	for (size_t i = 0; i < series->changes.count; i++) {
		const struct change *change = &series->changes.items[i];
		double x = chart_x(chart, (double)change->at - 0.5);
		buf_printf(out,
			   "<g class=\"%s\"><title>%+.2f %%</title><line "
			   "stroke-dasharray=\"5 4\" x1=\"%.1f\" x2=\"%.1f\" y1=\"0\" "
			   "y2=\"%d\"/></g>",
			   is_worse(series, change) ? "slower" : "faster",
			   100 * (change->ratio.value - 1), x, x, CHART_HEIGHT);
	}
	for (size_t i = 0; i < series->changes.outlier_count; i++) {
		size_t at = series->changes.outliers[i];
		buf_printf(out,
			   "<circle class=\"undecided\" fill-opacity=\"0\" cx=\"%.1f\" "
			   "cy=\"%.1f\" r=\"6\"/>",
			   chart_x(chart, (double)at), chart_y(chart, series->values[at]));
	}
	buf_append_char(out, '\n');
}

static void put_version(const char *version, const char *link, struct buf *out)
{
	AUTO(buf_done) struct buf shown = BUF_INIT;
	buf_printf(&shown, "%.*s", TREND_VERSION_CHARS, version);
	if (link) {
		AUTO(buf_done) struct buf address = BUF_INIT;
		trend_link(link, version, &address);
		buf_append_str(out, "<a href=\"");
		markup_escape(out, buf_str(&address));
		buf_append_str(out, "\">");
	}
	buf_append_str(out, "<code>");
	markup_escape(out, buf_str(&shown));
	buf_append_str(out, link ? "</code></a>" : "</code>");
}

static void put_chart(const struct trend_series *series, const char *link, struct buf *out)
{
	struct chart chart = { .series = series, .low = INFINITY, .high = 0 };
	char low[METRIC_TEXT_MAX], high[METRIC_TEXT_MAX];
	for (size_t i = 0; i < series->count; i++) {
		chart.low = fmin(chart.low, series->values[i]);
		chart.high = fmax(chart.high, series->values[i]);
	}
	trend_value(series, chart.low, low);
	trend_value(series, chart.high, high);
	buf_append_str(out, "<div class=\"axis\"><span>");
	markup_escape(out, high);
	buf_printf(out,
		   "</span></div><svg viewBox=\"0 0 %d %d\" stroke-width=\"2\" role=\"img\" "
		   "aria-label=\"values by version\">\n",
		   CHART_WIDTH, CHART_HEIGHT);
	put_dots(&chart, out);
	put_levels(&chart, out);
	put_marks(&chart, out);
	buf_append_str(out, "</svg><div class=\"axis\"><span>");
	markup_escape(out, low);
	buf_append_str(out, "</span></div><div class=\"axis\"><span>");
	put_version(trend_version_at(series, 0)->name, link, out);
	buf_append_str(out, "</span><span>");
	put_version(trend_version_at(series, series->count - 1)->name, link, out);
	buf_append_str(out, "</span></div>\n");
}

static void put_changes(const struct trend_series *series, const char *link, struct buf *out)
{
	const struct spreads *spreads = &series->changes.spreads;
	if (series->changes.count + spreads->count == 0)
		return;
	buf_append_str(out, "<ul>");
	for (size_t i = series->changes.count; i-- > 0;) {
		const struct change *change = &series->changes.items[i];
		buf_printf(out,
			   "<li><b class=\"%s\">%+.2f %%</b> <span class=\"soft\">%+.2f to "
			   "%+.2f</span> ",
			   is_worse(series, change) ? "slower" : "faster",
			   100 * (change->ratio.value - 1), 100 * (change->ratio.low - 1),
			   100 * (change->ratio.high - 1));
		put_version(trend_version_at(series, change->at)->name, link, out);
		buf_append_str(out, change == series->news.change ? " <b>new</b></li>" : "</li>");
	}
	for (size_t i = spreads->count; i-- > 0;) {
		buf_append_str(out, "<li>");
		trend_spread_text(&spreads->items[i], out);
		buf_append_char(out, ' ');
		put_version(trend_version_at(series, spreads->items[i].at)->name, link, out);
		buf_append_str(out, "</li>");
	}
	buf_append_str(out, "</ul>\n");
}

static void put_card(const struct trend_series *series, const char *link, struct buf *out)
{
	enum verdict verdict = series->news.verdict;
	buf_printf(out,
		   "<article class=\"card\" data-metric=\"trend\" data-verdict=\"%s\"><div "
		   "class=\"top\"><h3>",
		   classes[verdict]);
	markup_escape(out, series->name);
	buf_printf(out, "</h3><span class=\"verdict %s\">%s %s</span></div>\n<p class=\"soft\">%s",
		   classes[verdict], marks[verdict], trend_verdict_name(verdict),
		   trend_metric_title(series));
	if (*series->detail) {
		buf_append_str(out, ", ");
		markup_escape(out, series->detail);
	}
	buf_append_str(out, " · ");
	trend_extent(series, " · ", out);
	buf_append_str(out, " · ");
	markup_escape(out, series->line->host_class);
	buf_append_str(out, " · ");
	markup_escape(out, series->line->configuration);
	buf_append_str(out, "</p>\n");
	put_chart(series, link, out);
	put_changes(series, link, out);
	buf_append_str(out, "</article>\n");
}

static void put_tiles(const struct trend *trend, struct buf *out)
{
	static const enum verdict order[] = { VERDICT_SLOWER, VERDICT_FASTER, VERDICT_SAME,
					      VERDICT_UNDECIDED };
	buf_append_str(out, "<div class=\"tiles\">");
	for (size_t i = 0; i < ARRAY_LEN(order); i++)
		buf_printf(out,
			   "<button aria-pressed=\"false\" data-metric=\"trend\" "
			   "data-verdict=\"%s\"><b class=\"%s\">%zu</b>%s %s</button>",
			   classes[order[i]], classes[order[i]], trend->verdicts[order[i]],
			   marks[order[i]], trend_verdict_name(order[i]));
	buf_append_str(out, "</div>\n");
}

void trend_html(const struct trend *trend, const char *link, struct buf *out)
{
	page_open(out, "muster trend");
	for (size_t i = 0; i < trend->line_count; i++) {
		const struct trend_line *line = trend->lines[i];
		buf_append_str(out, "<p>");
		markup_escape(out, line->host_class);
		buf_append_str(out, ", ");
		markup_escape(out, line->configuration);
		buf_printf(out, ": %zu version%s, the newest is ", line->version_count,
			   line->version_count == 1 ? "" : "s");
		put_version(line->versions[line->version_count - 1].name, link, out);
		buf_append_str(out, "</p>\n");
	}
	put_tiles(trend, out);
	page_search(out, "find a benchmark, metric or host");
	buf_append_str(out, "<p class=\"soft\">Dots: versions, oldest left. Lines: levels. Dashes: "
			    "changes. Rings: outliers. The largest changes come first.</p>\n");
	size_t shown = MIN(trend->series_count, (size_t)CARDS_MAX);
	buf_append_str(out, "<div class=\"cards\">\n");
	for (size_t i = 0; i < shown; i++)
		if (trend->series[i]->count)
			put_card(trend->series[i], link, out);
	buf_append_str(out, "</div>\n");
	if (shown < trend->series_count)
		buf_printf(out,
			   "<p class=\"soft\">%zu more series changed less and have no chart "
			   "here.</p>\n",
			   trend->series_count - shown);
	page_close(out);
}
