/* The CPUs of a host as plain data: which share a core, a last-level cache, a NUMA node, a package,
 * and which of them we may use. sys/topology reads the real one; tests make synthetic ones.
 *
 * CPUs are in topological order (package, node, L3, core, thread), not in the order of their
 * numbers, so neighbours in the array are neighbours in the machine. */
#ifndef CORE_HOST_TOPOLOGY_H
#define CORE_HOST_TOPOLOGY_H

#include "core/host/cpuset.h"

struct topo_cpu {
	int id;	      /* the kernel's number */
	int core;     /* physical core, 0, 1, … over the whole host; SMT twins have the same */
	int thread;   /* place among the twins of its core: 0 is the first */
	int l3;	      /* group that shares the last-level cache, 0, 1, … over the whole host */
	int node;     /* NUMA node, the kernel's number */
	int package;  /* socket, 0, 1, … */
	bool allowed; /* in our affinity mask, and so in our cpuset */
};

struct topology {
	struct topo_cpu *cpus;
	size_t count;
	/* CPU quota of the cgroups we are in, in thousandths of a CPU; 0: none. */
	uint64_t quota_milli;
};

#define TOPOLOGY_INIT ((struct topology){ .cpus = NULL })

void topology_done(struct topology *topology);

/* CPUs of which only the numbers are known: each its own core, one cache, one node. */
void topology_flat(const struct cpuset *cpus, struct topology *ret_topology);

/* Marks as allowed exactly the CPUs of `allowed` that exist. */
void topology_allow(struct topology *topology, const struct cpuset *allowed);

/* The CPUs allowed. */
struct cpuset topology_allowed(const struct topology *topology);

/* The CPU with the kernel's number `id`, or NULL. */
const struct topo_cpu *topology_find(const struct topology *topology, int id);

/* How many physical cores have an allowed CPU. */
int topology_allowed_cores(const struct topology *topology);

/* Adds the SMT twins of the members, allowed or not. */
void topology_add_twins(const struct topology *topology, struct cpuset *set);

#endif
