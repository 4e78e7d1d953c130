#include "batch/measure.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "sys/perf_count.h"
#include "sys/quiet.h"

#define QUIET_WINDOW_NS (200 * NS_PER_MS)
#define QUIET_START_SHARE 0.10 /* share of CPU time that may be in use before we begin */

extern char **environ;

struct measure_slot {
	pid_t warden;
	int perf_fd; /* of the run under way */
	bool quiet_read;
	struct quiet_state quiet;
	struct cpuset cpus;
	unsigned faults; /* of the run that ended last */
};

/* ---- begin and end ---- */

static int choose_source(struct measure *measure, struct err *err)
{
	struct err why = ERR_INIT;
	if (!measure->options->count_auto) {
		measure->source = measure->options->count;
		return counter_check(measure->source, err);
	}
	if (counter_choose(&measure->source, &why) < 0)
		log_warn("instructions are not counted: %s", why.msg);
	return 0;
}

static int make_folder(struct measure *measure, struct err *err)
{
	const char *base = getenv("TMPDIR");
	measure->folder = mem_printf("%s/muster-XXXXXX", base && *base ? base : "/tmp");
	if (mkdtemp(measure->folder))
		return 0;
	err_set(err, errno, "%s: %m", measure->folder);
	free(measure->folder);
	measure->folder = NULL;
	return -err->code;
}

int measure_init(struct measure *measure, const struct measure_options *options, struct err *err)
{
	*measure = (struct measure){ .options = options };
	if (options->env.clean)
		fixed_env_make(&options->env, environ, &measure->env);
	int r = choose_source(measure, err);
	if (r == 0 && counter_is_valgrind(measure->source))
		r = make_folder(measure, err);
	struct err why = ERR_INIT;
	if (r == 0 && measure->source != COUNTER_NONE && counter_fix_addresses(&why) < 0)
		log_warn("counts may vary: %s", why.msg);
	if (r < 0)
		measure_done(measure);
	return r;
}

void measure_set_slots(struct measure *measure, int slots)
{
	measure->slot_count = slots;
	measure->slots = mem_alloc((size_t)slots * sizeof(*measure->slots));
	for (int i = 0; i < slots; i++)
		measure->slots[i].perf_fd = -1;
}

void measure_done(struct measure *measure)
{
	for (int i = 0; i < measure->slot_count; i++)
		fd_close(&measure->slots[i].perf_fd);
	free(measure->slots);
	if (measure->folder)
		rmdir(measure->folder);
	free(measure->folder);
	strv_done(&measure->env);
	*measure = MEASURE_INIT;
}

void measure_watch(struct measure *measure, int slot, pid_t warden)
{
	measure->slots[slot].warden = warden;
}

/* ---- one run ---- */

char *const *measure_env(const struct measure *measure)
{
	return measure->env.count ? strv_argv(&measure->env) : NULL;
}

/* The same length for every slot below 10,000: it is an argument, and arguments cost
 * instructions. */
static char *count_prefix(const struct measure *measure, int slot)
{
	return mem_printf("%s/%04d", measure->folder, slot);
}

void measure_wrap(struct measure *measure, int slot, char **path, struct strv *argv)
{
	if (!counter_is_valgrind(measure->source))
		return;
	AUTO_FREE char *prefix = count_prefix(measure, slot);
	struct strv wrapped = STRV_INIT;
	free(argv->items[0]);
	/* with its full path, so that valgrind need not search */
	argv->items[0] = mem_strdup(*path);
	counter_wrap(measure->source, prefix, strv_argv(argv), &wrapped);
	strv_done(argv);
	*argv = wrapped;
	free(*path);
	*path = counter_valgrind_path();
}

void measure_begin(struct measure *measure, int slot, const struct cpuset *cpus)
{
	struct measure_slot *state = &measure->slots[slot];
	fd_close(&state->perf_fd);
	if (measure->source == COUNTER_PERF)
		state->perf_fd = perf_count_open(state->warden, PERF_INSTRUCTIONS, NULL);
	state->quiet_read = false;
	if (!cpus)
		return;
	state->faults = 0;
	if (measure->options->quiet == QUIET_CHECK_OFF || cpuset_empty(cpus))
		return;
	state->cpus = *cpus;
	state->quiet_read = quiet_read(cpus, &state->quiet, NULL) == 0;
}

