/* What can be compared: one table of the measures a run yields. Less is better for all of them. */
#ifndef CORE_BATCH_METRIC_H
#define CORE_BATCH_METRIC_H

#include "base/buf.h"

enum metric {
	METRIC_WALL,
	METRIC_USER,
	METRIC_SYS,
	METRIC_CPU,    /* user + sys */
	METRIC_MAXRSS, /* of the largest process */
	METRIC_MEMORY, /* of all processes together */
	METRIC_INSTRUCTIONS,
	METRIC_COUNT,
};

enum metric_unit {
	METRIC_NS,
	METRIC_KIB,
	METRIC_EVENTS,
};

struct metric_info {
	const char *name;  /* as the user writes it */
	const char *title; /* as a report shows it */
	enum metric_unit unit;
	bool counted; /* exact: compared with a tolerance, not with a test */
};

extern const struct metric_info metric_table[METRIC_COUNT];

/* The metric of that name (need not end in NUL), or -EINVAL. */
int metric_find(const char *name, size_t len);

/* "12.31 ms", "1.204 s", "48.2 MiB", "300,130,739": four figures, or every digit of a count. */
#define METRIC_TEXT_MAX 48
void metric_format(enum metric metric, double value, char text[METRIC_TEXT_MAX]);

#endif
