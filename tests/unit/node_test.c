/* A node: agent, search and coordinator joined, from start to exit. First a job on a single host,
 * then the parts that only a node among others has. */
#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "core/node/node.h"

static struct node node;
static struct node_actions actions;
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
			  .period_ns = NS_PER_S,
			  .lease_periods = 4,
			  .role = "default",
			  .name = "host",
			  .store_host = "localhost",
			  .store_port = 4711 },
		.join_timeout_ns = 600 * NS_PER_S,
	};
}

/* ---- steps ---- */

static struct note notes[16];
static size_t note_count;

/* Notes change nothing: they are kept apart. */
static void take_notes(void)
{
	size_t kept = 0;
	for (size_t i = 0; i < actions.count; i++)
		if (actions.items[i].type != NODE_DO_NOTE)
			actions.items[kept++] = actions.items[i];
		else if (note_count < ARRAY_LEN(notes))
			notes[note_count++] = actions.items[i].note;
	actions.count = kept;
}

static bool noted(enum note_kind kind)
{
	for (size_t i = 0; i < note_count; i++)
		if (notes[i].kind == kind)
			return true;
	return false;
}

/* Steps one event; the actions it caused are in `actions`. */
static void step(const struct node_event *event)
{
	node_actions_clear(&actions);
	now_ns += NS_PER_MS;
	node_step(&node, event, now_ns, &actions);
	take_notes();
}

static void step_type(enum node_event_type type)
{
	step(&(struct node_event){ .type = type });
}

static void step_host(const struct agent_event *event)
{
	step(&(struct node_event){ .type = NODE_EV_HOST, .agent = *event });
}

static void step_host_type(enum agent_event_type type)
{
	step_host(&(struct agent_event){ .type = type });
}

static void step_store(uint16_t port)
{
	step(&(struct node_event){ .type = NODE_EV_STORE, .host = "localhost", .port = port });
}

static void stop(int signal)
{
	step_host(&(struct agent_event){ .type = AGENT_STOP_REQUESTED, .signal = signal });
}

static void fail_worker(int32_t local_rank, int code)
{
	step_host(&(struct agent_event){ .type = AGENT_GROUP_FAILED,
					 .cause = { .local_rank = local_rank,
						    .pid = 77,
						    .status = { EXIT_CODE, code, false } },
					 .died_ns = now_ns });
}

static const struct node_action *find(enum node_action_type type)
{
	for (size_t i = 0; i < actions.count; i++)
		if (actions.items[i].type == type)
			return &actions.items[i];
	return NULL;
}

static const struct agent_action *find_host(enum agent_action_type type)
{
	for (size_t i = 0; i < actions.count; i++)
		if (actions.items[i].type == NODE_DO_HOST && actions.items[i].agent.type == type)
			return &actions.items[i].agent;
	return NULL;
}

static const struct agent_action *only(enum agent_action_type type)
{
	ck_assert_uint_eq(actions.count, 1);
	ck_assert_int_eq(actions.items[0].type, NODE_DO_HOST);
	ck_assert_int_eq(actions.items[0].agent.type, type);
	return &actions.items[0].agent;
}

/* ---- a job on a single host ---- */

static void init_alone(const struct agent_config *config)
{
	node_init(&node, &(struct node_config){ .kind = NODE_ALONE,
						.agent = *config,
						.coordinator = COORDINATOR_CONFIG_INIT });
}

static void start(const struct agent_config *config)
{
	init_alone(config);
	step_type(NODE_EV_START);
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
	ck_assert_uint_eq(node_deadline_ns(&node), NS_NEVER);
	ck_assert(noted(NOTE_FORMED));
}

TEST(success_ends_the_job_when_the_last_process_is_gone)
{
	struct agent_config config = config_of(0);
	start(&config);
	step_host_type(AGENT_GROUP_DONE);
	ck_assert_uint_eq(actions.count, 0);
	step_host_type(AGENT_GROUP_GONE);
	ck_assert_int_eq(only(AGENT_EXIT)->outcome.kind, OUTCOME_DONE);
	ck_assert(noted(NOTE_CLOSED));
}

