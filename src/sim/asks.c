/* Commands that ask all hosts of the job, and hosts that answer: askers sit on any host, hosts are
 * slow, answer nothing or never end, and both go away in the middle of it.
 *
 * Each question has a serial number, which is its argument at every host, and each piece of an
 * answer says which question it belongs to, who made it and the how manieth it is: so check_asks.c
 * can tell whether pieces were lost, mixed up or sent twice. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sim/world.h"

#define CROWD 12	  /* askers, more than are served at a time */
#define TURNS 30	  /* questions of one asker */
#define PIECES_MAX 6	  /* of one answer */
#define SLACK_NS NS_PER_S /* for clocks that drift, and what arrives at the same time */

struct sim_question *asks_question(const struct world *world, struct bytes args)
{
	uint32_t serial = 0;
	if (args.len >= ASK_SERIAL_LEN)
		memcpy(&serial, args.data, ASK_SERIAL_LEN);
	return serial && serial <= world->question_count ? world->questions[serial - 1] : NULL;
}

/* ---- askers ---- */

static struct sim_asker *asker_by_link(const struct world *world, uint64_t link)
{
	for (uint32_t i = 0; i < world->asker_count; i++)
		if (world->askers[i].link == link)
			return &world->askers[i];
	return NULL;
}

static void rearm(struct world *world, struct sim_asker *asker)
{
	uint64_t at_ns = MIN(MIN(asker->take_ns, asker->leave_ns), asker->late_ns);
	asker->timer.host = asker->host;
	world_arm(world, &asker->timer, at_ns);
}

/* The asker has what it wanted, or not, and asks again some time later. */
static void rest(struct world *world, struct sim_asker *asker, enum sim_ended state)
{
	asker->question->state = state;
	free(asker->question->slots);
	asker->question->slots = NULL;
	asker->question->slot_count = 0;
	asker->question = NULL;
	asker->link = 0;
	asker->late_ns = asker->leave_ns = NS_NEVER;
	asker->take_ns = world->now_ns + rng_range(&world->rng, 1, 8000) * NS_PER_MS;
	rearm(world, asker);
}

static void send(struct world *world, const struct sim_asker *asker, const struct msg *msg)
{
	host_step(world, &world->hosts[asker->host],
		  &(struct node_event){ .type = NODE_EV_MSG, .link = asker->link, .msg = msg });
}

static enum ask_kind choose_kind(struct world *world)
{
	enum ask_kind kind = (enum ask_kind)rng_range(&world->rng, 0, ASK_COLLECTIVES);
	bool harmless = kind != ASK_STOP && kind != ASK_RESTART;
	bool may_harm = world->options.faults && !world->gentle && !world->script &&
			world->now_ns < world->faults_end_ns;
	return harmless || (may_harm && rng_chance(&world->rng, 15)) ? kind : ASK_STATE;
}

static struct sim_question *new_question(struct world *world)
{
	struct rng *rng = &world->rng;
	struct sim_question *question = NEW(struct sim_question);
	ARRAY_RESERVE(world->questions, world->question_count, world->question_cap);
	world->questions[world->question_count++] = question;
	*question = (struct sim_question){
		.serial = (uint32_t)world->question_count,
		.asked_ns = world->now_ns,
		.ask = { .kind = choose_kind(world),
			 .timeout_ns = rng_range(rng, 1, 15) * NS_PER_S },
		.expects = mem_alloc(world->count),
		.misses = mem_alloc(world->count),
		.answers = mem_alloc(world->count),
		.begun = mem_alloc(world->count * sizeof(bool)),
	};
	if (rng_chance(rng, 15))
		snprintf(question->host, sizeof(question->host), "h%u",
			 (uint32_t)rng_range(rng, 0, world->count));
	if (rng_chance(rng, 15))
		for (; question->ask.rank_count < 2; question->ask.rank_count++)
			question->ask.ranks[question->ask.rank_count] =
				(uint32_t)rng_range(rng, 0, 8);
	world->result->questions++;
	return question;
}

