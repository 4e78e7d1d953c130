/* A job on one host: agent and coordinator in one process, from start to exit. */
#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "core/rounds/local.h"

static struct local local;
static struct agent_actions actions;
static uint64_t now_ns = 1000 * NS_PER_S;

static struct agent_config config_of(uint32_t max_restarts)
{
	return (struct agent_config){
		.node = { .id = { 1, 2 },
			  .min_nodes = 1,
			  .max_nodes = 1,
			  .nproc = 4,
			  .node_rank = -1,
			  .max_restarts = max_restarts,
			  .role = "default",
			  .name = "host",
			  .store_host = "localhost",
			  .store_port = 4711 },
		.join_timeout_ns = 600 * NS_PER_S,
	};
}

/* Steps one event; the actions it caused are in `actions`. */
static void step(const struct agent_event *event)
{
	actions.count = 0;
	now_ns += NS_PER_MS;
	local_step(&local, event, now_ns, &actions);
}

static void step_type(enum agent_event_type type)
{
	step(&(struct agent_event){ .type = type });
}

static void start(const struct agent_config *config)
{
	local_init(&local, config);
	step_type(AGENT_START);
}

static void fail_worker(int32_t local_rank, int code)
{
	step(&(struct agent_event){ .type = AGENT_GROUP_FAILED,
				    .cause = { .local_rank = local_rank,
					       .pid = 77,
					       .status = { EXIT_CODE, code, false } },
				    .died_ns = now_ns });
}

static const struct agent_action *only(enum agent_action_type type)
{
	ck_assert_uint_eq(actions.count, 1);
	ck_assert_int_eq(actions.items[0].type, type);
	return &actions.items[0];
}

TEST(a_single_host_forms_at_once_and_starts_its_group)
{
	struct agent_config config = config_of(0);
	start(&config);
	const struct msg_formed *formed = &only(AGENT_GROUP_START)->formed;
	ck_assert_uint_eq(formed->nodes, 1);
	ck_assert_uint_eq(formed->world_size, 4);
	ck_assert_uint_eq(formed->role_world_size, 4);
	ck_assert(formed->hosts_store);
	ck_assert_str_eq(formed->master_host, "localhost");
	ck_assert_uint_eq(formed->master_port, 4711);
	ck_assert_uint_eq(local_deadline_ns(&local), NS_NEVER);
}

TEST(success_ends_the_job_when_the_last_process_is_gone)
{
	struct agent_config config = config_of(0);
	start(&config);
	step_type(AGENT_GROUP_DONE);
	ck_assert_uint_eq(actions.count, 0);
	step_type(AGENT_GROUP_GONE);
	ck_assert_int_eq(only(AGENT_EXIT)->outcome.kind, OUTCOME_DONE);
}

TEST(a_failure_restarts_the_group_until_the_budget_is_used)
{
	struct agent_config config = config_of(2);
	start(&config);
	for (uint32_t restart = 1; restart <= 2; restart++) {
		fail_worker(1, 9);
		ck_assert_uint_eq(actions.count, 0);
		agent_set_store(&local.agent, "localhost", (uint16_t)(4711 + restart));
		step_type(AGENT_GROUP_GONE);
		const struct agent_action *action = only(AGENT_GROUP_START);
		ck_assert_uint_eq(action->formed.restarts, restart);
		ck_assert_uint_eq(action->formed.master_port, 4711 + restart);
		ck_assert_uint_eq(action->ballot.round, restart + 1);
	}
	fail_worker(3, 5);
	step_type(AGENT_GROUP_GONE);
	const struct outcome *outcome = &only(AGENT_EXIT)->outcome;
	ck_assert_int_eq(outcome->kind, OUTCOME_FAILED);
	ck_assert_int_eq(outcome->cause.status.value, 5);
	ck_assert_int_eq(outcome->cause.rank, 3);
	ck_assert_int_eq(outcome->cause.pid, 77);
	ck_assert_str_eq(outcome->cause.name, "host");
	ck_assert_uint_eq(outcome->restarts, 2);
}

TEST(an_end_that_is_not_worth_a_restart_ends_the_job)
{
	struct agent_config config = config_of(5);
	ck_assert_int_eq(exit_set_parse("9", &config.no_restart_on, NULL), 0);
	start(&config);
	fail_worker(0, 9);
	step_type(AGENT_GROUP_GONE);
	ck_assert_int_eq(only(AGENT_EXIT)->outcome.kind, OUTCOME_FAILED);
	ck_assert_uint_eq(actions.items[0].outcome.restarts, 0);
}

