#include "core/checks/digest.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "core/checks/figure.h"

static void copy(char *to, size_t size, const char *from)
{
	snprintf(to, size, "%.*s", (int)(size - 1), from);
}

static struct digest_figure *find_figure(struct check_digest *digest, const char *name)
{
	for (size_t i = 0; i < digest->figure_count; i++)
		if (str_eq(digest->figures[i].name, name))
			return &digest->figures[i];
	return NULL;
}

static void add_figure(struct check_digest *digest, const struct check_figure *figure)
{
	char name[DIGEST_NAME_MAX];
	copy(name, sizeof(name), figure->name);
	if (!isfinite(figure->value) || !*name)
		return;
	struct digest_figure *known = find_figure(digest, name);
	if (known) {
		bool less = figure_rule(name)->peers.less;
		known->value =
			less ? MAX(known->value, figure->value) : MIN(known->value, figure->value);
		return;
	}
	if (digest->figure_count == DIGEST_FIGURES_MAX)
		return;
	struct digest_figure *added = &digest->figures[digest->figure_count++];
	memcpy(added->name, name, sizeof(name));
	added->value = figure->value;
}

static void add_fact(struct check_digest *digest, const struct check_fact *fact)
{
	if (digest->fact_count == DIGEST_FACTS_MAX)
		return;
	struct digest_fact *added = &digest->facts[digest->fact_count++];
	copy(added->name, sizeof(added->name), fact->name);
	copy(added->value, sizeof(added->value), fact->value);
}

static void add_figures(struct check_digest *digest, const struct check_list *results, bool judged)
{
	for (size_t i = 0; i < results->count; i++)
		for (size_t f = 0; f < results->items[i].figure_count; f++) {
			const struct check_figure *figure = &results->items[i].figures[f];
			if (figure_rule(figure->name)->judged == judged)
				add_figure(digest, figure);
		}
}

void check_digest_make(const struct check_list *results, struct check_digest *ret_digest)
{
	memset(ret_digest, 0, sizeof(*ret_digest));
	add_figures(ret_digest, results, true);
	add_figures(ret_digest, results, false);
	for (size_t i = 0; i < results->count; i++) {
		const struct check_result *result = &results->items[i];
		for (size_t f = 0; f < result->fact_count; f++)
			add_fact(ret_digest, &result->facts[f]);
		if (result->state != CHECK_BAD || ret_digest->bad)
			continue;
		ret_digest->bad = true;
		snprintf(ret_digest->finding, sizeof(ret_digest->finding), "%s: %s", result->name,
			 result->text);
	}
}

void check_digest_put(struct check_digest *digest, const char *name, double value)
{
	struct digest_figure *figure = find_figure(digest, name);
	if (!isfinite(value) || (!figure && digest->figure_count == DIGEST_FIGURES_ALL))
		return;
	if (!figure) {
		figure = &digest->figures[digest->figure_count++];
		copy(figure->name, sizeof(figure->name), name);
	}
	figure->value = value;
}

void check_digest_remove(struct check_digest *digest, const char *name)
{
	struct digest_figure *figure = find_figure(digest, name);
	if (figure)
		*figure = digest->figures[--digest->figure_count];
}

double check_digest_figure(const struct check_digest *digest, const char *name)
{
	const struct digest_figure *figure = find_figure((struct check_digest *)digest, name);
	return figure ? figure->value : NAN;
}

const char *check_digest_fact(const struct check_digest *digest, const char *name)
{
	for (size_t i = 0; i < digest->fact_count; i++)
		if (str_eq(digest->facts[i].name, name))
			return digest->facts[i].value;
	return NULL;
}