static void plan(struct world *world, struct sim_asker *asker)
{
	struct rng *rng = &world->rng;
	const struct sim_question *question = asker->question;
	uint64_t longest_ns = question->ask.timeout_ns + ASKING_GRACE_NS;
	asker->late_ns = world->now_ns + longest_ns + longest_ns / 200 + SLACK_NS;
	asker->take_ns = asker->leave_ns = NS_NEVER;
	asker->pause_ns = rng_range(rng, 0, rng_chance(rng, 20) ? 2000 : 5) * NS_PER_MS;
	if (!world->options.faults)
		return;
	if (rng_chance(rng, 5))
		asker->pause_ns = NS_NEVER;
	if (rng_chance(rng, question->ask.kind == ASK_FOLLOW ? 60 : 10))
		asker->leave_ns =
			world->now_ns +
			rng_range(rng, 0, question->ask.timeout_ns / NS_PER_MS) * NS_PER_MS;
}

static void ask(struct world *world, struct sim_asker *asker)
{
	const struct host *host = &world->hosts[asker->host];
	asker->take_ns = world->now_ns + NS_PER_S;
	if (!host->process || host->old || world_frozen(world, host) || asker->left == 0) {
		asker->host = (uint32_t)rng_range(&world->rng, 0, world->count - 1);
		if (asker->left == 0)
			asker->take_ns = NS_NEVER;
		rearm(world, asker);
		return;
	}
	asker->left--;
	asker->link = ASKER_LINK + ++world->asker_links;
	struct sim_question *question = asker->question = new_question(world);
	plan(world, asker);
	rearm(world, asker);
	world->asked_until_ns = MAX(world->asked_until_ns, asker->late_ns);
	world_trace(world, "asker %u at h%u: question %u, kind %d", asker->index, asker->host,
		    question->serial, question->ask.kind);
	struct msg msg = { .type = MSG_ASK };
	msg.ask = (struct msg_ask){ .id = question->serial, .ask = question->ask };
	msg.ask.ask.args = bytes_of(&question->serial, ASK_SERIAL_LEN);
	memcpy(msg.ask.host, question->host, sizeof(msg.ask.host));
	send(world, asker, &msg);
}

/* It takes all pieces that have come. */
static void take(struct world *world, struct sim_asker *asker)
{
	uint64_t link = asker->link;
	const struct sim_question *question = asker->question;
	asker->take_ns = NS_NEVER;
	for (size_t i = 0; asker->link == link && i < question->slot_count; i++) {
		struct sim_slot *slot = &question->slots[i];
		if (slot->untaken == 0)
			continue;
		struct msg msg = { .type = MSG_TAKEN };
		msg.taken = (struct msg_taken){ .id = question->serial,
						.slot = (uint16_t)i,
						.pieces = (uint8_t)slot->untaken };
		asker->question->untaken -= slot->untaken;
		slot->untaken = 0;
		send(world, asker, &msg);
	}
}

/* It has enough, or its user presses Ctrl-C. */
static void leave(struct world *world, struct sim_asker *asker)
{
	struct host *host = &world->hosts[asker->host];
	struct msg enough = { .type = MSG_TAKEN };
	enough.taken = (struct msg_taken){ .id = asker->question->serial };
	uint64_t link = asker->link;
	world_trace(world, "asker %u leaves", asker->index);
	rest(world, asker, SIM_ABANDONED);
	if (rng_chance(&world->rng, 50))
		host_step(
			world, host,
			&(struct node_event){ .type = NODE_EV_MSG, .link = link, .msg = &enough });
	host_step(world, host, &(struct node_event){ .type = NODE_EV_LINK_DOWN, .link = link });
}

/* A host that stood still is late for everything. */
static void check_late(struct world *world, struct sim_asker *asker)
{
	const struct host *host = &world->hosts[asker->host];
	if (host->thawed_ns && world->now_ns < host->thawed_ns + SLACK_NS)
		asker->late_ns = host->thawed_ns + SLACK_NS;
	else
		check_broken(world, "question %u of asker %u at h%u is not answered %llu s later",
			     asker->question->serial, asker->index, asker->host,
			     (unsigned long long)((world->now_ns - asker->question->asked_ns) /
						  NS_PER_S));
}

void asks_happen(struct world *world, struct sim_asker *asker)
{
	if (!asker->link) {
		ask(world, asker);
		return;
	}
	if (world->now_ns >= asker->leave_ns) {
		leave(world, asker);
		return;
	}
	if (world->now_ns >= asker->take_ns)
		take(world, asker);
	if (asker->link && world->now_ns >= asker->late_ns)
		check_late(world, asker);
	rearm(world, asker);
}

