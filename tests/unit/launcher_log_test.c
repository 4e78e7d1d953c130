/* Who failed first, as logs of other launchers have it. */
#include "unit.h"

#include <signal.h>

#include "proto/launcher_log.h"

TEST(the_root_cause_of_torchruns_table_counts_not_its_other_failures)
{
	struct launcher_log log;
	launcher_log_read("Failures:\n[0]:\n  host      : node1\n  rank      : 0 (local_rank: 0)\n"
			  "  exitcode  : -15 (pid: 7)\nRoot Cause (first observed failure):\n"
			  "[0]:\n  host      : node7\n  rank      : 5 (local_rank: 1)\n"
			  "  exitcode  : -9 (pid: 8)\n",
			  &log);
	ck_assert_int_eq(log.rank, 5);
	ck_assert_str_eq(log.host, "node7");
	ck_assert_int_eq(log.status.kind, EXIT_SIGNAL);
	ck_assert_int_eq(log.status.value, SIGKILL);
}

TEST(the_first_task_that_srun_names_counts)
{
	struct launcher_log log;
	launcher_log_read("srun: error: node3: task 2: Exited with exit code 7\n"
			  "srun: error: node4: tasks 4-7: Terminated\n",
			  &log);
	ck_assert_int_eq(log.rank, 2);
	ck_assert_str_eq(log.host, "node3");
	ck_assert_int_eq(log.status.kind, EXIT_CODE);
	ck_assert_int_eq(log.status.value, 7);
	launcher_log_read("srun: error: n: tasks 2-3: Killed\n", &log);
	ck_assert_int_eq(log.rank, 2);
	ck_assert_int_eq(log.status.value, SIGKILL);
}

TEST(a_log_of_no_launcher_says_nothing)
{
	struct launcher_log log;
	launcher_log_read("rank : 3\nexitcode : 4\nhello\n", &log);
	ck_assert_int_eq(log.rank, -1);
	ck_assert_int_eq(log.status.kind, EXIT_UNKNOWN);
	ck_assert_str_eq(log.host, "");
}
