#include "unit.h"

#include <signal.h>

#include "base/clock.h"
#include "core/fleet/host_env.h"
#include "core/fleet/fleet.h"
#include "core/worker/exit_code.h"

#define TIMEOUT_NS (10 * NS_PER_S)

static struct fleet fleet;
static struct fleet_actions actions;
static uint64_t now_ns;

static void step(struct fleet_event event)
{
	actions.count = 0;
	fleet_step(&fleet, &event, now_ns, &actions);
}

static void begin(uint32_t hosts, uint32_t min, uint32_t fanout)
{
	now_ns = NS_PER_S;
	fleet_init(&fleet, &(struct fleet_config){ .hosts = hosts,
						   .min_nodes = min,
						   .max_nodes = hosts,
						   .fanout = fanout,
						   .timeout_ns = TIMEOUT_NS });
	step((struct fleet_event){ FLEET_EV_BEGIN });
}

static void finish(void)
{
	fleet_done(&fleet);
	fleet_actions_done(&actions);
}

static size_t count(enum fleet_action_type type)
{
	size_t n = 0;
	for (size_t i = 0; i < actions.count; i++)
		n += actions.items[i].type == type;
	return n;
}

static const struct fleet_action *find(enum fleet_action_type type, uint32_t host)
{
	for (size_t i = 0; i < actions.count; i++)
		if (actions.items[i].type == type && actions.items[i].host == host)
			return &actions.items[i];
	return NULL;
}

static void up(uint32_t host)
{
	step((struct fleet_event){ FLEET_EV_UP, .host = host });
}

static void down(uint32_t host)
{
	step((struct fleet_event){ FLEET_EV_DOWN, .host = host });
}

static void agent(uint32_t host, enum exit_kind kind, int value)
{
	step((struct fleet_event){ FLEET_EV_AGENT, .host = host,
				   .status = { kind, value, false } });
}

/* An agent that has heard how the job ended. */
static void agent_rules(uint32_t host, int code)
{
	step((struct fleet_event){ FLEET_EV_AGENT, .host = host,
				   .status = { EXIT_CODE, code, false }, .scope = FLEET_CODE_JOB });
}

static int end_code(void)
{
	const struct fleet_action *end = find(FLEET_DO_END, 0);
	ck_assert_ptr_nonnull(end);
	ck_assert(fleet.over);
	return end->code;
}

static void start(uint32_t hosts, uint32_t min)
{
	begin(hosts, min, 64);
	for (uint32_t i = 0; i < hosts; i++)
		up(i);
	ck_assert_uint_eq(count(FLEET_DO_START), 1);
}

TEST(few_hosts_are_reached_directly_and_start_together)
{
	begin(3, 3, 64);
	ck_assert_uint_eq(count(FLEET_DO_REACH), 3);
	up(0);
	up(2);
	ck_assert_uint_eq(count(FLEET_DO_START), 0);
	up(1);
	ck_assert_uint_eq(count(FLEET_DO_START), 1);
	ck_assert_uint_eq(fleet.nodes, 3);
	finish();
}

TEST(many_hosts_are_reached_by_each_other)
{
	begin(14, 14, 2);
	ck_assert_uint_eq(count(FLEET_DO_REACH), 2);
	up(0);
	ck_assert_uint_eq(count(FLEET_DO_REACH), 2);
	ck_assert_int_eq(find(FLEET_DO_REACH, 2)->via, 0);
	ck_assert_int_eq(find(FLEET_DO_REACH, 3)->via, 0);
	up(1);
	ck_assert_int_eq(find(FLEET_DO_REACH, 4)->via, 1);
	up(5);
	ck_assert_int_eq(find(FLEET_DO_REACH, 12)->via, 5);
	finish();
}

TEST(no_host_has_more_branches_than_the_fanout)
{
	begin(1000, 1000, 7);
	uint32_t branches[1000] = { 0 };
	for (uint32_t i = 0; i < 1000; i++)
		if (fleet.hosts[i].via >= 0) {
			ck_assert_int_lt(fleet.hosts[i].via, (int32_t)i);
			ck_assert_uint_le(++branches[fleet.hosts[i].via], 7);
		}
	finish();
}

