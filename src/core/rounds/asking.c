#include "core/rounds/asking.h"

#include <string.h>

#include "base/clock.h"

/* ---- questions that are passed on ---- */

static struct asking_relay *relay_by_id(struct asking *asking, uint32_t id)
{
	for (size_t i = 0; i < ASKING_RELAYS; i++)
		if (asking->relays[i].id == id)
			return &asking->relays[i];
	return NULL;
}

static const struct asking_relay *relay_by_asker(const struct asking *asking, uint64_t asker,
						 uint32_t asked_as)
{
	for (size_t i = 0; i < ASKING_RELAYS; i++) {
		const struct asking_relay *relay = &asking->relays[i];
		if (relay->id && relay->asker == asker && relay->asked_as == asked_as)
			return relay;
	}
	return NULL;
}

bool asking_passes(const struct asking *asking, uint64_t asker, uint32_t asked_as)
{
	return relay_by_asker(asking, asker, asked_as) != NULL;
}

static void say_ended(uint64_t asker, uint32_t id, enum ask_end why, struct ask_actions *actions)
{
	struct msg_ended *ended = &ask_send(actions, asker, MSG_ENDED)->ended;
	*ended = (struct msg_ended){ .id = id, .why = why };
}

static void end_relay(struct asking_relay *relay, enum ask_end why, struct ask_actions *actions)
{
	say_ended(relay->asker, relay->asked_as, why, actions);
	relay->id = 0;
}

static void tell_enough(const struct asking_relay *relay, struct asking_up up,
			struct ask_actions *actions)
{
	if (!up.link)
		return;
	struct msg_taken *taken = &ask_send(actions, up.link, MSG_TAKEN)->taken;
	*taken = (struct msg_taken){ .id = relay->id };
}

static void pass_ask(struct asking *asking, struct asking_up up, uint64_t asker,
		     const struct msg_ask *ask, uint64_t now_ns, struct ask_actions *actions)
{
	struct asking_relay *relay = relay_by_id(asking, 0);
	if (!relay || !up.link || !up.answers) {
		enum ask_end why = !relay     ? ASK_ENDED_BUSY
				   : !up.link ? ASK_ENDED_APART
					      : ASK_ENDED_OLD;
		say_ended(asker, ask->id, why, actions);
		return;
	}
	if (++asking->last_id == 0)
		asking->last_id = 1;
	uint64_t timeout_ns = MAX(MIN(ask->ask.timeout_ns, ASK_TIMEOUT_MAX_NS), QUESTIONS_MIN_NS);
	*relay = (struct asking_relay){
		.id = asking->last_id,
		.asker = asker,
		.asked_as = ask->id,
		.deadline_ns = ns_add(now_ns, timeout_ns + ASKING_GRACE_NS),
	};
	struct msg *out = ask_send(actions, up.link, MSG_ASK);
	out->ask = *ask;
	out->ask.id = relay->id;
}

static void pass_taken(struct asking *asking, struct asking_up up, uint64_t asker,
		       const struct msg_taken *taken, struct ask_actions *actions)
{
	struct asking_relay *relay =
		(struct asking_relay *)relay_by_asker(asking, asker, taken->id);
	if (!relay || !up.link)
		return;
	struct msg_taken *out = &ask_send(actions, up.link, MSG_TAKEN)->taken;
	*out = (struct msg_taken){ relay->id, taken->slot, taken->pieces };
	if (taken->pieces == 0)
		relay->id = 0;
}

void asking_ask(struct asking *asking, struct asking_up up, uint64_t asker, const struct msg *msg,
		uint64_t now_ns, struct ask_actions *actions)
{
	if (msg->type == MSG_ASK)
		pass_ask(asking, up, asker, &msg->ask, now_ns, actions);
	else if (msg->type == MSG_TAKEN)
		pass_taken(asking, up, asker, &msg->taken, actions);
}

/* The asker knows the question by its own id. */
static void pass_back(struct asking *asking, uint32_t *id, const struct msg *msg,
		      struct ask_actions *actions)
{
	struct asking_relay *relay = *id ? relay_by_id(asking, *id) : NULL;
	if (!relay)
		return;
	*id = relay->asked_as;
	struct msg *out = ask_send(actions, relay->asker, msg->type);
	memcpy(out, msg, msg_size(msg->type));
	if (msg->type == MSG_ENDED)
		relay->id = 0;
}

/* ---- answers of this host ---- */

static struct asking_answer *find_answer(const struct asking *asking, uint32_t question,
					 uint16_t slot)
{
	for (size_t i = 0; question && i < ARRAY_LEN(asking->answers); i++) {
		const struct asking_answer *answer = &asking->answers[i];
		if (answer->question == question && answer->slot == slot)
			return (struct asking_answer *)answer;
	}
	return NULL;
}

static struct asking_answer *free_answer(struct asking *asking)
{
	for (size_t i = 0; i < ARRAY_LEN(asking->answers); i++)
		if (!asking->answers[i].question)
			return &asking->answers[i];
	return NULL;
}

