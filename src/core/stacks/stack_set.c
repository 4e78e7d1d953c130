#include "core/stacks/stack_set.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/lines/ranges.h"

#define RANKS_NAMED 4 /* in a line about a place; more are only counted */

void stack_set_done(struct stack_set *set)
{
	for (size_t i = 0; i < set->count; i++) {
		stack_process_done(&set->items[i]->process);
		free(set->items[i]->members);
		free(set->items[i]);
	}
	free(set->items);
	map_done(&set->by_text);
	strv_done(&set->hosts);
	*set = STACK_SET_INIT;
}

uint32_t stack_set_host(struct stack_set *set, const char *name)
{
	for (size_t i = 0; i < set->hosts.count; i++)
		if (str_eq(set->hosts.items[i], name))
			return (uint32_t)i + 1;
	strv_add(&set->hosts, name);
	str_make_printable(set->hosts.items[set->hosts.count - 1]);
	return (uint32_t)set->hosts.count;
}

/* All that tells two processes apart. */
static void put_identity(const struct stack_process *process, struct buf *out)
{
	buf_printf(out, "%d%s\n", process->child, process->command ? process->command : "");
	stack_print(process, out);
	for (size_t i = 0; i < process->count; i++)
		for (size_t j = 0; j < process->threads[i].count; j++) {
			const struct stack_frame *frame = &process->threads[i].frames[j];
			buf_append_char(out, (char)('0' + frame->kind * 2 + frame->own));
		}
}

static struct stack_variant *variant_of(struct stack_set *set, struct stack_process *process)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	put_identity(process, &text);
	struct stack_variant *variant = map_get(&set->by_text, buf_data(&text), buf_len(&text));
	if (variant) {
		stack_process_done(process);
		return variant;
	}
	variant = NEW(struct stack_variant);
	variant->process = stack_process_take(process);
	ARRAY_RESERVE(set->items, set->count, set->cap);
	set->items[set->count++] = variant;
	map_put(&set->by_text, buf_data(&text), buf_len(&text), variant);
	return variant;
}

void stack_set_add(struct stack_set *set, struct stack_process *process,
		   const struct stack_member *members, size_t count)
{
	struct stack_variant *variant = variant_of(set, process);
	for (size_t i = 0; i < count; i++) {
		ARRAY_RESERVE(variant->members, variant->count, variant->cap);
		variant->members[variant->count++] = members[i];
	}
}

const struct stack_process *stack_set_find(const struct stack_set *set, size_t rank)
{
	for (size_t i = 0; i < set->count; i++)
		for (size_t j = 0; j < set->items[i]->count; j++)
			if (!set->items[i]->process.child && set->items[i]->members[j].rank == rank)
				return &set->items[i]->process;
	return NULL;
}

/* ---- groups ---- */

struct group {
	const struct stack_variant *shown; /* what most of its members have */
	struct stack_member *members;	   /* sorted by rank */
	size_t count, cap;
};

struct groups {
	struct group **items;
	size_t count, cap;
	size_t total; /* members */
	struct map by_key;
};

typedef void key_fn(const struct stack_process *process, struct buf *out);

static void groups_done(struct groups *groups)
{
	for (size_t i = 0; i < groups->count; i++) {
		free(groups->items[i]->members);
		free(groups->items[i]);
	}
	free(groups->items);
	map_done(&groups->by_key);
}

static struct group *group_of(struct groups *groups, struct buf *key)
{
	/* a key without bytes has no address */
	buf_append_char(key, '\n');
	struct group *group = map_get(&groups->by_key, buf_data(key), buf_len(key));
	if (group)
		return group;
	group = NEW(struct group);
	ARRAY_RESERVE(groups->items, groups->count, groups->cap);
	groups->items[groups->count++] = group;
	map_put(&groups->by_key, buf_data(key), buf_len(key), group);
	return group;
}

static int by_rank(const void *a, const void *b)
{
	const struct stack_member *x = a, *y = b;
	return (x->rank > y->rank) - (x->rank < y->rank);
}

static int by_size(const void *a, const void *b)
{
	const struct group *x = *(struct group *const *)a, *y = *(struct group *const *)b;
	if (x->count != y->count)
		return x->count < y->count ? -1 : 1;
	return by_rank(&x->members[0], &y->members[0]);
}

static void add_variant(struct group *group, const struct stack_variant *variant)
{
	if (!group->shown || variant->count > group->shown->count)
		group->shown = variant;
	for (size_t i = 0; i < variant->count; i++) {
		ARRAY_RESERVE(group->members, group->count, group->cap);
		group->members[group->count++] = variant->members[i];
	}
}

/* The workers, or their children, by a key; the smallest group first. */
static struct groups groups_make(const struct stack_set *set, bool children, key_fn *key_of)
{
	struct groups groups = { .by_key = MAP_INIT };
	for (size_t i = 0; i < set->count; i++) {
		const struct stack_variant *variant = set->items[i];
		AUTO(buf_done) struct buf key = BUF_INIT;
		if (variant->process.child != children || variant->count == 0)
			continue;
		key_of(&variant->process, &key);
		add_variant(group_of(&groups, &key), variant);
		groups.total += variant->count;
	}
	for (size_t i = 0; i < groups.count; i++)
		qsort(groups.items[i]->members, groups.items[i]->count, sizeof(struct stack_member),
		      by_rank);
	if (groups.count > 1)
		qsort(groups.items, groups.count, sizeof(groups.items[0]), by_size);
	return groups;
}

/* ---- text ---- */

/* The different ones: a worker may have several children in a group. */
static size_t count_ranks(const struct group *group)
{
	size_t count = 1;
	for (size_t i = 1; i < group->count; i++)
		count += group->members[i].rank != group->members[i - 1].rank;
	return count;
}

