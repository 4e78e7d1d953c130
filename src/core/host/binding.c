#include "core/host/binding.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

/* One core, cache, node or package, and those of its CPUs that are allowed. */
struct part {
	int key;
	struct cpuset cpus;
};

struct parts {
	struct part *items;
	size_t count;
	size_t cap;
};

typedef int key_fn(const struct topo_cpu *cpu);

static int key_core(const struct topo_cpu *cpu)
{
	return cpu->core;
}
static int key_l3(const struct topo_cpu *cpu)
{
	return cpu->l3;
}
static int key_node(const struct topo_cpu *cpu)
{
	return cpu->node;
}
static int key_package(const struct topo_cpu *cpu)
{
	return cpu->package;
}

static void parts_done(struct parts *parts)
{
	free(parts->items);
}

static struct part *find_part(struct parts *parts, int key)
{
	for (size_t i = 0; i < parts->count; i++)
		if (parts->items[i].key == key)
			return &parts->items[i];
	return NULL;
}

/* The allowed CPUs, of one NUMA node (-1: of all), by `key`. In the topology's order. */
static void collect(const struct topology *topology, int node, key_fn *key, struct parts *ret_parts)
{
	for (size_t i = 0; i < topology->count; i++) {
		const struct topo_cpu *cpu = &topology->cpus[i];
		if (!cpu->allowed || (node >= 0 && cpu->node != node))
			continue;
		struct part *part = find_part(ret_parts, key(cpu));
		if (!part) {
			ARRAY_RESERVE(ret_parts->items, ret_parts->count, ret_parts->cap);
			part = &ret_parts->items[ret_parts->count++];
			*part = (struct part){ .key = key(cpu) };
		}
		cpuset_add(&part->cpus, cpu->id);
	}
}

static int by_first_cpu(const void *a, const void *b)
{
	const struct part *x = a, *y = b;
	return cpuset_next(&x->cpus, 0) - cpuset_next(&y->cpus, 0);
}

static int by_size_then_first_cpu(const void *a, const void *b)
{
	const struct part *x = a, *y = b;
	int order = cpuset_count(&y->cpus) - cpuset_count(&x->cpus);
	return order ? order : by_first_cpu(a, b);
}

static int by_key(const void *a, const void *b)
{
	return ((const struct part *)a)->key - ((const struct part *)b)->key;
}

static void sort(struct parts *parts, int (*order)(const void *, const void *))
{
	if (parts->count > 1)
		qsort(parts->items, parts->count, sizeof(*parts->items), order);
}

/* Share number `index` of `shares` of the parts: each gets as many, the first ones one more if need
 * be. */
static void take_share(const struct parts *parts, size_t index, size_t shares,
		       struct cpuset *ret_cpus)
{
	size_t each = parts->count / shares, more = parts->count % shares;
	size_t first = index * each + MIN(index, more);
	size_t count = each + (index < more);
	for (size_t i = first; i < first + count; i++)
		cpuset_union(ret_cpus, &parts->items[i].cpus);
}

/* Finds the node of each worker's device; nodes_of[nproc]. */
static void locate(const struct topology *topology, const struct binding_request *request,
		   uint32_t nproc, int *nodes_of)
{
	AUTO(parts_done) struct parts nodes = { 0 };
	collect(topology, -1, key_node, &nodes);
	sort(&nodes, by_key);
	for (uint32_t r = 0; r < nproc; r++)
		nodes_of[r] = request->device_nodes
				      ? MAX(request->device_nodes[r], 0)
				      : nodes.items[(uint64_t)r * nodes.count / nproc].key;
}

static int no_cpu(int node, uint32_t rank, struct err *err)
{
	return err_set(err, EINVAL,
		       "local rank %u has its device on NUMA node %d, of which no CPU may be used; "
		       "try --bind",
		       rank, node);
}

static int bind_device_node(const struct topology *topology, int node, struct cpuset *ret_cpus)
{
	AUTO(parts_done) struct parts nodes = { 0 };
	collect(topology, node, key_node, &nodes);
	if (nodes.count == 0)
		return -ENOENT;
	*ret_cpus = nodes.items[0].cpus;
	return 0;
}

