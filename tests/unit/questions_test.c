/* Questions to the whole job: who is asked, how much may be under way, how a question ends. */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "core/rounds/asking.h"

#define ASKER 900000 /* a link */
#define TIMEOUT_NS (10 * NS_PER_S)

static struct questions *questions;
static struct roster roster;
static struct ask_actions out;
static uint64_t now_ns;

static void begin(void)
{
	now_ns = 1000 * NS_PER_S;
	questions = questions_new();
	roster_init(&roster);
}

static void end(void)
{
	questions_free(questions);
	roster_done(&roster);
	ask_actions_done(&out);
}

/* Host i, from 0 on, has link i + 1, two workers and group rank i. */
static struct member *add_host(uint32_t i, uint64_t link)
{
	struct node_info node = { .id = { i + 1, 7 },
				  .min_nodes = 1,
				  .max_nodes = 1000000,
				  .nproc = 2,
				  .node_rank = -1,
				  .can = CAN_ASK };
	snprintf(node.name, sizeof(node.name), "h%u", i);
	struct msg_join join = { .node = &node };
	struct member *member = roster_join(&roster, link, &join, now_ns, now_ns);
	member->in_round = true;
	member->group_rank = i;
	member->rank_base = 2 * i;
	roster_set_status(&roster, member, MEMBER_ACTIVE);
	return member;
}

static void add_hosts(uint32_t count)
{
	for (uint32_t i = 0; i < count; i++)
		add_host(i, i + 1);
}

static void take(uint64_t link, const struct msg *msg)
{
	out.count = 0;
	questions_take(questions, &roster, link, msg, now_ns, &out);
}

static struct msg ask_of(enum ask_kind kind)
{
	struct msg msg = { .type = MSG_ASK };
	msg.ask = (struct msg_ask){ .id = 5, .ask = { .kind = kind, .timeout_ns = TIMEOUT_NS } };
	return msg;
}

static void ask(enum ask_kind kind)
{
	struct msg msg = ask_of(kind);
	take(ASKER, &msg);
}

static size_t count_of(enum msg_type type)
{
	size_t count = 0;
	for (size_t i = 0; i < out.count; i++)
		count += out.items[i].msg.type == type;
	return count;
}

static const struct msg *first_of(enum msg_type type)
{
	for (size_t i = 0; i < out.count; i++)
		if (out.items[i].msg.type == type)
			return &out.items[i].msg;
	ck_abort_msg("no %s", msg_type_name(type));
	return NULL;
}

static void answer(uint64_t link, const struct msg_question *question, bool last, const char *text)
{
	struct msg msg = { .type = MSG_ANSWER };
	msg.answer = (struct msg_answer){ .question = question->question,
					  .slot = question->slot,
					  .last = last,
					  .piece = bytes_str(text) };
	take(link, &msg);
}

static void taken(uint16_t slot, uint8_t pieces)
{
	struct msg msg = { .type = MSG_TAKEN };
	msg.taken = (struct msg_taken){ 5, slot, pieces };
	take(ASKER, &msg);
}

static void expect_ended(enum ask_end why, uint32_t hosts, uint32_t answered)
{
	const struct msg_ended *ended = &first_of(MSG_ENDED)->ended;
	ck_assert_int_eq(ended->why, why);
	ck_assert_uint_eq(ended->hosts, hosts);
	ck_assert_uint_eq(ended->answered, answered);
	ck_assert_uint_eq(ended->id, 5);
}

static void expect_idle(void)
{
	ck_assert(questions_deadline_ns(questions) == NS_NEVER);
}

TEST(every_host_is_asked_and_its_answer_passed_on_with_its_name)
{
	begin();
	add_hosts(3);
	expect_idle();
	ask(ASK_STATE);
	ck_assert_uint_eq(count_of(MSG_QUESTION), 3);
	struct msg_question asked[3];
	for (size_t i = 0; i < 3; i++) {
		ck_assert_uint_eq(out.items[i].link, i + 1);
		asked[i] = out.items[i].msg.question;
	}
	for (uint32_t i = 0; i < 3; i++) {
		answer(i + 1, &asked[i], true, "fine");
		ck_assert_uint_eq(out.count, 1);
		ck_assert_uint_eq(out.items[0].link, ASKER);
		const struct msg_reply *reply = &first_of(MSG_REPLY)->reply;
		ck_assert_uint_eq(reply->id, 5);
		ck_assert_int_eq(reply->group_rank, (int32_t)i);
		ck_assert_uint_eq((unsigned)reply->name[1], '0' + i);
		ck_assert(bytes_eq(reply->piece, bytes_str("fine")) && reply->last);
		taken(asked[i].slot, 1);
		ck_assert_uint_eq(count_of(MSG_ENDED), i == 2);
	}
	expect_ended(ASK_ENDED_ALL, 3, 3);
	expect_idle();
	end();
}

