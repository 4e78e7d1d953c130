/* Every cell of the agent's table: the state after each event, and what the agent does. */
#include "unit.h"

#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/clock.h"
#include "core/rounds/agent.h"
#include "core/rounds/agent_step.h"

static const struct ballot round_1 = { 5, 1 };
static struct agent agent;
static struct agent_actions actions;
static uint64_t now_ns;

static void step(const struct agent_event *event)
{
	actions.count = 0;
	now_ns += NS_PER_MS;
	agent_step(&agent, event, now_ns, &actions);
}

static void step_type(enum agent_event_type type)
{
	step(&(struct agent_event){
		.type = type, .cause = { .local_rank = 1 }, .died_ns = now_ns });
}

static void receive(const struct msg *msg)
{
	step(&(struct agent_event){ .type = AGENT_MSG, .msg = msg });
}

static void receive_formed(uint64_t round)
{
	receive(&(struct msg){
		.type = MSG_FORMED,
		.ballot = { 5, round },
		.formed = { .nodes = 2, .group_rank = 1, .rank_base = 4, .world_size = 8 } });
}

static void receive_stop(enum ruling ruling)
{
	receive(&(struct msg){ .type = MSG_STOP, .ballot = round_1, .stop = { .ruling = ruling } });
}

static void stop_requested(void)
{
	step(&(struct agent_event){ .type = AGENT_STOP_REQUESTED, .signal = 15 });
}

/* A fresh agent, brought into `state` by the events that lead there. */
static void enter(enum agent_state state)
{
	struct agent_config config = {
		.node = { .id = { 1, 1 },
			  .min_nodes = 1,
			  .max_nodes = 2,
			  .nproc = 4,
			  .node_rank = -1,
			  .period_ns = NS_PER_S,
			  .lease_periods = 4,
			  .name = "host" },
		.join_timeout_ns = 60 * NS_PER_S,
	};
	if (state == AGENT_CHECKING) {
		config.check_timeout_ns = 3 * NS_PER_S;
		config.node.by_progress = true;
	}
	now_ns = 1000 * NS_PER_S;
	agent_init(&agent, &config);
	if (state == AGENT_NEW)
		return;
	step_type(AGENT_START);
	if (state == AGENT_SEEKING)
		return;
	step_type(AGENT_LINK_UP);
	if (state == AGENT_JOINED)
		return;
	receive_formed(1);
	switch (state) {
	case AGENT_DROPPING:
		step_type(AGENT_LINK_DOWN);
		break;
	case AGENT_STOPPING:
		receive_stop(RULING_NONE);
		break;
	case AGENT_CHECKING:
		step_type(AGENT_GROUP_FAILED);
		step_type(AGENT_GROUP_GONE);
		break;
	case AGENT_WAITING:
		step_type(AGENT_GROUP_DONE);
		break;
	case AGENT_LEAVING:
		stop_requested();
		break;
	case AGENT_ENDING:
	case AGENT_ENDED:
		receive(&(struct msg){ .type = MSG_CLOSED,
				       .ballot = round_1,
				       .closed = { .ruling = RULING_DONE } });
		if (state == AGENT_ENDED)
			step_type(AGENT_GROUP_GONE);
		break;
	default:
		break;
	}
	ck_assert_int_eq(agent.state, state);
}

/* The actions of the last step as words: "JOIN", "kill", "hang-up" … */
static const char *done(void)
{
	static const char *const names[] = {
		[AGENT_SEND] = "",
		[AGENT_PEERS] = "peers",
		[AGENT_GROUP_START] = "start",
		[AGENT_GROUP_STOP] = "stop",
		[AGENT_GROUP_KILL] = "kill",
		[AGENT_CHECK] = "check",
		[AGENT_MEASURE] = "measure",
		[AGENT_PLAN] = "plan",
		[AGENT_HANG_UP] = "hang-up",
		[AGENT_EXIT] = "exit",
	};
	static char text[256];
	text[0] = '\0';
	for (size_t i = 0; i < actions.count; i++) {
		const struct agent_action *action = &actions.items[i];
		size_t len = strlen(text);
		snprintf(text + len, sizeof(text) - len, "%s%s", len ? " " : "",
			 action->type == AGENT_SEND ? msg_type_name(action->msg.type)
						    : names[action->type]);
	}
	return text;
}

enum stimulus {
	START,
	LINK_UP,
	LINK_DOWN,
	FORMED,
	FORMED_NEXT,
	STOP,
	STOP_RULED,
	CLOSED,
	REFUSED,
	PONG,
	PEERS,
	PAST,
	LEASE_END,
	FAILED,
	DONE,
	GONE,
	STUCK,
	CHECKED,
	SIGNAL,
	RESTART,
	BARRED,
	SUPERSEDED,
	STIMULUS_COUNT,
};