static void put_ranks(const struct group *group, struct buf *out)
{
	struct ranges ranges = RANGES(out, ",", 2);
	buf_append_str(out, count_ranks(group) > 1 ? "ranks " : "rank ");
	for (size_t i = 0; i < group->count; i++)
		if (i == 0 || group->members[i].rank != group->members[i - 1].rank)
			ranges_add(&ranges, group->members[i].rank);
	ranges_end(&ranges);
}

/* The host, if all are on one and it is known. */
static void put_host(const struct stack_set *set, const struct group *group, struct buf *out)
{
	uint32_t host = group->members[0].host;
	for (size_t i = 1; i < group->count; i++)
		if (group->members[i].host != host)
			return;
	if (host > 0 && host <= set->hosts.count)
		buf_printf(out, " on %s", set->hosts.items[host - 1]);
}

static void put_line(const struct stack_set *set, const struct group *group, struct buf *out)
{
	AUTO(buf_done) struct buf place = BUF_INIT;
	stack_place(&group->shown->process, &place);
	if (count_ranks(group) <= RANKS_NAMED)
		put_ranks(group, out);
	else
		buf_printf(out, "%zu ranks", group->count);
	put_host(set, group, out);
	if (buf_len(&place))
		buf_printf(out, " in %s\n", buf_str(&place));
	else
		buf_append_str(out, " without a stack\n");
}

void stack_set_lines(const struct stack_set *set, struct buf *out)
{
	AUTO(groups_done) struct groups groups = groups_make(set, false, stack_place);
	for (size_t i = 0; i < groups.count; i++)
		put_line(set, groups.items[i], out);
}

static void put_stack(const struct group *group, struct buf *out)
{
	const struct stack_variant *shown = group->shown;
	size_t others = group->count - shown->count;
	if (others)
		buf_printf(out, "(as rank %zu has it; %zu other%s inside of libraries)\n",
			   shown->members[0].rank, others, others == 1 ? " differs" : "s differ");
	stack_print(&shown->process, out);
}

static void put_workers(const struct stack_set *set, struct buf *out)
{
	AUTO(groups_done) struct groups groups = groups_make(set, false, stack_key);
	for (size_t i = 0; i < groups.count; i++) {
		const struct group *group = groups.items[i];
		buf_printf(out, "%zu of %zu workers (", group->count, groups.total);
		put_ranks(group, out);
		put_host(set, group, out);
		buf_append_str(out, "):\n");
		put_stack(group, out);
	}
}

static void put_children(const struct stack_set *set, struct buf *out)
{
	AUTO(groups_done) struct groups groups = groups_make(set, true, stack_key);
	for (size_t i = 0; i < groups.count; i++) {
		const struct group *group = groups.items[i];
		buf_printf(out, "%zu of %zu child processes (%s, of ", group->count, groups.total,
			   group->shown->process.command);
		put_ranks(group, out);
		put_host(set, group, out);
		buf_append_str(out, "):\n");
		put_stack(group, out);
	}
}

void stack_set_print(const struct stack_set *set, struct buf *out)
{
	stack_set_lines(set, out);
	put_workers(set, out);
	put_children(set, out);
}

/* ---- for flame graphs ---- */

/* A semicolon ends a frame there. */
static void put_folded_word(const char *word, struct buf *out)
{
	for (; *word; word++)
		buf_append_char(out, *word == ';' ? ':' : *word);
}

static void put_folded(const struct stack_process *process, const struct stack_thread *thread,
		       struct buf *out)
{
	AUTO(buf_done) struct buf frame = BUF_INIT;
	put_folded_word(process->command && *process->command ? process->command : "process", out);
	buf_append_char(out, ';');
	put_folded_word(thread->name[0] ? thread->name : "thread", out);
	for (size_t i = thread->count; i-- > 0;) {
		buf_clear(&frame);
		stack_frame_print(&thread->frames[i], &frame);
		buf_append_char(out, ';');
		put_folded_word(buf_str(&frame), out);
	}
}

struct folded {
	size_t count;
};

static int by_text(const void *a, const void *b)
{
	const struct map_entry *x = *(struct map_entry *const *)a,
			       *y = *(struct map_entry *const *)b;
	return strcmp(x->key, y->key);
}

static void print_sorted(const struct map *lines, struct buf *out)
{
	AUTO_FREE struct map_entry **sorted = NEW_ARRAY(struct map_entry *, lines->count + 1);
	size_t count = 0;
	map_foreach(entry, lines) sorted[count++] = entry;
	if (count > 1)
		qsort(sorted, count, sizeof(sorted[0]), by_text);
	for (size_t i = 0; i < count; i++) {
		struct folded *folded = sorted[i]->value;
		buf_printf(out, "%s %zu\n", sorted[i]->key, folded->count);
		free(folded);
	}
}

void stack_set_folded(const struct stack_set *set, struct buf *out)
{
	AUTO(map_done) struct map lines = MAP_INIT;
	for (size_t i = 0; i < set->count; i++) {
		const struct stack_variant *variant = set->items[i];
		for (size_t j = 0; j < variant->process.count; j++) {
			const struct stack_thread *thread = &variant->process.threads[j];
			AUTO(buf_done) struct buf line = BUF_INIT;
			put_folded(&variant->process, thread, &line);
			struct folded *folded = map_get(&lines, buf_data(&line), buf_len(&line));
			if (!folded) {
				folded = NEW(struct folded);
				map_put(&lines, buf_data(&line), buf_len(&line), folded);
			}
			folded->count += variant->count * thread->times;
		}
	}
	print_sorted(&lines, out);
}