TEST(where_the_tree_fails_the_starter_tries_itself)
{
	begin(4, 4, 2);
	up(0);
	up(1);
	down(2);
	ck_assert_uint_eq(count(FLEET_DO_TELL), 0);
	ck_assert_int_eq(find(FLEET_DO_REACH, 2)->via, FLEET_SELF);
	up(3);
	up(2);
	ck_assert_uint_eq(count(FLEET_DO_START), 1);
	finish();
}

TEST(behind_a_host_that_is_not_there_the_starter_tries_itself)
{
	begin(4, 3, 2);
	down(0);
	ck_assert_ptr_nonnull(find(FLEET_DO_TELL, 0));
	ck_assert_int_eq(find(FLEET_DO_REACH, 2)->via, FLEET_SELF);
	up(1);
	ck_assert_int_eq(find(FLEET_DO_REACH, 3)->via, FLEET_SELF);
	up(2);
	up(3);
	ck_assert_uint_eq(count(FLEET_DO_START), 1);
	ck_assert_uint_eq(fleet.nodes, 3);
	finish();
}

TEST(the_starter_keeps_to_the_fanout)
{
	begin(8, 1, 2);
	down(0);
	down(1);
	ck_assert_uint_eq(fleet.direct, 2);
	ck_assert_uint_eq(fleet_count(&fleet, FLEET_REACHING), 2);
	for (uint32_t i = 2; i < 8; i++)
		down(i);
	ck_assert_uint_eq(count(FLEET_DO_TOO_FEW), 1);
	ck_assert_int_eq(end_code(), EXIT_CODE_TIMEOUT);
	finish();
}

TEST(a_silent_host_is_given_up_in_time_and_the_others_start)
{
	begin(3, 2, 64);
	up(0);
	up(1);
	ck_assert_uint_eq(count(FLEET_DO_START), 0);
	ck_assert_uint_eq(fleet_deadline_ns(&fleet), now_ns + TIMEOUT_NS);
	now_ns += TIMEOUT_NS;
	step((struct fleet_event){ FLEET_EV_TIMER });
	ck_assert_ptr_nonnull(find(FLEET_DO_DROP, 2));
	ck_assert(find(FLEET_DO_TELL, 2)->late);
	ck_assert(!find(FLEET_DO_TELL, 2)->lost);
	ck_assert_uint_eq(count(FLEET_DO_START), 1);
	ck_assert_uint_eq(fleet.nodes, 2);
	ck_assert_uint_eq(fleet_deadline_ns(&fleet), NS_NEVER);
	up(2); /* too late */
	ck_assert_int_eq(find(FLEET_DO_DROP, 2)->via, FLEET_SELF);
	finish();
}

TEST(too_few_hosts_end_the_job_before_it_starts)
{
	begin(3, 3, 64);
	up(0);
	up(1);
	down(2);
	ck_assert_uint_eq(count(FLEET_DO_START), 0);
	ck_assert_uint_eq(count(FLEET_DO_TOO_FEW), 1);
	ck_assert_int_eq(end_code(), EXIT_CODE_TIMEOUT);
	finish();
}

TEST(the_job_ends_with_the_code_of_its_agents)
{
	start(3, 3);
	agent(0, EXIT_CODE, 7);
	agent(1, EXIT_CODE, 7);
	ck_assert_uint_eq(count(FLEET_DO_END), 0);
	agent(2, EXIT_CODE, 7);
	ck_assert_int_eq(end_code(), 7);
	finish();
}

TEST(a_host_that_is_lost_does_not_decide_how_the_job_ended)
{
	start(3, 1);
	down(0);
	ck_assert(find(FLEET_DO_TELL, 0)->lost);
	agent(1, EXIT_SIGNAL, SIGKILL);
	agent(2, EXIT_CODE, 0);
	ck_assert_int_eq(end_code(), 0);
	finish();
}

TEST(an_agent_that_speaks_for_itself_does_not_outvote_the_job)
{
	start(3, 1);
	agent(0, EXIT_CODE, EXIT_CODE_TIMEOUT);
	agent(1, EXIT_CODE, EXIT_CODE_TIMEOUT);
	agent(2, EXIT_CODE, 0);
	ck_assert_int_eq(end_code(), 0);
	finish();
}

