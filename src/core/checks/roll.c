#include "core/checks/roll.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"

void roll_done(struct roll *roll)
{
	strv_done(&roll->names);
	strv_done(&roll->seen);
	across_done(&roll->across);
	*roll = ROLL_INIT;
}

bool roll_is_complete(const struct roll *roll)
{
	return roll->across.count >= roll->expected;
}

bool roll_add(struct roll *roll, const char *name, struct check_list *results)
{
	if (roll_is_complete(roll)) {
		check_list_done(results);
		return false;
	}
	across_add(&roll->across, name, results);
	return true;
}

static bool has_come(const struct roll *roll, const char *name)
{
	for (size_t i = 0; i < roll->across.count; i++)
		if (str_eq(roll->across.items[i].name, name))
			return true;
	return false;
}

/* "it did not come within 60 s; node1,node2 did", the first of them. */
static char *say_missing(const struct roll *roll, uint64_t waited_ns)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	size_t came = roll->across.count, shown = MIN(came, (size_t)ACROSS_NAMES_SHOWN);
	buf_printf(&text, "it did not come within %.3g s", (double)waited_ns / (double)NS_PER_S);
	for (size_t i = 0; i < shown; i++)
		buf_printf(&text, "%s%s", i ? "," : "; ", roll->across.items[i].name);
	if (came > shown)
		buf_printf(&text, " and %zu more", came - shown);
	buf_append_str(&text, came ? " did" : "");
	return buf_take_str(&text);
}

static int compare_names(const void *a, const void *b)
{
	return strverscmp(((const struct across_host *)a)->name,
			  ((const struct across_host *)b)->name);
}

static void sort(struct across *across)
{
	if (across->count > 1)
		qsort(across->items, across->count, sizeof(across->items[0]), compare_names);
}

void roll_close(struct roll *roll, uint64_t waited_ns, const char *remedy)
{
	sort(&roll->across);
	AUTO_FREE char *why = say_missing(roll, waited_ns);
	for (size_t i = 0; i < roll->names.count && !roll_is_complete(roll); i++)
		if (!has_come(roll, roll->names.items[i]))
			across_add_lost(&roll->across, roll->names.items[i], remedy, why);
	for (size_t i = 0; i < roll->seen.count && !roll_is_complete(roll); i++)
		across_add_lost(&roll->across, roll->seen.items[i], remedy,
				"it came, but did not tell what it found");
	for (int number = 1; !roll_is_complete(roll); number++) {
		char name[32];
		snprintf(name, sizeof(name), "(missing %d)", number);
		across_add_lost(&roll->across, name, remedy, why);
	}
	sort(&roll->across);
	across_compare(&roll->across);
}
