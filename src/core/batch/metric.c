#include "core/batch/metric.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

const struct metric_info metric_table[METRIC_COUNT] = {
	[METRIC_WALL] = { "wall", "wall time", METRIC_NS, false },
	[METRIC_USER] = { "user", "user time", METRIC_NS, false },
	[METRIC_SYS] = { "sys", "system time", METRIC_NS, false },
	[METRIC_CPU] = { "cpu", "CPU time", METRIC_NS, false },
	[METRIC_MAXRSS] = { "maxrss", "largest process", METRIC_KIB, false },
	[METRIC_MEMORY] = { "memory", "memory of the tree", METRIC_KIB, false },
	[METRIC_INSTRUCTIONS] = { "instructions", "instructions", METRIC_EVENTS, true },
};

int metric_find(const char *name, size_t len)
{
	for (int i = 0; i < METRIC_COUNT; i++)
		if (strlen(metric_table[i].name) == len &&
		    memcmp(metric_table[i].name, name, len) == 0)
			return i;
	return -EINVAL;
}

struct scale {
	double at_least;
	const char *unit;
};

/* Ordered from the largest; the last row takes the rest. */
static const struct scale time_scales[] = {
	{ 1e9, "s" }, { 1e6, "ms" }, { 1e3, "µs" }, { 1, "ns" }
};
static const struct scale size_scales[] = { { 1 << 20, "GiB" }, { 1 << 10, "MiB" }, { 1, "KiB" } };

static void format_scaled(const struct scale *scales, size_t n, double value,
			  char text[METRIC_TEXT_MAX])
{
	size_t i = 0;
	while (i + 1 < n && value < scales[i].at_least)
		i++;
	double shown = value / scales[i].at_least;
	int decimals = shown >= 999.95 ? 0 : shown >= 99.995 ? 1 : shown >= 9.9995 ? 2 : 3;
	snprintf(text, METRIC_TEXT_MAX, "%.*f %s", decimals, shown, scales[i].unit);
}

static void format_count(double value, char text[METRIC_TEXT_MAX])
{
	char digits[METRIC_TEXT_MAX];
	int len = snprintf(digits, sizeof(digits), "%.0f", value);
	size_t out = 0;
	for (int i = 0; i < len && out + 2 < METRIC_TEXT_MAX; i++) {
		if (i > 0 && (len - i) % 3 == 0)
			text[out++] = ',';
		text[out++] = digits[i];
	}
	text[out] = '\0';
}

void metric_format(enum metric metric, double value, char text[METRIC_TEXT_MAX])
{
	if (isnan(value)) {
		snprintf(text, METRIC_TEXT_MAX, "-");
		return;
	}
	switch (metric_table[metric].unit) {
	case METRIC_NS:
		format_scaled(time_scales, ARRAY_LEN(time_scales), value, text);
		break;
	case METRIC_KIB:
		format_scaled(size_scales, ARRAY_LEN(size_scales), value, text);
		break;
	case METRIC_EVENTS:
		format_count(value, text);
		break;
	}
}
