/* Metrics of runs: their names, and their values for people. */
#include "unit.h"

#include <errno.h>
#include <math.h>
#include <string.h>

#include "core/batch/metric.h"

TEST(metrics_are_found_by_their_whole_name)
{
	for (int i = 0; i < METRIC_COUNT; i++) {
		const char *name = metric_table[i].name;
		ck_assert_int_eq(metric_find(name, strlen(name)), i);
		ck_assert_int_eq(metric_find(name, strlen(name) - 1), -EINVAL);
	}
	ck_assert_int_eq(metric_find("usex", 4), -EINVAL);
	ck_assert_int_eq(metric_find("cpu,", 3), METRIC_CPU);
}

TEST(values_have_four_digits_and_the_unit_that_fits)
{
	static const struct {
		enum metric metric;
		double value;
		const char *text;
	} cases[] = {
		{ METRIC_WALL, 0.5, "0.500 ns" },
		{ METRIC_WALL, 1, "1.000 ns" },
		{ METRIC_WALL, 9.9994, "9.999 ns" },
		{ METRIC_WALL, 9.9996, "10.00 ns" },
		{ METRIC_WALL, 99.994, "99.99 ns" },
		{ METRIC_WALL, 99.996, "100.0 ns" },
		{ METRIC_WALL, 100.5, "100.5 ns" },
		{ METRIC_WALL, 999.94, "999.9 ns" },
		{ METRIC_WALL, 999.96, "1000 ns" },
		{ METRIC_WALL, 1000, "1.000 µs" },
		{ METRIC_WALL, 12345678, "12.35 ms" },
		{ METRIC_WALL, 1e9, "1.000 s" },
		{ METRIC_CPU, 1234567890123, "1235 s" },
		{ METRIC_MAXRSS, 1023, "1023 KiB" },
		{ METRIC_MAXRSS, 1024, "1.000 MiB" },
		{ METRIC_MEMORY, 3 << 20, "3.000 GiB" },
		{ METRIC_INSTRUCTIONS, 7, "7" },
		{ METRIC_INSTRUCTIONS, 999, "999" },
		{ METRIC_INSTRUCTIONS, 1000, "1,000" },
		{ METRIC_INSTRUCTIONS, 1234567890, "1,234,567,890" },
		{ METRIC_INSTRUCTIONS, NAN, "-" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char text[METRIC_TEXT_MAX];
		metric_format(cases[i].metric, cases[i].value, text);
		ck_assert_str_eq(text, cases[i].text);
	}
}
