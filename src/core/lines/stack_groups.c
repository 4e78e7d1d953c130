#include "core/lines/stack_groups.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

void stack_groups_done(struct stack_groups *groups)
{
	for (size_t i = 0; i < groups->count; i++) {
		free(groups->items[i].text);
		free(groups->items[i].ranks);
	}
	free(groups->items);
	*groups = STACK_GROUPS_INIT;
}

static bool line_starts(const char *line, size_t len, const char *prefix)
{
	return len >= strlen(prefix) && memcmp(line, prefix, strlen(prefix)) == 0;
}

/* "Thread 1234 (idle): …" and "Thread 0x7F12 (active)" lose their numbers. */
static void add_line(struct buf *out, const char *line, size_t len)
{
	static const char thread[] = "Thread ";
	if (len == 0 || line_starts(line, len, "Process ") || line_starts(line, len, "Python v"))
		return;
	if (line_starts(line, len, thread)) {
		const char *id = line + strlen(thread);
		const char *blank = memchr(id, ' ', len - strlen(thread));
		size_t skip = blank ? (size_t)(blank + 1 - line) : len;
		buf_append_str(out, thread);
		line += skip;
		len -= skip;
	}
	buf_append(out, line, len);
	buf_append_char(out, '\n');
}

static char *strip(const char *text, size_t len)
{
	AUTO(buf_done) struct buf copy = BUF_INIT, out = BUF_INIT;
	buf_append(&copy, text, len);
	const char *rest = buf_str(&copy);
	size_t line_len;
	for (const char *line; (line = str_split(&rest, '\n', &line_len));)
		add_line(&out, line, line_len);
	return buf_take_str(&out);
}

static struct stack_group *find_or_add(struct stack_groups *groups, char *text)
{
	for (size_t i = 0; i < groups->count; i++) {
		if (str_eq(groups->items[i].text, text)) {
			free(text);
			return &groups->items[i];
		}
	}
	ARRAY_RESERVE(groups->items, groups->count, groups->cap);
	groups->items[groups->count] = (struct stack_group){ .text = text };
	return &groups->items[groups->count++];
}

void stack_groups_add(struct stack_groups *groups, size_t rank, const char *text, size_t len)
{
	struct stack_group *group = find_or_add(groups, strip(text, len));
	ARRAY_RESERVE(group->ranks, group->count, group->cap);
	group->ranks[group->count++] = rank;
	groups->total++;
}

static int compare(const void *a, const void *b)
{
	const struct stack_group *x = a, *y = b;
	if (x->count != y->count)
		return x->count < y->count ? -1 : 1;
	return x->ranks[0] < y->ranks[0] ? -1 : 1;
}

/* "0-2,5" */
static void print_ranks(const struct stack_group *group, struct buf *out)
{
	for (size_t i = 0, last; i < group->count; i = last + 1) {
		for (last = i;
		     last + 1 < group->count && group->ranks[last + 1] == group->ranks[last] + 1;)
			last++;
		buf_printf(out, "%s%zu", i ? "," : "", group->ranks[i]);
		if (last > i)
			buf_printf(out, "-%zu", group->ranks[last]);
	}
}

void stack_groups_print(struct stack_groups *groups, struct buf *out)
{
	if (groups->count > 1)
		qsort(groups->items, groups->count, sizeof(groups->items[0]), compare);
	for (size_t i = 0; i < groups->count; i++) {
		const struct stack_group *group = &groups->items[i];
		buf_printf(out, "%zu of %zu workers (rank%s ", group->count, groups->total,
			   group->count > 1 ? "s" : "");
		print_ranks(group, out);
		buf_printf(out, "):\n%s", group->text);
	}
}
