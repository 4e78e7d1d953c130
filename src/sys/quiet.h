/* Was the host quiet during a measurement? What else ran on the cores used, whether the hypervisor
 * took time away, whether the host swapped, throttled or changed its clock. All of it comes from
 * counters of the kernel, read before and after and subtracted, so that "during" costs nothing.
 *
 * What cannot be read (no such file in a virtual machine) is unknown, not suspicious. */
#ifndef SYS_QUIET_H
#define SYS_QUIET_H

#include "base/err.h"
#include "core/host/cpuset.h"

/* Counters at one moment, summed over the given CPUs. */
struct quiet_state {
	uint64_t ns;
	uint64_t busy_ns;  /* not idle: user, system, interrupts */
	uint64_t steal_ns; /* wanted to run while the hypervisor ran others */
	uint64_t running;  /* processes on a CPU, or waiting for one, on the whole host, now */
	uint64_t swapped;  /* pages swapped in and out, whole host */
	uint64_t throttled;
	uint64_t khz_min; /* lowest clock of the CPUs; 0 not known */
	int cpus;
};

int quiet_read(const struct cpuset *cpus, struct quiet_state *ret_state, struct err *err);

enum quiet_fault {
	QUIET_LOAD, /* something else used the CPUs */
	QUIET_STEAL,
	QUIET_SWAP,
	QUIET_THROTTLE,
	QUIET_FREQUENCY, /* the clock fell */
	QUIET_FAULT_COUNT,
};

/* "load", "steal", "swap", "throttle", "frequency": as in the result file. */
const char *quiet_fault_name(enum quiet_fault fault);

/* What was not quiet between two states, one bit (1 << fault) each. `own_ns` is the CPU time of the
 * measured program. The kernel counts in ticks of 10 ms: less than two of them is ignored. */
#define QUIET_TICK_NS 10000000ull
unsigned quiet_faults(const struct quiet_state *before, const struct quiet_state *after,
		      uint64_t own_ns);

/* The CPUs' share of time not spent on `own_ns`, 0 to 1, between two states. */
double quiet_foreign_share(const struct quiet_state *before, const struct quiet_state *after,
			   uint64_t own_ns);

/* The text of /proc/stat; for the tests. 0 or -EINVAL. */
int quiet_parse_stat(const char *text, const struct cpuset *cpus, struct quiet_state *state);

#endif