TEST(hosts_that_are_not_fit_do_not_outvote_the_job)
{
	start(4, 1);
	agent(0, EXIT_CODE, EXIT_CODE_BAD_NODE);
	agent(1, EXIT_CODE, EXIT_CODE_BAD_NODE);
	agent_rules(2, 7);
	agent(3, EXIT_CODE, 0);
	ck_assert_int_eq(end_code(), 7);
	finish();
}

TEST(a_host_that_is_not_fit_leaves_the_others_without_a_quorum)
{
	start(3, 3);
	agent(1, EXIT_CODE, EXIT_CODE_BAD_NODE);
	ck_assert_uint_eq(fleet_deadline_ns(&fleet), now_ns + FLEET_GRACE_NS);
	finish();
}

TEST(the_end_of_the_job_on_some_hosts_stops_no_others)
{
	start(3, 3);
	agent_rules(0, 7);
	step((struct fleet_event){ FLEET_EV_AGENT, .host = 1, .status = { EXIT_CODE, 7, false },
				   .scope = FLEET_CODE_UNSAID });
	ck_assert_uint_eq(fleet_deadline_ns(&fleet), NS_NEVER);
	finish();
}

TEST(a_script_that_is_missing_on_one_host_ends_the_others)
{
	start(3, 3);
	agent(1, EXIT_CODE, EXIT_CODE_NOT_FOUND);
	ck_assert_uint_eq(fleet_deadline_ns(&fleet), now_ns + FLEET_GRACE_NS);
	now_ns += FLEET_GRACE_NS;
	step((struct fleet_event){ FLEET_EV_TIMER });
	ck_assert_uint_eq(count(FLEET_DO_TOO_FEW), 1);
	ck_assert_int_eq(find(FLEET_DO_SIGNAL, 0)->signal, SIGTERM);
	agent(0, EXIT_CODE, 128 + SIGTERM);
	agent(2, EXIT_CODE, 128 + SIGTERM);
	ck_assert_int_eq(end_code(), EXIT_CODE_NOT_FOUND);
	finish();
}

TEST(a_lost_host_that_can_be_spared_stops_nothing)
{
	start(3, 2);
	down(0);
	ck_assert_uint_eq(fleet_deadline_ns(&fleet), NS_NEVER);
	finish();
}

TEST(a_lost_host_takes_those_behind_it_along)
{
	begin(4, 1, 1);
	for (uint32_t i = 0; i < 4; i++)
		up(i);
	ck_assert_uint_eq(count(FLEET_DO_START), 1);
	down(1);
	ck_assert_uint_eq(count(FLEET_DO_TELL), 3);
	for (uint32_t i = 1; i < 4; i++) { /* they answered in time, and were running */
		ck_assert(!find(FLEET_DO_TELL, i)->late);
		ck_assert(find(FLEET_DO_TELL, i)->lost);
	}
	ck_assert_uint_eq(fleet_count(&fleet, FLEET_RUNS), 1);
	finish();
}

TEST(a_signal_before_the_start_ends_at_once)
{
	begin(3, 3, 64);
	up(0);
	step((struct fleet_event){ FLEET_EV_SIGNAL, .signal = SIGINT });
	ck_assert_int_eq(end_code(), 128 + SIGINT);
	finish();
}

TEST(every_signal_after_the_start_goes_to_all_agents)
{
	start(2, 2);
	for (int i = 0; i < 2; i++) {
		step((struct fleet_event){ FLEET_EV_SIGNAL, .signal = SIGINT });
		ck_assert_int_eq(find(FLEET_DO_SIGNAL, 0)->signal, SIGINT);
		ck_assert_uint_eq(count(FLEET_DO_END), 0);
	}
	agent(0, EXIT_CODE, 128 + SIGINT);
	agent(1, EXIT_CODE, 128 + SIGINT);
	ck_assert_int_eq(end_code(), 128 + SIGINT);
	finish();
}