static void drop(struct asking_answer *answer, struct ask_actions *actions)
{
	struct msg_grant *grant = &ask_send(actions, ASK_THIS_HOST, MSG_GRANT)->grant;
	*grant = (struct msg_grant){ .question = answer->question, .slot = answer->slot };
	answer->question = 0;
}

/* One that wants no answer has no end, either. A coordinator does not ask more than the table can
 * hold, and gives a number to one question only. */
static void take_question(struct asking *asking, const struct msg *msg, uint64_t now_ns,
			  struct ask_actions *actions)
{
	const struct msg_question *question = &msg->question;
	struct asking_answer *answer = question->pieces ? free_answer(asking) : NULL;
	if (question->pieces && (!answer || !question->question ||
				 find_answer(asking, question->question, question->slot)))
		return;
	if (answer)
		*answer = (struct asking_answer){
			.question = question->question,
			.slot = question->slot,
			.room = question->pieces,
			.deadline_ns = ns_add(now_ns, question->ask.timeout_ns),
		};
	memcpy(ask_send(actions, ASK_THIS_HOST, MSG_QUESTION), msg, msg_size(MSG_QUESTION));
}

static void take_grant(struct asking *asking, const struct msg_grant *grant,
		       struct ask_actions *actions)
{
	struct asking_answer *answer = find_answer(asking, grant->question, grant->slot);
	if (!answer)
		return;
	if (grant->pieces == 0) {
		drop(answer, actions);
		return;
	}
	answer->room = MIN(answer->room + grant->pieces, (uint32_t)ASK_PIECES_MAX);
	ask_send(actions, ASK_THIS_HOST, MSG_GRANT)->grant = *grant;
}

uint32_t asking_room(const struct asking *asking, uint32_t question, uint16_t slot)
{
	const struct asking_answer *answer = find_answer(asking, question, slot);
	return answer ? answer->room : 0;
}

void asking_answer(struct asking *asking, struct asking_up up, const struct msg *msg,
		   struct ask_actions *actions)
{
	struct asking_answer *answer = find_answer(asking, msg->answer.question, msg->answer.slot);
	if (!answer || answer->room == 0 || !up.link)
		return;
	answer->room--;
	memcpy(ask_send(actions, up.link, MSG_ANSWER), msg, msg_size(MSG_ANSWER));
	if (msg->answer.last)
		answer->question = 0;
}

/* ---- both ---- */

void asking_take(struct asking *asking, const struct msg *msg, uint64_t now_ns,
		 struct ask_actions *actions)
{
	struct msg copy;
	memcpy(&copy, msg, msg_size(msg->type));
	switch (msg->type) {
	case MSG_QUESTION:
		take_question(asking, msg, now_ns, actions);
		break;
	case MSG_GRANT:
		take_grant(asking, &msg->grant, actions);
		break;
	case MSG_REPLY:
		pass_back(asking, &copy.reply.id, &copy, actions);
		break;
	case MSG_MISSED:
		pass_back(asking, &copy.missed.id, &copy, actions);
		break;
	case MSG_ENDED:
		pass_back(asking, &copy.ended.id, &copy, actions);
		break;
	default:
		break;
	}
}

void asking_up_down(struct asking *asking, struct ask_actions *actions)
{
	for (size_t i = 0; i < ASKING_RELAYS; i++)
		if (asking->relays[i].id)
			end_relay(&asking->relays[i], ASK_ENDED_LOST, actions);
	for (size_t i = 0; i < ARRAY_LEN(asking->answers); i++)
		if (asking->answers[i].question)
			drop(&asking->answers[i], actions);
}

void asking_asker_down(struct asking *asking, struct asking_up up, uint64_t asker,
		       struct ask_actions *actions)
{
	for (size_t i = 0; i < ASKING_RELAYS; i++) {
		struct asking_relay *relay = &asking->relays[i];
		if (!relay->id || relay->asker != asker)
			continue;
		tell_enough(relay, up, actions);
		relay->id = 0;
	}
}

void asking_timer(struct asking *asking, struct asking_up up, uint64_t now_ns,
		  struct ask_actions *actions)
{
	for (size_t i = 0; i < ASKING_RELAYS; i++) {
		struct asking_relay *relay = &asking->relays[i];
		if (!relay->id || relay->deadline_ns > now_ns)
			continue;
		tell_enough(relay, up, actions);
		end_relay(relay, ASK_ENDED_LOST, actions);
	}
	for (size_t i = 0; i < ARRAY_LEN(asking->answers); i++)
		if (asking->answers[i].question && asking->answers[i].deadline_ns <= now_ns)
			drop(&asking->answers[i], actions);
}

uint64_t asking_deadline_ns(const struct asking *asking)
{
	uint64_t deadline_ns = NS_NEVER;
	for (size_t i = 0; i < ASKING_RELAYS; i++)
		if (asking->relays[i].id)
			deadline_ns = MIN(deadline_ns, asking->relays[i].deadline_ns);
	for (size_t i = 0; i < ARRAY_LEN(asking->answers); i++)
		if (asking->answers[i].question)
			deadline_ns = MIN(deadline_ns, asking->answers[i].deadline_ns);
	return deadline_ns;
}
