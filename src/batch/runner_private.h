/* What the parts of the runner share. */
#ifndef BATCH_RUNNER_PRIVATE_H
#define BATCH_RUNNER_PRIVATE_H

#include <sys/resource.h>

#include "base/list.h"
#include "batch/ahead/ahead.h"
#include "batch/ending.h"
#include "batch/launch.h"
#include "batch/pipe/pipe.h"
#include "batch/pipe/stdin_write.h"
#include "batch/printer.h"
#include "batch/runner.h"
#include "batch/show/failures.h"
#include "batch/show/live.h"
#include "batch/show/outputs.h"
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
	bool kept;  /* the warden still has these, and our environment */
	char *paths[2];
	const struct batch_order *order;
	struct order_source *source; /* of the order */
	struct cpuset cpus;
	struct rusage usage;
	bool has_usage;
	/* of the run before this one, which was not slowed down (BATCH_HOOK_TIMED) */
	bool has_timed;
	struct rusage timed_usage;
	uint64_t timed_peak;
	bool by_shell;
	bool passed_on, next_by_shell; /* its warden has started the next one, and how */
	char *failure;		       /* why it could not be started */
	uint64_t cpu_base_ns;
	struct batch_trial trial;
	uint64_t asked_wall_ns;
	struct strv env;	   /* environment of the order; empty: ours */
	struct stdin_write writer; /* --pipe: its input */
	struct memory_group group;
	uint64_t memory_peak; /* bytes, as far as it was seen */
	/* --line-buffer */
	uint64_t shown[2]; /* bytes of the output */
	int watches[2];	   /* -1: none */
};

struct runner {
	const struct runner_job *job;
	struct event_base *base;
	struct order_source *source; /* of the orders to come */
	struct batch batch;
	struct batch_actions actions;
	struct batch_queue queue;
	struct place *places;
	struct ahead ahead;
	struct launcher launcher;
	struct printer *printer;
	struct outputs *outputs;
	struct live *live;   /* NULL: outputs are shown at the end */
	struct list endings; /* being hashed */
	struct event *timer, *hash_event;
	struct event *lifeline; /* or NULL */
	struct event *signals[5];
	struct sweeper *sweeper;
	int stop_signal;
	bool over;
	int exit_code;	    /* of a fatal error; 0: none */
	uint64_t oom_kills; /* by the kernel, on this host, so far */
};

/* runner_slots.c: starting, signalling, watching */
void place_init(struct place *place, struct runner *runner, int number);
void place_done(struct place *place);
void place_watch(struct place *place);
void place_renew(struct place *place); /* a new warden, if it has lost its own */
const struct order *place_order(const struct place *place);
const char *place_tag(const struct place *place); /* NULL: none */
bool place_is_hook(const struct place *place);	  /* a command around the order runs */
uint64_t place_peak(const struct place *place);	  /* memory of what runs, in bytes; 0: unknown */
size_t place_turn(const struct place *place);	  /* of its output, with --keep-order */
void place_unwatch_output(struct place *place);
void place_spawn(struct place *place, const struct batch_action *action);
void runner_lay(struct runner *runner, struct batch_order *order); /* BATCH_LAY */

/* runner_finish.c: the end of an attempt */
void runner_finish(struct runner *runner, const struct batch_action *action);
void runner_hash_some(struct runner *runner);
void runner_finish_all(struct runner *runner);

#endif
