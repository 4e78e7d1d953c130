#include "core/checks/across.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/checks/figure.h"
#include "core/checks/fitness.h"

#define ROWS_MAX 64 /* different checks of all hosts; a user's own beyond that have no row */
#define NAME_WIDTH_MAX 24
#define GIB (1024.0 * 1024.0 * 1024.0)

/* Names of hosts with commas between them, the first of them. */
struct name_list {
	struct buf text;
	size_t count;
};

static void add_name(struct name_list *list, const char *name)
{
	if (list->count++ < ACROSS_NAMES_SHOWN)
		buf_printf(&list->text, "%s%s", list->count > 1 ? "," : "", name);
}

static void put_names(struct name_list *list, struct buf *out)
{
	buf_append_str(out, buf_str(&list->text));
	if (list->count > ACROSS_NAMES_SHOWN)
		buf_printf(out, " and %zu more", list->count - ACROSS_NAMES_SHOWN);
	buf_done(&list->text);
}

void across_done(struct across *across)
{
	for (size_t i = 0; i < across->count; i++)
		check_list_done(&across->items[i].results);
	free(across->items);
	*across = ACROSS_INIT;
}

static struct across_host *add_host(struct across *across, const char *name)
{
	ARRAY_RESERVE(across->items, across->count, across->cap);
	struct across_host *host = &across->items[across->count++];
	*host = (struct across_host){ .results = CHECK_LIST_INIT };
	snprintf(host->name, sizeof(host->name), "%s", name);
	str_make_printable(host->name);
	return host;
}

void across_add(struct across *across, const char *name, struct check_list *results)
{
	struct across_host *host = add_host(across, name);
	host->answered = true;
	check_list_add(&host->results, &(struct check_result){ .name = ACROSS_REACHED });
	for (size_t i = 0; i < results->count; i++)
		check_list_add(&host->results, &results->items[i]);
	check_list_done(results);
}

void across_add_lost(struct across *across, const char *name, const char *remedy, const char *why)
{
	struct across_host *host = add_host(across, name);
	struct check_result reached = { .name = ACROSS_REACHED };
	check_find(&reached, CHECK_BAD, remedy, "%s", why);
	check_list_add(&host->results, &reached);
}

/* ---- those that are missing ---- */

static bool has_come(const struct across *across, const char *name)
{
	for (size_t i = 0; i < across->count; i++)
		if (str_eq(across->items[i].name, name))
			return true;
	return false;
}

/* "it did not come within 60 s; node1,node2 did", the first of them. */
static char *say_missing(const struct across *across, uint64_t waited_ns)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct name_list came = { .count = 0 };
	buf_printf(&text, "it did not come within %.3g s", (double)waited_ns / (double)NS_PER_S);
	for (size_t i = 0; i < across->count; i++)
		add_name(&came, across->items[i].name);
	buf_append_str(&text, came.count ? "; " : "");
	put_names(&came, &text);
	buf_append_str(&text, came.count ? " did" : "");
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

void across_add_missing(struct across *across, uint32_t expected, const struct strv *names,
			uint64_t waited_ns, const char *remedy)
{
	sort(across);
	AUTO_FREE char *why = say_missing(across, waited_ns);
	for (size_t i = 0; i < names->count && across->count < expected; i++)
		if (!has_come(across, names->items[i]))
			across_add_lost(across, names->items[i], remedy, why);
	for (int number = 1; across->count < expected; number++) {
		char name[32];
		snprintf(name, sizeof(name), "(missing %d)", number);
		across_add_lost(across, name, remedy, why);
	}
	sort(across);
}

/* ---- the hosts with each other ---- */

static void note_comparison(struct across_host *host, const struct fitness *fitness,
			    const char *difference)
{
	struct check_result compared = { .name = ACROSS_COMPARED };
	if (fitness->bad)
		check_find(&compared, CHECK_BAD,
			   "mend it, or leave the host out with --exclude-hosts of muster run",
			   "%s", fitness->why);
	else if (*difference)
		check_find(&compared, CHECK_WARNING, "install the same on all hosts", "%s",
			   difference);
	check_list_add(&host->results, &compared);
}

