#include "core/rounds/questions.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

static const struct question_window kinds[] = {
	[ASK_STATE] = { 64, 4, QUESTIONS_MAX, false, CAN_ASK },
	[ASK_LOGS] = { 32, 8, QUESTIONS_MAX, false, CAN_ASK },
	[ASK_FOLLOW] = { 1024, 1, QUESTIONS_MAX, true, CAN_ASK },
	[ASK_STACKS] = { 256, 2, QUESTIONS_MAX, false, CAN_ASK },
	[ASK_STOP] = { 4096, 1, QUESTIONS_MAX, false, CAN_ASK },
	[ASK_RESTART] = { 1, 1, QUESTIONS_MAX, false, CAN_ASK },
	[ASK_COLLECTIVES] = { 256, 2, 2, false, CAN_ASK },
	[ASK_LEAVE] = { 1, 1, QUESTIONS_MAX, false, CAN_ASK | CAN_PLAN },
	[ASK_SAVE] = { 1, 1, QUESTIONS_MAX, false, CAN_ASK | CAN_PLAN },
	[ASK_JOB_LOG] = { 1024, 2, 1, true, CAN_ASK | CAN_STREAM },
};
static_assert(ARRAY_LEN(kinds) == ASK_KIND_COUNT, "every kind needs a row");

struct question_host {
	uint64_t link; /* 0: it was lost before the question */
	int32_t group_rank;
	bool answers;
	char *name;
};

enum slot_state {
	SLOT_FREE,
	SLOT_ASKED,	/* nothing has come yet */
	SLOT_ANSWERING, /* pieces have come, and not the last */
	SLOT_OVER,	/* nothing more will come: waits until the asker has taken all */
};

struct question_slot {
	enum slot_state state;
	size_t host;
	uint32_t room;	  /* pieces that the host may still send */
	uint32_t untaken; /* pieces sent to the asker */
	uint64_t by_ns;	  /* when to stop waiting for the first piece */
};

struct step {
	struct questions *questions;
	const struct roster *roster;
	uint64_t now_ns;
	struct ask_actions *actions;
};

struct msg *ask_send(struct ask_actions *actions, uint64_t link, enum msg_type type)
{
	struct ask_action *action = ask_actions_add(actions);
	memset(action, 0, offsetof(struct ask_action, msg) + msg_size(type));
	action->link = link;
	action->msg.type = type;
	return &action->msg;
}

struct question_window questions_window(enum ask_kind kind)
{
	return kinds[kind];
}

/* ---- ends ---- */

/* The arguments stay: actions of this step may borrow them. */
static void clear(struct question *q)
{
	for (size_t i = 0; i < q->host_count; i++)
		free(q->hosts[i].name);
	free(q->hosts);
	free(q->slots);
	free(q->free_slots);
	q->number = 0;
	q->hosts = NULL;
	q->slots = NULL;
	q->free_slots = NULL;
	q->host_count = q->slot_count = 0;
}

static void say_ended(struct step *s, uint64_t link, uint32_t id, enum ask_end why, uint32_t hosts,
		      uint32_t answered)
{
	struct msg_ended *ended = &ask_send(s->actions, link, MSG_ENDED)->ended;
	*ended = (struct msg_ended){ id, why, hosts, answered };
}

static void say_missed(struct step *s, const struct question *q, size_t host, enum ask_missed why)
{
	const struct question_host *h = &q->hosts[host];
	struct msg_missed *missed = &ask_send(s->actions, q->asker, MSG_MISSED)->missed;
	missed->id = q->id;
	missed->why = why;
	missed->group_rank = h->group_rank;
	snprintf(missed->name, sizeof(missed->name), "%s", h->name);
}

static void ask_host(struct step *s, const struct question *q, uint64_t link, uint16_t slot,
		     uint8_t pieces)
{
	struct msg_question *question = &ask_send(s->actions, link, MSG_QUESTION)->question;
	question->question = q->number;
	question->slot = slot;
	question->pieces = pieces;
	question->ask = q->ask;
	question->ask.timeout_ns = q->deadline_ns - MIN(s->now_ns, q->deadline_ns);
}

static bool is_linked(const struct step *s, const struct question_host *host)
{
	return host->link && roster_by_link(s->roster, host->link);
}