TEST(a_failure_restarts_the_group_until_the_budget_is_used)
{
	struct agent_config config = config_of(2);
	start(&config);
	for (uint32_t restart = 1; restart <= 2; restart++) {
		fail_worker(1, 9);
		ck_assert_uint_eq(actions.count, 0);
		step_store((uint16_t)(4711 + restart));
		step_host_type(AGENT_GROUP_GONE);
		const struct agent_action *action = only(AGENT_GROUP_START);
		ck_assert_uint_eq(action->formed.restarts, restart);
		ck_assert_uint_eq(action->formed.master_port, 4711 + restart);
		ck_assert_uint_eq(action->ballot.round, restart + 1);
	}
	fail_worker(3, 5);
	step_host_type(AGENT_GROUP_GONE);
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
	step_host_type(AGENT_GROUP_GONE);
	ck_assert_int_eq(only(AGENT_EXIT)->outcome.kind, OUTCOME_FAILED);
	ck_assert_uint_eq(only(AGENT_EXIT)->outcome.restarts, 0);
}

TEST(a_program_that_is_not_there_is_not_tried_again)
{
	struct agent_config config = config_of(5);
	start(&config);
	step_host(
		&(struct agent_event){ .type = AGENT_GROUP_FAILED,
				       .cause = { .reason = FAILURE_SPAWN, .spawn_errno = ENOENT },
				       .died_ns = now_ns });
	step_host_type(AGENT_GROUP_GONE);
	ck_assert_int_eq(only(AGENT_EXIT)->outcome.kind, OUTCOME_FAILED);
	ck_assert_int_eq(only(AGENT_EXIT)->outcome.cause.spawn_errno, ENOENT);
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
		step_host_type(AGENT_GROUP_GONE);
		ck_assert_uint_eq(actions.count, 0);
		ck_assert_uint_eq(node_deadline_ns(&node), now_ns + pauses_s[i] * NS_PER_S);
		step_type(NODE_EV_TIMER);
		ck_assert_uint_eq(actions.count, 0);
		now_ns = node_deadline_ns(&node);
		step_type(NODE_EV_TIMER);
		only(AGENT_GROUP_START);
	}
}

TEST(a_signal_while_workers_run_stops_them_and_then_the_job)
{
	struct agent_config config = config_of(3);
	start(&config);
	stop(SIGTERM);
	const struct agent_action *action = only(AGENT_GROUP_STOP);
	ck_assert_int_eq(action->why, GROUP_STOP_SIGNAL);
	ck_assert_int_eq(action->signal, SIGTERM);
	stop(SIGINT);
	ck_assert_int_eq(only(AGENT_GROUP_STOP)->signal, SIGINT);
	step_host_type(AGENT_GROUP_GONE);
	ck_assert_int_eq(only(AGENT_EXIT)->outcome.kind, OUTCOME_SIGNAL);
	ck_assert_int_eq(only(AGENT_EXIT)->outcome.signal, SIGTERM);
}

TEST(a_signal_before_the_start_ends_the_job)
{
	struct agent_config config = config_of(3);
	init_alone(&config);
	stop(SIGINT);
	ck_assert_int_eq(only(AGENT_EXIT)->outcome.signal, SIGINT);
	step_type(NODE_EV_START);
	ck_assert_uint_eq(actions.count, 0);
}

TEST(a_signal_during_the_pause_before_a_restart_ends_the_job)
{
	struct agent_config config = config_of(3);
	config.node.backoff_ns = config.node.backoff_max_ns = NS_PER_S;
	start(&config);
	fail_worker(0, 1);
	step_host_type(AGENT_GROUP_GONE);
	stop(SIGINT);
	ck_assert_int_eq(only(AGENT_EXIT)->outcome.kind, OUTCOME_SIGNAL);
	ck_assert(only(AGENT_EXIT)->outcome.has_cause);
}

TEST(a_signal_while_a_failed_group_ends_waits_for_it)
{
	struct agent_config config = config_of(3);
	start(&config);
	fail_worker(0, 1);
	stop(SIGINT);
	ck_assert_int_eq(only(AGENT_GROUP_STOP)->signal, SIGINT);
	step_host_type(AGENT_GROUP_GONE);
	ck_assert_int_eq(only(AGENT_EXIT)->outcome.kind, OUTCOME_SIGNAL);
}

