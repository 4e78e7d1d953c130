/* How fast the cores and the memory are. */
#include <math.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <sys/mman.h>
#include <time.h>

#include "base/fd.h"
#include "base/mem.h"
#include "core/checks/peers.h"
#include "core/host/cpuset.h"
#include "sys/checks/checks_private.h"
#include "sys/thread.h"

#define REPEATS 3
#define CPU_STEPS 2000000u /* of one repeat; a few milliseconds */
#define CPU_CHAINS 8
#define CPU_SHARE 0.5		       /* the other half may be a busy thread of the same core */
#define TRIAD_BYTES ((size_t)16 << 20) /* of one array of three */
#define FULL_TIMES 8
#define NODES_MAX 64 /* NUMA nodes that are measured */
#define NODE_SHARE 0.5
#define CPU_LIST_MAX 16384

struct core {
	int cpu;
	unsigned steps;
	double gflops; /* NAN: it could not be had */
};

static uint64_t cpu_clock_ns(void)
{
	struct timespec ts;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

/* Multiplies and adds in chains that do not wait for each other. */
static double spin(unsigned steps)
{
	double chain[CPU_CHAINS];
	for (int i = 0; i < CPU_CHAINS; i++)
		chain[i] = i + 1;
	for (unsigned step = 0; step < steps; step++)
		for (int i = 0; i < CPU_CHAINS; i++)
			chain[i] = chain[i] * 0.999999 + 1e-6;
	double sum = 0;
	for (int i = 0; i < CPU_CHAINS; i++)
		sum += chain[i];
	return sum;
}

/* By the CPU time of the thread: what else runs on the core does not count. */
static void *measure_core(void *arg)
{
	struct core *core = arg;
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(core->cpu, &set);
	core->gflops = NAN;
	if (sched_setaffinity(0, sizeof(set), &set) < 0)
		return NULL;
	volatile double sink = 0;
	for (int i = 0; i < REPEATS; i++) {
		uint64_t before_ns = cpu_clock_ns();
		sink = sink + spin(core->steps);
		uint64_t ns = cpu_clock_ns() - before_ns;
		double gflops = ns ? 2.0 * CPU_CHAINS * core->steps / (double)ns : NAN;
		core->gflops = fmax(core->gflops, gflops);
	}
	return NULL;
}

static void measure_cores(struct core *cores, size_t count)
{
	AUTO_FREE pthread_t *threads = NEW_ARRAY(pthread_t, count + 1);
	size_t started = 0;
	while (started < count &&
	       thread_start(&threads[started], measure_core, &cores[started]) == 0)
		started++;
	for (size_t i = 0; i < started; i++)
		pthread_join(threads[i], NULL);
	for (size_t i = started; i < count; i++)
		cores[i].gflops = NAN;
}

void check_cpu(const struct check_place *place, struct check_result *result)
{
	cpu_set_t allowed;
	if (sched_getaffinity(0, sizeof(allowed), &allowed) < 0) {
		check_find(result, CHECK_UNKNOWN, "", "its CPUs cannot be listed");
		return;
	}
	size_t count = 0;
	struct core cores[CPU_SETSIZE];
	double speeds[CPU_SETSIZE];
	bool bad[CPU_SETSIZE];
	for (int cpu = 0; cpu < CPU_SETSIZE; cpu++)
		if (CPU_ISSET(cpu, &allowed))
			cores[count++] = (struct core){
				.cpu = cpu, .steps = CPU_STEPS * (place->full ? FULL_TIMES : 1)
			};
	measure_cores(cores, count);
	for (size_t i = 0; i < count; i++)
		speeds[i] = cores[i].gflops;
	struct peers_rule rule = { .share = CPU_SHARE };
	struct peers_verdict verdict = peers_judge(speeds, count, &rule, bad);
	for (size_t i = 0; i < count; i++)
		if (bad[i])
			check_find(result, CHECK_WARNING,
				   "look at its clock frequency and temperature, and at what else "
				   "runs there; leave it out with taskset",
				   "CPU %d: %.2f GFLOP/s, median of all %.2f", cores[i].cpu,
				   speeds[i], verdict.median);
	check_say(result, "%zu CPUs, %.2f GFLOP/s each", count, verdict.median);
	check_measure(result, "cpus", (double)count, "");
	check_measure(result, "cpu_speed", verdict.median, "GFLOP/s");
}

/* ---- memory ---- */

/* Memory of its own each time: the kernel takes it from the NUMA node of the core that first
 * writes it. NAN: there is none. */
static double triad(size_t count, struct check_result *result)
{
	size_t size = 3 * count * sizeof(double);
	double *a = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	double *b = a + count, *c = b + count, best = NAN;
	if (a == MAP_FAILED)
		return NAN;
	for (size_t i = 0; i < count; i++)
		a[i] = 0, b[i] = (double)i, c[i] = 2;
	for (int repeat = 0; repeat < REPEATS; repeat++) {
		uint64_t before_ns = cpu_clock_ns();
		for (size_t i = 0; i < count; i++)
			a[i] = b[i] + 3.0 * c[i];
		uint64_t ns = cpu_clock_ns() - before_ns;
		if (ns)
			best = fmax(best, 3.0 * sizeof(double) * (double)count / (double)ns);
		if (a[count - 1] != (double)(count - 1) + 6.0)
			check_find(result, CHECK_BAD,
				   "test its memory; do not run workers on this host",
				   "memory does not keep what was written");
	}
	munmap(a, size);
	return best;
}

/* A CPU of the NUMA node that this process may use; -1: there is none. */
static int cpu_of_node(int node, const cpu_set_t *allowed)
{
	char path[64];
	struct cpuset cpus;
	AUTO(buf_done) struct buf text = BUF_INIT;
	snprintf(path, sizeof(path), "/sys/devices/system/node/node%d/cpulist", node);
	if (file_read(path, CPU_LIST_MAX, &text, NULL) < 0 ||
	    cpuset_parse(buf_str(&text), &cpus, NULL) < 0)
		return -1;
	cpuset_foreach(cpu, &cpus) if (cpu < CPU_SETSIZE && CPU_ISSET(cpu, allowed)) return cpu;
	return -1;
}

static bool move_to(int cpu)
{
	cpu_set_t set;
	CPU_ZERO(&set);
	CPU_SET(cpu, &set);
	return sched_setaffinity(0, sizeof(set), &set) == 0;
}

void check_bandwidth(const struct check_place *place, struct check_result *result)
{
	size_t size = TRIAD_BYTES / sizeof(double) * (place->full ? FULL_TIMES : 1), count = 0;
	double found[NODES_MAX], worst = NAN, best = NAN;
	int nodes[NODES_MAX];
	cpu_set_t allowed;
	CPU_ZERO(&allowed);
	sched_getaffinity(0, sizeof(allowed), &allowed);
	for (int node = 0; node < NODES_MAX; node++) {
		int cpu = cpu_of_node(node, &allowed);
		if (cpu < 0 || !move_to(cpu))
			continue;
		nodes[count] = node;
		found[count++] = triad(size, result);
	}
	if (count == 0) {
		nodes[0] = 0;
		found[count++] = triad(size, result);
	}
	for (size_t i = 0; i < count; i++) {
		worst = fmin(worst, found[i]);
		best = fmax(best, found[i]);
	}
	if (isnan(worst)) {
		check_find(result, CHECK_UNKNOWN, "", "there is no memory to measure with");
		return;
	}
	for (size_t i = 0; i < count; i++)
		if (found[i] < best * NODE_SHARE)
			check_find(result, CHECK_WARNING,
				   "look at its memory modules, and at what else uses them",
				   "NUMA node %d: %.1f GB/s, the best has %.1f", nodes[i], found[i],
				   best);
	check_say(result, "%zu NUMA node%s, %.1f GB/s from one core%s", count,
		  count == 1 ? "" : "s", worst, count == 1 ? "" : " of the slowest");
	check_measure(result, "memory_bandwidth", worst, "GB/s");
	check_measure(result, "numa_nodes", (double)count, "");
}
