/* What a measured run needs besides being started and reaped: counted instructions, an environment
 * that is always the same, and a look at whether the host was quiet. The runner calls this around
 * every trial; with nothing asked for, all of it does nothing. */
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
	QUIET_CHECK_WARN, /* say so, and mark the runs */
	QUIET_CHECK_WAIT, /* begin when the host is quiet, and mark the runs */
	QUIET_CHECK_FAIL, /* do not begin on a host that is not */
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

/* Decides how to count and, when counting, switches address randomisation off for what is started
 * from now on: call it before the wardens are made. Fails when a source was asked for by name and
 * does not work here. With auto and no source at all it warns and counts nothing. */
int measure_init(struct measure *measure, const struct measure_options *options, struct err *err);
void measure_done(struct measure *measure);

/* How many orders run at a time; before any of the calls below. */
void measure_set_slots(struct measure *measure, int slots);

/* A slot has a (new) warden: what it starts is counted from now on. */
void measure_watch(struct measure *measure, int slot, pid_t warden);

/* The environment orders start from, as NULL-terminated strings; NULL: the runner's own. */
char *const *measure_env(const struct measure *measure);

/* Wraps what is about to run, if its instructions are to be counted by valgrind. `path` and `argv`
 * as for exec; both may be replaced. */
void measure_wrap(struct measure *measure, int slot, char **path, struct strv *argv);

/* Just before the start; when the main process has ended, with what it used: whether the host was
 * not quiet meanwhile; and after the last process is gone: adds counts, their environment, and why
 * the run is suspect. Times taken under valgrind are taken out again. `env` is what the order was
 * started with; `cpus` empty: not pinned, so nobody can say whose load it was. */
void measure_begin(struct measure *measure, int slot, const struct cpuset *cpus);
bool measure_exited(struct measure *measure, int slot, const struct rusage *usage);
void measure_end(struct measure *measure, int slot, const struct strv *env, struct result *result);

/* Looks at the host for a moment before anything runs (--quiet-check): 0 quiet, or told; -EBUSY
 * when it is not and that was to be an error. Blocks: at least 200 ms, and with WAIT until quiet,
 * at most `wait_ns`. */
int measure_quiet_start(const struct measure *measure, const struct cpuset *cpus, uint64_t wait_ns,
			struct err *err);

#endif
