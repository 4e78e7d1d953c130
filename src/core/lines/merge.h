/* Shows lines that many workers print alike once: "8x [default0-7]:epoch 3".
 *
 * A line waits a moment for equal ones from other workers. Lines come out in the order in which the
 * first of each came in, and no worker's own lines change their order: a line joins a waiting one
 * only if its worker has no later line waiting. Pure; the caller supplies the time and takes the
 * lines. */
#ifndef CORE_LINES_MERGE_H
#define CORE_LINES_MERGE_H

#include "base/clock.h"
#include "base/list.h"
#include "base/map.h"
#include "core/lines/line_split.h"

#define MERGE_WAIT_NS (200 * NS_PER_MS)
/* of waiting lines; beyond it the oldest goes out early */
#define MERGE_BYTES_MAX ((size_t)1024 * 1024)

struct merge_line {
	struct list link;
	uint64_t seq;
	uint64_t due_ns;
	uint32_t *writers; /* in the order in which they came */
	uint32_t count, cap;
	enum line_end end;
	size_t len;
	unsigned char text[];
};

struct merge {
	struct list lines;  /* oldest first */
	struct map latest;  /* text -> the newest line with it */
	uint64_t *last_seq; /* by writer: its newest line that waits or waited */
	uint32_t writers;
	uint64_t next_seq;
	size_t bytes;
};

void merge_init(struct merge *merge);
void merge_done(struct merge *merge);

/* A line of writer number `writer` (0, 1, … small: local ranks). */
void merge_add(struct merge *merge, uint32_t writer, const struct line *line, uint64_t now_ns);

/* The next line to show, which the caller frees with merge_line_free(): one that `all` writers have
 * printed, or whose time has come. NULL: none now. NS_NEVER as the time takes out everything. */
struct merge_line *merge_next(struct merge *merge, uint32_t all, uint64_t now_ns);
void merge_line_free(struct merge_line *line);

/* Appends its writers, with `base` added: "0-3,8". */
void merge_line_writers(struct merge_line *line, int64_t base, struct buf *out);

/* When merge_next() is worth calling again; NS_NEVER: nothing waits. */
uint64_t merge_due_ns(const struct merge *merge);

#endif
