/* Which CPUs each worker of this host gets, from the topology and the options. Pure.
 *
 * A worker only gets CPUs that we may use (affinity mask, cpuset). There are two families:
 *
 * `--numa-binding`, with torchrun's meaning: a worker goes where its device is. Without devices
 * rank r counts as a device on node ⌊r · nodes / nproc⌋ of those with an allowed CPU. `--bind`,
 * which needs no devices: `core` divides the cores among the workers; `l3`, `numa` and `socket`
 * give worker r the ⌊r · groups / nproc⌋-th cache, node or package; `explicit` lists the CPUs. */
#ifndef CORE_HOST_BINDING_H
#define CORE_HOST_BINDING_H

#include "core/host/topology.h"

enum binding_mode {
	BINDING_NONE,
	BINDING_DEVICE_NODE,	     /* the CPUs of the device's NUMA node */
	BINDING_DEVICE_SOCKET,	     /* of all nodes in the package of that node */
	BINDING_DEVICE_EXCLUSIVE,    /* its share of the cores of that node */
	BINDING_DEVICE_CORE_COMPLEX, /* one last-level cache of that node */
	BINDING_CORE,
	BINDING_L3,
	BINDING_NUMA,
	BINDING_SOCKET,
	BINDING_EXPLICIT,
	BINDING_MODE_COUNT,
};

struct binding_request {
	enum binding_mode mode;
	const char *explicit_lists; /* "0-3:4-7": one CPU list a worker */
	const int *device_nodes;    /* by local rank; NULL: there are no devices */
};

struct binding {
	struct cpuset cpus;
	/* prefer memory from this node; -1: CPUs of several nodes, or the host has only one */
	int mem_node;
	uint64_t mem_nodes; /* the same as a mask for the kernel; 0: none */
	int threads;	    /* threads that this worker can run without disturbing another */
};

/* "none", "core", "l3", "numa", "socket" or "explicit:LISTS" into the request; -EINVAL. */
int binding_parse(const char *text, struct binding_request *ret_request, struct err *err);

/* Fills ret_plan[nproc]. -EINVAL says what does not fit and what to try. */
int binding_plan(const struct topology *topology, const struct binding_request *request,
		 uint32_t nproc, struct binding *ret_plan, struct err *err);

/* Draws the host with the CPUs of `binding` marked: "[B./..|../..] [../..|../..]". Brackets enclose
 * a package, "|" separates caches, "/" cores; "B" is bound, "." is not, "-" may not be used. */
void binding_draw(const struct topology *topology, const struct binding *binding, struct buf *out);

#endif