/* The hosts that were held back are told after ENDED is on its way to the asker: to stop them ends
 * the asker's agent and the coordinator itself. The agent within the process is told without its
 * link, which the coordinator may have closed meanwhile: it lost its quorum with those that
 * stopped. */
static void finish(struct step *s, struct question *q, enum ask_end why)
{
	for (size_t i = q->held; i < q->host_count; i++) {
		struct msg_reply *reply = &ask_send(s->actions, q->asker, MSG_REPLY)->reply;
		reply->id = q->id;
		reply->last = true;
		reply->group_rank = q->hosts[i].group_rank;
		snprintf(reply->name, sizeof(reply->name), "%s", q->hosts[i].name);
		q->answered++;
	}
	say_ended(s, q->asker, q->id, why, (uint32_t)q->host_count, q->answered);
	for (size_t i = q->held; i < q->host_count; i++) {
		uint64_t link = q->hosts[i].link;
		if (link >= NODE_LOCAL_LINK)
			ask_host(s, q, ASK_THIS_HOST, 0, 0);
		else if (is_linked(s, &q->hosts[i]))
			ask_host(s, q, link, 0, 0);
	}
	clear(q);
}

static void tell_enough(struct step *s, const struct question *q, size_t slot)
{
	struct msg_grant *grant =
		&ask_send(s->actions, q->hosts[q->slots[slot].host].link, MSG_GRANT)->grant;
	*grant = (struct msg_grant){ .question = q->number, .slot = (uint16_t)slot };
}

static bool is_waited_for(const struct question_slot *slot)
{
	return slot->state == SLOT_ASKED || slot->state == SLOT_ANSWERING;
}

/* The asker is gone or has enough. */
static void abandon(struct step *s, struct question *q)
{
	for (size_t i = 0; i < q->slot_count; i++)
		if (is_waited_for(&q->slots[i]))
			tell_enough(s, q, i);
	clear(q);
}

static void expire(struct step *s, struct question *q)
{
	for (size_t i = 0; i < q->slot_count; i++) {
		if (!is_waited_for(&q->slots[i]))
			continue;
		tell_enough(s, q, i);
		if (kinds[q->ask.kind].endless && q->slots[i].state == SLOT_ANSWERING)
			q->answered++;
		else
			say_missed(s, q, q->slots[i].host, ASK_MISSED_LATE);
	}
	for (; q->next < q->held; q->next++)
		say_missed(s, q, q->next, ASK_MISSED_UNASKED);
	finish(s, q, ASK_ENDED_LATE);
}

/* ---- turns ---- */

static void take_slot(struct step *s, struct question *q, size_t host)
{
	uint16_t index = q->free_slots[--q->free_count];
	uint8_t pieces = kinds[q->ask.kind].pieces;
	q->slots[index] = (struct question_slot){ .state = SLOT_ASKED,
						  .host = host,
						  .room = pieces,
						  .by_ns = ns_add(s->now_ns, q->patience_ns) };
	q->wake_ns = MIN(q->wake_ns, q->slots[index].by_ns);
	ask_host(s, q, q->hosts[host].link, index, pieces);
}

/* Asks as many more hosts as there is room for; ends the question if none is left. */
static void go_on(struct step *s, struct question *q)
{
	for (; q->next < q->held; q->next++) {
		const struct question_host *host = &q->hosts[q->next];
		if (!is_linked(s, host))
			say_missed(s, q, q->next, ASK_MISSED_LOST);
		else if (!host->answers)
			say_missed(s, q, q->next, ASK_MISSED_OLD);
		else if (q->free_count > 0)
			take_slot(s, q, q->next);
		else if (kinds[q->ask.kind].endless)
			say_missed(s, q, q->next, ASK_MISSED_UNASKED);
		else
			return;
	}
	if (q->free_count == q->slot_count)
		finish(s, q, ASK_ENDED_ALL);
}

static void free_if_taken(struct question *q, size_t slot)
{
	if (q->slots[slot].state != SLOT_OVER || q->slots[slot].untaken > 0)
		return;
	q->slots[slot].state = SLOT_FREE;
	q->free_slots[q->free_count++] = (uint16_t)slot;
}

