/* The children of this process that it did not start: what a dead warden left to it, and the
 * orphans that come to process 1.
 *
 * Orphans are reaped when they end. What a lost warden left is killed first: its heir does that
 * alone, but may be stopped, slow or killed itself. So sweeper_start() kills what is below the heir
 * and what has come to us, again and again, without blocking the loop, until nothing is left and
 * the heir has ended. It never kills the heir while anything below it lives: if this process is
 * killed in the middle, the heir goes on. Other children that this process has started itself
 * (base/child.h) are never touched.
 */
#ifndef SYS_SWEEPER_H
#define SYS_SWEEPER_H

#include "base/util.h"

struct event_base;
struct sweeper;
struct warden;

/* Called from the loop when nothing is left to kill. */
typedef void sweeper_clear_fn(void *arg);

/* One for each process: it takes SIGCHLD. */
struct sweeper *sweeper_new(struct event_base *base, sweeper_clear_fn *on_clear, void *arg);
void sweeper_free(struct sweeper *sweeper);

/* Takes the warden, which is LOST, and frees it. */
void sweeper_start(struct sweeper *sweeper, struct warden *lost);

#endif