static void set_count(const struct measure *measure, const struct strv *env, uint64_t count,
		      struct result *result)
{
	char hash[FIXED_ENV_HASH_MAX];
	struct strv own = STRV_INIT;
	if (env->count == 0)
		strv_add_all(&own, environ);
	fixed_env_hash(env->count ? env : &own, hash);
	strv_done(&own);
	result_set(result, RESULT_INSTRUCTIONS, (int64_t)count);
	free(result->count_source);
	free(result->env_hash);
	result->count_source = mem_strdup(counter_source_name(measure->source));
	result->env_hash = mem_strdup(hash);
}

static void end_perf(struct measure *measure, struct measure_slot *state, const struct strv *env,
		     struct result *result)
{
	struct perf_reading reading;
	uint64_t count;
	bool scaled;
	if (state->perf_fd < 0 || perf_count_read(state->perf_fd, &reading, NULL) < 0 ||
	    !perf_count_value(&reading, &count, &scaled)) {
		result_miss(result, "instructions", "the counter could not be read");
		return;
	}
	if (scaled)
		strv_add(&result->suspect, "scaled-count");
	set_count(measure, env, count, result);
}

static void end_valgrind(struct measure *measure, int slot, const struct strv *env,
			 struct result *result)
{
	AUTO_FREE char *prefix = count_prefix(measure, slot);
	struct err err = ERR_INIT;
	uint64_t count;
	if (counter_collect(prefix, &count, &err) < 0)
		result_miss(result, "instructions", err.msg);
	else
		set_count(measure, env, count, result);
}

static uint64_t cpu_ns(const struct rusage *usage)
{
	uint64_t seconds = (uint64_t)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec);
	uint64_t us = (uint64_t)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec);
	return seconds * NS_PER_S + us * NS_PER_US;
}

bool measure_exited(struct measure *measure, int slot, const struct rusage *usage)
{
	struct measure_slot *state = &measure->slots[slot];
	struct quiet_state after;
	if (state->quiet_read && quiet_read(&state->cpus, &after, NULL) == 0)
		state->faults = quiet_faults(&state->quiet, &after, cpu_ns(usage));
	return state->faults != 0;
}

void measure_end(struct measure *measure, int slot, const struct strv *env, struct result *result)
{
	struct measure_slot *state = &measure->slots[slot];
	for (unsigned i = 0; i < QUIET_FAULT_COUNT; i++)
		if (state->faults >> i & 1)
			strv_add(&result->suspect, quiet_fault_name((enum quiet_fault)i));
	if (measure->source == COUNTER_PERF)
		end_perf(measure, state, env, result);
	else if (counter_is_valgrind(measure->source))
		end_valgrind(measure, slot, env, result);
}

/* ---- before the batch ---- */

static void pause_ns(uint64_t ns)
{
	struct timespec time = { .tv_sec = (time_t)(ns / NS_PER_S),
				 .tv_nsec = (long)(ns % NS_PER_S) };
	nanosleep(&time, NULL);
}

/* The share of the CPUs in use over one window; negative if unknown. */
static double share_now(const struct cpuset *cpus)
{
	struct quiet_state before, after;
	if (quiet_read(cpus, &before, NULL) < 0)
		return -1;
	pause_ns(QUIET_WINDOW_NS);
	if (quiet_read(cpus, &after, NULL) < 0)
		return -1;
	return quiet_foreign_share(&before, &after, 0);
}

int measure_quiet_start(const struct measure *measure, const struct cpuset *cpus, uint64_t wait_ns,
			struct err *err)
{
	enum measure_quiet rule = measure->options->quiet;
	if (rule == QUIET_CHECK_OFF || cpuset_empty(cpus))
		return 0;
	uint64_t deadline_ns = ns_add(clock_now_ns(), rule == QUIET_CHECK_WAIT ? wait_ns : 0);
	double share;
	do {
		share = share_now(cpus);
	} while (share > QUIET_START_SHARE && clock_now_ns() < deadline_ns);
	if (share <= QUIET_START_SHARE)
		return 0;
	share = MIN(share, 1.0); /* ticks are counted in whole ones */
	if (rule != QUIET_CHECK_WARN)
		return err_set(err, EBUSY, "the host is not quiet: others use %.0f %% of the CPUs",
			       100 * share);
	log_warn("the host is not quiet: others use %.0f %% of the CPUs", 100 * share);
	return 0;
}
