#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "core/host/binding.h"
#include "sys/hwloc_topology.h"

#define TWO_SOCKETS_SMT "package:2 numanode:1 l3:1 core:4 pu:2"
#define EIGHT_CACHES "package:2 numanode:2 l3:2 core:2 pu:1"

/* The plan as "0-3 4-7", or "error: …". `allowed` NULL: all CPUs. */
static const char *plan(const char *machine, const char *allowed, struct binding_request request,
			uint32_t nproc)
{
	static char text[2048];
	AUTO(topology_done) struct topology topology = TOPOLOGY_INIT;
	struct err err = ERR_INIT;
	ck_assert_msg(topology_read_hwloc(machine, &topology, &err) == 0, "%s", err.msg);
	struct cpuset mask;
	if (allowed) {
		ck_assert_int_eq(cpuset_parse(allowed, &mask, NULL), 0);
		topology_allow(&topology, &mask);
	}
	struct binding bindings[16];
	AUTO(buf_done) struct buf out = BUF_INIT;
	if (binding_plan(&topology, &request, nproc, bindings, &err) < 0)
		buf_printf(&out, "error: %s", err.msg);
	else
		for (uint32_t r = 0; r < nproc; r++) {
			buf_append_str(&out, r ? " " : "");
			cpuset_format(&bindings[r].cpus, &out);
		}
	snprintf(text, sizeof(text), "%s", buf_str(&out));
	return text;
}

#define MODE(m) ((struct binding_request){ .mode = (m) })

TEST(device_node_counts_ranks_as_devices_spread_over_the_nodes)
{
	ck_assert_str_eq(plan(TWO_SOCKETS_SMT, NULL, MODE(BINDING_DEVICE_NODE), 4),
			 "0-7 0-7 8-15 8-15");
	ck_assert_str_eq(plan(TWO_SOCKETS_SMT, NULL, MODE(BINDING_DEVICE_NODE), 3), "0-7 0-7 8-15");
	ck_assert_str_eq(plan(TWO_SOCKETS_SMT, "2-3,8-9", MODE(BINDING_DEVICE_NODE), 2), "2-3 8-9");
}

TEST(device_nodes_are_followed_where_there_are_devices)
{
	const int nodes[] = { 1, 0, 1, -1 };
	struct binding_request request = { .mode = BINDING_DEVICE_NODE, .device_nodes = nodes };
	ck_assert_str_eq(plan(TWO_SOCKETS_SMT, NULL, request, 4), "8-15 0-7 8-15 0-7");
	ck_assert_str_eq(plan(TWO_SOCKETS_SMT, "0-7", request, 1),
			 "error: local rank 0 has its device on NUMA node 1, of which no CPU may "
			 "be used; try --bind");
}

TEST(device_socket_is_the_union_of_the_nodes_in_a_package)
{
	ck_assert_str_eq(plan(EIGHT_CACHES, NULL, MODE(BINDING_DEVICE_SOCKET), 4),
			 "0-7 0-7 8-15 8-15");
	/* A node outside the cpuset does not make it fail. */
	ck_assert_str_eq(plan(EIGHT_CACHES, "0-3,8-11", MODE(BINDING_DEVICE_SOCKET), 2),
			 "0-3 8-11");
}

TEST(device_exclusive_divides_whole_cores_and_gives_the_first_one_more)
{
	ck_assert_str_eq(plan(TWO_SOCKETS_SMT, NULL, MODE(BINDING_DEVICE_EXCLUSIVE), 4),
			 "0-3 4-7 8-11 12-15");
	ck_assert_str_eq(plan(TWO_SOCKETS_SMT, NULL, MODE(BINDING_DEVICE_EXCLUSIVE), 6),
			 "0-3 4-5 6-7 8-11 12-13 14-15");
	ck_assert_str_eq(plan(TWO_SOCKETS_SMT, "0,2-5,8-15", MODE(BINDING_DEVICE_EXCLUSIVE), 4),
			 "0,2-3 4-5 8-11 12-15");
	ck_assert_str_eq(plan(TWO_SOCKETS_SMT, "0-3,8-15", MODE(BINDING_DEVICE_EXCLUSIVE), 6),
			 "error: NUMA node 0 has 2 cores for 3 workers; start fewer, or share with "
			 "--numa-binding=node");
}

