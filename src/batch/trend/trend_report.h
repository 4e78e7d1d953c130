/* A trend for people and for programs. All append text to a buffer. */
#ifndef BATCH_TREND_TREND_REPORT_H
#define BATCH_TREND_TREND_REPORT_H

#include "base/buf.h"
#include "batch/trend/trend.h"

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
