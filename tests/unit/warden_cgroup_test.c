#include "unit.h"

#include "warden_rig.h"

#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "sys/cgroup.h"
#include "sys/cgroup_find.h"

TEST(the_v2_hierarchy_is_found_alone_beside_v1_and_below_the_top)
{
	static const char hybrid[] =
		"32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
		"41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
	static const struct {
		const char *mountinfo, *membership, *path;
	} cases[] = {
		{ hybrid, "4:memory:/x\n0::/\n", "/sys/fs/cgroup/unified" },
		{ hybrid, "0::/user.slice/a.scope\n", "/sys/fs/cgroup/unified/user.slice/a.scope" },
		{ hybrid, "4:memory:/x\n", NULL },
		{ "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw\n", "0::/\n", NULL },
		{ "30 1 0:26 /pod/c1 /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n",
		  "0::/pod/c1/job\n", "/sys/fs/cgroup/job" },
		{ "30 1 0:26 / /mnt/a\\040b rw - cgroup2 none rw\n", "0::/x\n", "/mnt/a b/x" },
		{ "30 1 0:26 /pod/c1 /mnt rw - cgroup2 none rw\n", "0::/pod/c12\n", NULL },
		{ "", "", NULL },
		{ "30 1 0:26 / - cgroup2 none rw\n", "0::/x\n", NULL },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct cgroup_place place = CGROUP_PLACE_INIT;
		cgroup_find(CGROUP_V2, cases[i].mountinfo, cases[i].membership, &place);
		if (cases[i].path)
			ck_assert_str_eq(place.own, cases[i].path);
		else
			ck_assert_ptr_null(place.own);
		cgroup_place_done(&place);
	}
}

/* The cgroup of the programs. Where none can be had the test is skipped: nothing depends on it. */
static struct cgroup leaf_of(struct warden *warden)
{
	AUTO(buf_done) struct buf out = BUF_INIT;
	output_of(warden, "exec sed -n s/^0:://p /proc/self/cgroup", &out);
	const char *text = buf_str(&out), *name = strstr(text, "/warden-");
	if (!name) {
		warden_free(warden);
		unit_skip("the warden cannot make a cgroup here");
	}
	AUTO_FREE char *leaf = mem_strndup(name + 1, strcspn(name + 1, "\n"));
	struct cgroup cgroup;
	ck_assert_int_eq(cgroup_open(leaf, &cgroup, NULL), 0);
	return cgroup;
}

TEST(programs_are_born_in_a_cgroup_that_goes_with_the_warden)
{
	struct warden *warden = new_warden();
	struct cgroup cgroup = leaf_of(warden);
	start_full(warden, 2, "exit 4", SPAWN_NULL, WARDEN_PIDFD);
	AUTO(fd_close) int pidfd = await(warden, WARDEN_SPAWNED).pidfd;
	ck_assert_int_ge(pidfd, 0);
	ck_assert_int_eq(await(warden, WARDEN_EXITED).status.value, 4);
	pid_t escaped = first_pid(warden, "setsid sh -c 'echo $$; exec sleep 1000' & wait");
	warden_free(warden);
	ck_assert(!exists(escaped));
	ck_assert_int_eq(access(cgroup.path, F_OK), -1);
	cgroup_done(&cgroup);
}

TEST(the_cgroup_of_a_killed_warden_is_removed)
{
	struct warden *warden = new_warden();
	struct cgroup cgroup = leaf_of(warden);
	first_pid(warden, "setsid sh -c 'echo $$; exec sleep 1000' & wait");
	kill_warden(warden);
	sweep_after(warden);
	ck_assert_int_eq(access(cgroup.path, F_OK), -1);
	cgroup_done(&cgroup);
}
