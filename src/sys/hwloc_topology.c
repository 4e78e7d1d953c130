#include "sys/hwloc_topology.h"

#include <dlfcn.h>
#include <errno.h>
#include <hwloc.h>
#include <sched.h>
#include <stdlib.h>

#include "base/mem.h"

/* All hwloc 2.x releases have this one name. */
#define HWLOC_LIBRARY "libhwloc.so.15"

/* The functions that we use. Their types come from the header, so a mismatch does not compile. */
static struct {
	typeof(&hwloc_topology_init) init;
	typeof(&hwloc_topology_destroy) destroy;
	typeof(&hwloc_topology_set_flags) set_flags;
	typeof(&hwloc_topology_set_synthetic) set_synthetic;
	typeof(&hwloc_topology_load) load;
	typeof(&hwloc_get_type_depth) get_type_depth;
	typeof(&hwloc_get_nbobjs_by_depth) get_nbobjs_by_depth;
	typeof(&hwloc_get_obj_by_depth) get_obj_by_depth;
	typeof(&hwloc_bitmap_first) bitmap_first;
} hw;

static int load_library(struct err *err)
{
	static const struct {
		const char *name;
		void **address;
	} symbols[] = {
		{ "hwloc_topology_init", (void **)&hw.init },
		{ "hwloc_topology_destroy", (void **)&hw.destroy },
		{ "hwloc_topology_set_flags", (void **)&hw.set_flags },
		{ "hwloc_topology_set_synthetic", (void **)&hw.set_synthetic },
		{ "hwloc_topology_load", (void **)&hw.load },
		{ "hwloc_get_type_depth", (void **)&hw.get_type_depth },
		{ "hwloc_get_nbobjs_by_depth", (void **)&hw.get_nbobjs_by_depth },
		{ "hwloc_get_obj_by_depth", (void **)&hw.get_obj_by_depth },
		{ "hwloc_bitmap_first", (void **)&hw.bitmap_first },
	};
	if (hw.bitmap_first)
		return 0;
	void *library = dlopen(HWLOC_LIBRARY, RTLD_NOW | RTLD_LOCAL);
	if (!library)
		return err_set(err, ENOENT, "%s", dlerror());
	for (size_t i = 0; i < ARRAY_LEN(symbols); i++) {
		*symbols[i].address = dlsym(library, symbols[i].name);
		if (!*symbols[i].address)
			return err_set(err, ENOENT, HWLOC_LIBRARY ": no %s", symbols[i].name);
	}
	return 0;
}

static hwloc_obj_t ancestor_of(hwloc_obj_t obj, hwloc_obj_type_t type)
{
	for (; obj; obj = obj->parent)
		if (obj->type == type)
			return obj;
	return NULL;
}

/* The L3 cache above a CPU; without one, the package. */
static int cache_group(hwloc_obj_t pu)
{
	hwloc_obj_t cache = ancestor_of(pu, HWLOC_OBJ_L3CACHE);
	hwloc_obj_t package = ancestor_of(pu, HWLOC_OBJ_PACKAGE);
	if (cache)
		return (int)cache->logical_index;
	return package ? (int)package->logical_index : 0;
}

static int package_of(hwloc_obj_t pu)
{
	hwloc_obj_t package = ancestor_of(pu, HWLOC_OBJ_PACKAGE);
	return package ? (int)package->logical_index : 0;
}

/* NUMA nodes are outside the tree: the node set names those local to the CPU. */
static int node_of(hwloc_obj_t pu)
{
	int node = hw.bitmap_first(pu->nodeset);
	return MAX(node, 0);
}