TEST(ranks_and_a_host_name_narrow_the_question)
{
	begin();
	add_hosts(12);
	struct msg msg = ask_of(ASK_STACKS);
	msg.ask.ask.rank_count = 2;
	msg.ask.ask.ranks[0] = 3;
	msg.ask.ask.ranks[1] = 17;
	take(ASKER, &msg);
	ck_assert_uint_eq(count_of(MSG_QUESTION), 2);
	ck_assert_uint_eq(out.items[0].link, 2);
	ck_assert_uint_eq(out.items[1].link, 9);
	msg = ask_of(ASK_STATE);
	msg.ask.id = 6;
	strcpy(msg.ask.host, "h1"); /* not h10 or h11 */
	take(ASKER, &msg);
	ck_assert_uint_eq(count_of(MSG_QUESTION), 1);
	ck_assert_uint_eq(out.items[0].link, 2);
	msg.ask.id = 5;
	strcpy(msg.ask.host, "elsewhere");
	take(ASKER, &msg);
	ck_assert_uint_eq(out.count, 1);
	expect_ended(ASK_ENDED_NO_ONE, 0, 0);
	end();
}

TEST(a_host_sends_no_more_pieces_than_the_asker_makes_room_for)
{
	begin();
	add_hosts(1);
	ask(ASK_LOGS);
	struct msg_question question = first_of(MSG_QUESTION)->question;
	ck_assert_uint_gt(question.pieces, 1);
	for (int i = 0; i < question.pieces; i++) {
		answer(1, &question, false, "line");
		ck_assert_uint_eq(count_of(MSG_REPLY), 1);
	}
	taken(question.slot, 2);
	ck_assert_uint_eq(out.count, 1);
	ck_assert_uint_eq(out.items[0].link, 1);
	ck_assert_uint_eq(first_of(MSG_GRANT)->grant.pieces, 2);
	answer(1, &question, false, "line");
	answer(1, &question, false, "line");
	ck_assert_uint_eq(count_of(MSG_REPLY), 1);
	answer(1, &question, false, "too much");
	ck_assert_uint_eq(count_of(MSG_REPLY), 0);
	ck_assert_uint_eq(first_of(MSG_GRANT)->grant.pieces, 0);
	ck_assert_str_eq(first_of(MSG_MISSED)->missed.name, "h0");
	end();
}

/* An asker that takes nothing gets a fixed number of pieces, whatever the size of the job. */
TEST(what_is_under_way_does_not_grow_with_the_job)
{
	size_t replies[2];
	const uint32_t sizes[] = { 1000, 10000 };
	for (size_t round = 0; round < 2; round++) {
		begin();
		add_hosts(sizes[round]);
		ask(ASK_STATE);
		size_t asked = count_of(MSG_QUESTION);
		AUTO_FREE struct ask_action *sent = NEW_ARRAY(struct ask_action, asked);
		memcpy(sent, out.items, asked * sizeof(*sent));
		replies[round] = 0;
		for (size_t i = 0; i < asked; i++)
			for (int piece = 0; piece < 100; piece++) {
				answer(sent[i].link, &sent[i].msg.question, false, "x");
				replies[round] += count_of(MSG_REPLY);
				ck_assert_uint_eq(count_of(MSG_QUESTION), 0);
			}
		end();
	}
	ck_assert_uint_eq(replies[0], replies[1]);
	ck_assert_uint_le(replies[0] * ASK_PIECE_MAX, 1 << 20);
}

