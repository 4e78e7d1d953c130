/* Measuring a run: instruction counts, a fixed environment, and a check whether the host was quiet.
 * The runner calls this around every trial; without such options all of it does nothing. */
#ifndef BATCH_MEASURE_H
#define BATCH_MEASURE_H

#include <sys/resource.h>

#include "base/strv.h"
#include "base/err.h"
#include "core/host/cpuset.h"
#include "core/batch/fixed_env.h"
#include "proto/result.h"
#include "sys/counter.h"

enum measure_quiet {
	QUIET_CHECK_OFF,
	QUIET_CHECK_WARN, /* warn, and mark the runs */
	QUIET_CHECK_WAIT, /* wait until the host is quiet, and mark the runs */
	QUIET_CHECK_FAIL, /* do not begin on a busy host */
};

struct measure_options {
	bool count_auto;
	enum counter_source count; /* unless auto */
	struct fixed_env_rule env;
	enum measure_quiet quiet;
};

struct measure_slot;

struct measure {
	const struct measure_options *options; /* borrowed */
	enum counter_source source;
	char *folder; /* for valgrind's files; NULL: none */
	struct measure_slot *slots;
	int slot_count;
	struct strv env; /* of every order, before its own variables; empty: as inherited */
};

#define MEASURE_INIT ((struct measure){ .options = NULL })

/* Decides how to count and, when counting, switches address randomisation off for all later
 * children: call it before the wardens are made. Fails when a source given by name does not work
 * here. With auto and no working source it warns and counts nothing. */
int measure_init(struct measure *measure, const struct measure_options *options, struct err *err);
void measure_done(struct measure *measure);

/* How many orders run at a time; before any of the calls below. */
void measure_set_slots(struct measure *measure, int slots);

/* A slot has a (new) warden: count what it starts from now on. */
void measure_watch(struct measure *measure, int slot, pid_t warden);

/* The base environment of orders, NULL-terminated; NULL: the runner's own. */
char *const *measure_env(const struct measure *measure);

/* Wraps the command if valgrind counts its instructions. `path` and `argv` as for exec; both may be
 * replaced. */
void measure_wrap(struct measure *measure, int slot, char **path, struct strv *argv);

/* begin: just before the start. exited: the main process has ended and used this much; returns
 * whether the host was busy meanwhile. end: the last process is gone; adds counts, their
 * environment, and why the run is suspect. `env` is the order's environment; `cpus` empty: not
 * pinned, so the load of others is unknown; NULL: the run before was timed, and what disturbed that
 * one counts. */
void measure_begin(struct measure *measure, int slot, const struct cpuset *cpus);
bool measure_exited(struct measure *measure, int slot, const struct rusage *usage);
void measure_end(struct measure *measure, int slot, const struct strv *env, struct result *result);

/* Checks the host before anything runs (--quiet-check): 0 quiet, or a warning was logged; -EBUSY
 * when it is busy and that is an error. Blocks: at least 200 ms, and with WAIT until quiet, at most
 * `wait_ns`. */
int measure_quiet_start(const struct measure *measure, const struct cpuset *cpus, uint64_t wait_ns,
			struct err *err);

#endif