/* The package of a node is that of its lowest CPU. Nodes without an allowed CPU (memory only, or
 * outside the cpuset) have none. */
static int package_of(const struct topology *topology, const struct part *node)
{
	return topology_find(topology, cpuset_next(&node->cpus, 0))->package;
}

static int bind_device_socket(const struct topology *topology, int node, struct cpuset *ret_cpus)
{
	AUTO(parts_done) struct parts nodes = { 0 };
	collect(topology, -1, key_node, &nodes);
	const struct part *own = find_part(&nodes, node);
	if (!own)
		return -ENOENT;
	for (size_t i = 0; i < nodes.count; i++)
		if (package_of(topology, &nodes.items[i]) == package_of(topology, own))
			cpuset_union(ret_cpus, &nodes.items[i].cpus);
	return 0;
}

/* How many workers before `rank`, and in all, have their device on the same node. */
static void count_neighbours(const int *nodes_of, uint32_t nproc, uint32_t rank, size_t *ret_index,
			     size_t *ret_count)
{
	*ret_index = *ret_count = 0;
	for (uint32_t r = 0; r < nproc; r++) {
		*ret_index += r < rank && nodes_of[r] == nodes_of[rank];
		*ret_count += nodes_of[r] == nodes_of[rank];
	}
}

static int bind_device_exclusive(const struct topology *topology, const int *nodes_of,
				 uint32_t nproc, uint32_t rank, struct cpuset *ret_cpus,
				 struct err *err)
{
	AUTO(parts_done) struct parts cores = { 0 };
	size_t index, sharers;
	collect(topology, nodes_of[rank], key_core, &cores);
	sort(&cores, by_first_cpu);
	count_neighbours(nodes_of, nproc, rank, &index, &sharers);
	if (cores.count == 0)
		return -ENOENT;
	if (cores.count < sharers)
		return err_set(err, EINVAL,
			       "NUMA node %d has %zu cores for %zu workers; start fewer, or share "
			       "with --numa-binding=node",
			       nodes_of[rank], cores.count, sharers);
	take_share(&cores, index, sharers, ret_cpus);
	return 0;
}

static int bind_device_complex(const struct topology *topology, const int *nodes_of, uint32_t nproc,
			       uint32_t rank, struct cpuset *ret_cpus)
{
	AUTO(parts_done) struct parts caches = { 0 };
	size_t index, sharers;
	collect(topology, nodes_of[rank], key_l3, &caches);
	sort(&caches, by_size_then_first_cpu);
	count_neighbours(nodes_of, nproc, rank, &index, &sharers);
	if (caches.count == 0)
		return -ENOENT;
	*ret_cpus = caches.items[index % caches.count].cpus;
	return 0;
}

static int bind_to_device(const struct topology *topology, enum binding_mode mode,
			  const int *nodes_of, uint32_t nproc, uint32_t rank,
			  struct cpuset *ret_cpus, struct err *err)
{
	switch (mode) {
	case BINDING_DEVICE_NODE:
		return bind_device_node(topology, nodes_of[rank], ret_cpus);
	case BINDING_DEVICE_SOCKET:
		return bind_device_socket(topology, nodes_of[rank], ret_cpus);
	case BINDING_DEVICE_EXCLUSIVE:
		return bind_device_exclusive(topology, nodes_of, nproc, rank, ret_cpus, err);
	default:
		return bind_device_complex(topology, nodes_of, nproc, rank, ret_cpus);
	}
}

static int bind_to_devices(const struct topology *topology, const struct binding_request *request,
			   uint32_t nproc, struct binding *plan, struct err *err)
{
	AUTO_FREE int *nodes_of = NEW_ARRAY(int, nproc);
	locate(topology, request, nproc, nodes_of);
	for (uint32_t r = 0; r < nproc; r++) {
		int result = bind_to_device(topology, request->mode, nodes_of, nproc, r,
					    &plan[r].cpus, err);
		if (result < 0)
			return result == -ENOENT ? no_cpu(nodes_of[r], r, err) : result;
	}
	return 0;
}

