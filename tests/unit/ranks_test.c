#include "unit.h"

#include <errno.h>
#include <signal.h>

#include "base/clock.h"
#include "core/rounds/policy.h"
#include "core/worker/ranks.h"

TEST(ranks_run_through_uneven_nodes_and_roles)
{
	struct ranks_node nodes[] = {
		{ .node_rank = -1, .last_rank = 0, .nproc = 2, .role = "train" },
		{ .node_rank = -1, .last_rank = 1, .nproc = 1, .role = "ps" },
		{ .node_rank = -1, .last_rank = 2, .nproc = 3, .role = "train" },
		{ .node_rank = -1, .last_rank = 3, .nproc = 2, .role = "ps" },
	};
	static const uint32_t expected[][3] = {
		{ 0, 0, 5 }, { 2, 0, 3 }, { 3, 2, 5 }, { 6, 1, 3 }
	};
	ck_assert_uint_eq(ranks_assign(nodes, ARRAY_LEN(nodes)), 8);
	for (size_t i = 0; i < ARRAY_LEN(nodes); i++) {
		ck_assert_uint_eq(nodes[i].group_rank, i);
		ck_assert_uint_eq(nodes[i].rank_base, expected[i][0]);
		ck_assert_uint_eq(nodes[i].role_rank_base, expected[i][1]);
		ck_assert_uint_eq(nodes[i].role_world_size, expected[i][2]);
	}
}

TEST(ranks_keep_what_nodes_asked_for_then_what_they_had_then_fill_gaps)
{
	struct ranks_node nodes[] = {
		{ .node_rank = -1, .last_rank = -1, .nproc = 1, .role = "" },
		{ .node_rank = -1, .last_rank = 3, .nproc = 1, .role = "" },
		{ .node_rank = -1, .last_rank = 9, .nproc = 1, .role = "" },
		{ .node_rank = 2, .last_rank = 0, .nproc = 1, .role = "" },
	};
	static const uint32_t expected[] = { 0, 3, 1, 2 };
	ranks_assign(nodes, ARRAY_LEN(nodes));
	for (size_t i = 0; i < ARRAY_LEN(nodes); i++)
		ck_assert_uint_eq(nodes[i].group_rank, expected[i]);
}

TEST(rank_0_goes_to_the_coordinators_host_only_if_no_node_had_it)
{
	struct ranks_node nodes[] = {
		{ .node_rank = -1, .last_rank = -1, .nproc = 1, .role = "" },
		{ .node_rank = -1, .last_rank = -1, .nproc = 1, .role = "", .preferred = true },
	};
	ranks_assign(nodes, 2);
	ck_assert_uint_eq(nodes[1].group_rank, 0);
	nodes[0].last_rank = 0;
	ranks_assign(nodes, 2);
	ck_assert_uint_eq(nodes[0].group_rank, 0);
}

TEST(of_two_nodes_with_one_node_rank_the_first_gets_it)
{
	struct ranks_node nodes[] = {
		{ .node_rank = 1, .last_rank = -1, .nproc = 1, .role = "" },
		{ .node_rank = 1, .last_rank = -1, .nproc = 1, .role = "" },
	};
	ranks_assign(nodes, 2);
	ck_assert_uint_eq(nodes[0].group_rank, 1);
	ck_assert_uint_eq(nodes[1].group_rank, 0);
}

TEST(backoff_doubles_up_to_its_cap)
{
	ck_assert_uint_eq(policy_backoff_ns(10, 100, 1), 10);
	ck_assert_uint_eq(policy_backoff_ns(10, 100, 3), 40);
	ck_assert_uint_eq(policy_backoff_ns(10, 100, 5), 100);
	ck_assert_uint_eq(policy_backoff_ns(10, NS_NEVER, 4000000000), NS_NEVER);
	ck_assert_uint_eq(policy_backoff_ns(0, 100, 4000000000), 0);
}

TEST(a_missing_program_and_listed_ends_are_final)
{
	struct exit_set set = EXIT_SET_INIT;
	ck_assert_int_eq(exit_set_parse("3,SIGSEGV", &set, NULL), 0);
	struct cause cause = { .reason = FAILURE_SPAWN, .spawn_errno = ENOENT };
	ck_assert(policy_is_final(&set, &cause));
	cause.spawn_errno = EAGAIN;
	ck_assert(!policy_is_final(&set, &cause));
	cause = (struct cause){ .reason = FAILURE_EXIT, .status = { EXIT_CODE, 3, false } };
	ck_assert(policy_is_final(&set, &cause));
	cause.status.value = 4;
	ck_assert(!policy_is_final(&set, &cause));
	cause.status = (struct exit_status){ EXIT_SIGNAL, SIGSEGV, false };
	ck_assert(policy_is_final(&set, &cause));
	cause.status = (struct exit_status){ .kind = EXIT_UNKNOWN };
	ck_assert(!policy_is_final(&set, &cause));
}

TEST(pace_allows_a_burst_and_then_one_per_interval)
{
	struct pace pace = { .interval_ns = 60, .burst = 3 };
	uint64_t now_ns = 1000;
	for (int i = 0; i < 3; i++) {
		ck_assert_uint_le(pace_earliest_ns(&pace, 0), now_ns);
		pace_take(&pace, now_ns);
	}
	ck_assert_uint_eq(pace_earliest_ns(&pace, 0), now_ns + 60);
	ck_assert_uint_eq(pace_earliest_ns(&pace, 1), now_ns + 120);
}

TEST(a_rank_that_there_is_not_is_nobodys)
{
	struct ranks_node nodes[] = {
		{ .node_rank = -5, .last_rank = -2, .nproc = 1, .role = "" },
		{ .node_rank = 7, .last_rank = 2, .nproc = 1, .role = "" },
	};
	ck_assert_uint_eq(ranks_assign(nodes, 2), 2);
	ck_assert_uint_eq(nodes[0].group_rank, 0);
	ck_assert_uint_eq(nodes[1].group_rank, 1);
}

TEST(a_program_that_cannot_be_started_now_cannot_be_started_later_either)
{
	static const int final[] = { ENOENT, ENOTDIR, EACCES, EPERM,	   ENOEXEC,
				     EISDIR, ELOOP,   E2BIG,  ENAMETOOLONG };
	static const int passing[] = { 0, EAGAIN, ENOMEM, EMFILE, ENFILE, EIO, ETXTBSY };
	const struct exit_set none = EXIT_SET_INIT;
	for (size_t i = 0; i < ARRAY_LEN(final); i++)
		ck_assert_msg(policy_is_final(&none, &(struct cause){ .reason = FAILURE_SPAWN,
								      .spawn_errno = final[i] }),
			      "%d", final[i]);
	for (size_t i = 0; i < ARRAY_LEN(passing); i++)
		ck_assert_msg(!policy_is_final(&none, &(struct cause){ .reason = FAILURE_SPAWN,
								       .spawn_errno = passing[i] }),
			      "%d", passing[i]);
}

TEST(an_end_is_described_in_the_words_of_the_shell)
{
	static const struct {
		struct exit_status status;
		const char *text;
	} cases[] = {
		{ { EXIT_CODE, 3, false }, "exit code 3" },
		{ { EXIT_SIGNAL, SIGSEGV, true }, "SIGSEGV (core dumped)" },
		{ { EXIT_SIGNAL, 99, false }, "signal 99" },
		{ { EXIT_UNKNOWN, 0, false }, "unknown" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_done) struct buf text = BUF_INIT;
		exit_status_describe(&cases[i].status, &text);
		ck_assert_str_eq(buf_str(&text), cases[i].text);
	}
}
