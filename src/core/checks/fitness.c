#include "core/checks/fitness.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/checks/figure.h"

/* The nodes of one judgement, and the names of their figures or facts. */
struct court {
	const struct check_digest *const *digests;
	size_t count;
	struct fitness *all;
	const char *names[FITNESS_NAMES_MAX];
	size_t name_count;
};

static void learn_name(struct court *court, const char *name)
{
	for (size_t i = 0; i < court->name_count; i++)
		if (str_eq(court->names[i], name))
			return;
	if (court->name_count < FITNESS_NAMES_MAX)
		court->names[court->name_count++] = name;
}

static void condemn(struct fitness *fitness, const char *fmt, ...) PRINTF_LIKE(2, 3);

static void condemn(struct fitness *fitness, const char *fmt, ...)
{
	va_list args;
	if (fitness->bad)
		return;
	fitness->bad = true;
	va_start(args, fmt);
	vsnprintf(fitness->why, sizeof(fitness->why), fmt, args);
	va_end(args);
	str_make_printable(fitness->why);
}

/* ---- figures ---- */

static void judge_figure(struct court *court, const char *name, double *values, bool *bad)
{
	const struct figure_rule *rule = figure_rule(name);
	if (!rule->judged)
		return;
	size_t known = 0;
	for (size_t i = 0; i < court->count; i++) {
		values[i] = court->digests[i] ? check_digest_figure(court->digests[i], name) : NAN;
		known += isfinite(values[i]);
	}
	struct peers_verdict verdict = peers_judge(values, court->count, &rule->peers, bad);
	for (size_t i = 0; verdict.bad && i < court->count; i++)
		if (bad[i])
			condemn(&court->all[i], "%s %.4g%s%s, median of %zu nodes %.4g", name,
				values[i], *rule->unit ? " " : "", rule->unit, known,
				verdict.median);
}

static void judge_figures(struct court *court)
{
	AUTO_FREE double *values = NEW_ARRAY(double, court->count + 1);
	AUTO_FREE bool *bad = NEW_ARRAY(bool, court->count + 1);
	court->name_count = 0;
	for (size_t i = 0; i < court->count; i++)
		for (size_t f = 0; court->digests[i] && f < court->digests[i]->figure_count; f++)
			learn_name(court, court->digests[i]->figures[f].name);
	for (size_t i = 0; i < court->name_count; i++)
		judge_figure(court, court->names[i], values, bad);
}

/* ---- facts ---- */

static void count_fact(struct map *counts, const char *value)
{
	uintptr_t seen = (uintptr_t)map_get(counts, value, strlen(value));
	map_put(counts, value, strlen(value), (void *)(seen + 1));
}

static void judge_fact(struct court *court, const char *name, char difference[FITNESS_TEXT_MAX])
{
	struct map counts = MAP_INIT;
	const char *most = NULL, *other = NULL;
	size_t known = 0, agree = 0;
	for (size_t i = 0; i < court->count; i++) {
		const char *value =
			court->digests[i] ? check_digest_fact(court->digests[i], name) : NULL;
		if (!value)
			continue;
		known++;
		count_fact(&counts, value);
		size_t seen = (uintptr_t)map_get(&counts, value, strlen(value));
		if (seen > agree)
			agree = seen, most = value;
	}
	map_done(&counts);
	bool decided = 2 * agree > known;
	for (size_t i = 0; i < court->count; i++) {
		const char *value =
			court->digests[i] ? check_digest_fact(court->digests[i], name) : NULL;
		if (!value || str_eq(value, most))
			continue;
		other = value;
		if (decided)
			condemn(&court->all[i], "%s %s, %zu of %zu nodes have %s", name, value,
				agree, known, most);
	}
	if (!decided && other && !*difference) {
		snprintf(difference, FITNESS_TEXT_MAX, "%s: %s on %zu of %zu nodes, %s on another",
			 name, most, agree, known, other);
		str_make_printable(difference);
	}
}

static void judge_facts(struct court *court, char difference[FITNESS_TEXT_MAX])
{
	court->name_count = 0;
	for (size_t i = 0; i < court->count; i++)
		for (size_t f = 0; court->digests[i] && f < court->digests[i]->fact_count; f++)
			learn_name(court, court->digests[i]->facts[f].name);
	for (size_t i = 0; i < court->name_count; i++)
		judge_fact(court, court->names[i], difference);
}

void fitness_judge(const struct check_digest *const *digests, size_t count, struct fitness *ret_all,
		   char ret_difference[FITNESS_TEXT_MAX])
{
	struct court court = { .digests = digests, .count = count, .all = ret_all };
	memset(ret_all, 0, count * sizeof(*ret_all));
	ret_difference[0] = '\0';
	for (size_t i = 0; i < count; i++)
		if (digests[i] && digests[i]->bad)
			condemn(&ret_all[i], "%s", digests[i]->finding);
	judge_figures(&court);
	judge_facts(&court, ret_difference);
}