/* Its host will not answer any more. */
static void miss(struct step *s, struct question *q, size_t slot, enum ask_missed why)
{
	say_missed(s, q, q->slots[slot].host, why);
	q->slots[slot].state = SLOT_OVER;
	free_if_taken(q, slot);
}

/* ---- a new question ---- */

static bool is_named(const struct msg_ask *ask, const struct member *member)
{
	size_t len = strlen(ask->host);
	return len == 0 || (strncmp(member->name, ask->host, len) == 0 &&
			    (member->name[len] == '\0' || member->name[len] == '.'));
}

static bool has_rank(const struct inquiry *ask, const struct member *member)
{
	for (size_t i = 0; i < ask->rank_count; i++)
		if (member->in_round && ask->ranks[i] >= member->rank_base &&
		    ask->ranks[i] - member->rank_base < member->nproc)
			return true;
	return ask->rank_count == 0;
}

static bool is_meant(const struct msg_ask *ask, const struct member *member)
{
	bool there = member->link || (member->in_round && !member->left);
	if (ask_is_for_one(ask->ask.kind) && member->status != MEMBER_ACTIVE)
		return false;
	return there && is_named(ask, member) && has_rank(&ask->ask, member);
}

/* Members in the order of their ranks, then the others in the order of their arrival. */
static int compare(const void *a, const void *b)
{
	const struct member *x = *(const struct member *const *)a;
	const struct member *y = *(const struct member *const *)b;
	if (x->in_round != y->in_round)
		return x->in_round ? -1 : 1;
	if (x->in_round)
		return (x->group_rank > y->group_rank) - (x->group_rank < y->group_rank);
	return (x->arrival > y->arrival) - (x->arrival < y->arrival);
}

static struct question_host host_of(const struct member *member, enum ask_kind kind)
{
	return (struct question_host){
		.link = member->link,
		.group_rank = member->in_round ? (int32_t)member->group_rank : -1,
		.answers = (member->can & kinds[kind].can) == kinds[kind].can,
		.name = mem_strdup(member->name),
	};
}

static bool is_held(const struct question *q, const struct question_host *host)
{
	return q->ask.kind == ASK_STOP && host->answers &&
	       (host->link == q->asker || host->link >= NODE_LOCAL_LINK);
}

/* Puts the hosts that are held back at the end, the one of the coordinator last. */
static void hold_back(struct question *q)
{
	q->held = q->host_count;
	for (int local = 1; local >= 0; local--)
		for (size_t i = 0; i < q->held; i++) {
			struct question_host host = q->hosts[i];
			if (!is_held(q, &host) || (host.link >= NODE_LOCAL_LINK) != local)
				continue;
			q->held--;
			memmove(&q->hosts[i], &q->hosts[i + 1], (q->held - i) * sizeof(*q->hosts));
			q->hosts[q->held] = host;
			break;
		}
}

static void list_hosts(struct step *s, struct question *q, const struct msg_ask *ask)
{
	const struct roster *roster = s->roster;
	AUTO_FREE struct member **meant = NEW_ARRAY(struct member *, MAX(roster->count, (size_t)1));
	size_t count = 0;
	for (size_t i = 0; i < roster->count; i++)
		if (is_meant(ask, roster->members[i]))
			meant[count++] = roster->members[i];
	qsort(meant, count, sizeof(*meant), compare);
	if (ask_is_for_one(q->ask.kind))
		count = MIN(count, (size_t)1);
	q->hosts = NEW_ARRAY(struct question_host, MAX(count, (size_t)1));
	for (size_t i = 0; i < count; i++)
		q->hosts[i] = host_of(meant[i], q->ask.kind);
	q->host_count = count;
	hold_back(q);
}

static void make_slots(struct question *q)
{
	q->slot_count = q->free_count = MIN(q->host_count, (size_t)kinds[q->ask.kind].hosts);
	q->slots = mem_alloc(MAX(q->slot_count, (size_t)1) * sizeof(*q->slots));
	q->free_slots = NEW_ARRAY(uint16_t, MAX(q->slot_count, (size_t)1));
	for (size_t i = 0; i < q->slot_count; i++)
		q->free_slots[i] = (uint16_t)(q->slot_count - 1 - i);
}

