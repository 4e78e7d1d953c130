#include "run/placement.h"

#include <errno.h>
#include <linux/mempolicy.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/env.h"
#include "base/log.h"
#include "base/mem.h"
#include "run/options.h"
#include "sys/hwloc_topology.h"

static_assert(BINDING_DEVICE_CORE_COMPLEX - BINDING_DEVICE_NODE == 3,
	      "in the order of the option's choices");

static int make_request(const struct run_options *options, struct binding_request *ret_request,
			struct err *err)
{
	*ret_request = (struct binding_request){ .mode = BINDING_NONE };
	if (options->numa_binding >= 0 && options->bind)
		return err_set(err, EINVAL, "--numa-binding and --bind exclude each other");
	if (options->bind)
		return binding_parse(options->bind, ret_request, err);
	if (options->numa_binding >= 0)
		ret_request->mode =
			(enum binding_mode)(BINDING_DEVICE_NODE + options->numa_binding);
	return 0;
}

/* The nodes of the workers' devices by local rank, in turn if there are fewer devices; NULL:
 * none. */
static int *device_nodes(uint32_t nproc)
{
	struct devices devices;
	struct err err = ERR_INIT;
	if (devices_find(DEVICE_GPU, &devices, &err) < 0) {
		log_warn("binding as if there were no devices: %s", err.msg);
		return NULL;
	}
	if (devices.count == 0)
		return NULL;
	int *nodes = NEW_ARRAY(int, nproc);
	for (uint32_t r = 0; r < nproc; r++)
		nodes[r] = devices.nodes[r % devices.count];
	return nodes;
}

/* Containers often forbid it; then memory comes from the CPUs' node anyway, which is the kernel's
 * default. To find out, we set the policy that we already have. */
static bool may_set_memory_policy(void)
{
	int mode = MPOL_DEFAULT;
	unsigned long nodes[16] = { 0 };
	unsigned long bits = sizeof(nodes) * 8;
	return syscall(SYS_get_mempolicy, &mode, nodes, bits, NULL, 0) == 0 &&
	       syscall(SYS_set_mempolicy, mode, mode == MPOL_DEFAULT ? NULL : nodes, bits) == 0;
}

int run_placement_make(const struct run_options *options, uint32_t nproc,
		       struct run_placement *ret_placement, struct err *err)
{
	struct binding_request request;
	int r = make_request(options, &request, err);
	if (r < 0 || request.mode == BINDING_NONE)
		return r;

	AUTO(run_placement_done) struct run_placement placement = { .nproc = nproc };
	const char *flat_reason = NULL;
	r = topology_read(&placement.topology, &flat_reason, err);
	if (r < 0)
		return r;
	if (flat_reason)
		log_warn("binding without knowing the host's caches and nodes: %s", flat_reason);

	AUTO_FREE int *nodes =
		request.mode <= BINDING_DEVICE_CORE_COMPLEX ? device_nodes(nproc) : NULL;
	request.device_nodes = nodes;
	placement.plan = NEW_ARRAY(struct binding, nproc);
	r = binding_plan(&placement.topology, &request, nproc, placement.plan, err);
	if (r < 0)
		return r;
	placement.memory = may_set_memory_policy();
	*ret_placement = placement;
	placement = RUN_PLACEMENT_INIT;
	return 0;
}

void run_placement_done(struct run_placement *placement)
{
	free(placement->plan);
	topology_done(&placement->topology);
	*placement = RUN_PLACEMENT_INIT;
}

static_assert(sizeof(unsigned long) == sizeof(uint64_t), "masks are the kernel's as they are");

/* The smallest mask that holds the set: the kernel takes any size, and messages to the warden stay
 * small. */
static size_t mask_size(const struct cpuset *cpus)
{
	size_t words = CPUSET_WORDS;
	while (words > 1 && cpus->words[words - 1] == 0)
		words--;
	return words * sizeof(cpus->words[0]);
}

void run_placement_spawn(const struct run_placement *placement, uint32_t local_rank,
			 struct spawn_spec *spec)
{
	if (!placement->plan)
		return;
	const struct binding *binding = &placement->plan[local_rank];
	spec->cpus = (const cpu_set_t *)&binding->cpus;
	spec->cpus_size = mask_size(&binding->cpus);
	if (!placement->memory || binding->mem_nodes == 0)
		return;
	spec->mem_mode = MPOL_PREFERRED;
	spec->mem_nodes = (const unsigned long *)&binding->mem_nodes;
	spec->mem_nodes_size = sizeof(binding->mem_nodes);
}

static bool is_set(char *const *environment, const char *name)
{
	size_t len = strlen(name);
	for (; *environment; environment++)
		if (strncmp(*environment, name, len) == 0 && (*environment)[len] == '=')
			return true;
	return false;
}

void run_placement_env(const struct run_placement *placement, char *const *inherited,
		       uint32_t local_rank, struct strv *env)
{
	if (placement->plan && !is_set(inherited, "OMP_NUM_THREADS"))
		env_setf(env, "OMP_NUM_THREADS", "%d", placement->plan[local_rank].threads);
}

void run_placement_draw(const struct run_placement *placement, struct buf *out)
{
	if (!placement->plan)
		buf_append_str(out, "no worker is bound\n");
	for (uint32_t r = 0; placement->plan && r < placement->nproc; r++) {
		const struct binding *binding = &placement->plan[r];
		buf_printf(out, "local rank %u  ", r);
		binding_draw(&placement->topology, binding, out);
		buf_append_str(out, "  CPUs ");
		cpuset_format(&binding->cpus, out);
		if (binding->mem_node >= 0)
			buf_printf(out, ", node %d", binding->mem_node);
		buf_printf(out, ", %d thread%s\n", binding->threads,
			   binding->threads == 1 ? "" : "s");
	}
}