static void apply(enum stimulus stimulus)
{
	switch (stimulus) {
	case START:
		step_type(AGENT_START);
		break;
	case LINK_UP:
		step_type(AGENT_LINK_UP);
		break;
	case LINK_DOWN:
		step_type(AGENT_LINK_DOWN);
		break;
	case FORMED:
		receive_formed(1);
		break;
	case FORMED_NEXT:
		receive_formed(2);
		break;
	case STOP:
		receive_stop(RULING_NONE);
		break;
	case STOP_RULED:
		receive_stop(RULING_DONE);
		break;
	case CLOSED:
		receive(&(struct msg){ .type = MSG_CLOSED,
				       .ballot = round_1,
				       .closed = { .ruling = RULING_FAILED } });
		break;
	case REFUSED:
		receive(&(struct msg){
			.type = MSG_REFUSED, .ballot = round_1, .refused = { .text = "no" } });
		break;
	case PONG:
		receive(&(struct msg){ .type = MSG_PONG,
				       .ballot = round_1,
				       .pong = { .cookie = now_ns, .heard = { round_1, 2 } } });
		break;
	case PEERS:
		receive(&(struct msg){
			.type = MSG_PEERS, .ballot = round_1, .peers = { .count = 1 } });
		break;
	case PAST:
		agent.memory.heard.ballot = (struct ballot){ 9, 9 };
		receive(&(struct msg){ .type = MSG_PONG, .ballot = round_1 });
		break;
	case LEASE_END:
		now_ns = agent.answered_ns + 4 * NS_PER_S;
		step_type(AGENT_TIMER);
		break;
	case FAILED:
		step_type(AGENT_GROUP_FAILED);
		break;
	case DONE:
		step_type(AGENT_GROUP_DONE);
		break;
	case GONE:
		step_type(AGENT_GROUP_GONE);
		break;
	case STUCK:
		step_type(AGENT_GROUP_STUCK);
		break;
	case CHECKED:
		step(&(struct agent_event){ .type = AGENT_CHECKED });
		break;
	case SIGNAL:
		stop_requested();
		break;
	case RESTART:
		step_type(AGENT_RESTART_REQUESTED);
		break;
	case BARRED:
		step(&(struct agent_event){ .type = AGENT_BARRED, .text = "another job" });
		break;
	case SUPERSEDED:
		step(&(struct agent_event){ .type = AGENT_SUPERSEDED, .epoch = round_1.epoch + 1 });
		break;
	case STIMULUS_COUNT:
		break;
	}
}

struct cell {
	bool set;
	enum agent_state next;
	const char *actions;
};

#define TO(state, text) \
	{ \
		true, state, text \
	}

/* What is not listed changes nothing. */
static const struct cell cells[AGENT_STATE_COUNT][STIMULUS_COUNT] = {
	[AGENT_NEW] = {
		[START] = TO(AGENT_SEEKING, ""),
		[SIGNAL] = TO(AGENT_ENDED, "exit"),
	},
	[AGENT_SEEKING] = {
		[LINK_UP] = TO(AGENT_JOINED, "JOIN"),
		[SIGNAL] = TO(AGENT_ENDED, "exit"),
		[BARRED] = TO(AGENT_ENDED, "exit"),
	},
	[AGENT_DROPPING] = {
		[LINK_UP] = TO(AGENT_STOPPING, ""),
		[GONE] = TO(AGENT_SEEKING, ""),
		[STUCK] = TO(AGENT_ENDED, "exit"),
		[SIGNAL] = TO(AGENT_LEAVING, "stop"),
	},
	[AGENT_JOINED] = {
		[LINK_DOWN] = TO(AGENT_SEEKING, ""),
		[FORMED] = TO(AGENT_RUNNING, "start"),
		[FORMED_NEXT] = TO(AGENT_RUNNING, "start"),
		[CLOSED] = TO(AGENT_ENDED, "LEAVE hang-up exit"),
		[REFUSED] = TO(AGENT_ENDED, "LEAVE hang-up exit"),
		[PONG] = TO(AGENT_JOINED, ""),
		[PEERS] = TO(AGENT_JOINED, "peers"),
		[PAST] = TO(AGENT_SEEKING, "LEAVE hang-up"),
		[LEASE_END] = TO(AGENT_SEEKING, "LEAVE hang-up"),
		[SIGNAL] = TO(AGENT_ENDED, "LEAVE hang-up exit"),
		[SUPERSEDED] = TO(AGENT_SEEKING, "LEAVE hang-up"),
	},
	[AGENT_RUNNING] = {
		[LINK_DOWN] = TO(AGENT_DROPPING, "kill"),
		[FORMED_NEXT] = TO(AGENT_DROPPING, "LEAVE hang-up kill"),
		[STOP] = TO(AGENT_STOPPING, "stop"),
		[STOP_RULED] = TO(AGENT_STOPPING, "stop"),
		[CLOSED] = TO(AGENT_ENDING, "stop"),
		[PONG] = TO(AGENT_RUNNING, ""),
		[PAST] = TO(AGENT_DROPPING, "LEAVE hang-up kill"),
		[LEASE_END] = TO(AGENT_DROPPING, "LEAVE hang-up kill"),
		[FAILED] = TO(AGENT_STOPPING, "FAILED"),
		[DONE] = TO(AGENT_WAITING, "DONE"),
		[GONE] = TO(AGENT_JOINED, "FAILED JOIN"),
		[STUCK] = TO(AGENT_ENDED, "LEAVE hang-up exit"),
		[SIGNAL] = TO(AGENT_LEAVING, "LEAVE stop"),
		[RESTART] = TO(AGENT_STOPPING, "stop"),
		[SUPERSEDED] = TO(AGENT_RUNNING, ""),
	},
	[AGENT_STOPPING] = {
		[LINK_DOWN] = TO(AGENT_DROPPING, "kill"),
		[FORMED_NEXT] = TO(AGENT_DROPPING, "LEAVE hang-up kill"),
		[STOP] = TO(AGENT_STOPPING, ""),
		[CLOSED] = TO(AGENT_ENDING, ""),
		[PAST] = TO(AGENT_DROPPING, "LEAVE hang-up kill"),
		[LEASE_END] = TO(AGENT_DROPPING, "LEAVE hang-up kill"),
		[FAILED] = TO(AGENT_STOPPING, "FAILED"),
		[GONE] = TO(AGENT_JOINED, "JOIN"),
		[STUCK] = TO(AGENT_ENDED, "LEAVE hang-up exit"),
		[SIGNAL] = TO(AGENT_LEAVING, "LEAVE stop"),
	},
	[AGENT_CHECKING] = {
		[LINK_DOWN] = TO(AGENT_SEEKING, ""),
		[FORMED_NEXT] = TO(AGENT_SEEKING, "LEAVE hang-up"),
		[CLOSED] = TO(AGENT_ENDED, "LEAVE hang-up exit"),
		[PAST] = TO(AGENT_SEEKING, "LEAVE hang-up"),
		[LEASE_END] = TO(AGENT_SEEKING, "LEAVE hang-up"),
		[CHECKED] = TO(AGENT_JOINED, "JOIN"),
		[SIGNAL] = TO(AGENT_ENDED, "LEAVE hang-up exit"),
	},
	[AGENT_WAITING] = {
		[LINK_DOWN] = TO(AGENT_DROPPING, "kill"),
		[FORMED_NEXT] = TO(AGENT_DROPPING, "LEAVE hang-up kill"),
		[STOP] = TO(AGENT_STOPPING, ""),
		[STOP_RULED] = TO(AGENT_STOPPING, ""),
		[CLOSED] = TO(AGENT_ENDING, ""),
		[PAST] = TO(AGENT_DROPPING, "LEAVE hang-up kill"),
		[LEASE_END] = TO(AGENT_DROPPING, "LEAVE hang-up kill"),
		[GONE] = TO(AGENT_WAITING, ""),
		[STUCK] = TO(AGENT_ENDED, "LEAVE hang-up exit"),
		[SIGNAL] = TO(AGENT_LEAVING, "LEAVE stop"),
	},
	[AGENT_LEAVING] = {
		[LINK_DOWN] = TO(AGENT_LEAVING, "kill"),
		[LEASE_END] = TO(AGENT_LEAVING, "LEAVE hang-up kill"),
		[GONE] = TO(AGENT_ENDED, "LEAVE hang-up exit"),
		[STUCK] = TO(AGENT_ENDED, "LEAVE hang-up exit"),
		[SIGNAL] = TO(AGENT_LEAVING, "stop"),
	},
	[AGENT_ENDING] = {
		[LINK_DOWN] = TO(AGENT_ENDING, ""),
		[LEASE_END] = TO(AGENT_ENDING, "LEAVE hang-up"),
		[GONE] = TO(AGENT_ENDED, "LEAVE hang-up exit"),
		[STUCK] = TO(AGENT_ENDED, "LEAVE hang-up exit"),
		[SIGNAL] = TO(AGENT_ENDING, "stop"),
	},
};

