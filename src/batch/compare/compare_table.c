#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "batch/compare/compare_report.h"
#include "core/batch/stats.h"

#define NAME_MIN_CELLS 8
#define NAME_MAX_CELLS 32
#define RATIO_MIN_CELLS 8 /* with the gap before it, as all columns */
#define INTERVAL_MIN_CELLS 16
#define RATIO_TEXT_MAX 32
#define INTERVAL_TEXT_MAX (2 * RATIO_TEXT_MAX + 8)
#define GAP_CELLS 2
#define BAR_HALF 10 /* cells on each side of "no change" */
#define BAR_CELLS (2 * BAR_HALF + 1)
#define SCALE_MIN 0.02 /* the bar's ends are at least 2 % and at most a factor of 2 away */
#define SCALE_MAX 1.0

/* How the bar is drawn: blank, axis, line, left end, right end, point, beyond the left, the
 * right. */
enum glyph { BLANK, AXIS, LINE, LEFT, RIGHT, POINT, OVER_LEFT, OVER_RIGHT, GLYPH_COUNT };

static const char *const glyphs_utf8[] = { " ", "│", "─", "├", "┤", "●", "◂", "▸" };
static const char *const glyphs_ascii[] = { " ", "|", "-", "[", "]", "*", "<", ">" };
static_assert(ARRAY_LEN(glyphs_utf8) == GLYPH_COUNT && ARRAY_LEN(glyphs_ascii) == GLYPH_COUNT,
	      "both alphabets are whole");

static const char *const colours[VERDICT_COUNT] = {
	[VERDICT_UNDECIDED] = "\033[33m",
	[VERDICT_SAME] = "\033[2m",
	[VERDICT_FASTER] = "\033[32m",
	[VERDICT_SLOWER] = "\033[31m",
};

static size_t cells(const char *text)
{
	size_t n = 0;
	for (; *text; text++)
		n += ((unsigned char)*text & 0xC0) != 0x80;
	return n;
}

static void pad(struct buf *out, size_t used, size_t width)
{
	for (; used < width; used++)
		buf_append_char(out, ' ');
}

static void put_right(struct buf *out, const char *text, size_t width)
{
	pad(out, cells(text), width);
	buf_append_str(out, text);
}

/* At most `width` cells, cut at the end. */
static void put_name(struct buf *out, const char *text, size_t width,
		     const struct compare_style *style)
{
	AUTO_FREE char *name = mem_strdup(text);
	str_make_printable(name);
	size_t total = cells(name), shown = 0;
	for (const char *at = name; *at; at++) {
		bool starts = ((unsigned char)*at & 0xC0) != 0x80;
		if (starts && total > width && shown + 1 == width) {
			buf_append_str(out, style->utf8 ? "…" : "~");
			shown++;
			break;
		}
		shown += starts;
		buf_append_char(out, *at);
	}
	pad(out, shown, width);
}

/* Where a ratio lies on the bar, in cells from its left end; may be outside. */
static long place(double ratio, double scale)
{
	return lround(BAR_HALF + fmax(fmin(log(ratio) / scale, 2), -2) * BAR_HALF);
}

static void put_bar(struct buf *out, const struct ratio *ratio, double scale,
		    const struct compare_style *style)
{
	const char *const *glyphs = style->utf8 ? glyphs_utf8 : glyphs_ascii;
	enum glyph bar[BAR_CELLS] = { 0 };
	bar[BAR_HALF] = AXIS;
	if (!isnan(ratio->value)) {
		bool known = isfinite(ratio->high);
		long low = known ? place(ratio->low, scale) : -1,
		     high = known ? place(ratio->high, scale) : -1;
		for (long i = MAX(low, 0); i <= MIN(high, BAR_CELLS - 1); i++)
			bar[i] = LINE;
		if (low >= 0 && low < BAR_CELLS)
			bar[low] = LEFT;
		if (high >= 0 && high < BAR_CELLS)
			bar[high] = RIGHT;
		long point = place(ratio->value, scale);
		if (point < 0)
			bar[0] = OVER_LEFT;
		else if (point >= BAR_CELLS)
			bar[BAR_CELLS - 1] = OVER_RIGHT;
		else
			bar[point] = POINT;
	}
	for (int i = 0; i < BAR_CELLS; i++)
		buf_append_str(out, glyphs[bar[i]]);
}