TEST(device_core_complex_takes_the_largest_caches_first)
{
	ck_assert_str_eq(plan(EIGHT_CACHES, NULL, MODE(BINDING_DEVICE_CORE_COMPLEX), 8),
			 "0-1 2-3 4-5 6-7 8-9 10-11 12-13 14-15");
	ck_assert_str_eq(plan(EIGHT_CACHES, "1-7", MODE(BINDING_DEVICE_CORE_COMPLEX), 4),
			 "2-3 1 4-5 6-7");
	ck_assert_str_eq(plan(EIGHT_CACHES, "0-3", MODE(BINDING_DEVICE_CORE_COMPLEX), 3),
			 "0-1 2-3 0-1");
}

TEST(bind_core_divides_all_cores_with_their_twins)
{
	ck_assert_str_eq(plan(TWO_SOCKETS_SMT, NULL, MODE(BINDING_CORE), 3), "0-5 6-11 12-15");
	ck_assert_str_eq(plan(TWO_SOCKETS_SMT, "1,4-5,9", MODE(BINDING_CORE), 3), "1 4-5 9");
	ck_assert_str_eq(plan(TWO_SOCKETS_SMT, "0-1", MODE(BINDING_CORE), 2),
			 "error: --bind=core: 1 cores for 2 workers; start fewer, or share with "
			 "--bind=numa");
}

TEST(bind_to_caches_nodes_and_sockets_spreads_the_workers)
{
	ck_assert_str_eq(plan(EIGHT_CACHES, NULL, MODE(BINDING_L3), 4), "0-1 4-5 8-9 12-13");
	ck_assert_str_eq(plan(EIGHT_CACHES, NULL, MODE(BINDING_NUMA), 2), "0-3 8-11");
	ck_assert_str_eq(plan(EIGHT_CACHES, NULL, MODE(BINDING_SOCKET), 2), "0-7 8-15");
	ck_assert_str_eq(plan(EIGHT_CACHES, "3,15", MODE(BINDING_SOCKET), 2), "3 15");
}

TEST(bind_explicit_takes_what_it_is_told_and_no_more)
{
	struct binding_request request;
	ck_assert_int_eq(binding_parse("explicit:0,2:4-5", &request, NULL), 0);
	ck_assert_str_eq(plan(TWO_SOCKETS_SMT, NULL, request, 2), "0,2 4-5");
	ck_assert_str_eq(plan(TWO_SOCKETS_SMT, "0-4", request, 2),
			 "error: --bind=explicit: CPU 5 of local rank 1 is not allowed");
	ck_assert_str_eq(plan(TWO_SOCKETS_SMT, NULL, request, 3),
			 "error: --bind=explicit: 2 lists for 3 workers; separate them by ':'");
	ck_assert_str_eq(plan(TWO_SOCKETS_SMT, NULL, request, 1),
			 "error: --bind=explicit: more lists than the 1 workers");
	static const char *const wrong[] = { "", "cores", "explicit", "CORE" };
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		ck_assert_int_eq(binding_parse(wrong[i], &request, NULL), -EINVAL);
}

TEST(binding_counts_threads_by_cores_sharers_and_quota)
{
	AUTO(topology_done) struct topology topology = TOPOLOGY_INIT;
	ck_assert_int_eq(topology_read_hwloc(TWO_SOCKETS_SMT, &topology, NULL), 0);
	struct binding bindings[8];
	ck_assert_int_eq(binding_plan(&topology, &MODE(BINDING_NUMA), 2, bindings, NULL), 0);
	ck_assert_int_eq(bindings[0].threads, 4); /* 8 CPUs are 4 cores */
	ck_assert_int_eq(bindings[1].mem_node, 1);
	ck_assert_int_eq(binding_plan(&topology, &MODE(BINDING_NUMA), 8, bindings, NULL), 0);
	ck_assert_int_eq(bindings[7].threads, 1); /* 4 cores among 4 workers */
	topology.quota_milli = 5000;
	ck_assert_int_eq(binding_plan(&topology, &MODE(BINDING_NUMA), 2, bindings, NULL), 0);
	ck_assert_int_eq(bindings[0].threads, 2);
}

TEST(binding_is_drawn_with_what_is_bound_free_and_forbidden)
{
	AUTO(topology_done) struct topology topology = TOPOLOGY_INIT;
	ck_assert_int_eq(topology_read_hwloc("package:2 l3:2 core:1 pu:2", &topology, NULL), 0);
	struct cpuset mask;
	cpuset_parse("0-6", &mask, NULL);
	topology_allow(&topology, &mask);
	struct binding binding = { .cpus = CPUSET_INIT };
	cpuset_add(&binding.cpus, 2);
	AUTO(buf_done) struct buf out = BUF_INIT;
	binding_draw(&topology, &binding, &out);
	ck_assert_str_eq(buf_str(&out), "[..|B.] [..|.-]");
}