void across_compare(struct across *across)
{
	AUTO_FREE struct check_digest *digests = NEW_ARRAY(struct check_digest, across->count + 1);
	AUTO_FREE const struct check_digest **all =
		NEW_ARRAY(const struct check_digest *, across->count + 1);
	AUTO_FREE struct fitness *fitness = NEW_ARRAY(struct fitness, across->count + 1);
	char difference[FITNESS_TEXT_MAX];
	for (size_t i = 0; i < across->count; i++) {
		check_digest_make(&across->items[i].results, &digests[i]);
		digests[i].bad = false; /* its own findings have rows of their own */
		all[i] = across->items[i].answered ? &digests[i] : NULL;
	}
	fitness_judge(all, across->count, fitness, difference);
	for (size_t i = 0; i < across->count; i++)
		if (across->items[i].answered)
			note_comparison(&across->items[i], &fitness[i], difference);
}

enum check_state across_worst(const struct across *across)
{
	enum check_state worst = CHECK_OK;
	for (size_t i = 0; i < across->count; i++)
		worst = MAX(worst, check_list_worst(&across->items[i].results));
	return worst;
}

/* ---- the table ---- */

struct rows {
	const char *names[ROWS_MAX];
	size_t count;
	int width;
};

static void find_rows(const struct across *across, struct rows *rows)
{
	*rows = (struct rows){ .count = 0 };
	for (size_t h = 0; h < across->count; h++)
		for (size_t i = 0; i < across->items[h].results.count; i++) {
			const char *name = across->items[h].results.items[i].name;
			bool known = rows->count == ROWS_MAX;
			for (size_t r = 0; r < rows->count; r++)
				known |= str_eq(rows->names[r], name);
			if (known)
				continue;
			rows->names[rows->count++] = name;
			rows->width = MAX(rows->width, MIN((int)strlen(name), NAME_WIDTH_MAX));
		}
}

/* The worst that a host says in this row; CHECK_STATE_COUNT: it did not check that. */
static enum check_state state_of(const struct across_host *host, const char *row)
{
	enum check_state worst = CHECK_STATE_COUNT;
	for (size_t i = 0; i < host->results.count; i++) {
		const struct check_result *result = &host->results.items[i];
		if (str_eq(result->name, row) &&
		    (worst == CHECK_STATE_COUNT || result->state > worst))
			worst = result->state;
	}
	return worst;
}

/* "cpu_speed 3.1 to 3.3 GFLOP/s", of figures that hosts are compared by. */
static void put_range(const struct across *across, const char *row,
		      const struct check_figure *figure, struct buf *out)
{
	double low = INFINITY, high = -INFINITY;
	for (size_t h = 0; h < across->count; h++)
		for (size_t i = 0; i < across->items[h].results.count; i++) {
			const struct check_result *result = &across->items[h].results.items[i];
			for (size_t f = 0; str_eq(result->name, row) && f < result->figure_count;
			     f++) {
				if (!str_eq(result->figures[f].name, figure->name))
					continue;
				low = MIN(low, result->figures[f].value);
				high = MAX(high, result->figures[f].value);
			}
		}
	bool bytes = str_eq(figure->unit, "bytes");
	double unit = bytes ? GIB : 1;
	buf_printf(out, "; %s %.3g", figure->name, low / unit);
	if (high > low)
		buf_printf(out, " to %.3g", high / unit);
	buf_printf(out, "%s%s", figure->unit[0] ? " " : "", bytes ? "GiB" : figure->unit);
}

static void put_ranges(const struct across *across, const char *row, struct buf *out)
{
	for (size_t h = 0; h < across->count; h++)
		for (size_t i = 0; i < across->items[h].results.count; i++) {
			const struct check_result *result = &across->items[h].results.items[i];
			if (!str_eq(result->name, row) || result->figure_count == 0)
				continue;
			for (size_t f = 0; f < result->figure_count; f++)
				if (figure_rule(result->figures[f].name)->judged)
					put_range(across, row, &result->figures[f], out);
			return;
		}
}