/* The farthest end of any interval in the table. */
static double bar_scale(const struct comparison *c, enum metric metric)
{
	double scale = SCALE_MIN;
	for (size_t i = 0; i < c->row_count; i++) {
		const struct ratio *ratio = &c->rows[i].ratio;
		if (c->rows[i].metric != metric || !isfinite(ratio->high) || isnan(ratio->value))
			continue;
		scale = fmax(scale, fmax(fabs(log(ratio->low)), fabs(log(ratio->high))));
	}
	return fmin(scale, SCALE_MAX * M_LN2);
}

/* About four digits, whatever its size. */
static void format_ratio(double ratio, char text[RATIO_TEXT_MAX])
{
	int decimals = ratio >= 999.95 ? 0 : ratio >= 99.995 ? 1 : ratio >= 9.9995 ? 2 : 3;
	if (isnan(ratio))
		snprintf(text, RATIO_TEXT_MAX, "-");
	else if (ratio >= 1e5 || (ratio > 0 && ratio < 0.01))
		snprintf(text, RATIO_TEXT_MAX, "%.2g", ratio);
	else
		snprintf(text, RATIO_TEXT_MAX, "%.*f", decimals, ratio);
}

static void format_interval(const struct ratio *ratio, char text[INTERVAL_TEXT_MAX])
{
	char low[RATIO_TEXT_MAX], high[RATIO_TEXT_MAX];
	format_ratio(ratio->low, low);
	format_ratio(ratio->high, high);
	if (isfinite(ratio->high))
		snprintf(text, INTERVAL_TEXT_MAX, "%s to %s", low, high);
	else
		snprintf(text, INTERVAL_TEXT_MAX, "no interval");
}

static void format_interval_head(const struct comparison *c, enum metric metric,
				 char text[INTERVAL_TEXT_MAX])
{
	if (metric_table[metric].counted)
		snprintf(text, INTERVAL_TEXT_MAX, "range");
	else
		snprintf(text, INTERVAL_TEXT_MAX, "%.4g %% interval", 100 * (1 - c->options.alpha));
}

/* What a metric's table has room for. */
struct layout {
	size_t name, name_min;
	size_t number; /* a median, with the gap before it */
	size_t ratio, interval;
	bool bar;
	bool reason; /* beside the verdict; otherwise in a line of its own */
};

static size_t table_width(const struct layout *layout, size_t verdict, size_t reason)
{
	return 2 + layout->name + 2 * layout->number + layout->ratio + layout->interval +
	       (layout->bar ? 2 + BAR_CELLS : 0) + 2 + verdict + (layout->reason ? reason : 0) +
	       strlen(" !");
}

static size_t number_cells(const struct compare_row *row)
{
	char a[METRIC_TEXT_MAX], b[METRIC_TEXT_MAX];
	metric_format(row->metric, stats_median(row->a, row->m), a);
	metric_format(row->metric, stats_median(row->b, row->n), b);
	return MAX(cells(a), cells(b)) + GAP_CELLS;
}

static void widen_for_ratio(struct layout *layout, const struct ratio *ratio)
{
	char text[INTERVAL_TEXT_MAX];
	format_interval(ratio, text);
	layout->interval = MAX(layout->interval, GAP_CELLS + cells(text));
	format_ratio(ratio->value, text);
	layout->ratio = MAX(layout->ratio, GAP_CELLS + cells(text));
}