TEST(a_worker_that_cannot_be_killed_ends_this_host)
{
	struct agent_config config = config_of(3);
	start(&config);
	step_host(&(struct agent_event){
		.type = AGENT_GROUP_STUCK, .cause = { .local_rank = 2 }, .died_ns = now_ns });
	ck_assert_int_eq(only(AGENT_EXIT)->outcome.kind, OUTCOME_FAILED);
	ck_assert_int_eq(only(AGENT_EXIT)->outcome.cause.rank, 2);
}

/* ---- among others ---- */

#define OTHER 7 /* the link of another agent to the coordinator here */

static void init_among(enum node_kind kind, uint32_t endpoints, uint32_t nodes)
{
	struct node_config config = { .kind = kind,
				      .agent = config_of(3),
				      .finder = { .count = endpoints,
						  .failover_after_ns = 10 * NS_PER_S },
				      .coordinator = COORDINATOR_CONFIG_INIT };
	config.agent.node.min_nodes = config.agent.node.max_nodes = nodes;
	config.coordinator.id = 100;
	note_count = 0;
	node_init(&node, &config);
	step_type(NODE_EV_START);
	ck_assert_ptr_nonnull(find(NODE_DO_LISTEN));
}

static void listening(int32_t index)
{
	step(&(struct node_event){ .type = NODE_EV_LISTENING, .index = index });
}

static void term(uint64_t epoch, bool here)
{
	step(&(struct node_event){ .type = NODE_EV_TERM,
				   .term = { .epoch = epoch, .here = here } });
}

static void answer(int32_t index, enum finder_answer said)
{
	step(&(struct node_event){ .type = NODE_EV_ANSWER,
				   .index = index,
				   .probe = node.search.finder.probe,
				   .answer = said });
}

static void link_up(uint64_t link)
{
	step(&(struct node_event){ .type = NODE_EV_LINK_UP, .link = link });
}

static void timer(void)
{
	now_ns = MAX(now_ns, node_deadline_ns(&node));
	step_type(NODE_EV_TIMER);
}

/* What another agent says to the coordinator here. */
static void other_says(struct msg msg)
{
	struct node_info info = config_of(3).node;
	info.id.lo = 99;
	info.min_nodes = info.max_nodes = 2;
	info.can = CAN_ASK;
	if (msg.type == MSG_JOIN)
		msg.join.node = &info;
	step(&(struct node_event){
		.type = NODE_EV_MSG, .link = OTHER, .msg = &msg, .greeted_ns = now_ns });
}

static struct memory other_memory(enum work_state work, enum ruling ruling)
{
	struct memory memory = node.agent.memory;
	memory.group_rank = 1;
	memory.joined_id = JOINED_NOBODY;
	memory.work = work;
	memory.ruling = ruling;
	return memory;
}

static void other_joins(enum work_state work, enum ruling ruling)
{
	struct memory memory =
		ruling || work ? other_memory(work, ruling)
			       : (struct memory){ .group_rank = -1, .coordinator_index = -1 };
	other_says((struct msg){ .type = MSG_JOIN,
				 .ballot = memory.heard.ballot,
				 .join = { .attempt = 1, .memory = memory } });
}

/* This node coordinates a round of two, in which it is one. */
static void run_two(void)
{
	init_among(NODE_ENDPOINTS, 1, 2);
	listening(0);
	ck_assert_ptr_nonnull(find(NODE_DO_PLACE_STORE));
	step_store(4711);
	other_joins(WORK_IDLE, RULING_NONE);
	ck_assert_ptr_nonnull(find_host(AGENT_GROUP_START));
	ck_assert_uint_eq(find(NODE_DO_SEND)->link, OTHER);
}

/* Both are done and know it; the other one has not left yet. */
static void close_two(void)
{
	run_two();
	step_host_type(AGENT_GROUP_DONE);
	step_host_type(AGENT_GROUP_GONE);
	other_says((struct msg){ .type = MSG_DONE, .ballot = node.agent.memory.heard.ballot });
	other_joins(WORK_DONE, RULING_DONE);
	ck_assert_int_eq(node.coordinator->state, COORDINATOR_CLOSED);
}