TEST(a_coordinator_is_where_all_hosts_can_reach_it)
{
	static const enum fleet_nearness mixed[] = { FLEET_NEAR_ONLY, FLEET_NEAR_NONE,
						     FLEET_NEAR_ALL, FLEET_NEAR_ALL };
	static const enum fleet_nearness near[] = { FLEET_NEAR_ONLY, FLEET_NEAR_ONLY,
						    FLEET_NEAR_ONLY, FLEET_NEAR_ONLY };
	static const enum fleet_nearness none[] = { FLEET_NEAR_ONLY, FLEET_NEAR_NONE,
						    FLEET_NEAR_ONLY, FLEET_NEAR_NONE };
	uint32_t chosen[FLEET_ENDPOINTS_MAX];
	start(4, 4);
	ck_assert_uint_eq(fleet_endpoints(&fleet, mixed, chosen), 1);
	ck_assert_uint_eq(chosen[0], 2);
	ck_assert_uint_eq(fleet_endpoints(&fleet, near, chosen), 1);
	ck_assert_uint_eq(chosen[0], 0);
	ck_assert_uint_eq(fleet_endpoints(&fleet, none, chosen), 0);
	finish();
}

TEST(a_job_that_can_lose_a_host_has_several_endpoints)
{
	static const enum fleet_nearness all[] = { FLEET_NEAR_ALL, FLEET_NEAR_ALL, FLEET_NEAR_ALL,
						   FLEET_NEAR_ALL };
	uint32_t chosen[FLEET_ENDPOINTS_MAX];
	start(4, 2);
	ck_assert_uint_eq(fleet_endpoints(&fleet, all, chosen), 3);
	ck_assert_uint_eq(chosen[2], 2);
	finish();
}

TEST(the_starters_own_host_is_reached_by_itself)
{
	now_ns = 0;
	fleet_init(&fleet, &(struct fleet_config){ .hosts = 2,
						   .min_nodes = 2,
						   .max_nodes = 2,
						   .fanout = 1,
						   .timeout_ns = TIMEOUT_NS });
	fleet_keep_near(&fleet, 1);
	step((struct fleet_event){ FLEET_EV_BEGIN });
	up(0);
	ck_assert_int_eq(find(FLEET_DO_REACH, 1)->via, FLEET_SELF);
	finish();
}

TEST(what_describes_a_host_or_a_session_is_not_exported)
{
	static const char *const own[] = { "HOME=/root", "TMPDIR=/x",		"SSH_AUTH_SOCK=/y",
					   "XDG_A=",	 "MUSTER_TOKEN=secret", "nonsense",
					   "=x" };
	static const char *const shared[] = { "PATH=/bin", "NCCL_DEBUG=INFO", "HOMEPAGE=x",
					      "PET_NNODES=2", "EMPTY=" };
	for (size_t i = 0; i < ARRAY_LEN(own); i++)
		ck_assert_msg(!fleet_exports(own[i]), "%s", own[i]);
	for (size_t i = 0; i < ARRAY_LEN(shared); i++)
		ck_assert_msg(fleet_exports(shared[i]), "%s", shared[i]);
}

TEST(a_host_whose_agent_does_not_end_in_time_is_lost_and_ends_nothing_else)
{
	now_ns = NS_PER_S;
	fleet_init(&fleet, &(struct fleet_config){ .hosts = 2,
						   .min_nodes = 1,
						   .max_nodes = 2,
						   .fanout = 2,
						   .timeout_ns = TIMEOUT_NS,
						   .run_ns = 3 * NS_PER_S });
	step((struct fleet_event){ FLEET_EV_BEGIN });
	up(0);
	now_ns += NS_PER_S;
	up(1);
	ck_assert_uint_eq(fleet_deadline_ns(&fleet), now_ns + 3 * NS_PER_S);
	agent(0, EXIT_CODE, 0);
	now_ns += 3 * NS_PER_S;
	step((struct fleet_event){ FLEET_EV_TIMER });
	ck_assert_ptr_nonnull(find(FLEET_DO_DROP, 1));
	ck_assert(find(FLEET_DO_TELL, 1)->late);
	ck_assert_ptr_null(find(FLEET_DO_TELL, 0));
	ck_assert_int_eq(end_code(), 0);
	finish();
}
