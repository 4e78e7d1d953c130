#include "core/collectives/record.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

void record_entry_done(struct record_entry *entry)
{
	free(entry->op);
	free(entry->shape.in_sizes);
	free(entry->shape.out_sizes);
	free(entry->shape.in_types);
	free(entry->shape.out_types);
	*entry = (struct record_entry){ .op = NULL };
}

static void entries_done(struct record_entry *entries, size_t count)
{
	for (size_t i = 0; i < count; i++)
		record_entry_done(&entries[i]);
	free(entries);
}

void record_done(struct record *record)
{
	for (size_t i = 0; i < record->count; i++) {
		struct record_group *group = &record->groups[i];
		free(group->name);
		free(group->desc);
		free(group->ranks);
		entries_done(group->open, group->open_count);
		entries_done(group->done, group->done_count);
		entries_done(group->pairs, group->pair_count);
		free(group->times);
	}
	free(record->groups);
	*record = RECORD_INIT;
}

/* A copy that can be shown. */
static char *clean_text(const char *text)
{
	char *copy = mem_strndup(text, strnlen(text, RECORD_TEXT_MAX));
	str_make_printable(copy);
	return copy;
}

struct record_group *record_group(struct record *record, const char *text)
{
	AUTO_FREE char *name = clean_text(text);
	for (size_t i = 0; i < record->count; i++)
		if (str_eq(record->groups[i].name, name))
			return &record->groups[i];
	if (record->count == RECORD_GROUPS_MAX)
		return NULL;
	ARRAY_RESERVE(record->groups, record->count, record->cap);
	struct record_group *group = &record->groups[record->count++];
	*group = (struct record_group){ .name = mem_strdup(name), .desc = mem_strdup("") };
	return group;
}

void record_set_desc(struct record_group *group, const char *desc)
{
	free(group->desc);
	group->desc = clean_text(desc);
}

static int compare_ranks(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

void record_set_ranks(struct record_group *group, const uint32_t *ranks, size_t count)
{
	if (count == 0)
		return;
	free(group->ranks);
	group->ranks = NEW_ARRAY(uint32_t, count);
	memcpy(group->ranks, ranks, count * sizeof(*ranks));
	qsort(group->ranks, count, sizeof(*ranks), compare_ranks);
	group->rank_count = 0;
	for (size_t i = 0; i < count; i++)
		if (i == 0 || group->ranks[i] != group->ranks[i - 1])
			group->ranks[group->rank_count++] = group->ranks[i];
}

static void bound_text(char **text)
{
	if (!*text)
		*text = mem_strdup("");
	else if (strlen(*text) > RECORD_TEXT_MAX)
		(*text)[RECORD_TEXT_MAX] = '\0';
}

/* Appends to a list of at most `max`; a full one loses its oldest entry, or does not take it. */
static void append(struct record_entry **entries, size_t *count, size_t max, bool keep_oldest,
		   const struct record_entry *entry)
{
	if (!*entries)
		*entries = NEW_ARRAY(struct record_entry, max);
	struct record_entry copy = *entry;
	if (*count == max && keep_oldest) {
		record_entry_done(&copy);
		return;
	}
	if (*count == max) {
		record_entry_done(&(*entries)[0]);
		memmove(*entries, *entries + 1, (max - 1) * sizeof(**entries));
		(*count)--;
	}
	(*entries)[(*count)++] = copy;
}

/* Replaces the one of the same name. */
static void keep_pair(struct record_group *group, const struct record_entry *entry)
{
	for (size_t i = 0; i < group->pair_count; i++)
		if (str_eq(group->pairs[i].op, entry->op)) {
			record_entry_done(&group->pairs[i]);
			group->pairs[i] = *entry;
			return;
		}
	append(&group->pairs, &group->pair_count, RECORD_PAIRS_MAX, false, entry);
}

/* Twice as many as are wanted, so that they rarely move. */
void record_add_time(struct record_group *group, const struct record_time *time)
{
	if (group->time_count && time->seq <= group->times[group->time_count - 1].seq)
		return;
	if (!group->times)
		group->times = NEW_ARRAY(struct record_time, 2 * RECORD_TIMES_MAX);
	if (group->time_count == 2 * RECORD_TIMES_MAX) {
		memmove(group->times, group->times + RECORD_TIMES_MAX,
			RECORD_TIMES_MAX * sizeof(*group->times));
		group->time_count = RECORD_TIMES_MAX;
	}
	group->times[group->time_count++] = *time;
}

const struct record_time *record_times(const struct record_group *group, size_t *ret_count)
{
	*ret_count = MIN(group->time_count, (size_t)RECORD_TIMES_MAX);
	return *ret_count ? group->times + (group->time_count - *ret_count) : NULL;
}

const struct record_time *record_time_of(const struct record_group *group, uint64_t seq)
{
	size_t count, low = 0;
	const struct record_time *times = record_times(group, &count);
	for (size_t high = count; low < high;) {
		size_t middle = low + (high - low) / 2;
		if (times[middle].seq < seq)
			low = middle + 1;
		else
			high = middle;
	}
	return low < count && times[low].seq == seq ? &times[low] : NULL;
}

void record_add(struct record_group *group, struct record_entry *entry)
{
	bound_text(&entry->op);
	bound_text(&entry->shape.in_sizes);
	bound_text(&entry->shape.out_sizes);
	bound_text(&entry->shape.in_types);
	bound_text(&entry->shape.out_types);
	if (!entry->p2p) {
		group->last_seq = MAX(group->last_seq, entry->seq);
		record_add_time(group, &(struct record_time){ entry->seq, entry->created_ns });
	}
	if (!entry->complete)
		append(&group->open, &group->open_count, RECORD_OPEN_MAX, true, entry);
	else if (entry->p2p)
		keep_pair(group, entry);
	else
		append(&group->done, &group->done_count, RECORD_DONE_MAX, false, entry);
	*entry = (struct record_entry){ .op = NULL };
}

void record_reopen_last(struct record *record)
{
	struct record_group *last = NULL;
	uint64_t newest_ns = 0;
	for (size_t i = 0; i < record->count; i++) {
		struct record_group *group = &record->groups[i];
		if (group->open_count)
			return; /* this is what it died in */
		if (group->done_count &&
		    group->done[group->done_count - 1].created_ns >= newest_ns) {
			last = group;
			newest_ns = group->done[group->done_count - 1].created_ns;
		}
	}
	if (!last)
		return;
	struct record_entry entry = last->done[--last->done_count];
	entry.complete = false;
	append(&last->open, &last->open_count, RECORD_OPEN_MAX, true, &entry);
}

const struct record_entry *record_find(const struct record_group *group, uint64_t seq)
{
	for (size_t i = 0; i < group->open_count; i++)
		if (group->open[i].seq == seq && !group->open[i].p2p)
			return &group->open[i];
	for (size_t i = group->done_count; i-- > 0;)
		if (group->done[i].seq == seq)
			return &group->done[i];
	return NULL;
}