TEST(the_owner_of_the_only_endpoint_coordinates_and_joins_itself)
{
	init_among(NODE_ENDPOINTS, 1, 2);
	listening(0);
	ck_assert(node_coordinates(&node));
	ck_assert(noted(NOTE_COORDINATES));
	ck_assert_uint_eq(find(NODE_DO_PLACE_STORE)->link, 0);
	ck_assert_int_eq(node.agent.state, AGENT_SEEKING); /* its JOIN would name no store */
	step_store(4711);
	ck_assert_int_eq(node.agent.state, AGENT_JOINED);
	ck_assert(noted(NOTE_JOINED));
}

TEST(a_node_without_an_endpoint_links_to_the_one_that_coordinates)
{
	init_among(NODE_ENDPOINTS, 2, 2);
	listening(-1);
	ck_assert_ptr_nonnull(find(NODE_DO_PROBE));
	answer(1, FINDER_COORDINATES);
	ck_assert_int_eq(find(NODE_DO_CONNECT)->index, 1);
	link_up(3);
	ck_assert_uint_eq(find(NODE_DO_PLACE_STORE)->link, 3);
	step_store(4711);
	ck_assert_uint_eq(find(NODE_DO_SEND)->link, 3);
	ck_assert_int_eq(find(NODE_DO_SEND)->msg.type, MSG_JOIN);
	step(&(struct node_event){ .type = NODE_EV_LINK_DOWN, .link = 3, .dead = true });
	ck_assert_ptr_nonnull(find(NODE_DO_PROBE)); /* the search begins anew */
}

TEST(endpoints_that_refused_are_told_to_the_agent_with_its_link)
{
	init_among(NODE_ENDPOINTS, 2, 2);
	listening(1);
	answer(0, FINDER_REFUSED);
	ck_assert(node_coordinates(&node));
	ck_assert_uint_eq(node.dead_indexes, 1);
}

TEST(a_link_that_could_not_be_made_is_tried_again_later)
{
	init_among(NODE_ENDPOINTS, 2, 2);
	listening(-1);
	answer(0, FINDER_COORDINATES);
	step_type(NODE_EV_NOT_LINKED);
	ck_assert_uint_eq(actions.count, 0);
	ck_assert_uint_eq(node_deadline_ns(&node), now_ns + SEARCH_RETRY_NS);
	timer();
	ck_assert_ptr_nonnull(find(NODE_DO_PROBE));
}

TEST(a_long_search_tries_to_listen_again)
{
	init_among(NODE_ENDPOINTS, 1, 2);
	listening(-1);
	bool tried = false;
	for (int i = 0; i < 20 && !tried; i++) {
		answer(0, FINDER_REFUSED);
		timer();
		tried = find(NODE_DO_LISTEN);
	}
	ck_assert(tried);
	listening(0);
	ck_assert(node_coordinates(&node));
}

TEST(a_place_without_a_store_ends_the_node_with_the_reason)
{
	init_among(NODE_ENDPOINTS, 1, 2);
	listening(0);
	step_host(&(struct agent_event){ .type = AGENT_BARRED, .text = "port is taken" });
	ck_assert_str_eq(find_host(AGENT_EXIT)->outcome.text, "port is taken");
}

static void refused_by_peer(void)
{
	step_host(&(struct agent_event){
		.type = AGENT_BARRED, .text = "another version", .by_peer = true });
}

TEST(a_peer_that_refuses_a_node_ends_it_when_it_does_so_again)
{
	init_among(NODE_ENDPOINTS, 1, 2);
	listening(-1);
	refused_by_peer();
	ck_assert_int_eq(node.agent.state, AGENT_SEEKING);
	refused_by_peer();
	ck_assert_str_eq(find_host(AGENT_EXIT)->outcome.text, "another version");
}