static int convert(hwloc_topology_t source, struct topology *ret_topology, struct err *err)
{
	int depth = hw.get_type_depth(source, HWLOC_OBJ_PU);
	unsigned count = hw.get_nbobjs_by_depth(source, depth);
	struct topology topology = { .cpus = NEW_ARRAY(struct topo_cpu, count ? count : 1) };
	int core = -1, thread = 0;
	hwloc_obj_t last = NULL;

	for (unsigned i = 0; i < count; i++) {
		hwloc_obj_t pu = hw.get_obj_by_depth(source, depth, i);
		hwloc_obj_t parent = ancestor_of(pu, HWLOC_OBJ_CORE);
		if (pu->os_index >= CPUSET_MAX) {
			topology_done(&topology);
			return err_set(err, ERANGE, "CPU %u: more than %d are not supported",
				       pu->os_index, CPUSET_MAX);
		}
		bool twin = parent && parent == last;
		thread = twin ? thread + 1 : 0;
		core += !twin;
		last = parent;
		topology.cpus[topology.count++] = (struct topo_cpu){
			.id = (int)pu->os_index,
			.core = core,
			.thread = thread,
			.l3 = cache_group(pu),
			.node = node_of(pu),
			.package = package_of(pu),
			.allowed = true,
		};
	}
	*ret_topology = topology;
	return 0;
}

static int ask_hwloc(const char *description, struct topology *ret_topology, struct err *err)
{
	hwloc_topology_t source;
	if (hw.init(&source) < 0)
		return err_set(err, errno, "hwloc: %m");
	int r = 0;
	if (description && hw.set_synthetic(source, description) < 0)
		r = err_set(err, EINVAL, "hwloc does not understand '%s'", description);
	/* A CPU that we may not use may be the twin of one that we may. */
	else if (hw.set_flags(source, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED) < 0)
		r = err_set(err, errno, "hwloc: %m");
	else if (hw.load(source) < 0)
		r = err_set(err, errno, "hwloc: cannot read the topology: %m");
	else
		r = convert(source, ret_topology, err);
	hw.destroy(source);
	return r;
}

/* What hwloc reads, unless the user has set it. Workers do not get these variables. */
static const struct {
	const char *name, *value;
} settings[] = {
	/* It would tell stderr what it misses, such as /sys in a chroot; ret_flat_reason is our way
	 * to say so. */
	{ "HWLOC_HIDE_ERRORS", "2" },
	/* A place without plugins: they find devices, of which we ask none, and loading them (X11,
	 * OpenCL, libxml2 with 30 MB of Unicode) takes longer than all the rest. */
	{ "HWLOC_PLUGINS_PATH", "/dev/null" },
};

int topology_read_hwloc(const char *description, struct topology *ret_topology, struct err *err)
{
	bool ours[ARRAY_LEN(settings)];
	int r = load_library(err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_LEN(settings); i++) {
		ours[i] = !getenv(settings[i].name);
		if (ours[i])
			setenv(settings[i].name, settings[i].value, 1);
	}
	r = ask_hwloc(description, ret_topology, err);
	for (size_t i = 0; i < ARRAY_LEN(settings); i++)
		if (ours[i])
			unsetenv(settings[i].name);
	return r;
}

int topology_affinity(struct cpuset *ret_set, struct err *err)
{
	cpu_set_t *mask = CPU_ALLOC(CPUSET_MAX);
	if (!mask)
		return err_set(err, ENOMEM, "affinity mask: %m");
	size_t size = CPU_ALLOC_SIZE(CPUSET_MAX);
	int r = 0;
	if (sched_getaffinity(0, size, mask) < 0) {
		r = err_set(err, errno, "sched_getaffinity: %m");
	} else {
		*ret_set = CPUSET_INIT;
		for (int cpu = 0; cpu < CPUSET_MAX; cpu++)
			if (CPU_ISSET_S(cpu, size, mask))
				cpuset_add(ret_set, cpu);
	}
	CPU_FREE(mask);
	return r;
}

int topology_read(struct topology *ret_topology, const char **ret_flat_reason, struct err *err)
{
	static struct err why;
	struct topology topology = TOPOLOGY_INIT;
	struct cpuset affinity;
	int r = topology_affinity(&affinity, err);
	if (r < 0)
		return r;

	why = ERR_INIT;
	if (topology_read_hwloc(NULL, &topology, &why) < 0)
		topology_flat(&affinity, &topology);
	else
		topology_allow(&topology, &affinity);
	topology.quota_milli = topology_quota_milli("");
	*ret_topology = topology;
	*ret_flat_reason = why.code ? why.msg : NULL;
	return 0;
}
