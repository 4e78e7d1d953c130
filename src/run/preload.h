/* Warm workers (--preload): a template process of this host imports the modules once, and workers
 * are forked from it, at the first start and at every restart, instead of each starting an
 * interpreter.
 *
 * The template is python/muster/_template.py, whose text is part of the program and describes the
 * messages between the two. It is a child of the warden outside the group (WARDEN_ASIDE). What it
 * forks is orphaned at once, so the warden inherits it, and waits until the warden has adopted it:
 * from then on it is a worker like any other.
 *
 * Nothing depends on the template. The warden starts a worker that the template cannot fork, and
 * all workers once the template has failed, which is logged once.
 *
 * Every function but preload_new() accepts NULL for "no --preload". */
#ifndef RUN_PRELOAD_H
#define RUN_PRELOAD_H

#include "base/err.h"
#include "run/config.h"
#include "sys/warden.h"

struct event_base;
struct preload;

/* A start that preload_spawn() had accepted could not be requested. */
typedef void preload_failed_fn(void *arg, uint64_t id, int error);

/* `nofile_soft`: the limit of open files for workers. */
struct preload *preload_new(const struct run_config *config, uint64_t nofile_soft,
			    struct event_base *base, preload_failed_fn *on_failed, void *arg);
void preload_free(struct preload *preload);

/* Starts the template below this warden; workers may be requested at once. */
void preload_start(struct preload *preload, struct warden *warden);

/* The warden is gone, and with it the template and every worker: forgets them. */
void preload_lost(struct preload *preload);

/* Like warden_spawn(), with the same events to follow: warm if possible, else through `warden`. */
int preload_spawn(struct preload *preload, struct warden *warden, uint64_t id,
		  const struct spawn_spec *spec, struct err *err);

/* Cancels a start that the warden does not know yet: SPAWN_FAILED (ECANCELED) follows. False if
 * there is no such start. */
bool preload_cancel(struct preload *preload, uint64_t id);
void preload_cancel_all(struct preload *preload);

/* True if the event was about the template, so that the caller should ignore it. */
bool preload_take_event(struct preload *preload, const struct warden_event *event);

/* Whether the worker's environment differs from the template's in variables that libraries read
 * when they are loaded; says why, in a phrase for the log. Pure. */
bool preload_env_differs(char *const *worker, char *const *template, struct buf *ret_why);

#endif