TEST(a_program_that_is_not_there_is_not_tried_again)
{
	struct agent_config config = config_of(5);
	start(&config);
	step(&(struct agent_event){ .type = AGENT_GROUP_FAILED,
				    .cause = { .reason = FAILURE_SPAWN, .spawn_errno = ENOENT },
				    .died_ns = now_ns });
	step_type(AGENT_GROUP_GONE);
	ck_assert_int_eq(only(AGENT_EXIT)->outcome.kind, OUTCOME_FAILED);
	ck_assert_int_eq(actions.items[0].outcome.cause.spawn_errno, ENOENT);
}

TEST(restarts_back_off_exponentially)
{
	struct agent_config config = config_of(3);
	config.node.backoff_ns = 2 * NS_PER_S;
	config.node.backoff_max_ns = 3 * NS_PER_S;
	start(&config);
	static const uint64_t pauses_s[] = { 2, 3, 3 };
	for (size_t i = 0; i < ARRAY_LEN(pauses_s); i++) {
		fail_worker(0, 1);
		step_type(AGENT_GROUP_GONE);
		ck_assert_uint_eq(actions.count, 0);
		ck_assert_uint_eq(local_deadline_ns(&local), now_ns + pauses_s[i] * NS_PER_S);
		step_type(AGENT_TIMER);
		ck_assert_uint_eq(actions.count, 0);
		now_ns = local_deadline_ns(&local);
		step_type(AGENT_TIMER);
		only(AGENT_GROUP_START);
	}
}

TEST(a_signal_while_workers_run_stops_them_and_then_the_job)
{
	struct agent_config config = config_of(3);
	start(&config);
	step(&(struct agent_event){ .type = AGENT_STOP_REQUESTED, .signal = SIGTERM });
	const struct agent_action *action = only(AGENT_GROUP_STOP);
	ck_assert_int_eq(action->why, GROUP_STOP_SIGNAL);
	ck_assert_int_eq(action->signal, SIGTERM);
	step(&(struct agent_event){ .type = AGENT_STOP_REQUESTED, .signal = SIGINT });
	ck_assert_int_eq(only(AGENT_GROUP_STOP)->signal, SIGINT);
	step_type(AGENT_GROUP_GONE);
	ck_assert_int_eq(only(AGENT_EXIT)->outcome.kind, OUTCOME_SIGNAL);
	ck_assert_int_eq(actions.items[0].outcome.signal, SIGTERM);
}

TEST(a_signal_before_the_start_ends_the_job)
{
	struct agent_config config = config_of(3);
	local_init(&local, &config);
	step(&(struct agent_event){ .type = AGENT_STOP_REQUESTED, .signal = SIGINT });
	ck_assert_int_eq(only(AGENT_EXIT)->outcome.signal, SIGINT);
	step_type(AGENT_START);
	ck_assert_uint_eq(actions.count, 0);
}

TEST(a_signal_during_the_pause_before_a_restart_ends_the_job)
{
	struct agent_config config = config_of(3);
	config.node.backoff_ns = config.node.backoff_max_ns = NS_PER_S;
	start(&config);
	fail_worker(0, 1);
	step_type(AGENT_GROUP_GONE);
	step(&(struct agent_event){ .type = AGENT_STOP_REQUESTED, .signal = SIGINT });
	ck_assert_int_eq(only(AGENT_EXIT)->outcome.kind, OUTCOME_SIGNAL);
	ck_assert(actions.items[0].outcome.has_cause);
}

TEST(a_signal_while_a_failed_group_ends_waits_for_it)
{
	struct agent_config config = config_of(3);
	start(&config);
	fail_worker(0, 1);
	step(&(struct agent_event){ .type = AGENT_STOP_REQUESTED, .signal = SIGINT });
	ck_assert_int_eq(only(AGENT_GROUP_STOP)->signal, SIGINT);
	step_type(AGENT_GROUP_GONE);
	ck_assert_int_eq(only(AGENT_EXIT)->outcome.kind, OUTCOME_SIGNAL);
}

TEST(a_worker_that_cannot_be_killed_ends_this_host)
{
	struct agent_config config = config_of(3);
	start(&config);
	step(&(struct agent_event){
		.type = AGENT_GROUP_STUCK, .cause = { .local_rank = 2 }, .died_ns = now_ns });
	ck_assert_int_eq(only(AGENT_EXIT)->outcome.kind, OUTCOME_FAILED);
	ck_assert_int_eq(actions.items[0].outcome.cause.rank, 2);
}
