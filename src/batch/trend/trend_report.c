/* Text, Markdown and JSON. */
#include "batch/trend/trend.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "batch/markup.h"
#include "proto/json_out.h"

#define PLURAL(count) ((count) == 1 ? "" : "s")
#define TEXT_ROWS 20 /* of what did not change, without --all */

static const char *const verdicts[] = { [VERDICT_UNDECIDED] = "undecided",
					[VERDICT_SAME] = "same",
					[VERDICT_FASTER] = "better",
					[VERDICT_SLOWER] = "worse" };
static_assert(ARRAY_LEN(verdicts) == VERDICT_COUNT, "every verdict has a name");

const char *trend_verdict_name(enum verdict verdict)
{
	return verdicts[verdict];
}

const char *trend_metric_title(const struct trend_series *series)
{
	return series->metric == ARCHIVE_VALUE ? "value" : metric_table[series->metric].title;
}

void trend_value(const struct trend_series *series, double value, char text[METRIC_TEXT_MAX])
{
	if (series->metric != ARCHIVE_VALUE)
		metric_format((enum metric)series->metric, value, text);
	else
		snprintf(text, METRIC_TEXT_MAX, "%.4g %s", value, series->detail);
}

/* "+3.1 % (+2.2 to +4.0)" */
static void change_text(const struct change *change, struct buf *out)
{
	const struct ratio *ratio = &change->ratio;
	buf_printf(out, "%+.2f %% (%+.2f to %+.2f)", 100 * (ratio->value - 1),
		   100 * (ratio->low - 1), 100 * (ratio->high - 1));
}

void trend_spread_text(const struct spread *spread, struct buf *out)
{
	buf_printf(out, "noise %.2f %%, was %.2f %%", 100 * spread->after, 100 * spread->before);
}

void trend_extent(const struct trend_series *series, const char *between, struct buf *out)
{
	if (series->count < CHANGE_POINTS_MIN_VALUES)
		buf_append_str(out, "noise not known yet");
	else
		buf_printf(out, "noise %.2f %%", 100 * series->changes.noise);
	buf_printf(out, "%s%zu version%s", between, series->count, PLURAL(series->count));
}

const struct trend_version *trend_version_at(const struct trend_series *series, size_t value)
{
	return &series->line->versions[series->places[value]];
}

/* The {} of a link stands for the version. */
void trend_link(const char *link, const char *version, struct buf *out)
{
	const char *place = strstr(link, "{}");
	if (!place) {
		buf_append_str(out, link);
		return;
	}
	buf_append(out, link, (size_t)(place - link));
	buf_append_str(out, version);
	buf_append_str(out, place + 2);
}

/* ------------------------------------------------------------------------ text */

/* NaN: nothing was measured. */
static double newest_level(const struct trend_series *series)
{
	const struct change_points *changes = &series->changes;
	return changes->count  ? changes->items[changes->count - 1].after
	       : series->count ? series->values[series->count - 1]
			       : NAN;
}

static void put_text_series(const struct trend_series *series, struct buf *out)
{
	char level[METRIC_TEXT_MAX];
	const struct change_points *changes = &series->changes;
	size_t start = buf_len(out);
	trend_value(series, newest_level(series), level);
	buf_printf(out, "%-10s %s  %s %s, ", trend_verdict_name(series->news.verdict), series->name,
		   trend_metric_title(series), level);
	trend_extent(series, ", ", out);
	buf_append_char(out, '\n');
	for (size_t i = 0; i < changes->count; i++) {
		const struct change *change = &changes->items[i];
		buf_printf(out, "           %s %.*s: ", change == series->news.change ? ">" : " ",
			   TREND_VERSION_CHARS, trend_version_at(series, change->at)->name);
		change_text(change, out);
		buf_append_char(out, '\n');
	}
	for (size_t i = 0; i < changes->spreads.count; i++) {
		const struct spread *spread = &changes->spreads.items[i];
		buf_printf(out, "             %.*s: ", TREND_VERSION_CHARS,
			   trend_version_at(series, spread->at)->name);
		trend_spread_text(spread, out);
		buf_append_char(out, '\n');
	}
	utf8_make_rest_printable(out, start, "\n");
}

static void put_summary(const struct trend *trend, struct buf *out)
{
	buf_printf(out,
		   "%zu series over %zu result%s: %zu worse, %zu better, %zu same, %zu "
		   "undecided\n",
		   trend->series_count, trend->versions, PLURAL(trend->versions),
		   trend->verdicts[VERDICT_SLOWER], trend->verdicts[VERDICT_FASTER],
		   trend->verdicts[VERDICT_SAME], trend->verdicts[VERDICT_UNDECIDED]);
}