/* Gives up the place of reasons, then the bar, then the ends of names. */
static void lay_out(const struct comparison *c, enum metric metric, int width,
		    struct layout *ret_layout)
{
	struct layout layout = {
		.name = strlen("order"), .ratio = RATIO_MIN_CELLS, .bar = true, .reason = true
	};
	AUTO(buf_done) struct buf text = BUF_INIT;
	size_t verdict = strlen("verdict"), reason = 0;
	char head[INTERVAL_TEXT_MAX];
	format_interval_head(c, metric, head);
	layout.interval = MAX((size_t)INTERVAL_MIN_CELLS, GAP_CELLS + cells(head));
	for (size_t i = 0; i < c->row_count; i++) {
		size_t indent = 2 * c->rows[i].groups.count;
		layout.name = MAX(layout.name, indent + cells(c->rows[i].name));
		if (c->rows[i].metric != metric)
			continue;
		layout.name_min = MAX(layout.name_min, indent + NAME_MIN_CELLS);
		layout.number = MAX(layout.number, number_cells(&c->rows[i]));
		widen_for_ratio(&layout, &c->rows[i].ratio);
		buf_clear(&text);
		compare_verdict(&c->rows[i], &text);
		size_t name = strcspn(buf_str(&text), ":");
		verdict = MAX(verdict, name);
		reason = MAX(reason, cells(buf_str(&text) + name));
	}
	layout.name = MIN(layout.name, MAX((size_t)NAME_MAX_CELLS, layout.name_min));
	size_t room = width ? (size_t)width : SIZE_MAX;
	layout.reason = table_width(&layout, verdict, reason) <= room;
	layout.bar = table_width(&layout, verdict, reason) <= room;
	if (!layout.bar) { /* its place may do for them */
		layout.reason = true;
		layout.reason = table_width(&layout, verdict, reason) <= room;
	}
	while (layout.name > layout.name_min && table_width(&layout, verdict, reason) > room)
		layout.name--;
	*ret_layout = layout;
}

static void put_verdict(struct buf *out, const struct compare_row *row, const struct layout *layout,
			const struct compare_style *style)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	compare_verdict(row, &text);
	const char *reason = strstr(buf_str(&text), ": ");
	bool below = reason && !layout->reason;
	buf_append(out, buf_str(&text), below ? (size_t)(reason - buf_str(&text)) : buf_len(&text));
	if (style->colour)
		buf_append_str(out, "\033[0m");
	if (row->regression && !isnan(row->ratio.value) && row->verdict == VERDICT_SLOWER)
		buf_append_str(out, " !");
	buf_printf(out, "%s%s\n", below ? "\n      " : "", below ? reason + strlen(": ") : "");
}

static void put_indent(struct buf *out, size_t depth)
{
	pad(out, 0, 2 * (depth + 1));
}

/* The groups that begin with this row. */
static void put_groups(struct buf *out, const struct compare_row *row,
		       const struct compare_row *before, const struct compare_style *style)
{
	for (size_t i = compare_shared_groups(row, before); i < row->groups.count; i++) {
		const char *name = row->groups.items[i];
		put_indent(out, i);
		put_name(out, name, cells(name), style);
		buf_append_char(out, '\n');
	}
}

static void put_row(struct buf *out, const struct compare_row *row, const struct layout *layout,
		    double scale, const struct compare_style *style)
{
	char text[MAX(METRIC_TEXT_MAX, INTERVAL_TEXT_MAX)];
	size_t depth = row->groups.count, indent = 2 * depth;
	put_indent(out, depth);
	put_name(out, row->name, layout->name - MIN(indent, layout->name), style);
	metric_format(row->metric, stats_median(row->a, row->m), text);
	put_right(out, text, layout->number);
	metric_format(row->metric, stats_median(row->b, row->n), text);
	put_right(out, text, layout->number);
	format_ratio(row->ratio.value, text);
	put_right(out, text, layout->ratio);
	format_interval(&row->ratio, text);
	put_right(out, text, layout->interval);
	buf_append_str(out, "  ");
	if (style->colour)
		buf_append_str(out, colours[row->verdict]);
	if (layout->bar) {
		put_bar(out, &row->ratio, scale, style);
		buf_append_str(out, "  ");
	}
	put_verdict(out, row, layout, style);
}