TEST(ten_thousand_hosts_take_a_constant_number_of_messages_each)
{
	enum { HOSTS = 10000 };
	begin();
	add_hosts(HOSTS);
	size_t messages = 0, done = 0;
	struct ask_action *queue = NEW_ARRAY(struct ask_action, HOSTS);
	size_t head = 0, tail = 0;
	ask(ASK_STATE);
	for (;;) {
		messages += out.count;
		for (size_t i = 0; i < out.count; i++)
			if (out.items[i].msg.type == MSG_QUESTION)
				queue[tail++] = out.items[i];
		if (head == tail)
			break;
		struct ask_action next = queue[head++];
		answer(next.link, &next.msg.question, true, "fine");
		messages += 2 + out.count; /* ANSWER, and TAKEN below */
		done += count_of(MSG_REPLY);
		taken(next.msg.question.slot, 1);
	}
	ck_assert_uint_eq(done, HOSTS);
	expect_ended(ASK_ENDED_ALL, HOSTS, HOSTS);
	ck_assert_uint_eq(messages, 4 * HOSTS + 1);
	free(queue);
	end();
}

TEST(a_host_whose_link_ends_is_named_at_once)
{
	begin();
	add_hosts(2);
	ask(ASK_STATE);
	struct msg_question first = out.items[0].msg.question;
	answer(1, &first, true, "fine");
	taken(first.slot, 1);
	roster_part(&roster, roster_by_link(&roster, 2), false);
	out.count = 0;
	questions_link_down(questions, &roster, 2, now_ns, &out);
	ck_assert_str_eq(first_of(MSG_MISSED)->missed.name, "h1");
	ck_assert_int_eq(first_of(MSG_MISSED)->missed.why, ASK_MISSED_LOST);
	expect_ended(ASK_ENDED_ALL, 2, 1);
	expect_idle();
	end();
}

TEST(silent_hosts_make_room_after_half_of_the_time_and_all_ends_at_the_deadline)
{
	begin();
	add_hosts(200);
	ask(ASK_STATE);
	size_t at_once = count_of(MSG_QUESTION);
	ck_assert_uint_lt(at_once, 200);
	now_ns = questions_deadline_ns(questions);
	ck_assert(now_ns == 1000 * NS_PER_S + TIMEOUT_NS / 2);
	out.count = 0;
	questions_timer(questions, &roster, now_ns, &out);
	ck_assert_uint_eq(count_of(MSG_MISSED), at_once);
	ck_assert_uint_eq(count_of(MSG_GRANT), at_once);
	ck_assert_uint_eq(count_of(MSG_QUESTION), at_once);
	now_ns = 1000 * NS_PER_S + TIMEOUT_NS;
	out.count = 0;
	questions_timer(questions, &roster, now_ns, &out);
	ck_assert_uint_eq(count_of(MSG_MISSED), 200 - at_once);
	expect_ended(ASK_ENDED_LATE, 200, 0);
	expect_idle();
	end();
}

TEST(a_host_of_an_older_version_is_not_asked_but_named)
{
	begin();
	add_hosts(2);
	roster_by_link(&roster, 1)->can = 0;
	ask(ASK_STATE);
	ck_assert_uint_eq(count_of(MSG_QUESTION), 1);
	ck_assert_int_eq(first_of(MSG_MISSED)->missed.why, ASK_MISSED_OLD);
	end();
}

TEST(the_ninth_question_is_told_busy_and_so_is_the_fifth_of_a_link)
{
	begin();
	add_hosts(1);
	struct msg msg = ask_of(ASK_STATE);
	for (uint64_t link = 100; link < 102; link++)
		for (msg.ask.id = 1; msg.ask.id <= QUESTIONS_PER_ASKER; msg.ask.id++) {
			take(link, &msg);
			ck_assert_uint_eq(count_of(MSG_QUESTION), 1);
		}
	msg.ask.id = 5;
	take(ASKER, &msg);
	expect_ended(ASK_ENDED_BUSY, 0, 0);
	out.count = 0;
	questions_link_down(questions, &roster, 100, now_ns, &out);
	ck_assert_uint_eq(count_of(MSG_GRANT), QUESTIONS_PER_ASKER);
	take(101, &msg);
	expect_ended(ASK_ENDED_BUSY, 0, 0);
	take(ASKER, &msg);
	ck_assert_uint_eq(count_of(MSG_QUESTION), 1);
	end();
}