TEST(no_peer_ends_a_node_that_has_been_linked)
{
	init_among(NODE_ENDPOINTS, 1, 2);
	listening(-1);
	refused_by_peer();
	answer(0, FINDER_COORDINATES);
	link_up(3);
	step_store(4711);
	step(&(struct node_event){ .type = NODE_EV_LINK_DOWN, .link = 3, .dead = true });
	ck_assert_int_eq(node.agent.state, AGENT_SEEKING);
	for (int i = 0; i < 3; i++) {
		refused_by_peer();
		ck_assert_ptr_null(find_host(AGENT_EXIT));
	}
	step_host(&(struct agent_event){ .type = AGENT_BARRED, .text = "port is taken" });
	ck_assert_str_eq(find_host(AGENT_EXIT)->outcome.text, "port is taken");
}

TEST(the_outcome_is_held_back_until_the_others_know_it)
{
	close_two();
	ck_assert_int_eq(node.agent.state, AGENT_ENDED);
	ck_assert_ptr_null(find_host(AGENT_EXIT));
	other_says((struct msg){ .type = MSG_LEAVE, .leave = { LEAVE_CLOSED, true } });
	ck_assert_int_eq(find_host(AGENT_EXIT)->outcome.kind, OUTCOME_DONE);
}

TEST(who_waits_for_others_to_hear_of_the_end_does_not_say_that_it_stays)
{
	close_two();
	note_count = 0;
	for (int i = 0; i < 100 && !find_host(AGENT_EXIT); i++)
		timer();
	ck_assert(!noted(NOTE_STAYS));
}

TEST(the_outcome_is_held_back_no_longer_than_the_close_timeout)
{
	close_two();
	for (int i = 0; i < 100 && !find_host(AGENT_EXIT); i++)
		timer();
	ck_assert_int_eq(find_host(AGENT_EXIT)->outcome.kind, OUTCOME_DONE);
}

TEST(a_stop_request_releases_the_outcome)
{
	close_two();
	stop(SIGTERM);
	ck_assert_int_eq(only(AGENT_EXIT)->outcome.kind, OUTCOME_DONE);
}

static void other_leaves(bool empty)
{
	other_says((struct msg){ .type = MSG_LEAVE,
				 .ballot = node.agent.memory.heard.ballot,
				 .leave = { LEAVE_SIGNAL, empty } });
}

TEST(a_process_that_is_stopped_stays_while_another_that_leaves_has_workers)
{
	run_two();
	stop(SIGTERM);
	other_leaves(false);
	step_host_type(AGENT_GROUP_GONE);
	ck_assert_ptr_null(find_host(AGENT_EXIT));
	ck_assert(!noted(NOTE_STAYS));
	other_leaves(true);
	ck_assert_int_eq(find_host(AGENT_EXIT)->outcome.kind, OUTCOME_SIGNAL);
}

TEST(a_process_that_stays_for_others_says_so_once_after_a_while)
{
	run_two();
	stop(SIGTERM);
	other_leaves(false);
	step_host_type(AGENT_GROUP_GONE);
	ck_assert_uint_le(node_deadline_ns(&node), now_ns + NODE_TELL_STAY_NS);
	for (int i = 0; i < 2; i++) {
		note_count = 0;
		now_ns += NODE_TELL_STAY_NS;
		step_type(NODE_EV_TIMER);
		ck_assert(noted(NOTE_STAYS) == (i == 0));
	}
}

TEST(a_second_signal_ends_a_process_that_stays_for_others)
{
	run_two();
	stop(SIGTERM);
	other_leaves(false);
	step_host_type(AGENT_GROUP_GONE);
	stop(SIGTERM);
	ck_assert_int_eq(find_host(AGENT_EXIT)->outcome.kind, OUTCOME_SIGNAL);
}

TEST(a_process_that_is_stopped_does_not_stay_for_those_that_go_on)
{
	run_two();
	stop(SIGTERM);
	step_host_type(AGENT_GROUP_GONE);
	ck_assert_int_eq(find_host(AGENT_EXIT)->outcome.kind, OUTCOME_SIGNAL);
}

TEST(a_coordinator_that_steps_down_releases_the_outcome)
{
	close_two();
	struct ballot higher = node.agent.memory.heard.ballot;
	higher.epoch += 1 << BALLOT_SALT_BITS;
	other_says((struct msg){
		.type = MSG_LEAVE, .ballot = higher, .leave = { LEAVE_SUPERSEDED, true } });
	ck_assert(!node_coordinates(&node));
	ck_assert_int_eq(find_host(AGENT_EXIT)->outcome.kind, OUTCOME_DONE);
}

