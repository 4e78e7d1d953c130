#include "batch/trend/trend.h"

#include <errno.h>
#include <math.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/batch/stats_rank.h"
#include "sys/thread.h"

void trend_options_init(struct trend_options *options)
{
	*options = (struct trend_options){ .alpha = TREND_ALPHA,
					   .min_change = TREND_MIN_CHANGE,
					   .tolerance = TREND_TOLERANCE,
					   .recent = TREND_RECENT };
}

void trend_done(struct trend *trend)
{
	for (size_t i = 0; i < trend->line_count; i++) {
		free(trend->lines[i]->versions);
		free(trend->lines[i]);
	}
	for (size_t i = 0; i < trend->series_count; i++) {
		struct trend_series *series = trend->series[i];
		change_points_done(&series->changes);
		free(series->values);
		free(series->places);
		free(series->weights);
		free(series);
	}
	free(trend->lines);
	free(trend->series);
	*trend = TREND_INIT;
}

/* -------------------------------------------------------------------- versions */

static bool wanted_entry(const struct trend_options *options, const struct archive_entry *entry)
{
	return (!options->host_class || str_eq(options->host_class, entry->key.host_class)) &&
	       (!options->configuration ||
		str_eq(options->configuration, entry->key.configuration));
}

static struct trend_line *line_of(struct trend *trend, const struct archive_entry *entry)
{
	for (size_t i = 0; i < trend->line_count; i++)
		if (str_eq(trend->lines[i]->host_class, entry->key.host_class) &&
		    str_eq(trend->lines[i]->configuration, entry->key.configuration))
			return trend->lines[i];
	struct trend_line *line = NEW(struct trend_line);
	line->host_class = entry->key.host_class;
	line->configuration = entry->key.configuration;
	ARRAY_RESERVE(trend->lines, trend->line_count, trend->line_cap);
	trend->lines[trend->line_count++] = line;
	return line;
}

static int older_first(const void *a, const void *b)
{
	const struct trend_version *x = a, *y = b;
	if (x->time_s != y->time_s)
		return x->time_s < y->time_s ? -1 : 1;
	return strcmp(x->name, y->name);
}

/* One version may have been filed several times: the earliest time counts. */
static void join_versions(struct trend_line *line)
{
	struct map seen = MAP_INIT;
	size_t kept = 0;
	qsort(line->versions, line->version_count, sizeof(*line->versions), older_first);
	for (size_t i = 0; i < line->version_count; i++) {
		struct trend_version version = line->versions[i];
		if (map_find(&seen, version.name, strlen(version.name)))
			continue;
		map_put(&seen, version.name, strlen(version.name), line);
		line->versions[kept++] = version;
	}
	line->version_count = kept;
	map_done(&seen);
}

static int find_news(struct trend_line *line, const struct trend_options *options, struct err *err)
{
	size_t n = line->version_count;
	line->news = n > options->recent ? n - options->recent : 0;
	if (!options->since)
		return 0;
	for (size_t i = 0; i < n; i++) {
		if (str_starts(line->versions[i].name, options->since)) {
			line->news = i + 1;
			return 0;
		}
	}
	return err_set(err, ENOENT, "--since: there is no version '%s' of %s, %s", options->since,
		       line->host_class, line->configuration);
}

static int make_lines(struct trend *trend, const struct archive *archive, struct err *err)
{
	for (size_t i = 0; i < archive->count; i++) {
		const struct archive_entry *entry = &archive->entries[i];
		if (!wanted_entry(&trend->options, entry))
			continue;
		struct trend_line *line = line_of(trend, entry);
		ARRAY_RESERVE(line->versions, line->version_count, line->version_cap);
		line->versions[line->version_count++] =
			(struct trend_version){ entry->key.version, entry->key.time_s };
		trend->versions++;
	}
	if (trend->line_count == 0)
		return err_set(err, ENODATA,
			       "nothing was filed under this host class and "
			       "configuration");
	int r = 0;
	for (size_t i = 0; i < trend->line_count && r >= 0; i++) {
		join_versions(trend->lines[i]);
		r = find_news(trend->lines[i], &trend->options, err);
	}
	return r;
}

/* ---------------------------------------------------------------------- series */

/* Entries of one line in the order of its versions. */
struct placed {
	const struct archive_entry *entry;
	struct trend_line *line;
	uint32_t place;
};

static int by_line_and_place(const void *a, const void *b)
{
	const struct placed *x = a, *y = b;
	if (x->line != y->line)
		return x->line < y->line ? -1 : 1;
	return x->place < y->place ? -1 : x->place > y->place;
}

static uint32_t place_of(const struct trend_line *line, const char *version)
{
	uint32_t i = 0;
	while (!str_eq(line->versions[i].name, version))
		i++;
	return i;
}