static int bind_to_cores(const struct topology *topology, uint32_t nproc, struct binding *plan,
			 struct err *err)
{
	AUTO(parts_done) struct parts cores = { 0 };
	collect(topology, -1, key_core, &cores);
	if (cores.count < nproc)
		return err_set(err, EINVAL,
			       "--bind=core: %zu cores for %u workers; start fewer, or share with "
			       "--bind=numa",
			       cores.count, nproc);
	for (uint32_t r = 0; r < nproc; r++)
		take_share(&cores, r, nproc, &plan[r].cpus);
	return 0;
}

static void bind_to_groups(const struct topology *topology, key_fn *key, uint32_t nproc,
			   struct binding *plan)
{
	AUTO(parts_done) struct parts groups = { 0 };
	collect(topology, -1, key, &groups);
	for (uint32_t r = 0; r < nproc; r++)
		plan[r].cpus = groups.items[(uint64_t)r * groups.count / nproc].cpus;
}

static int bind_to_list(const struct topology *topology, const char *list, uint32_t rank,
			struct cpuset *ret_cpus, struct err *err)
{
	int r = cpuset_parse(list, ret_cpus, err);
	if (r < 0)
		return err_wrap(err, "--bind=explicit");
	struct cpuset allowed = topology_allowed(topology), outside = *ret_cpus;
	cpuset_subtract(&outside, &allowed);
	AUTO(buf_done) struct buf text = BUF_INIT;
	cpuset_format(&outside, &text);
	if (!cpuset_empty(&outside))
		return err_set(err, EINVAL,
			       "--bind=explicit: CPU %s of local rank %u is not allowed",
			       buf_str(&text), rank);
	if (cpuset_empty(ret_cpus))
		return err_set(err, EINVAL, "--bind=explicit: local rank %u has no CPU", rank);
	return 0;
}

static int bind_to_lists(const struct topology *topology, const char *lists, uint32_t nproc,
			 struct binding *plan, struct err *err)
{
	const char *rest = lists, *piece;
	uint32_t r = 0;
	size_t len;
	while ((piece = str_split(&rest, ':', &len))) {
		AUTO_FREE char *list = mem_strndup(piece, len);
		if (r == nproc)
			return err_set(err, EINVAL,
				       "--bind=explicit: more lists than the %u workers", nproc);
		int result = bind_to_list(topology, list, r, &plan[r].cpus, err);
		if (result < 0)
			return result;
		r++;
	}
	return r == nproc
		       ? 0
		       : err_set(err, EINVAL,
				 "--bind=explicit: %u lists for %u workers; separate them by ':'",
				 r, nproc);
}

static int bind_all(const struct topology *topology, const struct binding_request *request,
		    uint32_t nproc, struct binding *plan, struct err *err)
{
	static key_fn *const group_keys[BINDING_MODE_COUNT] = {
		[BINDING_L3] = key_l3, [BINDING_NUMA] = key_node, [BINDING_SOCKET] = key_package
	};
	if (group_keys[request->mode]) {
		bind_to_groups(topology, group_keys[request->mode], nproc, plan);
		return 0;
	}
	switch (request->mode) {
	case BINDING_CORE:
		return bind_to_cores(topology, nproc, plan, err);
	case BINDING_EXPLICIT:
		return bind_to_lists(topology, request->explicit_lists, nproc, plan, err);
	default:
		return bind_to_devices(topology, request, nproc, plan, err);
	}
}

/* The only node of these CPUs, if the host has others; else -1. */
static int memory_node(const struct topology *topology, const struct cpuset *cpus)
{
	int node = -1;
	bool one_of_many = false;
	for (size_t i = 0; i < topology->count; i++) {
		const struct topo_cpu *cpu = &topology->cpus[i];
		if (cpuset_has(cpus, cpu->id) && node >= 0 && cpu->node != node)
			return -1;
		if (cpuset_has(cpus, cpu->id))
			node = cpu->node;
		one_of_many = one_of_many || cpu->node != topology->cpus[0].node;
	}
	return one_of_many ? node : -1;
}