TEST(a_coordinator_that_steps_down_hangs_up_on_all_and_the_search_begins)
{
	run_two();
	struct ballot higher = node.agent.memory.heard.ballot;
	higher.epoch += 1 << BALLOT_SALT_BITS;
	other_says((struct msg){
		.type = MSG_LEAVE, .ballot = higher, .leave = { LEAVE_SUPERSEDED, true } });
	ck_assert(noted(NOTE_SUPERSEDED));
	ck_assert_ptr_nonnull(find(NODE_DO_HANG_UP_ALL));
	ck_assert_ptr_nonnull(find_host(AGENT_GROUP_KILL)); /* no lease, no workers */
	/* With one endpoint, its own: nobody else can have it, so it begins anew at once. */
	ck_assert(node_coordinates(&node));
	ck_assert_uint_eq(node.coordinator->config.id, 101);
}

/* An agent that was in a round of `nodes` nodes joins the coordinator here. */
static void veteran_joins(uint64_t link, struct ballot ballot, uint32_t nodes)
{
	struct node_info info = config_of(3).node;
	info.id.lo = link;
	info.min_nodes = node.config.agent.node.min_nodes;
	info.max_nodes = node.config.agent.node.max_nodes;
	struct msg msg = { .type = MSG_JOIN,
			   .ballot = ballot,
			   .join = { .node = &info,
				     .attempt = 1,
				     .memory = { .heard = { ballot, nodes },
						 .base = { ballot, nodes },
						 .member_of = { ballot },
						 .joined_id = JOINED_NOBODY,
						 .work = WORK_DONE,
						 .group_rank = 0,
						 .coordinator_index = -1 } } };
	step(&(struct node_event){
		.type = NODE_EV_MSG, .link = link, .msg = &msg, .greeted_ns = now_ns });
}

static bool sent(enum msg_type type)
{
	for (size_t i = 0; i < actions.count; i++)
		if (actions.items[i].type == NODE_DO_SEND && actions.items[i].msg.type == type)
			return true;
	return false;
}

/* It was started anew and has formed a round of itself, when agents come that know a higher one:
 * the coordinator gives way to the next, in the same process. */
TEST(the_next_coordinator_here_waits_for_the_workers_of_the_last)
{
	const struct ballot higher = { (uint64_t)9 << BALLOT_SALT_BITS, 4 };
	init_among(NODE_ENDPOINTS, 1, 1);
	listening(0);
	step_store(4711);
	ck_assert_ptr_nonnull(find_host(AGENT_GROUP_START));
	veteran_joins(OTHER, higher, 2);
	ck_assert_ptr_nonnull(find_host(AGENT_GROUP_KILL));
	ck_assert(node_coordinates(&node));
	uint64_t killed_ns = now_ns;
	now_ns += 3 * NS_PER_S;
	veteran_joins(OTHER + 1, higher, 2);
	veteran_joins(OTHER + 2, higher, 2); /* both are back: nothing else to wait for */
	while (!sent(MSG_STOP) && !sent(MSG_FORMED)) {
		ck_assert_uint_le(now_ns, killed_ns + 5 * NS_PER_S + 2 * NS_PER_MS);
		timer();
	}
	ck_assert_uint_ge(now_ns, killed_ns + 5 * NS_PER_S);
}

/* The link to the other host ends, and this one is asked last: all in one step. */
TEST(what_a_coordinator_asks_while_it_steps_down_is_still_there_for_the_shell)
{
	enum { ASKER = OTHER + 1 };
	run_two();
	struct msg msg = { .type = MSG_ASK,
			   .ask = { .id = 9,
				    .ask = { .kind = ASK_STOP,
					     .timeout_ns = 5 * NS_PER_S,
					     .args = bytes_of("TERM", 4) } } };
	step(&(struct node_event){ .type = NODE_EV_MSG, .link = ASKER, .msg = &msg });
	ck_assert_ptr_null(find(NODE_DO_ASKED));
	struct ballot higher = node.agent.memory.heard.ballot;
	higher.epoch += 1 << BALLOT_SALT_BITS;
	other_says((struct msg){
		.type = MSG_LEAVE, .ballot = higher, .leave = { LEAVE_SUPERSEDED, true } });
	ck_assert(noted(NOTE_SUPERSEDED));
	struct questions *other = questions_new(); /* would take the place of what is freed */
	const struct node_action *asked = find(NODE_DO_ASKED);
	ck_assert_ptr_nonnull(asked);
	ck_assert_int_eq(asked->msg.type, MSG_QUESTION);
	ck_assert(bytes_eq(asked->msg.question.ask.args, bytes_of("TERM", 4)));
	questions_free(other);
	node_done(&node);
}