static void hear_reply(struct world *world, struct sim_asker *asker, const struct msg_reply *reply)
{
	check_asks_reply(world, asker->question, reply);
	if (asker->pause_ns == NS_NEVER)
		return;
	asker->take_ns = MIN(asker->take_ns, world->now_ns + asker->pause_ns);
	rearm(world, asker);
}

void asks_hear(struct world *world, uint64_t link, const struct msg *msg)
{
	struct sim_asker *asker = asker_by_link(world, link);
	if (!asker) {
		check_broken(world, "%s to an asker that is gone", msg_type_name(msg->type));
		return;
	}
	switch (msg->type) {
	case MSG_REPLY:
		hear_reply(world, asker, &msg->reply);
		break;
	case MSG_MISSED:
		check_asks_missed(world, asker->question, &msg->missed);
		break;
	case MSG_ENDED:
		world_trace(world, "asker %u: question %u ended, %d, %u of %u", asker->index,
			    asker->question->serial, msg->ended.why, msg->ended.answered,
			    msg->ended.hosts);
		check_asks_ended(world, asker->question, &msg->ended);
		rest(world, asker, SIM_ENDED);
		break;
	default:
		check_broken(world, "%s to an asker", msg_type_name(msg->type));
	}
}

/* ---- hosts that answer ---- */

static struct sim_answer *find_answer(struct host *host, uint32_t question, uint16_t slot)
{
	for (size_t i = 0; i < ARRAY_LEN(host->answers); i++)
		if (host->answers[i].question == question &&
		    (question == 0 || host->answers[i].slot == slot))
			return &host->answers[i];
	return NULL;
}

static void rearm_answers(struct world *world, struct host *host)
{
	uint64_t at_ns = NS_NEVER;
	for (size_t i = 0; i < ARRAY_LEN(host->answers); i++) {
		const struct sim_answer *answer = &host->answers[i];
		if (answer->question && node_room(&host->node, answer->question, answer->slot) > 0)
			at_ns = MIN(at_ns, answer->next_ns);
	}
	world_arm(world, &host->answer_timer, at_ns);
}

static uint64_t first_piece_ns(struct world *world)
{
	struct rng *rng = &world->rng;
	if (!rng_chance(rng, world->options.faults ? 20 : 1))
		return world->now_ns + rng_range(rng, 0, 30) * NS_PER_MS;
	if (world->options.faults && rng_chance(rng, 30))
		return NS_NEVER;
	return world->now_ns + rng_range(rng, 0, 6000) * NS_PER_MS;
}

/* As in run/ask/answers.c: all actions of a step come before what they ask for. */
static void obey(struct host *host, enum ask_kind kind)
{
	host->must_stop |= kind == ASK_STOP && !host->stopped;
	host->must_renew |= kind == ASK_RESTART;
}

void asks_obey(struct world *world, struct host *host)
{
	bool stops = host->must_stop, renews = host->must_renew;
	host->must_stop = host->must_renew = false;
	if (stops && !host->stopped) {
		world->amnesia++;
		host->stopped = true;
		host_tell(world, host,
			  &(struct agent_event){ .type = AGENT_STOP_REQUESTED, .signal = 15 });
	}
	if (renews)
		host_tell(world, host, &(struct agent_event){ .type = AGENT_RESTART_REQUESTED });
}

static void take_question(struct world *world, struct host *host, const struct msg_question *asked)
{
	const struct sim_question *question = asks_question(world, asked->ask.args);
	struct sim_answer *answer = find_answer(host, 0, 0);
	if (!question || host->old || find_answer(host, asked->question, asked->slot)) {
		check_broken(world, "h%u is asked something it cannot be asked", host->index);
		return;
	}
	world_trace(world, "h%u is asked question %u", host->index, question->serial);
	if (asked->pieces == 0) {
		obey(host, asked->ask.kind);
		return;
	}
	if (!answer) {
		check_broken(world, "h%u is asked too much", host->index);
		return;
	}
	*answer = (struct sim_answer){
		.question = asked->question,
		.slot = asked->slot,
		.serial = question->serial,
		.messages = 1,
		.kind = asked->ask.kind,
		.total = asked->ask.kind == ASK_FOLLOW
				 ? UINT32_MAX
				 : (uint32_t)rng_range(&world->rng, 1, PIECES_MAX),
		.next_ns = first_piece_ns(world),
	};
	if (world->options.faults && !world->script)
		faults_provoke(world, host->index);
}