/* What all hosts say of a check, if they say the same; NULL: they do not. */
static const char *common_text(const struct across *across, const char *row)
{
	const char *text = NULL;
	for (size_t h = 0; h < across->count; h++)
		for (size_t i = 0; i < across->items[h].results.count; i++) {
			const struct check_result *result = &across->items[h].results.items[i];
			if (!str_eq(result->name, row))
				continue;
			if (text && !str_eq(text, result->text))
				return NULL;
			text = result->text;
		}
	return text;
}

static void put_row(const struct across *across, const char *row, int width, struct buf *out)
{
	struct name_list hosts[CHECK_STATE_COUNT] = { 0 };
	size_t count = 0;
	for (size_t h = 0; h < across->count; h++) {
		enum check_state state = state_of(&across->items[h], row);
		if (state == CHECK_STATE_COUNT)
			continue;
		count++;
		add_name(&hosts[state], across->items[h].name);
	}
	buf_printf(out, "%-*.*s  %zu of %zu ok", width, NAME_WIDTH_MAX, row, hosts[CHECK_OK].count,
		   count);
	for (int state = CHECK_BAD; state > CHECK_OK; state--)
		if (hosts[state].count) {
			buf_printf(out, "; %s: ", check_state_name((enum check_state)state));
			put_names(&hosts[state], out);
		}
	buf_done(&hosts[CHECK_OK].text);
	const char *text = hosts[CHECK_OK].count == count ? common_text(across, row) : NULL;
	if (text && *text)
		buf_printf(out, ": %s", text);
	else
		put_ranges(across, row, out);
	buf_append_char(out, '\n');
}

/* ---- the findings ---- */

static bool is_same(const struct check_result *a, const struct check_result *b)
{
	return a->state == b->state && str_eq(a->name, b->name) && str_eq(a->text, b->text) &&
	       str_eq(a->remedy, b->remedy);
}

static bool has(const struct across_host *host, const struct check_result *finding)
{
	for (size_t i = 0; i < host->results.count; i++)
		if (is_same(&host->results.items[i], finding))
			return true;
	return false;
}

/* Once for all hosts that have it: where the first of them is. */
static void put_finding(const struct across *across, size_t first,
			const struct check_result *finding, struct buf *out)
{
	struct name_list hosts = { .count = 0 };
	for (size_t h = 0; h < first; h++)
		if (has(&across->items[h], finding))
			return;
	for (size_t h = first; h < across->count; h++)
		if (has(&across->items[h], finding))
			add_name(&hosts, across->items[h].name);
	buf_printf(out, "%-7s  ", check_state_name(finding->state));
	put_names(&hosts, out);
	buf_printf(out, ": %s: %s\n", finding->name, finding->text);
	if (finding->remedy[0])
		buf_printf(out, "%-7s  remedy: %s\n", "", finding->remedy);
}

static void put_findings(const struct across *across, enum check_state state, struct buf *out)
{
	for (size_t h = 0; h < across->count; h++)
		for (size_t i = 0; i < across->items[h].results.count; i++)
			if (across->items[h].results.items[i].state == state)
				put_finding(across, h, &across->items[h].results.items[i], out);
}

void across_print(const struct across *across, struct buf *out)
{
	struct rows rows;
	size_t hosts[CHECK_STATE_COUNT] = { 0 };
	find_rows(across, &rows);
	for (size_t i = 0; i < rows.count; i++)
		put_row(across, rows.names[i], rows.width, out);
	for (int state = CHECK_BAD; state > CHECK_OK; state--)
		put_findings(across, (enum check_state)state, out);
	for (size_t h = 0; h < across->count; h++)
		hosts[check_list_worst(&across->items[h].results)]++;
	buf_printf(out, "%zu hosts: %zu bad, %zu with warnings, %zu unknown, %zu ok\n",
		   across->count, hosts[CHECK_BAD], hosts[CHECK_WARNING], hosts[CHECK_UNKNOWN],
		   hosts[CHECK_OK]);
}