TEST(a_node_that_an_arbiter_names_coordinates_under_its_epoch)
{
	init_among(NODE_ARBITER, 0, 2);
	term(5, true);
	ck_assert(node_coordinates(&node));
	ck_assert_uint_eq(node.coordinator->epoch, 5);
	ck_assert_ptr_nonnull(find(NODE_DO_PLACE_STORE));
}

TEST(a_new_term_replaces_a_coordinator_of_the_same_process)
{
	init_among(NODE_ARBITER, 0, 2);
	term(5, true);
	step_store(4711);
	term(6, true);
	ck_assert_uint_eq(node.coordinator->epoch, 6);
	ck_assert_uint_eq(node.coordinators, 2);
	ck_assert_int_eq(node.link_state, NODE_PLACING);
	term(4, false); /* old news */
	ck_assert_uint_eq(node.coordinator->epoch, 6);
}

TEST(a_coordinator_does_not_begin_again_in_the_term_in_which_it_stepped_down)
{
	init_among(NODE_ARBITER, 0, 2);
	term(5, true);
	step_store(4711);
	other_says((struct msg){
		.type = MSG_LEAVE, .ballot = { 6, 1 }, .leave = { LEAVE_SUPERSEDED, true } });
	ck_assert(!node_coordinates(&node));
	step_type(NODE_EV_TIMER);
	ck_assert(!node_coordinates(&node));
	term(7, true);
	ck_assert(node_coordinates(&node));
}

/* All members of a round are done. Then one comes that was in a later round, under a term before
 * this one: no other process leads. */
TEST(a_coordinator_that_ruled_too_early_begins_again_in_the_same_term)
{
	init_among(NODE_ARBITER, 0, 2);
	term(5, true);
	step_store(4711);
	veteran_joins(OTHER, (struct ballot){ 4, 2 }, 2);
	veteran_joins(OTHER + 1, (struct ballot){ 4, 2 }, 2);
	ck_assert_int_eq(node.coordinator->state, COORDINATOR_CLOSING);
	veteran_joins(OTHER + 2, (struct ballot){ 4, 3 }, 2);
	ck_assert(noted(NOTE_SUPERSEDED));
	ck_assert(node_coordinates(&node));
	ck_assert_uint_eq(node.coordinator->epoch, 5);
	ck_assert_int_eq(node.coordinator->state, COORDINATOR_GATHERING);
}

TEST(a_new_leader_calls_off_the_connection_to_the_one_before)
{
	init_among(NODE_ARBITER, 0, 2);
	term(5, false);
	ck_assert_int_eq(find(NODE_DO_CONNECT)->index, -1);
	term(6, false);
	ck_assert_uint_eq(find(NODE_DO_HANG_UP)->link, 0);
	ck_assert_ptr_nonnull(find(NODE_DO_CONNECT));
}

