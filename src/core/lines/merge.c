#include "core/lines/merge.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/lines/ranges.h"

void merge_init(struct merge *merge)
{
	*merge = (struct merge){ .next_seq = 1 };
	list_init(&merge->lines);
}

void merge_line_free(struct merge_line *line)
{
	free(line->writers);
	free(line);
}

void merge_done(struct merge *merge)
{
	for (struct list *link; (link = list_shift(&merge->lines));)
		merge_line_free(list_entry(link, struct merge_line, link));
	map_done(&merge->latest);
	free(merge->last_seq);
}

static void know_writer(struct merge *merge, uint32_t writer)
{
	if (writer < merge->writers)
		return;
	uint32_t count = writer + 1;
	merge->last_seq = mem_grow(merge->last_seq, count, sizeof(*merge->last_seq));
	memset(merge->last_seq + merge->writers, 0,
	       (count - merge->writers) * sizeof(*merge->last_seq));
	merge->writers = count;
}

static struct merge_line *begin_line(struct merge *merge, const struct line *line, uint64_t now_ns)
{
	struct merge_line *fresh = mem_alloc(sizeof(*fresh) + line->len);
	fresh->seq = merge->next_seq++;
	fresh->due_ns = ns_add(now_ns, MERGE_WAIT_NS);
	fresh->end = line->end;
	fresh->len = line->len;
	memcpy(fresh->text, line->text, line->len);
	list_append(&merge->lines, &fresh->link);
	map_put(&merge->latest, line->text, line->len, fresh);
	merge->bytes += line->len;
	return fresh;
}

void merge_add(struct merge *merge, uint32_t writer, const struct line *line, uint64_t now_ns)
{
	know_writer(merge, writer);
	struct merge_line *same = map_get(&merge->latest, line->text, line->len);
	if (!same || same->seq <= merge->last_seq[writer])
		same = begin_line(merge, line, now_ns);
	ARRAY_RESERVE(same->writers, same->count, same->cap);
	same->writers[same->count++] = writer;
	merge->last_seq[writer] = same->seq;
}

static void take_out(struct merge *merge, struct merge_line *line)
{
	list_unlink(&line->link);
	merge->bytes -= line->len;
	if (map_get(&merge->latest, line->text, line->len) == line)
		map_remove(&merge->latest, line->text, line->len);
}

struct merge_line *merge_next(struct merge *merge, uint32_t all, uint64_t now_ns)
{
	if (list_empty(&merge->lines))
		return NULL;
	struct merge_line *oldest = list_entry(merge->lines.next, struct merge_line, link);
	if (oldest->count < all && oldest->due_ns > now_ns && merge->bytes <= MERGE_BYTES_MAX)
		return NULL;
	take_out(merge, oldest);
	return oldest;
}

static int by_number(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return x < y ? -1 : x > y;
}

void merge_line_writers(struct merge_line *line, int64_t base, struct buf *out)
{
	qsort(line->writers, line->count, sizeof(*line->writers), by_number);
	struct ranges ranges = RANGES(out, ",", 2);
	for (uint32_t i = 0; i < line->count; i++)
		ranges_add(&ranges, (uint64_t)base + line->writers[i]);
	ranges_end(&ranges);
}

uint64_t merge_due_ns(const struct merge *merge)
{
	return list_empty(&merge->lines)
		       ? NS_NEVER
		       : list_entry(merge->lines.next, struct merge_line, link)->due_ns;
}
