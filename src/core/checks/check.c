#include "core/checks/check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

static const char *const names[] = {
	[CHECK_OK] = "ok",
	[CHECK_UNKNOWN] = "unknown",
	[CHECK_WARNING] = "warning",
	[CHECK_BAD] = "bad",
};
static_assert(ARRAY_LEN(names) == CHECK_STATE_COUNT, "every state needs a name");

void check_list_done(struct check_list *list)
{
	free(list->items);
	*list = CHECK_LIST_INIT;
}

void check_list_add(struct check_list *list, const struct check_result *result)
{
	ARRAY_RESERVE(list->items, list->count, list->cap);
	list->items[list->count] = *result;
	check_make_printable(&list->items[list->count++]);
}

static void append(struct check_result *result, const char *fmt, va_list args)
{
	size_t len = strlen(result->text);
	if (len && len + 2 < sizeof(result->text))
		len += (size_t)snprintf(result->text + len, sizeof(result->text) - len, "; ");
	vsnprintf(result->text + len, sizeof(result->text) - len, fmt, args);
}

void check_say(struct check_result *result, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	append(result, fmt, args);
	va_end(args);
}

void check_find(struct check_result *result, enum check_state state, const char *remedy,
		const char *fmt, ...)
{
	va_list args;
	if (state > result->state) {
		result->state = state;
		result->text[0] = '\0';
		snprintf(result->remedy, sizeof(result->remedy), "%s", remedy);
	}
	va_start(args, fmt);
	append(result, fmt, args);
	va_end(args);
}

void check_measure(struct check_result *result, const char *name, double value, const char *unit)
{
	if (result->figure_count == CHECK_FIGURES_MAX)
		return;
	struct check_figure *figure = &result->figures[result->figure_count++];
	snprintf(figure->name, sizeof(figure->name), "%s", name);
	snprintf(figure->unit, sizeof(figure->unit), "%s", unit);
	figure->value = value;
}

void check_state_fact(struct check_result *result, const char *name, const char *value)
{
	if (result->fact_count == CHECK_FACTS_MAX)
		return;
	struct check_fact *fact = &result->facts[result->fact_count++];
	snprintf(fact->name, sizeof(fact->name), "%s", name);
	snprintf(fact->value, sizeof(fact->value), "%s", value);
}

void check_make_printable(struct check_result *result)
{
	str_make_printable(result->name);
	str_make_printable(result->text);
	str_make_printable(result->remedy);
	for (size_t i = 0; i < result->figure_count; i++) {
		str_make_printable(result->figures[i].name);
		str_make_printable(result->figures[i].unit);
	}
	for (size_t i = 0; i < result->fact_count; i++) {
		str_make_printable(result->facts[i].name);
		str_make_printable(result->facts[i].value);
	}
}

const char *check_state_name(enum check_state state)
{
	return names[state];
}

enum check_state check_list_worst(const struct check_list *list)
{
	enum check_state worst = CHECK_OK;
	for (size_t i = 0; i < list->count; i++)
		worst = MAX(worst, list->items[i].state);
	return worst;
}

void check_list_print(const struct check_list *list, struct buf *out)
{
	size_t counts[CHECK_STATE_COUNT] = { 0 };
	int width = 0;
	for (size_t i = 0; i < list->count; i++)
		width = MAX(width, (int)strlen(list->items[i].name));
	for (size_t i = 0; i < list->count; i++) {
		const struct check_result *result = &list->items[i];
		counts[result->state]++;
		buf_printf(out, "%-7s  %-*s  %s\n", names[result->state], width, result->name,
			   result->text);
		if (result->remedy[0])
			buf_printf(out, "%-7s  %-*s  remedy: %s\n", "", width, "", result->remedy);
	}
	buf_printf(out, "%zu checks: %zu bad, %zu warning%s, %zu unknown\n", list->count,
		   counts[CHECK_BAD], counts[CHECK_WARNING], counts[CHECK_WARNING] == 1 ? "" : "s",
		   counts[CHECK_UNKNOWN]);
}