static void put_head(struct buf *out, const struct comparison *c, enum metric metric,
		     const struct layout *layout, double scale, const struct compare_style *style)
{
	char text[INTERVAL_TEXT_MAX];
	buf_printf(out, "%s%s%s\n  ", style->colour ? "\033[1m" : "", metric_table[metric].title,
		   style->colour ? "\033[0m" : "");
	put_name(out, "order", layout->name, style);
	put_right(out, "A", layout->number);
	put_right(out, "B", layout->number);
	put_right(out, "B/A", layout->ratio);
	format_interval_head(c, metric, text);
	put_right(out, text, layout->interval);
	snprintf(text, sizeof(text), "%.2f", exp(-scale));
	if (layout->bar)
		buf_printf(out, "  %-*s1%*.2f", BAR_HALF, text, BAR_HALF, exp(scale));
	buf_append_str(out, "  verdict\n");
}

/* In as many lines as the width asks for. */
static void put_summary(struct buf *out, const struct comparison *c, enum metric metric,
			const struct compare_style *style)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	compare_summarise(c, metric, &text);
	size_t room = style->width ? (size_t)style->width : SIZE_MAX, used = 0, len;
	const char *words = buf_str(&text);
	for (const char *word; (word = str_split(&words, ' ', &len));) {
		bool next_line = used && used + 1 + len > room;
		buf_append_str(out, next_line ? "\n  " : used ? " " : "  ");
		used = (next_line || !used ? 2 : used + 1) + len;
		buf_append(out, word, len);
	}
	buf_append_str(out, "\n\n");
}

static void put_metric(struct buf *out, const struct comparison *c, enum metric metric,
		       const struct compare_style *style)
{
	struct layout layout;
	const struct compare_row *before = NULL;
	size_t hidden = 0;
	lay_out(c, metric, style->width, &layout);
	double scale = bar_scale(c, metric);
	put_head(out, c, metric, &layout, scale, style);
	for (size_t i = 0; i < c->row_count; i++) {
		if (c->rows[i].metric != metric)
			continue;
		if (!compare_shows(c, &c->rows[i], style->all)) {
			hidden++;
			continue;
		}
		put_groups(out, &c->rows[i], before, style);
		put_row(out, &c->rows[i], &layout, scale, style);
		before = &c->rows[i];
	}
	if (hidden)
		buf_printf(out, "  (%zu more that did not change or are undecided: --all)\n",
			   hidden);
	put_summary(out, c, metric, style);
}

static void put_orders(struct buf *out, const char *title, const struct sample_order *const *orders,
		       size_t n, const struct compare_style *style)
{
	enum { SHOWN = 10, NAME_MAX = 90 };
	size_t room = style->width > 2 ? MIN((size_t)style->width - 2, (size_t)NAME_MAX) : NAME_MAX;
	if (n == 0)
		return;
	buf_printf(out, "%s (%zu):\n", title, n);
	for (size_t i = 0; i < n && (style->all || i < SHOWN); i++) {
		const char *name = compare_order_name(orders[i]);
		buf_append_str(out, "  ");
		put_name(out, name, style->all ? cells(name) : MIN(cells(name), room), style);
		buf_append_char(out, '\n');
	}
	if (!style->all && n > SHOWN)
		buf_printf(out, "  and %zu more (--all)\n", n - SHOWN);
}

static size_t left_out(const struct comparison *c)
{
	size_t runs = 0;
	for (size_t i = 0; i < c->row_count; i++)
		runs += c->rows[i].left_out;
	return runs;
}

void compare_table(const struct comparison *c, const struct compare_style *style, struct buf *out)
{
	buf_printf(out, "A  %s\nB  %s\n\n", c->a.label, c->b.label);
	for (enum metric metric = 0; metric < METRIC_COUNT; metric++)
		if (c->summaries[metric].present)
			put_metric(out, c, metric, style);
	if (left_out(c))
		buf_printf(out, "%zu suspect values left out (--include-suspect counts them)\n",
			   left_out(c));
	put_orders(out, "Every attempt failed in B", c->broken, c->broken_count, style);
	put_orders(out, "Only in A", c->only_a, c->only_a_count, style);
	put_orders(out, "Only in B", c->only_b, c->only_b_count, style);
}