/* A place for one more question of this kind and asker; NULL: there are too many. */
static struct question *find_place(struct questions *questions, uint64_t asker, enum ask_kind kind)
{
	struct question *place = NULL;
	size_t of_asker = 0, of_kind = 0;
	for (size_t i = 0; i < QUESTIONS_MAX; i++) {
		struct question *q = &questions->items[i];
		if (!q->number) {
			place = q;
			continue;
		}
		of_asker += q->asker == asker;
		of_kind += q->ask.kind == kind;
	}
	return of_asker < QUESTIONS_PER_ASKER && of_kind < kinds[kind].questions ? place : NULL;
}

static void take_ask(struct step *s, uint64_t link, const struct msg_ask *ask)
{
	struct question *q = find_place(s->questions, link, ask->ask.kind);
	if (!q) {
		say_ended(s, link, ask->id, ASK_ENDED_BUSY, 0, 0);
		return;
	}
	uint64_t timeout_ns = MAX(MIN(ask->ask.timeout_ns, ASK_TIMEOUT_MAX_NS), QUESTIONS_MIN_NS);
	if (++s->questions->last_number == 0)
		s->questions->last_number = 1;
	*q = (struct question){
		.number = s->questions->last_number,
		.asker = link,
		.id = ask->id,
		.ask = ask->ask,
		.deadline_ns = ns_add(s->now_ns, timeout_ns),
		.patience_ns = timeout_ns / 2,
		.wake_ns = NS_NEVER,
	};
	if (ask->ask.args.len > 0)
		memcpy(q->args, ask->ask.args.data, ask->ask.args.len);
	q->ask.args = bytes_of(q->args, ask->ask.args.len);
	list_hosts(s, q, ask);
	make_slots(q);
	if (q->host_count == 0)
		finish(s, q, ASK_ENDED_NO_ONE);
	else
		go_on(s, q);
}

/* ---- answers ---- */

static struct question *by_number(struct questions *questions, uint32_t number)
{
	for (size_t i = 0; number && i < QUESTIONS_MAX; i++)
		if (questions->items[i].number == number)
			return &questions->items[i];
	return NULL;
}

static struct question *by_asker(struct questions *questions, uint64_t link, uint32_t id)
{
	for (size_t i = 0; i < QUESTIONS_MAX; i++) {
		struct question *q = &questions->items[i];
		if (q->number && q->asker == link && q->id == id)
			return q;
	}
	return NULL;
}

static void pass_on(struct step *s, const struct question *q, const struct msg_answer *answer)
{
	const struct question_host *host = &q->hosts[q->slots[answer->slot].host];
	struct msg_reply *reply = &ask_send(s->actions, q->asker, MSG_REPLY)->reply;
	reply->id = q->id;
	reply->slot = answer->slot;
	reply->last = answer->last;
	reply->failed = answer->failed;
	reply->group_rank = host->group_rank;
	snprintf(reply->name, sizeof(reply->name), "%s", host->name);
	reply->piece = answer->piece;
}

/* A host that sends more than it may is told to stop, and named. */
static void take_answer(struct step *s, uint64_t link, const struct msg_answer *answer)
{
	struct question *q = by_number(s->questions, answer->question);
	if (!q || answer->slot >= q->slot_count)
		return;
	struct question_slot *slot = &q->slots[answer->slot];
	if (!is_waited_for(slot) || q->hosts[slot->host].link != link)
		return;
	if (slot->room == 0) {
		tell_enough(s, q, answer->slot);
		miss(s, q, answer->slot, ASK_MISSED_LATE);
		go_on(s, q);
		return;
	}
	slot->room--;
	slot->untaken++;
	slot->state = answer->last ? SLOT_OVER : SLOT_ANSWERING;
	if (answer->last)
		q->answered++;
	pass_on(s, q, answer);
}