static void take_grant(struct world *world, struct host *host, const struct msg_grant *grant)
{
	struct sim_answer *answer = find_answer(host, grant->question, grant->slot);
	if (!answer) {
		check_broken(world, "h%u is granted what it does not send", host->index);
		return;
	}
	answer->messages++;
	check_asks_messages(world, host, answer);
	if (grant->pieces == 0)
		answer->question = 0;
}

void asks_asked(struct world *world, struct host *host, const struct msg *msg)
{
	if (msg->type == MSG_QUESTION)
		take_question(world, host, &msg->question);
	else
		take_grant(world, host, &msg->grant);
	if (host->process)
		rearm_answers(world, host);
}

/* The host sends one piece of its answer. */
static void give_piece(struct world *world, struct host *host, struct sim_answer *answer)
{
	const uint32_t content[] = { answer->serial, host->index, host->generation, answer->sent };
	enum ask_kind kind = answer->kind;
	struct msg msg = { .type = MSG_ANSWER };
	msg.answer = (struct msg_answer){ .question = answer->question,
					  .slot = answer->slot,
					  .last = ++answer->sent == answer->total,
					  .piece = bytes_of(content, sizeof(content)) };
	answer->messages++;
	check_asks_messages(world, host, answer);
	if (kind == ASK_FOLLOW)
		answer->next_ns = world->now_ns + rng_range(&world->rng, 100, 2000) * NS_PER_MS;
	if (msg.answer.last)
		answer->question = 0;
	uint32_t generation = host->generation;
	host_step(world, host, &(struct node_event){ .type = NODE_EV_PIECE, .msg = &msg });
	if (!msg.answer.last || host->generation != generation)
		return;
	obey(host, kind);
	asks_obey(world, host);
}

void asks_answer(struct world *world, struct host *host)
{
	for (size_t i = 0; i < ARRAY_LEN(host->answers); i++) {
		struct sim_answer *answer = &host->answers[i];
		while (host->process && answer->question && answer->next_ns <= world->now_ns &&
		       node_room(&host->node, answer->question, answer->slot) > 0)
			give_piece(world, host, answer);
	}
	if (host->process)
		rearm_answers(world, host);
}

void asks_process_ended(struct world *world, struct host *host)
{
	memset(host->answers, 0, sizeof(host->answers));
	world_arm(world, &host->answer_timer, NS_NEVER);
	for (uint32_t i = 0; i < world->asker_count; i++)
		if (world->askers[i].link && world->askers[i].host == host->index)
			rest(world, &world->askers[i], SIM_ABANDONED);
}

/* ---- life ---- */

/* Without a draw for worlds without askers, so that they stay as they are. */
static uint32_t choose_count(struct world *world)
{
	if (world->options.askers)
		return world->options.askers;
	if (!world->options.faults || world->options.seed % 3 != 0)
		return 0;
	return rng_chance(&world->rng, 10) ? CROWD : (uint32_t)rng_range(&world->rng, 1, 3);
}

void asks_start(struct world *world)
{
	uint32_t count = choose_count(world);
	if (count == 0)
		return;
	world->askers = mem_alloc(count * sizeof(*world->askers));
	world->asker_count = count;
	for (uint32_t i = 0; i < count; i++) {
		struct sim_asker *asker = &world->askers[i];
		*asker = (struct sim_asker){
			.index = i,
			.host = (uint32_t)rng_range(&world->rng, 0, world->count - 1),
			.left = TURNS,
			.leave_ns = NS_NEVER,
			.late_ns = NS_NEVER,
			.take_ns = world->now_ns + rng_range(&world->rng, 1, 30) * NS_PER_S,
			.timer = { .what = HAPPEN_ASKER, .embedded = true, .index = i },
		};
		rearm(world, asker);
	}
	for (uint32_t i = 0; world->options.faults && i < world->count; i++)
		world->hosts[i].old = rng_chance(&world->rng, 5);
}

void asks_done(struct world *world)
{
	for (size_t i = 0; i < world->question_count; i++) {
		struct sim_question *question = world->questions[i];
		free(question->expects);
		free(question->misses);
		free(question->answers);
		free(question->begun);
		free(question->slots);
		free(question);
	}
	free(world->questions);
	free(world->askers);
}
