#include "sys/quiet.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/procfs.h"
#include "base/str.h"

#define PROC_MAX ((size_t)1 << 20)
#define SYS_MAX 64

#define LOAD_SHARE 0.05 /* of the CPUs' time that others may take */
#define STEAL_SHARE 0.02
#define FREQUENCY_DROP 0.90 /* of the clock before */

static const char *const names[] = {
	[QUIET_LOAD] = "load",	       [QUIET_STEAL] = "steal",		[QUIET_SWAP] = "swap",
	[QUIET_THROTTLE] = "throttle", [QUIET_FREQUENCY] = "frequency",
};
static_assert(ARRAY_LEN(names) == QUIET_FAULT_COUNT, "every fault needs a name");

const char *quiet_fault_name(enum quiet_fault fault)
{
	return names[fault];
}

/* ---- /proc/stat ---- */

/* Columns of a "cpuN" line. */
enum { USER, NICE, SYSTEM, IDLE, IOWAIT, IRQ, SOFTIRQ, STEAL, COLUMNS };

static bool next_number(const char **at, const char *end, uint64_t *ret_number)
{
	const char *p = *at;
	while (p < end && *p == ' ')
		p++;
	const char *first = p;
	uint64_t number = 0;
	for (; p < end && *p >= '0' && *p <= '9' && p - first < 19; p++)
		number = number * 10 + (uint64_t)(*p - '0');
	*at = p;
	*ret_number = number;
	return p > first;
}

static int parse_cpu(const char *at, const char *end, const struct cpuset *cpus,
		     struct quiet_state *state)
{
	uint64_t cpu, ticks[COLUMNS];
	if (!next_number(&at, end, &cpu))
		return -EINVAL;
	if (cpu >= CPUSET_MAX || !cpuset_has(cpus, (int)cpu))
		return 0;
	for (int i = 0; i < COLUMNS; i++)
		if (!next_number(&at, end, &ticks[i]))
			return -EINVAL;
	uint64_t busy = ticks[USER] + ticks[NICE] + ticks[SYSTEM] + ticks[IRQ] + ticks[SOFTIRQ];
	state->busy_ns += busy * QUIET_TICK_NS;
	state->steal_ns += ticks[STEAL] * QUIET_TICK_NS;
	state->cpus++;
	return 0;
}

int quiet_parse_stat(const char *text, const struct cpuset *cpus, struct quiet_state *state)
{
	static const char running[] = "procs_running ";
	size_t len;
	for (const char *line; (line = str_split(&text, '\n', &len));) {
		const char *end = line + len;
		if (len > 3 && memcmp(line, "cpu", 3) == 0 && line[3] != ' ') {
			int r = parse_cpu(line + 3, end, cpus, state);
			if (r < 0)
				return r;
		} else if (len >= sizeof(running) &&
			   memcmp(line, running, sizeof(running) - 1) == 0) {
			const char *at = line + sizeof(running) - 1;
			if (!next_number(&at, end, &state->running))
				return -EINVAL;
		}
	}
	return state->cpus ? 0 : -EINVAL;
}

/* ---- the other files ---- */

static bool cpu_number(int cpu, const char *file, uint64_t *ret_number)
{
	char path[128];
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%d/%s", cpu, file);
	AUTO(buf_done) struct buf text = BUF_INIT;
	if (file_read(path, SYS_MAX, &text, NULL) < 0)
		return false;
	const char *at = buf_str(&text);
	return next_number(&at, at + buf_len(&text), ret_number);
}

static void read_cpu_files(const struct cpuset *cpus, struct quiet_state *state)
{
	cpuset_foreach(cpu, cpus)
	{
		uint64_t number;
		if (cpu_number(cpu, "thermal_throttle/core_throttle_count", &number))
			state->throttled += number;
		if (cpu_number(cpu, "cpufreq/scaling_cur_freq", &number))
			state->khz_min = state->khz_min ? MIN(state->khz_min, number) : number;
	}
}

int quiet_read(const struct cpuset *cpus, struct quiet_state *ret_state, struct err *err)
{
	AUTO(buf_done) struct buf stat = BUF_INIT;
	struct quiet_state state = { .ns = clock_now_ns() };
	int r = file_read("/proc/stat", PROC_MAX, &stat, err);
	if (r < 0)
		return r;
	if (quiet_parse_stat(buf_str(&stat), cpus, &state) < 0)
		return err_set(err, EINVAL, "/proc/stat does not list the CPUs used");
	state.swapped = procfs_vmstat("pswpin") + procfs_vmstat("pswpout");
	read_cpu_files(cpus, &state);
	*ret_state = state;
	return 0;
}

/* ---- judgement ---- */

static uint64_t available_ns(const struct quiet_state *before, const struct quiet_state *after)
{
	return (after->ns - before->ns) * (uint64_t)MAX(after->cpus, 1);
}

static uint64_t foreign_ns(const struct quiet_state *before, const struct quiet_state *after,
			   uint64_t own_ns)
{
	uint64_t busy = after->busy_ns - before->busy_ns;
	return busy > own_ns ? busy - own_ns : 0;
}

double quiet_foreign_share(const struct quiet_state *before, const struct quiet_state *after,
			   uint64_t own_ns)
{
	uint64_t available = available_ns(before, after);
	uint64_t foreign = MIN(foreign_ns(before, after, own_ns), available); /* ticks come late */
	return available ? (double)foreign / (double)available : 0;
}

/* Two ticks may be rounding at both ends, of each CPU. */
static bool beyond(uint64_t ns, double share, uint64_t available, int cpus)
{
	return ns > 2 * QUIET_TICK_NS * (uint64_t)MAX(cpus, 1) &&
	       (double)ns > share * (double)available;
}

unsigned quiet_faults(const struct quiet_state *before, const struct quiet_state *after,
		      uint64_t own_ns)
{
	uint64_t available = available_ns(before, after);
	const bool found[] = {
		[QUIET_LOAD] = beyond(foreign_ns(before, after, own_ns), LOAD_SHARE, available,
				      after->cpus),
		[QUIET_STEAL] = beyond(after->steal_ns - before->steal_ns, STEAL_SHARE, available,
				       after->cpus),
		[QUIET_SWAP] = after->swapped != before->swapped,
		[QUIET_THROTTLE] = after->throttled != before->throttled,
		[QUIET_FREQUENCY] =
			before->khz_min && after->khz_min &&
			(double)after->khz_min < FREQUENCY_DROP * (double)before->khz_min,
	};
	static_assert(ARRAY_LEN(found) == QUIET_FAULT_COUNT, "every fault is looked for");
	unsigned faults = 0;
	for (unsigned i = 0; i < QUIET_FAULT_COUNT; i++)
		faults |= (unsigned)found[i] << i;
	return faults;
}
