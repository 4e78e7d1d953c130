/* Checks of this node while the job runs: between a failed attempt and the next.
 *
 * A child, `muster doctor --json`, does them: this process has threads, and its loop must not wait
 * for anything. rule: checking */
#ifndef RUN_CHECKS_RECHECK_H
#define RUN_CHECKS_RECHECK_H

#include "core/checks/check.h"
#include "run/config.h"

struct event_base;
struct recheck;

/* `results` is borrowed; NULL: the checker failed, and `why` says how. */
typedef void recheck_fn(void *arg, const struct check_list *results, const char *why);

struct recheck *recheck_new(struct event_base *base, const struct run_config *config,
			    recheck_fn *on_done, void *arg);
void recheck_free(struct recheck *recheck); /* ends the child */

/* Does nothing while one is under way. on_done is never called from here. */
void recheck_start(struct recheck *recheck);

#endif
