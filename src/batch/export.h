/* Measurements in formats that other tools read. All functions append text to a buffer. Only JUnit
 * contains failed attempts; the others leave out orders without a successful run. */
#ifndef BATCH_EXPORT_H
#define BATCH_EXPORT_H

#include "base/err.h"
#include "batch/samples.h"

/* The runs to export: one file, one variant of it, or the two sides of a comparison. */
struct export_part {
	const struct samples *samples; /* borrowed */
	char variant;		       /* 0: all runs */
	const char *label;	       /* NULL: alone; otherwise tells the parts apart. Borrowed */
};

/* One order of one part, described. */
struct export_entry {
	const struct export_part *part;
	const struct sample_order *order;
	struct sample_filter filter;
	double *times; /* seconds, in the order they were taken; owned */
	size_t n;
	double mean, stddev, median, min, max; /* seconds */
	double user, system;		       /* mean seconds; NaN unknown */
	bool all_suspect; /* there are no other runs: they count, with that word */
	size_t left_out;  /* suspect runs that do not count */
};

struct export_source {
	const struct export_part *parts;
	size_t count;
	bool suspects; /* suspect runs too */
};

/* Paths; NULL: not wanted, "-": standard output. */
struct export_paths {
	const char *json, *csv, *markdown, *junit, *google, *pytest;
};

/* Visits every order that has a run. */
typedef void export_fn(const struct export_entry *entry, void *arg);
void export_each(const struct export_source *source, export_fn *visit, void *arg);

/* Appends the name of the order, or its command. */
void export_name(const struct export_entry *entry, struct buf *out);

/* export_bench.c: the JSON of Google Benchmark and of pytest-benchmark. */
void export_google(const struct export_source *source, struct buf *out);
void export_pytest(const struct export_source *source, struct buf *out);

bool export_wanted(const struct export_paths *paths);
int export_write(const struct export_paths *paths, const struct export_source *source,
		 struct err *err);

/* Writes a text to a file of that name, "-" is standard output. */
int export_file(const char *path, const struct buf *text, struct err *err);

#endif
