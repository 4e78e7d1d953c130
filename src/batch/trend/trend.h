/* A history looked at as a whole: a series for every benchmark and metric of every host class and
 * configuration, its change points, and what they say about the newest version. No output here:
 * trend_report.c and trend_html.c print what this finds. */
#ifndef BATCH_TREND_TREND_H
#define BATCH_TREND_TREND_H

#include "base/buf.h"
#include "batch/archive/archive.h"
#include "core/batch/trend_news.h"

struct trend_options {
	bool metrics[ARCHIVE_METRICS]; /* all false: wall, instructions, value */
	double alpha;
	double min_change; /* relative, of what is measured */
	double tolerance;  /* relative, of counts */
	size_t recent;	   /* a change in so many of the newest versions is news */
	const char *since; /* instead: in versions after this one */
	const char *host_class, *configuration; /* only these; NULL: all */
};

#define TREND_ALPHA 0.05
#define TREND_MIN_CHANGE 0.01
#define TREND_TOLERANCE 0.001
#define TREND_RECENT 10

void trend_options_init(struct trend_options *options);

struct trend_version {
	const char *name; /* borrowed from the history */
	int64_t time_s;
};

/* Versions of one host class and configuration, oldest first. */
struct trend_line {
	const char *host_class, *configuration; /* borrowed */
	struct trend_version *versions;
	size_t version_count, version_cap;
	size_t news; /* the first version whose changes are news */
};

struct trend_series {
	const struct trend_line *line;
	const char *id, *name; /* borrowed; name: what people shall see */
	const char *detail;    /* borrowed; source of counts or unit, "" none */
	size_t metric;	       /* of ARCHIVE_METRICS */
	bool more_is_better;
	double *values;		    /* ascending by version; all positive */
	uint32_t *places, *weights; /* the version of each value; runs that it rests on */
	size_t count, cap;
	size_t left_out; /* values that are zero or negative */
	struct change_points changes;
	struct trend_news news;
	double q;
};

struct trend {
	struct trend_options options;
	struct trend_line **lines;
	size_t line_count, line_cap;
	struct trend_series **series; /* largest news first */
	size_t series_count, series_cap;
	size_t verdicts[VERDICT_COUNT];
	size_t versions; /* files that were read */
};

#define TREND_INIT ((struct trend){ .lines = NULL })

/* The history is borrowed. */
int trend_make(struct trend *trend, const struct archive *archive,
	       const struct trend_options *options, struct err *err);
void trend_done(struct trend *trend);

/* ---- reports, for people and for programs: all append text to a buffer ---- */

#define TREND_VERSION_CHARS 12 /* of a commit that are shown */

void trend_text(const struct trend *trend, bool all, struct buf *out);
void trend_json(const struct trend *trend, struct buf *out);
void trend_markdown(const struct trend *trend, const char *link, struct buf *out);

/* One self-contained page. `link`: address of a version, {} is replaced by its name; NULL: none. */
void trend_html(const struct trend *trend, const char *link, struct buf *out);

/* The data file of github-action-benchmark, one suite a host class and configuration. */
void trend_github(const struct trend *trend, struct buf *out);

/* What the reports share. */
const char *trend_metric_title(const struct trend_series *series); /* "wall time" */
void trend_value(const struct trend_series *series, double value, char text[METRIC_TEXT_MAX]);
void trend_spread_text(const struct spread *spread, struct buf *out); /* "noise 3 %, was 1 %" */
const char *trend_verdict_name(enum verdict verdict);		      /* "worse", "better", … */
const struct trend_version *trend_version_at(const struct trend_series *series, size_t value);

/* "noise 1.02 %, 120 versions", with `between` instead of the comma. */
void trend_extent(const struct trend_series *series, const char *between, struct buf *out);
void trend_link(const char *link, const char *version, struct buf *out);

#endif