/* Lists those that are wanted, and returns how many. */
static size_t wanted_metrics(const struct trend_options *options,
			     size_t ret_metrics[ARCHIVE_METRICS])
{
	static const bool usual[ARCHIVE_METRICS] = {
		[METRIC_WALL] = true, [METRIC_INSTRUCTIONS] = true, [ARCHIVE_VALUE] = true
	};
	size_t n = 0;
	bool any = false;
	for (size_t i = 0; i < ARCHIVE_METRICS; i++)
		any |= options->metrics[i];
	for (size_t i = 0; i < ARCHIVE_METRICS; i++)
		if (any ? options->metrics[i] : usual[i])
			ret_metrics[n++] = i;
	return n;
}

static const char *detail_of(const struct archive_point *point, size_t metric)
{
	const char *detail = metric == METRIC_INSTRUCTIONS ? point->source
			     : metric == ARCHIVE_VALUE	   ? point->unit
							   : NULL;
	return detail ? detail : "";
}

/* The table lives as long as one line is gathered. */
static struct trend_series *series_of(struct trend *trend, struct map *by_name, struct buf *name,
				      const struct trend_line *line,
				      const struct archive_point *point, size_t metric)
{
	const char *detail = detail_of(point, metric);
	buf_clear(name);
	buf_append_str(name, point->id);
	buf_append_char(name, '\0');
	buf_append_char(name, (char)metric);
	buf_append_str(name, detail);
	struct trend_series *series = map_get(by_name, buf_data(name), buf_len(name));
	if (series)
		return series;
	series = NEW(struct trend_series);
	*series = (struct trend_series){
		.line = line,
		.id = point->id,
		.name = point->name ? point->name : point->id,
		.detail = detail,
		.metric = metric,
	};
	map_put(by_name, buf_data(name), buf_len(name), series);
	ARRAY_RESERVE(trend->series, trend->series_count, trend->series_cap);
	trend->series[trend->series_count++] = series;
	return series;
}

static void series_grow(struct trend_series *series)
{
	if (series->count < series->cap)
		return;
	series->cap = series->cap ? 2 * series->cap : 16;
	series->values = mem_grow(series->values, series->cap, sizeof(*series->values));
	series->places = mem_grow(series->places, series->cap, sizeof(*series->places));
	series->weights = mem_grow(series->weights, series->cap, sizeof(*series->weights));
}

/* A version that was measured again gets the mean, weighted by runs. */
static void add_value(struct trend_series *series, uint32_t place,
		      const struct archive_point *point)
{
	double value = point->values[series->metric];
	if (!(value > 0) || !isfinite(value)) {
		series->left_out++;
		return;
	}
	size_t last = series->count - 1;
	if (series->count && series->places[last] == place) {
		double weight = series->weights[last], more = point->runs;
		series->values[last] =
			(series->values[last] * weight + value * more) / (weight + more);
		series->weights[last] += point->runs;
		return;
	}
	series_grow(series);
	series->values[series->count] = value;
	series->places[series->count] = place;
	series->weights[series->count++] = point->runs;
	if (series->metric == ARCHIVE_VALUE)
		series->more_is_better |= point->more_is_better;
}

/* Where the series of a line are found: by name, or as the one that came at this place of the file
 * before, for most files have the same benchmarks in the same order. */
struct gathering {
	struct trend *trend;
	struct map by_name;
	struct buf name;
	struct trend_series **before;
	size_t before_cap;
};

static void gathering_done(struct gathering *gathering)
{
	map_done(&gathering->by_name);
	buf_done(&gathering->name);
	free(gathering->before);
}

static void next_line(struct gathering *gathering)
{
	map_done(&gathering->by_name);
	gathering->by_name = MAP_INIT;
	for (size_t i = 0; i < gathering->before_cap; i++)
		gathering->before[i] = NULL;
}

static struct trend_series *series_at(struct gathering *gathering, size_t place,
				      const struct trend_line *line,
				      const struct archive_point *point, size_t metric)
{
	size_t cap = gathering->before_cap;
	if (place >= cap) {
		gathering->before_cap = 2 * place + ARCHIVE_METRICS;
		gathering->before = mem_grow(gathering->before, gathering->before_cap,
					     sizeof(*gathering->before));
		while (cap < gathering->before_cap)
			gathering->before[cap++] = NULL;
	}
	struct trend_series **before = &gathering->before[place];
	bool same = *before && (*before)->metric == metric && str_eq((*before)->id, point->id) &&
		    str_eq((*before)->detail, detail_of(point, metric));
	if (!same)
		*before = series_of(gathering->trend, &gathering->by_name, &gathering->name, line,
				    point, metric);
	return *before;
}

static size_t place_entries(struct trend *trend, const struct archive *archive,
			    struct placed *ret_placed)
{
	size_t n = 0;
	for (size_t i = 0; i < archive->count; i++) {
		const struct archive_entry *entry = &archive->entries[i];
		if (!wanted_entry(&trend->options, entry))
			continue;
		struct trend_line *line = line_of(trend, entry);
		ret_placed[n++] =
			(struct placed){ entry, line, place_of(line, entry->key.version) };
	}
	qsort(ret_placed, n, sizeof(*ret_placed), by_line_and_place);
	return n;
}