TEST(the_third_question_about_collectives_is_told_busy)
{
	begin();
	add_hosts(1);
	struct msg msg = ask_of(ASK_COLLECTIVES);
	for (uint64_t link = 100; link < 102; link++) {
		take(link, &msg);
		ck_assert_uint_eq(count_of(MSG_QUESTION), 1);
	}
	take(ASKER, &msg);
	expect_ended(ASK_ENDED_BUSY, 0, 0);
	msg = ask_of(ASK_STATE);
	take(ASKER, &msg);
	ck_assert_uint_eq(count_of(MSG_QUESTION), 1);
	end();
}

TEST(an_asker_that_has_enough_ends_the_question_everywhere)
{
	begin();
	add_hosts(3);
	ask(ASK_FOLLOW);
	taken(0, 0);
	ck_assert_uint_eq(out.count, 3);
	ck_assert_uint_eq(count_of(MSG_GRANT), 3);
	expect_idle();
	end();
}

TEST(an_answer_from_another_host_or_to_an_old_question_is_dropped)
{
	begin();
	add_hosts(2);
	ask(ASK_STATE);
	struct msg_question first = out.items[0].msg.question;
	answer(2, &first, true, "not mine");
	ck_assert_uint_eq(out.count, 0);
	first.question += 100;
	answer(1, &first, true, "old");
	ck_assert_uint_eq(out.count, 0);
	end();
}

/* Its own agent and that of the asker would take the answers with them. */
TEST(a_stop_reaches_the_asker_and_the_coordinator_after_the_asker_knows_the_end)
{
	begin();
	add_host(0, NODE_LOCAL_LINK);
	for (uint32_t i = 1; i < 4; i++)
		add_host(i, i);
	struct msg msg = ask_of(ASK_STOP);
	take(2, &msg); /* asked at host 2 */
	ck_assert_uint_eq(out.count, 2);
	struct msg_question others[2] = { out.items[0].msg.question, out.items[1].msg.question };
	ck_assert_uint_eq(out.items[0].link, 1);
	ck_assert_uint_eq(out.items[1].link, 3);
	struct msg ok = { .type = MSG_TAKEN, .taken = { 5, 0, 1 } };
	for (uint64_t i = 0; i < 2; i++) {
		answer(i ? 3 : 1, &others[i], true, "");
		ok.taken.slot = others[i].slot;
		take(2, &ok);
	}
	expect_ended(ASK_ENDED_ALL, 4, 4);
	const struct ask_action *last = &out.items[out.count - 3];
	ck_assert_int_eq(last[0].msg.type, MSG_ENDED);
	ck_assert_uint_eq(last[1].link, 2);
	ck_assert_uint_eq(last[2].link, ASK_THIS_HOST);
	ck_assert_int_eq(last[2].msg.type, MSG_QUESTION);
	ck_assert_uint_eq(last[2].msg.question.pieces, 0);
	expect_idle();
	end();
}

/* A coordinator that loses its quorum with those that stop closes the link to its own agent, too.
 */
TEST(a_stop_reaches_the_coordinators_own_agent_when_its_link_has_changed_meanwhile)
{
	begin();
	add_host(0, NODE_LOCAL_LINK);
	add_host(1, 1);
	ask(ASK_STOP);
	struct msg_question other = first_of(MSG_QUESTION)->question;
	answer(1, &other, true, "");
	roster_part(&roster, roster_by_link(&roster, NODE_LOCAL_LINK), false);
	out.count = 0;
	questions_link_down(questions, &roster, NODE_LOCAL_LINK, now_ns, &out);
	taken(other.slot, 1);
	expect_ended(ASK_ENDED_ALL, 2, 2);
	ck_assert_uint_eq(out.items[out.count - 1].link, ASK_THIS_HOST);
	end();
}

TEST(a_restart_is_asked_of_one_host_of_the_round)
{
	begin();
	add_hosts(3);
	roster_set_status(&roster, roster_by_link(&roster, 1), MEMBER_READY);
	ask(ASK_RESTART);
	ck_assert_uint_eq(out.count, 1);
	ck_assert_uint_eq(out.items[0].link, 2);
	end();
}

/* ---- a node's part ---- */

static struct asking asking;
static const struct asking_up up = { 77, true };