/* It begins here when the arbiter names this host, while the agent is still with the one before. */
TEST(a_question_that_was_passed_on_goes_on_when_a_coordinator_begins_here)
{
	enum { COORDINATOR = 3, ASKER = 7 };
	init_among(NODE_ARBITER, 0, 2);
	term(5, false);
	step(&(struct node_event){ .type = NODE_EV_LINK_UP, .link = COORDINATOR, .can = CAN_ASK });
	step_store(4711);
	struct msg msg = { .type = MSG_FORMED,
			   .ballot = { 5, 1 },
			   .formed = { .nodes = 2, .group_rank = 1, .world_size = 8 } };
	step(&(struct node_event){ .type = NODE_EV_MSG, .link = COORDINATOR, .msg = &msg });
	msg = (struct msg){ .type = MSG_ASK,
			    .ask = { .id = 9, .ask = { .timeout_ns = 5 * NS_PER_S } } };
	step(&(struct node_event){ .type = NODE_EV_MSG, .link = ASKER, .msg = &msg });
	ck_assert_int_eq(find(NODE_DO_SEND)->msg.type, MSG_ASK);
	uint32_t passed_on_as = find(NODE_DO_SEND)->msg.ask.id;
	term(6, true);
	ck_assert(node_coordinates(&node));
	ck_assert_int_eq(node.link_state, NODE_LINKED);
	msg = (struct msg){ .type = MSG_TAKEN, .taken = { .id = 9, .pieces = 1 } };
	step(&(struct node_event){ .type = NODE_EV_MSG, .link = ASKER, .msg = &msg });
	ck_assert_ptr_nonnull(find(NODE_DO_SEND));
	ck_assert_uint_eq(find(NODE_DO_SEND)->link, COORDINATOR);
	ck_assert_int_eq(find(NODE_DO_SEND)->msg.type, MSG_TAKEN);
	ck_assert_uint_eq(find(NODE_DO_SEND)->msg.taken.id, passed_on_as);
}

TEST(a_link_that_nobody_wants_any_more_is_hung_up)
{
	init_among(NODE_ARBITER, 0, 2);
	term(5, true);
	link_up(3);
	ck_assert_uint_eq(find(NODE_DO_HANG_UP)->link, 3);
}

TEST(a_closed_coordinator_gives_way_to_no_other)
{
	init_among(NODE_ARBITER, 0, 1);
	term(5, true);
	step_store(4711);
	ck_assert_ptr_nonnull(find_host(AGENT_GROUP_START));
	step_host_type(AGENT_GROUP_DONE);
	ck_assert_int_eq(node.coordinator->state, COORDINATOR_CLOSING);
	step_host_type(AGENT_GROUP_GONE);
	ck_assert_int_eq(node.coordinator->state, COORDINATOR_CLOSED);
	term(6, true);
	ck_assert_uint_eq(node.coordinator->epoch, 5);
}

TEST(a_coordinator_apart_ends_with_the_job)
{
	node_init(&node, &(struct node_config){ .kind = NODE_APART,
						.coordinator = COORDINATOR_CONFIG_INIT });
	step_type(NODE_EV_START);
	ck_assert(node_coordinates(&node));
	ck_assert_uint_eq(actions.count, 0);
	struct node_info info = config_of(0).node;
	struct memory memory = { .group_rank = -1, .coordinator_index = -1 };
	struct msg msg = { .type = MSG_JOIN,
			   .join = { .node = &info, .attempt = 1, .memory = memory } };
	step(&(struct node_event){
		.type = NODE_EV_MSG, .link = OTHER, .msg = &msg, .greeted_ns = now_ns });
	const struct msg *formed = &find(NODE_DO_SEND)->msg;
	ck_assert_int_eq(formed->type, MSG_FORMED);
	struct ballot ballot = formed->ballot;
	memory_enter(&memory, &(struct round_ref){ ballot, 1 }, &formed->formed.base);
	memory.work = WORK_FAILED;
	struct cause cause = { .status = { EXIT_CODE, 3, false } };
	other_says((struct msg){ .type = MSG_FAILED, .ballot = ballot, .failed = { cause } });
	memory.ruling = RULING_FAILED;
	msg = (struct msg){ .type = MSG_JOIN,
			    .ballot = ballot,
			    .join = { &info, 1, memory, cause } };
	step(&(struct node_event){
		.type = NODE_EV_MSG, .link = OTHER, .msg = &msg, .greeted_ns = now_ns });
	ck_assert_int_eq(node.coordinator->state, COORDINATOR_CLOSED);
	other_says((struct msg){ .type = MSG_LEAVE, .leave = { LEAVE_CLOSED, true } });
	const struct outcome *outcome = &find_host(AGENT_EXIT)->outcome;
	ck_assert_int_eq(outcome->kind, OUTCOME_FAILED);
	ck_assert_int_eq(outcome->cause.status.value, 3);
}
