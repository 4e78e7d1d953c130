/* Events that wait for something outside the machines: none is lost, none overtakes another that
 * waits for the same. */
#include "unit.h"

#include "core/node/holdback.h"

struct held {
	struct holdback holdback;
	struct job_queue queue;
	struct buf text;
};

static void push_group(struct held *held, enum group_event_type type, size_t rank)
{
	const struct job_event event = { .for_group = true, .group = { type, .rank = rank } };
	holdback_push(&held->holdback, &event, &held->queue);
}

static void push_agent(struct held *held, enum agent_event_type type)
{
	const struct job_event event = { .node = { .type = NODE_EV_HOST, .agent = { type } } };
	holdback_push(&held->holdback, &event, &held->queue);
}

/* What the machines hear, as text: "exited:1 empty:0 failed". */
static const char *heard(struct held *held)
{
	static const char *const group[GROUP_EVENT_COUNT] = {
		[GROUP_EV_START] = "start",   [GROUP_EV_SPAWNED] = "spawned",
		[GROUP_EV_EXITED] = "exited", [GROUP_EV_EMPTY] = "empty",
		[GROUP_EV_LOST] = "lost",     [GROUP_EV_STOP] = "stop",
	};
	static const char *const agent[] = {
		[AGENT_GROUP_FAILED] = "failed",
		[AGENT_GROUP_DONE] = "done",
		[AGENT_GROUP_GONE] = "gone",
	};
	buf_clear(&held->text);
	for (size_t i = 0; i < held->queue.count; i++) {
		const struct job_event *event = &held->queue.items[i];
		buf_append_str(&held->text, i ? " " : "");
		if (event->for_group)
			buf_printf(&held->text, "%s:%zu", group[event->group.type],
				   event->group.rank);
		else
			buf_append_str(&held->text, agent[event->node.agent.type]);
	}
	held->queue.count = 0;
	return buf_str(&held->text);
}

static void held_done(struct held *held)
{
	holdback_done(&held->holdback);
	job_queue_done(&held->queue);
	buf_done(&held->text);
}

#define HELD_INIT ((struct held){ .text = BUF_INIT })

TEST(events_pass_while_nothing_is_waited_for)
{
	AUTO(held_done) struct held held = HELD_INIT;
	push_group(&held, GROUP_EV_EXITED, 1);
	push_agent(&held, AGENT_GROUP_FAILED);
	push_group(&held, GROUP_EV_EMPTY, 0);
	push_agent(&held, AGENT_GROUP_GONE);
	ck_assert_str_eq(heard(&held), "exited:1 failed empty:0 gone");
}

TEST(without_a_warden_a_start_and_what_follows_wait_and_the_loss_comes_first)
{
	AUTO(held_done) struct held held = HELD_INIT;
	holdback_begin(&held.holdback, HOLD_FOR_WARDEN);
	push_group(&held, GROUP_EV_START, 0);
	push_group(&held, GROUP_EV_STOP, 0);
	push_agent(&held, AGENT_GROUP_FAILED);
	ck_assert_str_eq(heard(&held), "failed");
	push_group(&held, GROUP_EV_LOST, 0);
	holdback_release(&held.holdback, HOLD_FOR_WARDEN, &held.queue);
	push_group(&held, GROUP_EV_SPAWNED, 1);
	ck_assert_str_eq(heard(&held), "lost:0 start:0 stop:0 spawned:1");
}

TEST(ends_of_workers_wait_for_the_explanation_of_the_first)
{
	AUTO(held_done) struct held held = HELD_INIT;
	holdback_begin(&held.holdback, HOLD_FOR_EXPLANATION);
	push_group(&held, GROUP_EV_EXITED, 2);
	push_group(&held, GROUP_EV_SPAWNED, 3);
	push_group(&held, GROUP_EV_EXITED, 1);
	push_group(&held, GROUP_EV_EMPTY, 0);
	push_agent(&held, AGENT_GROUP_GONE);
	ck_assert_str_eq(heard(&held), "spawned:3 gone");
	holdback_release(&held.holdback, HOLD_FOR_EXPLANATION, &held.queue);
	ck_assert_str_eq(heard(&held), "exited:2 exited:1 empty:0");
	push_group(&held, GROUP_EV_EXITED, 0);
	ck_assert_str_eq(heard(&held), "exited:0");
}

TEST(the_end_of_a_group_waits_for_the_log_and_a_failure_does_not)
{
	AUTO(held_done) struct held held = HELD_INIT;
	holdback_begin(&held.holdback, HOLD_FOR_LOG);
	push_agent(&held, AGENT_GROUP_DONE);
	push_agent(&held, AGENT_GROUP_FAILED);
	push_group(&held, GROUP_EV_EXITED, 0);
	push_agent(&held, AGENT_GROUP_GONE);
	ck_assert_str_eq(heard(&held), "failed exited:0");
	holdback_release(&held.holdback, HOLD_FOR_LOG, &held.queue);
	ck_assert_str_eq(heard(&held), "done gone");
	holdback_release(&held.holdback, HOLD_FOR_LOG, &held.queue);
	ck_assert_str_eq(heard(&held), "");
}

TEST(the_end_of_a_group_waits_for_the_last_words_of_a_worker_and_for_the_log)
{
	AUTO(held_done) struct held held = HELD_INIT;
	holdback_begin(&held.holdback, HOLD_FOR_WORDS);
	holdback_begin(&held.holdback, HOLD_FOR_LOG);
	push_agent(&held, AGENT_GROUP_FAILED);
	push_agent(&held, AGENT_GROUP_GONE);
	holdback_release(&held.holdback, HOLD_FOR_LOG, &held.queue);
	ck_assert_str_eq(heard(&held), "failed");
	holdback_release(&held.holdback, HOLD_FOR_WORDS, &held.queue);
	ck_assert_str_eq(heard(&held), "gone");
}

TEST(what_waits_for_two_things_waits_for_both)
{
	AUTO(held_done) struct held held = HELD_INIT;
	holdback_begin(&held.holdback, HOLD_FOR_EXPLANATION);
	push_group(&held, GROUP_EV_EXITED, 0);
	holdback_begin(&held.holdback, HOLD_FOR_WARDEN);
	holdback_release(&held.holdback, HOLD_FOR_EXPLANATION, &held.queue);
	ck_assert_str_eq(heard(&held), "");
	holdback_release(&held.holdback, HOLD_FOR_WARDEN, &held.queue);
	ck_assert_str_eq(heard(&held), "exited:0");
}

TEST(what_the_node_hears_of_others_waits_for_nothing)
{
	for (int type = 0; type < NODE_EVENT_COUNT; type++) {
		AUTO(held_done) struct held held = HELD_INIT;
		const struct job_event event = { .node = { .type = (enum node_event_type)type,
							   .agent = { AGENT_GROUP_DONE } } };
		for (int why = 0; why < HOLD_COUNT; why++)
			holdback_begin(&held.holdback, (enum hold)why);
		holdback_push(&held.holdback, &event, &held.queue);
		ck_assert_uint_eq(held.queue.count, type != NODE_EV_HOST);
		held.queue.count = 0;
	}
}