static bool is_shown(const struct trend_series *series, bool all, size_t *quiet)
{
	if (all || series->news.change)
		return true;
	return series->changes.count && ++*quiet <= TEXT_ROWS;
}

void trend_text(const struct trend *trend, bool all, struct buf *out)
{
	size_t quiet = 0, hidden = 0;
	for (size_t l = 0; l < trend->line_count; l++) {
		const struct trend_line *line = trend->lines[l];
		buf_printf(out, "%s, %s: %zu version%s, the newest is %.*s\n", line->host_class,
			   line->configuration, line->version_count, PLURAL(line->version_count),
			   TREND_VERSION_CHARS, line->versions[line->version_count - 1].name);
		for (size_t i = 0; i < trend->series_count; i++) {
			if (trend->series[i]->line != line)
				continue;
			if (is_shown(trend->series[i], all, &quiet))
				put_text_series(trend->series[i], out);
			else
				hidden++;
		}
	}
	if (hidden)
		buf_printf(out, "%zu series without news are not shown (--all shows them)\n",
			   hidden);
	put_summary(trend, out);
}

/* -------------------------------------------------------------------- Markdown */

void trend_markdown(const struct trend *trend, const char *link, struct buf *out)
{
	buf_append_str(out, "### Benchmarks\n\n");
	put_summary(trend, out);
	size_t rows = 0;
	for (size_t i = 0; i < trend->series_count; i++) {
		const struct trend_series *series = trend->series[i];
		const struct change *change = series->news.change;
		if (!change || series->news.verdict == VERDICT_UNDECIDED)
			continue;
		if (rows++ == 0)
			buf_append_str(out, "\n| | benchmark | metric | change | since | host |\n"
					    "|:--|:--|:--|--:|:--|:--|\n");
		const char *version = trend_version_at(series, change->at)->name;
		buf_printf(out, "| %s | ", trend_verdict_name(series->news.verdict));
		markup_markdown(out, series->name);
		buf_printf(out, " | %s | ", trend_metric_title(series));
		change_text(change, out);
		buf_append_str(out, link ? " | [" : " | ");
		buf_printf(out, "%.*s", TREND_VERSION_CHARS, version);
		if (link) {
			buf_append_str(out, "](");
			trend_link(link, version, out);
			buf_append_char(out, ')');
		}
		buf_append_str(out, " | ");
		markup_markdown(out, series->line->host_class);
		buf_append_str(out, " |\n");
	}
}

/* ------------------------------------------------------------------------ JSON */

static void put_json_change(struct json_out *json, const struct trend_series *series,
			    const struct change *change)
{
	json_out_open(json, NULL, '{');
	json_out_text(json, "version", trend_version_at(series, change->at)->name);
	json_out_int(json, "index", (int64_t)change->at);
	json_out_real(json, "ratio", change->ratio.value);
	json_out_real(json, "low", change->ratio.low);
	json_out_real(json, "high", change->ratio.high);
	json_out_real(json, "p", change->p);
	json_out_real(json, "before", change->before);
	json_out_real(json, "after", change->after);
	json_out_close(json, '}');
}

static void put_json_spread(struct json_out *json, const struct trend_series *series,
			    const struct spread *spread)
{
	json_out_open(json, NULL, '{');
	json_out_text(json, "version", trend_version_at(series, spread->at)->name);
	json_out_int(json, "index", (int64_t)spread->at);
	json_out_real(json, "before", spread->before);
	json_out_real(json, "after", spread->after);
	json_out_real(json, "p", spread->p);
	json_out_close(json, '}');
}

static void put_json_series(struct json_out *json, const struct trend_series *series)
{
	const struct change_points *changes = &series->changes;
	json_out_open(json, NULL, '{');
	json_out_text(json, "id", series->id);
	json_out_text(json, "name", series->name);
	json_out_text(json, "metric",
		      series->metric == ARCHIVE_VALUE ? "value"
						      : metric_table[series->metric].name);
	json_out_text_if(json, "detail", series->detail);
	json_out_text(json, "class", series->line->host_class);
	json_out_text(json, "configuration", series->line->configuration);
	json_out_int(json, "versions", (int64_t)series->count);
	json_out_text(json, "newest", trend_version_at(series, series->count - 1)->name);
	json_out_text(json, "verdict", trend_verdict_name(series->news.verdict));
	json_out_bool(json, "regression", series->news.verdict == VERDICT_SLOWER);
	json_out_real(json, "q", series->q);
	json_out_real(json, "level", newest_level(series));
	json_out_real(json, "noise", changes->noise);
	json_out_open(json, "changes", '[');
	for (size_t i = 0; i < changes->count; i++)
		put_json_change(json, series, &changes->items[i]);
	json_out_close(json, ']');
	json_out_open(json, "noise_changes", '[');
	for (size_t i = 0; i < changes->spreads.count; i++)
		put_json_spread(json, series, &changes->spreads.items[i]);
	json_out_close(json, ']');
	json_out_open(json, "outliers", '[');
	for (size_t i = 0; i < changes->outlier_count; i++)
		json_out_text(json, NULL, trend_version_at(series, changes->outliers[i])->name);
	json_out_close(json, ']');
	json_out_close(json, '}');
}

