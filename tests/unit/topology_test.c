#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "base/mem.h"
#include "sys/hwloc_topology.h"

static const char *list_of(const struct cpuset *set)
{
	static char text[256];
	AUTO(buf_done) struct buf out = BUF_INIT;
	cpuset_format(set, &out);
	snprintf(text, sizeof(text), "%s", buf_str(&out));
	return text;
}

TEST(cpu_lists_survive_a_round_trip)
{
	static const char *const lists[] = { "", "0", "0-3", "0-3,8", "1,3,5", "63-64", "0,4095" };
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		struct cpuset set;
		ck_assert_int_eq(cpuset_parse(lists[i], &set, NULL), 0);
		ck_assert_str_eq(list_of(&set), lists[i]);
	}
	struct cpuset set;
	ck_assert_int_eq(cpuset_parse(" 0-1 \n", &set, NULL), 0);
	ck_assert_int_eq(cpuset_count(&set), 2);
}

TEST(broken_cpu_lists_are_refused)
{
	static const char *const lists[] = { "a",  "1-",  "-1",	  "3-1",  "1,",
					     ",1", "1 2", "4096", "1--2", "99999999999" };
	struct cpuset set;
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		ck_assert_msg(cpuset_parse(lists[i], &set, NULL) == -EINVAL, "'%s'", lists[i]);
}

TEST(set_operations_agree_with_membership)
{
	struct cpuset a, b;
	cpuset_parse("0-70", &a, NULL);
	cpuset_parse("65-100", &b, NULL);
	struct cpuset any = a, rest = a;
	cpuset_union(&any, &b);
	cpuset_subtract(&rest, &b);
	ck_assert_str_eq(list_of(&any), "0-100");
	ck_assert_str_eq(list_of(&rest), "0-64");
	ck_assert(cpuset_intersects(&a, &b));
	ck_assert(!cpuset_intersects(&rest, &b));
}

TEST(synthetic_machines_come_in_topological_order)
{
	struct topology t;
	struct err err = ERR_INIT;
	/* Linux numbers the second threads of all cores after the first ones. */
	int r = topology_read_hwloc(
		"package:2 l3:2 core:2 pu:2(indexes=0,8,1,9,2,10,3,11,4,12,5,13,6,14,7,15)", &t,
		&err);
	ck_assert_msg(r == 0, "%s", err.msg);
	ck_assert_uint_eq(t.count, 16);
	ck_assert_int_eq(t.cpus[1].id, 8);
	ck_assert_int_eq(t.cpus[1].core, t.cpus[0].core);
	ck_assert_int_eq(t.cpus[1].thread, 1);
	ck_assert_int_eq(topology_find(&t, 4)->package, 1);
	ck_assert_int_eq(topology_find(&t, 4)->l3, 2);
	ck_assert_int_eq(topology_find(&t, 15)->core, 7);
	ck_assert_int_eq(topology_allowed_cores(&t), 8);

	struct cpuset twins;
	cpuset_parse("0,3", &twins, NULL);
	topology_add_twins(&t, &twins);
	ck_assert_str_eq(list_of(&twins), "0,3,8,11");
	topology_done(&t);
}

TEST(numa_nodes_of_a_synthetic_machine_are_seen)
{
	struct topology t;
	ck_assert_int_eq(topology_read_hwloc("package:2 [numa] core:2 pu:1", &t, NULL), 0);
	ck_assert_int_eq(t.cpus[0].node, 0);
	ck_assert_int_eq(t.cpus[3].node, 1);
	topology_done(&t);
	ck_assert_int_eq(topology_read_hwloc("nonsense:x", &t, NULL), -EINVAL);
}

TEST(this_host_has_the_cpus_of_our_affinity_mask)
{
	struct topology t;
	struct cpuset affinity;
	const char *flat;
	ck_assert_int_eq(topology_read(&t, &flat, NULL), 0);
	ck_assert_ptr_null(flat);
	ck_assert_int_eq(topology_affinity(&affinity, NULL), 0);
	struct cpuset allowed = topology_allowed(&t);
	ck_assert_mem_eq(&allowed, &affinity, sizeof(allowed));
	topology_done(&t);
}

/* A tree of files below a new directory: path, content, path, content, … NULL. */
static char *make_tree(const char *const *files)
{
	char *root = mem_strdup("/tmp/muster-quota-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(root));
	for (; *files; files += 2) {
		AUTO_FREE char *path = mem_printf("%s%s", root, files[0]);
		for (char *slash = path + strlen(root) + 1; (slash = strchr(slash, '/')); slash++) {
			*slash = '\0';
			mkdir(path, 0700);
			*slash = '/';
		}
		FILE *file = fopen(path, "w");
		ck_assert_ptr_nonnull(file);
		fputs(files[1], file);
		fclose(file);
	}
	return root;
}

static uint64_t quota_in(const char *const *files)
{
	char *root = make_tree(files);
	uint64_t quota = topology_quota_milli(root);
	AUTO_FREE char *command = mem_printf("rm -rf %s", root);
	ck_assert_int_eq(system(command), 0);
	free(root);
	return quota;
}

TEST(the_smallest_quota_on_the_way_up_counts_in_v2)
{
	const char *const files[] = { "/proc/self/cgroup",
				      "0::/a/b\n",
				      "/proc/self/mountinfo",
				      "30 23 0:27 / /sys/fs/cgroup rw,relatime shared:9 - cgroup2 "
				      "cgroup2 rw,nsdelegate\n",
				      "/sys/fs/cgroup/a/cpu.max",
				      "150000 100000\n",
				      "/sys/fs/cgroup/a/b/cpu.max",
				      "max 100000\n",
				      NULL };
	ck_assert_uint_eq(quota_in(files), 1500);
}

TEST(quota_of_v1_is_read_next_to_other_controllers)
{
	const char *const files[] = {
		"/proc/self/cgroup",
		"4:memory:/x\n2:cpu,cpuacct:/docker/abc\n0::/\n",
		"/proc/self/mountinfo",
		"31 23 0:28 /docker/abc /sys/fs/cgroup/cpu,cpuacct ro master:3 - cgroup cgroup "
		"rw,cpu,cpuacct\n"
		"41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n",
		"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us",
		"250000\n",
		"/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us",
		"100000\n",
		NULL
	};
	ck_assert_uint_eq(quota_in(files), 2500);
}

TEST(the_quota_is_found_where_the_mount_point_has_a_blank)
{
	const char *const files[] = { "/proc/self/cgroup",
				      "0::/job\n",
				      "/proc/self/mountinfo",
				      "30 23 0:27 / /mnt/c\\040g rw - cgroup2 none rw\n",
				      "/mnt/c g/job/cpu.max",
				      "50000 100000\n",
				      NULL };
	ck_assert_uint_eq(quota_in(files), 500);
}

TEST(no_quota_is_zero)
{
	const char *const v1[] = { "/proc/self/cgroup",
				   "2:cpu:/\n",
				   "/proc/self/mountinfo",
				   "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n",
				   "/sys/fs/cgroup/cpu/cpu.cfs_quota_us",
				   "-1\n",
				   "/sys/fs/cgroup/cpu/cpu.cfs_period_us",
				   "100000\n",
				   NULL };
	const char *const nothing[] = { "/proc/self/cgroup", "\n:\n::\n", NULL };
	ck_assert_uint_eq(quota_in(v1), 0);
	ck_assert_uint_eq(quota_in(nothing), 0);
}