TEST(what_is_known_of_a_hang_goes_with_the_failure_and_comes_with_the_stop)
{
	const struct blame blame = { .named = true, .rank = 5, .text = "rank 5 never came" };
	enter(AGENT_RUNNING);
	step(&(struct agent_event){ .type = AGENT_GROUP_FAILED, .cause = { .blame = blame } });
	ck_assert_int_eq(actions.items[0].msg.type, MSG_FAILED);
	ck_assert_str_eq(actions.items[0].msg.failed.cause.blame.text, blame.text);
	enter(AGENT_RUNNING);
	receive(&(struct msg){
		.type = MSG_STOP, .ballot = round_1, .stop = { .cause = { .blame = blame } } });
	ck_assert_int_eq(actions.items[0].type, AGENT_GROUP_STOP);
	ck_assert_str_eq(actions.items[0].cause.blame.text, blame.text);
}

TEST(the_join_after_a_failure_brings_what_is_known_of_it_by_then)
{
	const struct cause ended = { .status = { EXIT_SIGNAL, 9, false },
				     .words = "ValueError: boom",
				     .report = "/tmp/logs/report.json" };
	enter(AGENT_RUNNING);
	step(&(struct agent_event){ .type = AGENT_GROUP_FAILED,
				    .cause = { .reason = FAILURE_HANG, .local_rank = 1 },
				    .died_ns = now_ns });
	ck_assert_uint_eq(actions.items[0].msg.failed.cause.world_size, 8);
	step(&(struct agent_event){ .type = AGENT_GROUP_GONE, .ended = &ended });
	ck_assert_int_eq(actions.items[0].msg.type, MSG_JOIN);
	const struct cause *told = &actions.items[0].msg.join.cause;
	ck_assert_int_eq(told->rank, 5);
	ck_assert_int_eq(told->status.value, 9);
	ck_assert_str_eq(told->words, ended.words);
	ck_assert_str_eq(told->report, ended.report);
}

/* A worker in state D: a new one on this host would hang, too. */
static const struct msg_failed *fail_for_good(uint32_t min_nodes)
{
	enter(AGENT_RUNNING);
	agent.config.node.min_nodes = min_nodes;
	step(&(struct agent_event){ .type = AGENT_GROUP_FAILED,
				    .cause = { .reason = FAILURE_HANG },
				    .died_ns = now_ns,
				    .leaves = true });
	ck_assert_int_eq(actions.items[0].msg.type, MSG_FAILED);
	return &actions.items[0].msg.failed;
}

TEST(a_host_that_can_start_nothing_leaves_a_job_that_can_go_on_without_it)
{
	ck_assert(!fail_for_good(1)->cause.no_restart);
	step(&(struct agent_event){ .type = AGENT_GROUP_GONE });
	ck_assert_int_eq(actions.items[0].msg.type, MSG_LEAVE);
	ck_assert_int_eq(actions.items[0].msg.leave.why, LEAVE_STUCK);
	ck_assert(actions.items[2].outcome.stuck);
}