static void from_above(const struct msg *msg)
{
	out.count = 0;
	asking_take(&asking, msg, now_ns, &out);
}

static uint32_t pass_on(uint64_t asker, uint32_t id)
{
	struct msg msg = ask_of(ASK_STATE);
	msg.ask.id = id;
	out.count = 0;
	asking_ask(&asking, up, asker, &msg, now_ns, &out);
	ck_assert_uint_eq(out.count, 1);
	ck_assert_uint_eq(out.items[0].link, 77);
	return first_of(MSG_ASK)->ask.id;
}

TEST(a_node_passes_questions_on_and_gives_each_asker_its_own_answers)
{
	now_ns = 1000 * NS_PER_S;
	uint32_t a = pass_on(1, 5), b = pass_on(2, 5);
	ck_assert_uint_ne(a, b);
	struct msg reply = { .type = MSG_REPLY };
	reply.reply.id = b;
	reply.reply.piece = bytes_str("b");
	from_above(&reply);
	ck_assert_uint_eq(out.items[0].link, 2);
	ck_assert_uint_eq(first_of(MSG_REPLY)->reply.id, 5);
	struct msg enough = { .type = MSG_TAKEN, .taken = { 5, 3, 2 } };
	out.count = 0;
	asking_ask(&asking, up, 1, &enough, now_ns, &out);
	ck_assert_uint_eq(first_of(MSG_TAKEN)->taken.id, a);
	ck_assert_uint_eq(first_of(MSG_TAKEN)->taken.slot, 3);
	out.count = 0;
	asking_asker_down(&asking, up, 2, &out);
	ck_assert_uint_eq(first_of(MSG_TAKEN)->taken.id, b);
	ck_assert_uint_eq(first_of(MSG_TAKEN)->taken.pieces, 0);
	from_above(&reply);
	ck_assert_uint_eq(out.count, 0);
	out.count = 0;
	asking_up_down(&asking, &out);
	ck_assert_uint_eq(out.items[0].link, 1);
	expect_ended(ASK_ENDED_LOST, 0, 0);
	ck_assert(asking_deadline_ns(&asking) == NS_NEVER);
	ask_actions_done(&out);
}

TEST(a_node_without_a_coordinator_or_with_an_old_one_says_so)
{
	struct msg msg = ask_of(ASK_STATE);
	asking_ask(&asking, (struct asking_up){ 0, false }, 1, &msg, now_ns, &out);
	expect_ended(ASK_ENDED_APART, 0, 0);
	out.count = 0;
	asking_ask(&asking, (struct asking_up){ 77, false }, 1, &msg, now_ns, &out);
	expect_ended(ASK_ENDED_OLD, 0, 0);
	ask_actions_done(&out);
}

static void piece(uint32_t question, bool last)
{
	struct msg msg = { .type = MSG_ANSWER };
	msg.answer = (struct msg_answer){ .question = question, .slot = 4, .last = last };
	out.count = 0;
	asking_answer(&asking, up, &msg, &out);
}

TEST(a_host_answers_only_as_far_as_it_has_room_and_stops_when_told_or_late)
{
	now_ns = 1000 * NS_PER_S;
	struct msg question = { .type = MSG_QUESTION };
	question.question = (struct msg_question){
		.question = 9, .slot = 4, .pieces = 1, .ask = { .timeout_ns = NS_PER_S }
	};
	from_above(&question);
	ck_assert_uint_eq(out.items[0].link, 0);
	ck_assert_uint_eq(asking_room(&asking, 9, 4), 1);
	piece(9, false);
	ck_assert_uint_eq(out.items[0].link, 77);
	piece(9, false);
	ck_assert_uint_eq(out.count, 0);
	struct msg grant = { .type = MSG_GRANT, .grant = { 9, 4, 2 } };
	from_above(&grant);
	ck_assert_uint_eq(asking_room(&asking, 9, 4), 2);
	now_ns = asking_deadline_ns(&asking);
	out.count = 0;
	asking_timer(&asking, up, now_ns, &out);
	ck_assert_uint_eq(out.items[0].link, 0);
	ck_assert_uint_eq(first_of(MSG_GRANT)->grant.pieces, 0);
	piece(9, true);
	ck_assert_uint_eq(out.count, 0);
	ask_actions_done(&out);
}
