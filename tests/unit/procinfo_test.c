#include "unit.h"

#include <errno.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/procfs.h"
#include "watch/procinfo.h"

TEST(a_name_may_hold_anything)
{
	struct proc_stat info;
	ck_assert_int_eq(
		procfs_parse_stat(
			"7 (a) b) S (c) D 3 7 9 0 -1 0 0 0 0 0 200 50 0 0 20 0 4 0 12 1 10 0",
			&info),
		0);
	ck_assert_str_eq(info.comm, "a) b) S (c");
	ck_assert_int_eq(info.state, 'D');
	ck_assert_int_eq(info.ppid, 3);
	ck_assert_int_eq(info.session, 9);
	ck_assert_uint_eq(info.threads, 4);
	ck_assert_uint_eq(info.cpu_ns, 250 * (NS_PER_S / (uint64_t)sysconf(_SC_CLK_TCK)));
	ck_assert_uint_eq(info.reaped_cpu_ns, 0);
	ck_assert_uint_eq(info.arg_start, 0); /* an old kernel does not tell */
	ck_assert_uint_eq(info.rss_bytes, 10 * (uint64_t)sysconf(_SC_PAGESIZE));
}

TEST(invalid_stat_lines_are_refused)
{
	static const char *const texts[] = {
		"",	 "7",	    "7 (a",
		"7 (a)", "7 (a) S", "7 (a) S x 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1 1"
	};
	struct proc_stat info;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		ck_assert_int_eq(procfs_parse_stat(texts[i], &info), -EBADMSG);
}

TEST(the_chain_leads_to_the_child_through_which_a_process_descends)
{
	int ready[2], go[2];
	ck_assert(pipe(ready) == 0 && pipe(go) == 0);
	pid_t child = fork();
	if (child == 0) {
		pid_t grandchild = fork();
		char c;
		if (grandchild > 0 && write(ready[1], &grandchild, sizeof(grandchild)) < 0)
			_exit(1);
		close(go[1]);
		_exit(read(go[0], &c, 1) == 0 ? 0 : 1);
	}
	pid_t grandchild, top = 0;
	ck_assert(read(ready[0], &grandchild, sizeof(grandchild)) == sizeof(grandchild));
	ck_assert_int_eq(procinfo_chain(grandchild, getpid(), &top), 0);
	ck_assert_int_eq(top, child);
	ck_assert_int_eq(procinfo_chain(child, getpid(), &top), 0);
	ck_assert_int_eq(top, child);
	ck_assert_int_eq(procinfo_chain(getpid(), child, &top), -EPERM);
	ck_assert_int_eq(procinfo_chain(1, getpid(), &top), -EPERM);
	ck_assert_uint_gt(procfs_cpu_ns(getpid()), 0);
	close(go[1]);
	waitpid(child, NULL, 0);
	ck_assert_int_eq(procinfo_chain(child, getpid(), &top), -ESRCH);
}

TEST(a_snapshot_names_every_thread)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	procinfo_snapshot(getpid(), &text);
	ck_assert_ptr_nonnull(strstr(buf_str(&text), "thread "));
	ck_assert_ptr_nonnull(strstr(buf_str(&text), "state R"));
}