TEST(a_host_that_can_start_nothing_ends_a_job_that_needs_all)
{
	ck_assert(fail_for_good(2)->cause.no_restart);
	step(&(struct agent_event){ .type = AGENT_GROUP_GONE });
	ck_assert_int_eq(actions.items[0].msg.type, MSG_JOIN);
}

TEST(an_agent_that_was_in_a_round_seeks_for_its_own_time)
{
	enter(AGENT_SEEKING);
	agent.config.seek_timeout_ns = 3 * NS_PER_S;
	uint64_t first_ns = agent.join_deadline_ns;
	ck_assert_uint_gt(first_ns, now_ns + 3 * NS_PER_S);
	enter(AGENT_RUNNING);
	agent.config.seek_timeout_ns = 3 * NS_PER_S;
	step_type(AGENT_LINK_DOWN);
	ck_assert_uint_eq(agent.join_deadline_ns, now_ns + 3 * NS_PER_S);
}

TEST(who_leaves_says_by_which_signal)
{
	enter(AGENT_RUNNING);
	stop_requested();
	ck_assert_int_eq(actions.items[0].msg.type, MSG_LEAVE);
	ck_assert_int_eq(actions.items[0].msg.leave.signal, 15);
	step_type(AGENT_GROUP_GONE);
	const struct outcome *outcome = &actions.items[actions.count - 1].outcome;
	ck_assert(outcome->has_cause);
	ck_assert_int_eq(outcome->cause.reason, FAILURE_LEFT);
}

TEST(every_event_in_every_state_does_what_the_table_says)
{
	for (enum agent_state state = 0; state < AGENT_STATE_COUNT; state++) {
		for (enum stimulus stimulus = 0; stimulus < STIMULUS_COUNT; stimulus++) {
			const struct cell *cell = &cells[state][stimulus];
			enter(state);
			actions.count = 0;
			apply(stimulus);
			enum agent_state next = cell->set ? cell->next : state;
			ck_assert_msg(agent.state == next, "%s, stimulus %d: now %s, not %s",
				      agent_state_name(state), stimulus,
				      agent_state_name(agent.state), agent_state_name(next));
			ck_assert_msg(strcmp(done(), cell->set ? cell->actions : "") == 0,
				      "%s, stimulus %d: %s", agent_state_name(state), stimulus,
				      done());
		}
	}
}

TEST(a_node_checks_itself_after_a_failure_and_tells_what_it_found)
{
	const struct check_digest digest = { .figure_count = 1,
					     .figures = { { "cpu_speed", 3.5 } } };
	enter(AGENT_CHECKING);
	ck_assert_str_eq(done(), "check");
	step(&(struct agent_event){ .type = AGENT_CHECKED, .digest = &digest });
	ck_assert_str_eq(done(), "JOIN");
	ck_assert_double_eq(
		check_digest_figure(&actions.items[0].msg.join.node->checks, "cpu_speed"), 3.5);
	/* The next ones fail, which says nothing. */
	step(&(struct agent_event){ .type = AGENT_CHECKED });
	ck_assert(check_digest_is_empty(&agent.config.node.checks));
}

/* The message where memory that may be read ends with the part that its type uses. */
static const struct msg *at_the_edge(const struct msg *msg)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE), size = msg_size(msg->type);
	char *memory =
		mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	ck_assert_ptr_ne(memory, MAP_FAILED);
	ck_assert_int_eq(mprotect(memory + page, page, PROT_NONE), 0);
	return memcpy(memory + page - (size + 7) / 8 * 8, msg, size);
}

TEST(a_message_is_passed_on_without_what_lies_behind_it)
{
	enter(AGENT_JOINED);
	receive(at_the_edge(&(struct msg){ .type = MSG_PAIR, .pair = { .serial = 7 } }));
	ck_assert_str_eq(done(), "measure");
	ck_assert_uint_eq(actions.items[0].msg.pair.serial, 7);
	receive(at_the_edge(&(struct msg){ .type = MSG_PEERS, .peers = { .count = 1 } }));
	ck_assert_str_eq(done(), "peers");
	ck_assert_uint_eq(actions.items[0].msg.peers.count, 1);
}

TEST(what_a_node_measures_is_told_on_the_link_that_asked_for_it)
{
	struct agent_event measured = { .type = AGENT_MEASURED,
					.paired = { .serial = 7, .known = true, .bandwidth = 5 } };
	struct msg pair = { .type = MSG_PAIR, .pair = { .serial = 7, .calls = true } };
	enter(AGENT_JOINED);
	receive(&pair);
	ck_assert_str_eq(done(), "measure");
	ck_assert_uint_eq(actions.items[0].msg.pair.serial, 7);
	measured.paired.serial = 6; /* of an earlier one */
	step(&measured);
	ck_assert_str_eq(done(), "");
	measured.paired.serial = 7;
	step(&measured);
	ck_assert_str_eq(done(), "PAIRED");
	ck_assert_uint_eq(actions.items[0].msg.paired.bandwidth, 5);
	step(&measured);
	ck_assert_str_eq(done(), "");
	/* Another coordinator counts anew. */
	receive(&pair);
	step_type(AGENT_LINK_DOWN);
	step_type(AGENT_LINK_UP);
	step(&measured);
	ck_assert_str_eq(done(), "");
}

