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

struct export_source {
	const struct export_part *parts;
	size_t count;
	bool suspects; /* suspect runs too */
};

/* Paths; NULL: not wanted, "-": standard output. */
struct export_paths {
	const char *json, *csv, *markdown, *junit;
};

bool export_wanted(const struct export_paths *paths);
int export_write(const struct export_paths *paths, const struct export_source *source,
		 struct err *err);

/* Writes a text to a file of that name, "-" is standard output. */
int export_file(const char *path, const struct buf *text, struct err *err);

#endif
