#include "core/checks/counter_changes.h"

#include <math.h>

#include "base/str.h"

static const struct {
	const char *name, *change, *text;
} table[] = {
	{ "memory_errors", "new_memory_errors", "memory errors" },
	{ "heat_events", "new_heat_events", "times slowed down by heat" },
	{ "network_errors", "new_network_errors", "errors and breaks of network links" },
};
static_assert(ARRAY_LEN(table) <= CHECK_COUNTERS_MAX, "each needs a place");

/* NAN: no check has it. */
static double find(const struct check_list *results, const char *name)
{
	for (size_t i = 0; i < results->count; i++)
		for (size_t f = 0; f < results->items[i].figure_count; f++)
			if (str_eq(results->items[i].figures[f].name, name))
				return results->items[i].figures[f].value;
	return NAN;
}

void check_changes_add(struct check_counters *counters, struct check_list *results)
{
	struct check_result result = { .name = "changes" };
	for (size_t i = 0; i < ARRAY_LEN(table); i++) {
		double value = find(results, table[i].name);
		/* A counter that went back has begun again. */
		if (counters->known[i] && value >= counters->values[i]) {
			check_measure(&result, table[i].change, value - counters->values[i], "");
			check_say(&result, "%.0f %s", value - counters->values[i], table[i].text);
		}
		counters->known[i] = isfinite(value);
		counters->values[i] = value;
	}
	if (result.figure_count)
		check_list_add(results, &result);
}
