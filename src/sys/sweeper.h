/* The children of this process that it did not start: what a dead warden left to it, and the
 * orphans that come to process 1.
 *
 * Orphans are reaped when they end. What a warden left is killed first: sweeper_start(), after
 * warden_free(), kills it again and again, without blocking the loop, until nothing is left. The
 * children that this process has started itself (base/child.h) are never touched.
 */
#ifndef SYS_SWEEPER_H
#define SYS_SWEEPER_H

#include "base/util.h"

struct event_base;
struct sweeper;

/* Called from the loop when nothing is left to kill. */
typedef void sweeper_clear_fn(void *arg);

/* One for each process: it takes SIGCHLD. */
struct sweeper *sweeper_new(struct event_base *base, sweeper_clear_fn *on_clear, void *arg);
void sweeper_free(struct sweeper *sweeper);

void sweeper_start(struct sweeper *sweeper);

#endif
