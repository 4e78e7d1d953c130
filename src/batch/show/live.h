/* --line-buffer: shows whole lines of an order's output files while the order writes them. The
 * kernel tells of every change (inotify), so nothing polls. */
#ifndef BATCH_SHOW_LIVE_H
#define BATCH_SHOW_LIVE_H

#include "base/err.h"

struct event_base;
struct live;

/* A file has grown: `arg` as given to live_watch(). */
typedef void live_fn(void *arg);

int live_new(struct event_base *base, struct live **ret_live, struct err *err);
void live_free(struct live *live);

/* Watches an open file, named or not. Returns a number for live_forget(), or -errno. `arg` is
 * borrowed. */
int live_watch(struct live *live, int fd, live_fn *on_growth, void *arg);
void live_forget(struct live *live, int watch);

/* Where the last whole line between `from` and the end of the file ends; `from` if there is none.
 */
uint64_t live_lines_end(int fd, uint64_t from);

#endif