TEST(a_checker_that_hangs_keeps_no_node_from_the_next_attempt)
{
	enter(AGENT_CHECKING);
	agent.next_ping_ns = NS_NEVER;
	ck_assert_uint_eq(agent_deadline_ns(&agent), agent.check_deadline_ns);
	now_ns = agent.check_deadline_ns;
	step_type(AGENT_TIMER);
	ck_assert_str_eq(done(), "JOIN");
	receive_formed(2);
	ck_assert_int_eq(agent.state, AGENT_RUNNING);
	step(&(struct agent_event){ .type = AGENT_CHECKED }); /* at last */
	ck_assert_int_eq(agent.state, AGENT_RUNNING);
}

TEST(a_node_checks_itself_only_where_another_attempt_can_follow)
{
	static const struct {
		enum stop_why why;
		enum ruling ruling;
		uint32_t max_restarts;
		const char *does;
	} cases[] = {
		{ STOP_FAILURE, RULING_NONE, 1, "check" },
		{ STOP_FAILURE, RULING_NONE, 0, "JOIN" },
		{ STOP_FAILURE, RULING_FAILED, 1, "JOIN" },
		{ STOP_MEMBERS, RULING_NONE, 1, "JOIN" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		enter(AGENT_RUNNING);
		agent.config.check_timeout_ns = NS_PER_S;
		agent.formed.max_restarts = cases[i].max_restarts;
		receive(&(struct msg){
			.type = MSG_STOP,
			.ballot = round_1,
			.stop = { .why = cases[i].why, .ruling = cases[i].ruling } });
		step_type(AGENT_GROUP_GONE);
		ck_assert_str_eq(done(), cases[i].does);
	}
}

TEST(a_done_agent_without_processes_joins_again_when_told_to_stop)
{
	enter(AGENT_WAITING);
	step_type(AGENT_GROUP_GONE);
	receive_stop(RULING_DONE);
	ck_assert_str_eq(done(), "JOIN");
	ck_assert_int_eq(actions.items[0].msg.join.memory.work, WORK_DONE);
	ck_assert_int_eq(actions.items[0].msg.join.memory.ruling, RULING_DONE);
}

TEST(a_ruling_is_acknowledged_by_an_agent_that_has_joined)
{
	enter(AGENT_STOPPING);
	step_type(AGENT_GROUP_GONE);
	receive_stop(RULING_FAILED);
	ck_assert_str_eq(done(), "JOIN");
}

TEST(pings_keep_the_lease_from_the_time_they_were_sent)
{
	enter(AGENT_RUNNING);
	step_type(AGENT_TIMER);
	ck_assert_str_eq(done(), "PING");
	uint64_t sent_ns = actions.items[0].msg.ping.cookie;
	now_ns += 3 * NS_PER_S;
	receive(&(struct msg){
		.type = MSG_PONG, .ballot = round_1, .pong = { .cookie = sent_ns } });
	agent.next_ping_ns = NS_NEVER;
	ck_assert_uint_eq(agent_deadline_ns(&agent), sent_ns + 4 * NS_PER_S);
}

TEST(a_pong_for_a_ping_of_the_future_does_not_lengthen_the_lease)
{
	enter(AGENT_RUNNING);
	agent.next_ping_ns = NS_NEVER;
	uint64_t lease_end_ns = agent_deadline_ns(&agent);
	receive(&(struct msg){ .type = MSG_PONG,
			       .ballot = round_1,
			       .pong = { .cookie = now_ns + 60 * NS_PER_S } });
	ck_assert_uint_eq(agent_deadline_ns(&agent), lease_end_ns);
}

TEST(pongs_tell_of_the_clocks_of_the_coordinator)
{
	enter(AGENT_RUNNING);
	agent.wall_shift_ns = 5;
	step_type(AGENT_TIMER);
	ck_assert_uint_eq(actions.items[0].msg.ping.wall.error_ns, 0);
	uint64_t sent_ns = actions.items[0].msg.ping.cookie;
	now_ns += 2 * NS_PER_MS;
	receive(&(struct msg){ .type = MSG_PONG,
			       .ballot = round_1,
			       .pong = { .cookie = sent_ns,
					 .stamp = sent_ns + 20 * NS_PER_S,
					 .wall_shift_ns = 6 } });
	ck_assert_int_eq(agent.clock.shift_ns, (int64_t)(20 * NS_PER_S - (now_ns - sent_ns) / 2));
	now_ns = agent.next_ping_ns;
	step_type(AGENT_TIMER);
	ck_assert_int_eq(actions.items[0].msg.ping.wall.offset_ns, agent.clock.shift_ns + 1);
	ck_assert_uint_ge(actions.items[0].msg.ping.wall.error_ns, NS_PER_MS);
	step_type(AGENT_LINK_DOWN); /* another coordinator has other clocks */
	step_type(AGENT_GROUP_GONE);
	step_type(AGENT_LINK_UP);
	ck_assert(agent.joined && !agent.clock.known);
}

TEST(times_of_steps_are_told_on_the_clock_of_the_coordinator)
{
	struct step_mark marks[MSG_MARKS_MAX + 1] = {
		{ .step = 7, .last_ns = 100, .mean_ns = 90, .rank = 3, .ranks = 2 }
	};
	struct agent_event paces = { .type = AGENT_PACE, .marks = marks, .mark_count = 1 };
	enter(AGENT_RUNNING);
	agent.can = CAN_PACE;
	step(&paces); /* it does not know that clock */
	ck_assert_str_eq(done(), "");
	agent.clock = (struct clock_offset){ .known = true, .shift_ns = 20, .when_ns = now_ns };
	step(&paces);
	ck_assert_str_eq(done(), "PACE");
	ck_assert_uint_eq(actions.items[0].msg.pace.marks[0].last_ns, 120);
	ck_assert_uint_eq(actions.items[0].msg.pace.marks[0].mean_ns, 110);
	paces.mark_count = ARRAY_LEN(marks);
	step(&paces);
	ck_assert_str_eq(done(), "PACE PACE");
	ck_assert_uint_eq(actions.items[1].msg.pace.count, 1);
	agent.can = 0; /* a coordinator of an earlier version */
	step(&paces);
	ck_assert_str_eq(done(), "");
}

TEST(times_of_collectives_are_told_to_those_who_know_them)
{
	struct step_mark mark = { .step = 7, .last_ns = 100, .mean_ns = 90, .rank = 3, .ranks = 2 };
	struct agent_event paces = { .type = AGENT_PACE,
				     .marks = &mark,
				     .mark_count = 1,
				     .group = 5,
				     .size = 4,
				     .error_ns = 30 };
	enter(AGENT_RUNNING);
	agent.can = CAN_PACE;
	agent.clock = (struct clock_offset){
		.known = true, .shift_ns = 20, .half_ns = 3, .when_ns = now_ns
	};
	step(&paces);
	ck_assert_str_eq(done(), "");
	agent.can |= CAN_ARRIVE;
	step(&paces);
	ck_assert_str_eq(done(), "PACE");
	ck_assert_uint_eq(actions.items[0].msg.pace.group, 5);
	ck_assert_uint_eq(actions.items[0].msg.pace.size, 4);
	ck_assert_uint_eq(actions.items[0].msg.pace.error_ns,
			  clock_offset_error_ns(&agent.clock, now_ns) + 30);
	ck_assert_uint_eq(actions.items[0].msg.pace.marks[0].last_ns, 120);
}

TEST(what_the_coordinator_says_of_a_late_worker_is_passed_on)
{
	enter(AGENT_RUNNING);
	receive(&(struct msg){
		.type = MSG_LATE, .ballot = round_1, .late.news = { .rank = 1, .begins = true } });
	ck_assert_uint_eq(actions.items[0].type, AGENT_LATE);
	ck_assert_uint_eq(actions.items[0].late.rank, 1);
}

TEST(a_new_round_is_confirmed_at_once)
{
	enter(AGENT_JOINED);
	step_type(AGENT_TIMER);
	now_ns += NS_PER_MS;
	receive_formed(1);
	ck_assert_uint_le(agent_deadline_ns(&agent), now_ns);
	step_type(AGENT_TIMER);
	ck_assert_str_eq(done(), "PING");
}

TEST(a_ping_brings_back_the_stamp_of_the_last_pong)
{
	enter(AGENT_RUNNING);
	receive(&(struct msg){ .type = MSG_PONG, .ballot = round_1, .pong = { .stamp = 77 } });
	now_ns = agent.next_ping_ns;
	step_type(AGENT_TIMER);
	ck_assert_uint_eq(actions.items[0].msg.ping.stamp, 77);
}

TEST(the_coordinator_died_if_its_link_closed_and_its_endpoint_refuses)
{
	for (int refuses = 0; refuses < 2; refuses++) {
		enter(AGENT_WAITING);
		step_type(AGENT_GROUP_GONE);
		agent.memory.coordinator_index = 3;
		step(&(struct agent_event){ .type = AGENT_LINK_DOWN, .dead = true });
		step(&(struct agent_event){ .type = AGENT_LINK_UP,
					    .dead_indexes = refuses ? 8 : 7 });
		ck_assert_str_eq(done(), "JOIN");
		const struct memory *memory = &actions.items[0].msg.join.memory;
		ck_assert_int_eq(memory->coordinator_died, refuses);
		ck_assert_uint_eq(memory->joined_id, JOINED_NOBODY);
	}
}

/* The coordinator died, and the one that we joined next gave way to a third. */
TEST(the_death_of_a_coordinator_is_told_to_each_later_one)
{
	enter(AGENT_WAITING);
	step_type(AGENT_GROUP_GONE);
	agent.memory.coordinator_index = 3;
	for (int later = 0; later < 2; later++) {
		step(&(struct agent_event){ .type = AGENT_LINK_DOWN, .dead = true });
		step(&(struct agent_event){ .type = AGENT_LINK_UP, .dead_indexes = 8 });
		ck_assert(actions.items[0].msg.join.memory.coordinator_died);
	}
	step(&(struct agent_event){ .type = AGENT_LINK_DOWN, .dead = true });
	step(&(struct agent_event){ .type = AGENT_LINK_UP, .dead_indexes = 7 });
	ck_assert(!actions.items[0].msg.join.memory.coordinator_died);
}

TEST(a_coordinator_that_hung_up_may_have_formed_a_round_of_which_we_did_not_hear)
{
	enter(AGENT_WAITING);
	step_type(AGENT_GROUP_GONE);
	step(&(struct agent_event){ .type = AGENT_LINK_DOWN, .dead = true });
	step_type(AGENT_LINK_UP); /* to another one */
	receive(&(struct msg){
		.type = MSG_PONG, .ballot = round_1, .pong = { .coordinator_id = 77 } });
	step(&(struct agent_event){ .type = AGENT_LINK_DOWN, .dead = true });
	step_type(AGENT_LINK_UP);
	ck_assert_str_eq(done(), "JOIN");
	ck_assert_uint_eq(actions.items[0].msg.join.memory.joined_id, 77);
}

TEST(who_hung_up_before_its_first_pong_is_not_taken_for_the_coordinator_before_it)
{
	enter(AGENT_WAITING);
	step_type(AGENT_GROUP_GONE);
	receive(&(struct msg){
		.type = MSG_PONG, .ballot = round_1, .pong = { .coordinator_id = 77 } });
	step_type(AGENT_LINK_DOWN);
	step_type(AGENT_LINK_UP); /* to another one */
	step(&(struct agent_event){ .type = AGENT_LINK_DOWN, .dead = true });
	step_type(AGENT_LINK_UP);
	ck_assert_str_eq(done(), "JOIN");
	ck_assert_uint_eq(actions.items[0].msg.join.memory.joined_id, JOINED_UNKNOWN);
}

/* A round without us: we were surplus, or not fit. */
TEST(the_coordinator_of_our_last_round_may_have_formed_the_next_without_us)
{
	enter(AGENT_RUNNING);
	receive(&(struct msg){
		.type = MSG_PONG, .ballot = round_1, .pong = { .coordinator_id = 77 } });
	step_type(AGENT_RESTART_REQUESTED);
	step_type(AGENT_GROUP_GONE);
	ck_assert_int_eq(agent.state, AGENT_JOINED);
	step(&(struct agent_event){ .type = AGENT_LINK_DOWN, .dead = true });
	step_type(AGENT_LINK_UP);
	ck_assert_str_eq(done(), "JOIN");
	ck_assert_uint_eq(actions.items[0].msg.join.memory.joined_id, 77);
}

TEST(old_messages_do_not_outlive_the_lease)
{
	enter(AGENT_JOINED);
	now_ns += 10 * NS_PER_S;
	receive_formed(1);
	ck_assert_int_eq(agent.state, AGENT_SEEKING);
}

TEST(without_a_round_the_join_time_out_ends_the_agent)
{
	enter(AGENT_SEEKING);
	now_ns = agent_deadline_ns(&agent);
	step_type(AGENT_TIMER);
	ck_assert_str_eq(done(), "exit");
	ck_assert_int_eq(actions.items[0].outcome.kind, OUTCOME_TIMED_OUT);
}

TEST(a_done_agent_that_never_hears_the_end_reports_an_unknown_outcome)
{
	enter(AGENT_WAITING);
	step_type(AGENT_GROUP_GONE);
	step_type(AGENT_LINK_DOWN);
	now_ns = agent_deadline_ns(&agent);
	step_type(AGENT_TIMER);
	ck_assert_int_eq(actions.items[0].outcome.kind, OUTCOME_UNKNOWN);
}

TEST(a_spare_waits_without_time_out_while_a_round_runs)
{
	enter(AGENT_JOINED);
	uint64_t before_ns = agent.join_deadline_ns;
	now_ns += NS_PER_S;
	receive(&(struct msg){ .type = MSG_PONG, .ballot = round_1, .pong = { .wait = true } });
	ck_assert_uint_gt(agent.join_deadline_ns, before_ns);
}

TEST(a_superseded_coordinator_is_left_when_the_round_is_over)
{
	enter(AGENT_RUNNING);
	step(&(struct agent_event){ .type = AGENT_SUPERSEDED, .epoch = round_1.epoch + 1 });
	receive_stop(RULING_NONE);
	step_type(AGENT_GROUP_GONE);
	ck_assert_str_eq(done(), "LEAVE hang-up");
	ck_assert_int_eq(agent.state, AGENT_SEEKING);
}

TEST(late_news_of_the_coordinator_that_formed_our_round_change_nothing)
{
	enter(AGENT_RUNNING);
	step(&(struct agent_event){ .type = AGENT_SUPERSEDED, .epoch = round_1.epoch });
	receive_stop(RULING_NONE);
	step_type(AGENT_GROUP_GONE);
	ck_assert_str_eq(done(), "JOIN");
	ck_assert_int_eq(agent.state, AGENT_JOINED);
}

/* Why the agent left in the last step; -1: it did not. */
static int left_because(void)
{
	for (size_t i = 0; i < actions.count; i++)
		if (actions.items[i].type == AGENT_SEND && actions.items[i].msg.type == MSG_LEAVE)
			return (int)actions.items[i].msg.leave.why;
	return -1;
}

static void receive_ruled_stop(enum ruling ruling, bool left, int local_rank)
{
	receive(&(struct msg){ .type = MSG_STOP,
			       .ballot = round_1,
			       .stop = { .ruling = ruling,
					 .left = left,
					 .cause = { .rank = 9, .local_rank = local_rank } } });
}

TEST(that_workers_left_comes_with_the_ruling_that_they_were_done)
{
	enter(AGENT_WAITING);
	receive_ruled_stop(RULING_FAILED, true, 0);
	ck_assert(!agent.memory.left);
	enter(AGENT_WAITING);
	receive_ruled_stop(RULING_DONE, true, 0);
	ck_assert(agent.memory.left);
	enter(AGENT_WAITING);
	receive_ruled_stop(RULING_DONE, false, 0);
	ck_assert(!agent.memory.left);
}

/* What a later coordinator hears of it is what all others hear. */
TEST(the_cause_of_a_ruling_takes_the_place_of_an_own_failure)
{
	enter(AGENT_RUNNING);
	step_type(AGENT_GROUP_FAILED);
	receive_ruled_stop(RULING_FAILED, false, 3);
	ck_assert_int_eq(agent.memory.ruling, RULING_FAILED); /* while the workers end */
	ck_assert_int_eq(agent.cause.local_rank, 3);
	enter(AGENT_RUNNING);
	receive_ruled_stop(RULING_FAILED, false, 3);
	ck_assert_int_eq(agent.cause.local_rank, 3);
	struct outcome outcome = agent_outcome(&agent, OUTCOME_FAILED);
	ck_assert(outcome.has_cause);
	ck_assert_int_eq(outcome.cause.rank, 9);
}

TEST(an_outcome_has_the_restarts_and_a_cause_only_where_there_is_one)
{
	enter(AGENT_RUNNING);
	agent.memory.restarts = 3;
	struct outcome outcome = agent_outcome(&agent, OUTCOME_UNKNOWN);
	ck_assert_uint_eq(outcome.restarts, 3);
	ck_assert(!outcome.has_cause);
}

TEST(a_coordinator_died_only_if_it_was_seen_to_die_at_an_endpoint)
{
	static const struct {
		bool died;
		int32_t index;
		uint64_t refused;
		bool still;
	} cases[] = {
		{ true, 0, 1, true },
		{ true, 63, (uint64_t)1 << 63, true },
		{ true, 0, 2, false },
		{ false, 0, 1, false },
		{ true, -1, UINT64_MAX, false },
		{ true, 64, UINT64_MAX, false },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		enter(AGENT_SEEKING);
		agent.memory.coordinator_died = cases[i].died;
		agent.memory.coordinator_index = cases[i].index;
		step(&(struct agent_event){ .type = AGENT_LINK_UP,
					    .dead_indexes = cases[i].refused });
		ck_assert_msg(agent.memory.coordinator_died == cases[i].still, "case %zu", i);
	}
}

TEST(the_round_that_is_over_is_not_started_again)
{
	enter(AGENT_STOPPING);
	step_type(AGENT_GROUP_GONE);
	ck_assert_int_eq(agent.state, AGENT_JOINED);
	receive_formed(1);
	ck_assert_str_eq(done(), "");
	ck_assert_int_eq(agent.state, AGENT_JOINED);
}

TEST(a_stop_of_another_round_stops_nothing)
{
	enter(AGENT_RUNNING);
	receive(&(struct msg){ .type = MSG_STOP, .ballot = { 5, 2 } });
	ck_assert_str_eq(done(), "");
	ck_assert_int_eq(agent.state, AGENT_RUNNING);
}

TEST(who_leaves_says_why)
{
	enter(AGENT_ENDING);
	step_type(AGENT_GROUP_GONE);
	ck_assert_int_eq(left_because(), LEAVE_CLOSED);
	enter(AGENT_RUNNING);
	now_ns = agent_lease_end_ns(&agent);
	step_type(AGENT_TIMER);
	ck_assert_int_eq(left_because(), LEAVE_LEASE);
	enter(AGENT_RUNNING);
	receive_formed(2);
	ck_assert_int_eq(left_because(), LEAVE_SUPERSEDED);
}

TEST(a_refusal_is_told_word_by_word)
{
	struct msg msg = { .type = MSG_REFUSED, .ballot = round_1 };
	memset(msg.refused.text, 'x', MSG_TEXT_MAX - 1);
	enter(AGENT_JOINED);
	receive(&msg);
	ck_assert_int_eq(agent.state, AGENT_ENDED);
	const struct outcome *outcome = &actions.items[actions.count - 1].outcome;
	ck_assert_int_eq(outcome->kind, OUTCOME_REFUSED);
	ck_assert_str_eq(outcome->text, msg.refused.text);
}

TEST(a_group_that_ends_without_a_word_has_lost_its_warden)
{
	enter(AGENT_RUNNING);
	step_type(AGENT_GROUP_GONE);
	ck_assert_int_eq(actions.items[0].msg.type, MSG_FAILED);
	ck_assert_int_eq(actions.items[0].msg.failed.cause.reason, FAILURE_WARDEN);
	ck_assert_int_eq(actions.items[0].msg.failed.cause.local_rank, 0);
}

TEST(the_address_of_a_store_is_cut_to_its_room)
{
	char host[2 * sizeof(agent.config.node.store_host)];
	memset(host, 'h', sizeof(host) - 1);
	host[sizeof(host) - 1] = '\0';
	enter(AGENT_NEW);
	agent_set_store(&agent, host, 7);
	ck_assert_uint_eq(strlen(agent.config.node.store_host),
			  sizeof(agent.config.node.store_host) - 1);
	ck_assert_uint_eq(agent.config.node.store_port, 7);
}

TEST(a_new_agent_and_one_that_has_ended_wait_for_nothing)
{
	enter(AGENT_NEW);
	ck_assert_uint_eq(agent_deadline_ns(&agent), NS_NEVER);
	enter(AGENT_ENDED);
	ck_assert_uint_eq(agent_deadline_ns(&agent), NS_NEVER);
}

TEST(every_state_of_an_agent_has_a_name)
{
	for (int i = 0; i < AGENT_STATE_COUNT; i++)
		for (int j = 0; j <= i; j++) {
			const char *one = agent_state_name((enum agent_state)i);
			const char *other = agent_state_name((enum agent_state)j);
			ck_assert_ptr_nonnull(one);
			ck_assert_int_eq(strcmp(one, other) == 0, i == j);
		}
}

TEST(a_superseded_coordinator_is_forgotten_with_its_link)
{
	enter(AGENT_RUNNING);
	step_type(AGENT_LINK_DOWN);
	step_type(AGENT_GROUP_GONE);
	step_type(AGENT_LINK_UP);
	ck_assert_str_eq(done(), "JOIN");
	receive_formed(2);
	receive(&(struct msg){ .type = MSG_STOP, .ballot = { 5, 2 } });
	step_type(AGENT_GROUP_GONE);
	ck_assert_str_eq(done(), "JOIN"); /* not the end of a link that nobody has superseded */
}
