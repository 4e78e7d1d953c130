#include "core/host/topology.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

void topology_done(struct topology *topology)
{
	free(topology->cpus);
	*topology = TOPOLOGY_INIT;
}

void topology_flat(const struct cpuset *cpus, struct topology *ret_topology)
{
	struct topology topology = TOPOLOGY_INIT;
	size_t total = (size_t)cpuset_count(cpus);
	topology.cpus = NEW_ARRAY(struct topo_cpu, total ? total : 1);
	cpuset_foreach(id, cpus)
	{
		topology.cpus[topology.count] =
			(struct topo_cpu){ .id = id, .core = (int)topology.count, .allowed = true };
		topology.count++;
	}
	*ret_topology = topology;
}

void topology_allow(struct topology *topology, const struct cpuset *allowed)
{
	for (size_t i = 0; i < topology->count; i++)
		topology->cpus[i].allowed = cpuset_has(allowed, topology->cpus[i].id);
}

struct cpuset topology_allowed(const struct topology *topology)
{
	struct cpuset set = CPUSET_INIT;
	for (size_t i = 0; i < topology->count; i++)
		if (topology->cpus[i].allowed)
			cpuset_add(&set, topology->cpus[i].id);
	return set;
}

const struct topo_cpu *topology_find(const struct topology *topology, int id)
{
	for (size_t i = 0; i < topology->count; i++)
		if (topology->cpus[i].id == id)
			return &topology->cpus[i];
	return NULL;
}

int topology_allowed_cores(const struct topology *topology)
{
	int cores = 0, last = -1;
	for (size_t i = 0; i < topology->count; i++) {
		const struct topo_cpu *cpu = &topology->cpus[i];
		if (cpu->allowed && cpu->core != last) {
			cores++;
			last = cpu->core;
		}
	}
	return cores;
}

void topology_add_twins(const struct topology *topology, struct cpuset *set)
{
	/* Twins are neighbours in the array. */
	for (size_t first = 0, end; first < topology->count; first = end) {
		bool used = false;
		for (end = first; end < topology->count &&
				  topology->cpus[end].core == topology->cpus[first].core;
		     end++)
			used = used || cpuset_has(set, topology->cpus[end].id);
		for (size_t i = first; used && i < end; i++)
			cpuset_add(set, topology->cpus[i].id);
	}
}