void trend_json(const struct trend *trend, struct buf *out)
{
	struct json_out json = JSON_OUT(out);
	json_out_open(&json, NULL, '{');
	json_out_text(&json, "muster", "trend");
	json_out_int(&json, "v", 1);
	json_out_real(&json, "alpha", trend->options.alpha);
	json_out_int(&json, "regressions", (int64_t)trend->verdicts[VERDICT_SLOWER]);
	json_out_open(&json, "series", '[');
	for (size_t i = 0; i < trend->series_count; i++)
		if (trend->series[i]->count)
			put_json_series(&json, trend->series[i]);
	json_out_close(&json, ']');
	json_out_close(&json, '}');
	buf_append_char(out, '\n');
}

/* ------------------------------------------------------- github-action-benchmark */

static void put_github_bench(struct json_out *json, const struct trend_series *series, size_t at)
{
	bool known = series->metric < METRIC_COUNT;
	bool time = known && metric_table[series->metric].unit == METRIC_NS;
	bool size = known && metric_table[series->metric].unit == METRIC_KIB;
	json_out_open(json, NULL, '{');
	json_out_text(json, "name", series->name);
	json_out_real(json, "value", series->values[at] * (size ? 1024 : 1));
	json_out_text(json, "unit",
		      time		? "ns"
		      : size		? "bytes"
		      : *series->detail ? series->detail
					: "count");
	json_out_close(json, '}');
}

static void put_github_version(struct json_out *json, const struct trend *trend,
			       const struct trend_line *line, uint32_t place, bool more)
{
	const struct trend_version *version = &line->versions[place];
	char stamp[CLOCK_ISO_MAX];
	clock_iso((uint64_t)MAX(version->time_s, (int64_t)0) * NS_PER_S, stamp);
	json_out_open(json, NULL, '{');
	json_out_open(json, "commit", '{');
	json_out_text(json, "id", version->name);
	json_out_text(json, "message", version->name);
	json_out_text(json, "timestamp", stamp);
	json_out_text(json, "url", "");
	json_out_close(json, '}');
	json_out_int(json, "date", version->time_s * 1000);
	json_out_text(json, "tool", more ? "customBiggerIsBetter" : "customSmallerIsBetter");
	json_out_open(json, "benches", '[');
	for (size_t i = 0; i < trend->series_count; i++) {
		const struct trend_series *series = trend->series[i];
		if (series->line != line || series->more_is_better != more)
			continue;
		for (size_t k = 0; k < series->count; k++)
			if (series->places[k] == place)
				put_github_bench(json, series, k);
	}
	json_out_close(json, ']');
	json_out_close(json, '}');
}

static bool has_direction(const struct trend *trend, const struct trend_line *line, bool more)
{
	for (size_t i = 0; i < trend->series_count; i++)
		if (trend->series[i]->line == line && trend->series[i]->more_is_better == more)
			return true;
	return false;
}

void trend_github(const struct trend *trend, struct buf *out)
{
	struct json_out json = JSON_OUT(out, .indent = 2);
	buf_append_str(out, "window.BENCHMARK_DATA = ");
	json_out_open(&json, NULL, '{');
	json_out_int(&json, "lastUpdate", (int64_t)(clock_wall_ns() / NS_PER_MS));
	json_out_text(&json, "repoUrl", "");
	json_out_open(&json, "entries", '{');
	for (size_t i = 0; i < trend->line_count; i++) {
		const struct trend_line *line = trend->lines[i];
		for (int more = 0; more <= 1; more++) {
			if (!has_direction(trend, line, more))
				continue;
			AUTO_FREE char *suite =
				mem_printf("%s, %s%s", line->host_class, line->configuration,
					   more ? ", more is better" : "");
			json_out_open(&json, suite, '[');
			for (uint32_t k = 0; k < line->version_count; k++)
				put_github_version(&json, trend, line, k, more);
			json_out_close(&json, ']');
		}
	}
	json_out_close(&json, '}');
	json_out_close(&json, '}');
	buf_append_char(out, '\n');
}
