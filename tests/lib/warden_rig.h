/* A warden, and scripts for it to start. Its names are short, because the tests of the warden
 * (tests/unit/warden_*_test.c) use them in every line. */
#ifndef WARDEN_RIG_H
#define WARDEN_RIG_H

#include <sys/types.h>

#include "sys/warden.h"

struct warden *new_warden(void);
struct warden_event any_event(struct warden *warden);

/* Passes over survivors: on a busy host dying takes a while. */
struct warden_event next_event(struct warden *warden);

/* Passes over other events. */
struct warden_event await(struct warden *warden, enum warden_event_type type);

extern char *no_env[];

void start_full(struct warden *warden, uint64_t id, const char *script, int out, unsigned flags);
void start(struct warden *warden, uint64_t id, const char *script);

/* What the script wrote on its standard output until all processes had closed it. */
void output_of(struct warden *warden, const char *script, struct buf *out);

/* The pid that a background process of the script printed first. */
pid_t first_pid(struct warden *warden, const char *script);

bool exists(pid_t pid);

void kill_warden(struct warden *warden);

/* Until nothing is left of what it had. */
void sweep_after(struct warden *lost);

#endif
