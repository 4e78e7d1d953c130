/* What the parts of the runner share. */
#ifndef BATCH_RUNNER_PRIVATE_H
#define BATCH_RUNNER_PRIVATE_H

#include <sys/resource.h>

#include "base/list.h"
#include "batch/ending.h"
#include "batch/launch.h"
#include "batch/printer.h"
#include "batch/runner.h"
#include "sys/sweeper.h"
#include "sys/warden.h"

struct event;
struct event_base;
struct runner;

/* The shell's side of a slot. */
struct place {
	struct runner *runner;
	int number;
	int fds[2]; /* files for stdout and stderr; reused while empty */
	char *paths[2];
	const struct batch_order *order;
	struct cpuset cpus;
	struct rusage usage;
	bool has_usage;
	bool by_shell;
	char *failure; /* why it could not be started */
	uint64_t cpu_base_ns;
	struct batch_trial trial;
	uint64_t asked_wall_ns;
	struct strv env; /* environment of the order; empty: ours */
};

struct runner {
	const struct runner_job *job;
	struct event_base *base;
	struct batch batch;
	struct batch_actions actions;
	struct batch_event *events; /* to be stepped, in order */
	size_t event_count, event_cap;
	bool driving;
	struct place *places;
	struct launcher launcher;
	struct printer *printer;
	struct list endings; /* being hashed */
	struct event *timer, *sync_timer, *status_timer, *hash_event;
	struct event *signals[4];
	struct sweeper *sweeper;
	int stop_signal;
	int exit_code; /* of a fatal error; 0: none */
	uint64_t start_ns;
	uint64_t oom_kills; /* by the kernel, on this host, so far */
	bool bar, plain;
	uint64_t eta_ns, eta_until_ns; /* valid until then */
};

/* runner.c */
void runner_post(struct runner *runner, const struct batch_event *event);
void runner_fatal(struct runner *runner, const struct err *err);

/* runner_slots.c: starting, signalling, watching */
void place_init(struct place *place, struct runner *runner, int number);
void place_done(struct place *place);
void place_watch(struct place *place);
void place_renew(struct place *place); /* a new warden, if it has lost its own */
const struct order *place_order(const struct place *place);
void place_spawn(struct place *place, const struct batch_action *action);

/* runner_finish.c: the end of an attempt */
void runner_finish(struct runner *runner, const struct batch_action *action);
void runner_hash_some(struct runner *runner);
void runner_finish_all(struct runner *runner);

/* runner_status.c: output for users */
void status_init(struct runner *runner);
void status_show(struct runner *runner);
void status_outcome(struct runner *runner, const struct batch_action *action,
		    const struct place *place);
void status_summary(struct runner *runner);

#endif