static void gather(struct trend *trend, const struct archive *archive)
{
	AUTO(gathering_done) struct gathering gathering = { .trend = trend, .by_name = MAP_INIT };
	AUTO_FREE struct placed *placed = NEW_ARRAY(struct placed, trend->versions);
	size_t metrics[ARCHIVE_METRICS], metric_count = wanted_metrics(&trend->options, metrics);
	size_t n = place_entries(trend, archive, placed);
	for (size_t i = 0; i < n; i++) {
		const struct archive_entry *entry = placed[i].entry;
		if (i && placed[i].line != placed[i - 1].line)
			next_line(&gathering);
		for (size_t k = 0; k < entry->point_count * metric_count; k++) {
			const struct archive_point *point = &entry->points[k / metric_count];
			size_t metric = metrics[k % metric_count];
			if (!isnan(point->values[metric]))
				add_value(series_at(&gathering, k, placed[i].line, point, metric),
					  placed[i].place, point);
		}
	}
}

/* -------------------------------------------------------------------- verdicts */

struct analysis {
	struct trend *trend;
	atomic_size_t next;
};

static bool counted(const struct trend_series *series)
{
	return series->metric != ARCHIVE_VALUE && metric_table[series->metric].counted;
}

static void *analyse(void *arg)
{
	struct analysis *analysis = arg;
	struct trend *trend = analysis->trend;
	AUTO(any_change_table_done) struct any_change_table table = ANY_CHANGE_TABLE_INIT;
	for (size_t i; (i = atomic_fetch_add(&analysis->next, 1)) < trend->series_count;) {
		struct trend_series *series = trend->series[i];
		struct change_rule rule = { .alpha = trend->options.alpha,
					    .min_change = counted(series)
								  ? trend->options.tolerance
								  : trend->options.min_change };
		change_points_find(series->values, series->count, &rule, &table, &series->changes);
	}
	return NULL;
}

/* News is told by version, changes by value: a series need not have a value of every version. */
static struct trend_rule news_rule(const struct trend *trend, const struct trend_series *series)
{
	size_t first = 0;
	while (first < series->count && series->places[first] < series->line->news)
		first++;
	return (struct trend_rule){ .alpha = trend->options.alpha,
				    .first = first,
				    .more_is_better = series->more_is_better };
}

static void judge(struct trend *trend)
{
	AUTO_FREE double *q = NEW_ARRAY(double, trend->series_count + 1);
	for (size_t i = 0; i < trend->series_count; i++) {
		struct trend_rule rule = news_rule(trend, trend->series[i]);
		q[i] = trend_p(&trend->series[i]->changes, &rule);
	}
	stats_benjamini_hochberg(q, trend->series_count, q);
	for (size_t i = 0; i < trend->series_count; i++) {
		struct trend_series *series = trend->series[i];
		struct trend_rule rule = news_rule(trend, series);
		series->q = q[i];
		series->news = trend_judge(&series->changes, series->count, &rule, q[i]);
		trend->verdicts[series->news.verdict]++;
	}
}

static double size_of_last(const struct trend_series *series)
{
	const struct change_points *changes = &series->changes;
	if (series->news.change)
		return fabs(log(series->news.change->ratio.value));
	return changes->count ? fabs(log(changes->items[changes->count - 1].ratio.value)) : 0;
}

/* What is worse, then better, then undecided; the largest first; then by name. */
static int worst_first(const void *a, const void *b)
{
	static const int ranks[] = { [VERDICT_SLOWER] = 0,
				     [VERDICT_FASTER] = 1,
				     [VERDICT_UNDECIDED] = 2,
				     [VERDICT_SAME] = 2 };
	static_assert(ARRAY_LEN(ranks) == VERDICT_COUNT, "every verdict has a rank");
	const struct trend_series *x = *(struct trend_series *const *)a,
				  *y = *(struct trend_series *const *)b;
	if (ranks[x->news.verdict] != ranks[y->news.verdict])
		return ranks[x->news.verdict] - ranks[y->news.verdict];
	double size_x = size_of_last(x), size_y = size_of_last(y);
	if (size_x != size_y)
		return size_x > size_y ? -1 : 1;
	int order = strcmp(x->name, y->name);
	return order ? order : (int)x->metric - (int)y->metric;
}

int trend_make(struct trend *trend, const struct archive *archive,
	       const struct trend_options *options, struct err *err)
{
	*trend = (struct trend){ .options = *options };
	int r = make_lines(trend, archive, err);
	if (r < 0)
		return r;
	gather(trend, archive);
	if (trend->series_count == 0)
		return err_set(err, ENODATA, "nothing of this metric was filed");
	struct analysis analysis = { .trend = trend };
	thread_all(analyse, &analysis);
	judge(trend);
	qsort(trend->series, trend->series_count, sizeof(*trend->series), worst_first);
	return 0;
}
