/* Reads the host's topology into the plain `struct topology` of core/host/topology.h.
 *
 * The first call that needs hwloc loads it (dlopen): a job that pins nothing does not pay for
 * it. */
#ifndef SYS_HWLOC_TOPOLOGY_H
#define SYS_HWLOC_TOPOLOGY_H

#include "core/host/topology.h"

/* This host, with our affinity mask and CPU quota. Without hwloc, or when it fails, the CPUs of the
 * affinity mask come back as a flat topology and *ret_flat_reason says why (NULL: it is real). */
int topology_read(struct topology *ret_topology, const char **ret_flat_reason, struct err *err);

/* What hwloc says, all CPUs allowed, no quota: of this host, or of the machine that `description`
 * has hwloc imagine ("package:2 l3:4 core:4 pu:2"), if it is not NULL. */
int topology_read_hwloc(const char *description, struct topology *ret_topology, struct err *err);

/* Our affinity mask (which the kernel keeps within the cpuset). */
int topology_affinity(struct cpuset *ret_set, struct err *err);

/* The smallest CPU quota of our cgroup (v1 or v2) and its ancestors in thousandths of a CPU, 0 for
 * none. `root` is put in front of /proc and /sys: "" for the real ones. */
uint64_t topology_quota_milli(const char *root);

#endif