/* A core counts once, however many threads it runs; workers that share it divide it. */
static void count_threads(const struct topology *topology, uint32_t nproc, struct binding *plan)
{
	AUTO(parts_done) struct parts cores = { 0 };
	collect(topology, -1, key_core, &cores);
	double *share = NEW_ARRAY(double, nproc);
	for (size_t i = 0; i < cores.count; i++) {
		uint32_t sharers = 0;
		for (uint32_t r = 0; r < nproc; r++)
			sharers += cpuset_intersects(&plan[r].cpus, &cores.items[i].cpus);
		for (uint32_t r = 0; r < nproc; r++)
			if (cpuset_intersects(&plan[r].cpus, &cores.items[i].cpus))
				share[r] += 1.0 / sharers;
	}
	uint64_t quota = topology->quota_milli / 1000 / nproc;
	for (uint32_t r = 0; r < nproc; r++) {
		int threads = (int)(share[r] + 1e-6);
		if (topology->quota_milli > 0 && quota < (uint64_t)threads)
			threads = (int)quota;
		plan[r].threads = MAX(threads, 1);
	}
	free(share);
}

int binding_plan(const struct topology *topology, const struct binding_request *request,
		 uint32_t nproc, struct binding *ret_plan, struct err *err)
{
	memset(ret_plan, 0, nproc * sizeof(*ret_plan));
	struct cpuset allowed = topology_allowed(topology);
	if (cpuset_empty(&allowed))
		return err_set(err, EINVAL, "there is no CPU to bind workers to");
	int r = bind_all(topology, request, nproc, ret_plan, err);
	if (r < 0)
		return r;
	for (uint32_t i = 0; i < nproc; i++) {
		int node = memory_node(topology, &ret_plan[i].cpus);
		ret_plan[i].mem_node = node;
		ret_plan[i].mem_nodes = node >= 0 && node < 64 ? (uint64_t)1 << node : 0;
	}
	count_threads(topology, nproc, ret_plan);
	return 0;
}

int binding_parse(const char *text, struct binding_request *ret_request, struct err *err)
{
	static const struct {
		const char *name;
		enum binding_mode mode;
	} modes[] = {
		{ "none", BINDING_NONE }, { "core", BINDING_CORE },	{ "l3", BINDING_L3 },
		{ "numa", BINDING_NUMA }, { "socket", BINDING_SOCKET },
	};
	static const char explicit_word[] = "explicit:";
	for (size_t i = 0; i < ARRAY_LEN(modes); i++)
		if (str_eq(text, modes[i].name)) {
			*ret_request = (struct binding_request){ .mode = modes[i].mode };
			return 0;
		}
	if (!str_starts(text, explicit_word))
		return err_set(err, EINVAL,
			       "--bind: '%.64s' is neither none, core, l3, numa, socket nor "
			       "explicit:LIST:LIST",
			       text);
	*ret_request =
		(struct binding_request){ .mode = BINDING_EXPLICIT,
					  .explicit_lists = text + sizeof(explicit_word) - 1 };
	return 0;
}

/* What stands between two neighbouring CPUs. */
static const char *divider(const struct topo_cpu *a, const struct topo_cpu *b)
{
	return a->package != b->package ? "] ["
	       : a->l3 != b->l3		? "|"
	       : a->core != b->core	? "/"
					: "";
}

void binding_draw(const struct topology *topology, const struct binding *binding, struct buf *out)
{
	buf_append_char(out, '[');
	for (size_t i = 0; i < topology->count; i++) {
		const struct topo_cpu *cpu = &topology->cpus[i];
		if (i > 0)
			buf_append_str(out, divider(cpu - 1, cpu));
		buf_append_char(out, cpuset_has(&binding->cpus, cpu->id) ? 'B'
				     : cpu->allowed			 ? '.'
									 : '-');
	}
	buf_append_char(out, ']');
}
