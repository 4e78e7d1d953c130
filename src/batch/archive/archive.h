/* A history of results: one file for every result that was filed, under
 *
 *     DIR/HOST-CLASS/CONFIGURATION/TIME-VERSION-NUMBER.jsonl
 *
 * A file is a result file (muster-batch(5)) with more lines in front: the first says under which
 * key it was filed, then there is a summary of each order, so that a trend over hundreds of
 * versions does not read every run. It is written under another name, synced, and then named: a
 * reader sees whole files only, and two writers never meet. */
#ifndef BATCH_ARCHIVE_ARCHIVE_H
#define BATCH_ARCHIVE_ARCHIVE_H

#include "base/err.h"
#include "base/map.h"
#include "core/batch/metric.h"

/* What the user said about the key; NULL: not said. */
struct archive_options {
	const char *dir;
	const char *version, *host_class, *configuration;
};

struct archive_key {
	char *version; /* the label, else the commit */
	char *host_class, *configuration;
	int64_t time_s; /* of the commit, else when it was measured: versions are in this order */
};

void archive_key_done(struct archive_key *key);

/* Fills in what was not said: the commit of the working directory's git repository, the processor
 * and its cores, and how it was measured (`configuration`). Fails where there is no
 * commit and no version was said; the rest of the key is there then. */
int archive_key_make(struct archive_key *key, const struct archive_options *options,
		     const char *configuration, struct err *err);

/* Files the result file at `path`. */
int archive_file(const char *dir, const struct archive_key *key, const char *path, struct err *err);

/* Files a result of another tool, which a Python script reads (python/muster/_bench.py). What the
 * file says about version and host is used where the options do not. Returns how many versions it
 * had. */
int archive_import(const struct archive_options *options, const char *path, struct err *err);

/* ------------------------------------------------------------------- reading */

#define ARCHIVE_VALUE METRIC_COUNT /* the number that a program reported itself */
#define ARCHIVE_METRICS (METRIC_COUNT + 1)

/* One order of one file: the median of every metric. */
struct archive_point {
	char *id;
	char *name;			/* what people shall see; NULL: the id */
	char *source;			/* of the counts; NULL: none */
	char *unit;			/* of ARCHIVE_VALUE; NULL: none */
	double values[ARCHIVE_METRICS]; /* NaN: not measured */
	uint32_t runs;
	bool more_is_better; /* of ARCHIVE_VALUE */
};

struct archive_entry {
	char *path;
	struct archive_key key;
	struct archive_point *points;
	size_t point_count, point_cap;
	struct err err; /* why it cannot be read; code 0: it could */
};

struct archive {
	struct archive_entry *entries;
	size_t count, cap;
};

#define ARCHIVE_INIT ((struct archive){ .entries = NULL })

/* Reads all of it, with as many threads as there are CPUs. A file that cannot be read fails the
 * whole. */
int archive_load(struct archive *archive, const char *dir, struct err *err);
void archive_done(struct archive *archive);

/* The parts of reading one file: its first line, which says how many bytes of summaries follow
 * (-1: it does not), and those. 0 or -EINVAL; the entry is the caller's also then. */
int archive_read_key(struct archive_entry *entry, const char *line, size_t len, int64_t *ret_bytes);
int archive_read_points(struct archive_entry *entry, const char *text, size_t len);
void archive_entry_done(struct archive_entry *entry);

#endif
