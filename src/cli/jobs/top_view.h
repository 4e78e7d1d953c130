/* What `muster top` shows: the workers of jobs, as /api/state describes them, drawn as a screen of
 * any size. It neither reads nor prints. */
#ifndef CLI_JOBS_TOP_VIEW_H
#define CLI_JOBS_TOP_VIEW_H

#include "base/buf.h"
#include "base/err.h"
#include "base/map.h"

enum top_sort {
	TOP_SORT_RANK,
	TOP_SORT_CPU,
	TOP_SORT_MEMORY,
	TOP_SORT_SILENT,
	TOP_SORT_HOST,
	TOP_SORT_COUNT,
};

extern const char *const top_sorts[]; /* their names, then NULL */

enum top_key {
	TOP_KEY_UP,
	TOP_KEY_DOWN,
	TOP_KEY_PAGE_UP,
	TOP_KEY_PAGE_DOWN,
	TOP_KEY_HOME,
	TOP_KEY_END,
	TOP_KEY_NEXT_SORT,
	TOP_KEY_LAST_SORT,
};

struct top_row;
struct top_job;

/* Fields are private, except these: */
struct top_view {
	enum top_sort sort;
	char notice[ERR_MSG_MAX]; /* a line at the bottom; "": none */

	struct top_job *jobs;
	size_t job_count, job_cap;
	struct top_row *rows;
	size_t row_count, row_cap;
	struct map seen; /* host and pid -> CPU time at the last look */
	bool has_steps, has_silences;
	size_t first, page; /* rows: the first that is shown, and how many fit */
};

#define TOP_VIEW_INIT ((struct top_view){ .seen = MAP_INIT })
void top_view_done(struct top_view *view);

/* Takes the array that `muster status --json` prints. -EINVAL: it is none, and nothing changes. */
int top_view_take(struct top_view *view, const char *text, size_t len, uint64_t now_ns,
		  struct err *err);

void top_view_key(struct top_view *view, enum top_key key);

struct top_screen {
	int width, height; /* 0: no limit */
	bool terminal;	   /* it is drawn over what was there */
	bool colour;
};

/* Appends the picture. */
void top_view_draw(struct top_view *view, struct top_screen screen, struct buf *out);

#endif