static void take_taken(struct step *s, uint64_t link, const struct msg_taken *taken)
{
	struct question *q = by_asker(s->questions, link, taken->id);
	if (!q)
		return;
	if (taken->pieces == 0) {
		abandon(s, q);
		return;
	}
	if (taken->slot >= q->slot_count)
		return;
	struct question_slot *slot = &q->slots[taken->slot];
	uint32_t pieces = MIN((uint32_t)taken->pieces, slot->untaken);
	if (pieces == 0)
		return;
	slot->untaken -= pieces;
	if (slot->state == SLOT_ANSWERING) {
		slot->room += pieces;
		struct msg_grant *grant =
			&ask_send(s->actions, q->hosts[slot->host].link, MSG_GRANT)->grant;
		*grant = (struct msg_grant){ q->number, taken->slot, (uint8_t)pieces };
		return;
	}
	free_if_taken(q, taken->slot);
	go_on(s, q);
}

void questions_take(struct questions *questions, const struct roster *roster, uint64_t link,
		    const struct msg *msg, uint64_t now_ns, struct ask_actions *actions)
{
	struct step step = { questions, roster, now_ns, actions };
	if (msg->type == MSG_ASK)
		take_ask(&step, link, &msg->ask);
	else if (msg->type == MSG_TAKEN)
		take_taken(&step, link, &msg->taken);
	else if (msg->type == MSG_ANSWER)
		take_answer(&step, link, &msg->answer);
}

/* ---- links and time ---- */

static void lose_host(struct step *s, struct question *q, uint64_t link)
{
	bool lost = false;
	for (size_t i = 0; i < q->slot_count; i++)
		if (is_waited_for(&q->slots[i]) && q->hosts[q->slots[i].host].link == link) {
			miss(s, q, i, ASK_MISSED_LOST);
			lost = true;
		}
	if (lost)
		go_on(s, q);
}

void questions_link_down(struct questions *questions, const struct roster *roster, uint64_t link,
			 uint64_t now_ns, struct ask_actions *actions)
{
	struct step step = { questions, roster, now_ns, actions };
	for (size_t i = 0; i < QUESTIONS_MAX; i++) {
		struct question *q = &questions->items[i];
		if (q->number && q->asker == link)
			abandon(&step, q);
		else if (q->number)
			lose_host(&step, q, link);
	}
}

void questions_give_up(struct questions *questions, struct ask_actions *actions)
{
	struct step step = { .questions = questions, .actions = actions };
	for (size_t i = 0; i < QUESTIONS_MAX; i++) {
		struct question *q = &questions->items[i];
		if (!q->number)
			continue;
		say_ended(&step, q->asker, q->id, ASK_ENDED_LOST, (uint32_t)q->host_count,
			  q->answered);
		clear(q);
	}
}

/* Names the hosts that have not begun to answer in their time. */
static void lose_patience(struct step *s, struct question *q)
{
	q->wake_ns = NS_NEVER;
	for (size_t i = 0; i < q->slot_count; i++) {
		const struct question_slot *slot = &q->slots[i];
		if (slot->state != SLOT_ASKED)
			continue;
		if (slot->by_ns > s->now_ns) {
			q->wake_ns = MIN(q->wake_ns, slot->by_ns);
			continue;
		}
		tell_enough(s, q, i);
		miss(s, q, i, ASK_MISSED_LATE);
	}
	go_on(s, q);
}

void questions_timer(struct questions *questions, const struct roster *roster, uint64_t now_ns,
		     struct ask_actions *actions)
{
	struct step step = { questions, roster, now_ns, actions };
	for (size_t i = 0; i < QUESTIONS_MAX; i++) {
		struct question *q = &questions->items[i];
		if (!q->number)
			continue;
		if (q->deadline_ns <= now_ns)
			expire(&step, q);
		else if (q->wake_ns <= now_ns)
			lose_patience(&step, q);
	}
}

uint64_t questions_deadline_ns(const struct questions *questions)
{
	uint64_t deadline_ns = NS_NEVER;
	for (size_t i = 0; i < QUESTIONS_MAX; i++) {
		const struct question *q = &questions->items[i];
		if (q->number)
			deadline_ns = MIN(deadline_ns, MIN(q->deadline_ns, q->wake_ns));
	}
	return deadline_ns;
}

struct questions *questions_new(void)
{
	return NEW(struct questions);
}

void questions_free(struct questions *questions)
{
	for (size_t i = 0; questions && i < QUESTIONS_MAX; i++)
		clear(&questions->items[i]);
	free(questions);
}
