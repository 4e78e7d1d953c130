#include "core/deal/hand.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"

struct step {
	struct hand *hand;
	const struct hand_event *event;
	uint64_t now_ns;
	struct hand_actions *actions;
};

static struct hand_action *act(struct step *s, enum hand_action_type type)
{
	struct hand_action *action = hand_actions_add(s->actions);
	*action = (struct hand_action){ .type = type };
	return action;
}

static struct hand_action *act_on(struct step *s, enum hand_action_type type,
				  const struct hand_lease *lease)
{
	struct hand_action *action = act(s, type);
	action->order = lease->order;
	action->lease = lease->lease;
	return action;
}

void hand_init(struct hand *hand, const struct hand_config *config)
{
	*hand = (struct hand){ .config = *config };
}

void hand_done(struct hand *hand)
{
	free(hand->leases);
	*hand = (struct hand){ .leases = NULL };
}

/* ---- leases ---- */

static struct hand_lease *find(const struct hand *hand, uint32_t number)
{
	for (size_t i = 0; i < hand->count; i++)
		if (hand->leases[i].lease == number)
			return &hand->leases[i];
	return NULL;
}

/* The others keep their order: those that came last are returned first. */
static void erase(struct hand *hand, struct hand_lease *lease)
{
	size_t at = (size_t)(lease - hand->leases);
	for (hand->count--; at < hand->count; at++)
		hand->leases[at] = hand->leases[at + 1];
}

static bool can_send(const struct hand *hand)
{
	return hand->linked && hand->welcome;
}

static void send_result(struct step *s, const struct hand_lease *lease, uint32_t number)
{
	if (can_send(s->hand))
		act_on(s, HAND_DO_RESULT, lease)->number = number;
}

static void give_back(struct step *s, struct hand_lease *lease)
{
	act_on(s, HAND_DO_UNQUEUE, lease);
	if (can_send(s->hand))
		act_on(s, HAND_DO_RETURNED, lease);
	erase(s->hand, lease);
}

static void discard(struct step *s, struct hand_lease *lease)
{
	act_on(s, HAND_DO_DISCARD, lease);
	erase(s->hand, lease);
}

static uint64_t expires_ns(const struct hand *hand)
{
	return ns_add(hand->answered_ns, hand->config.lease_ns);
}

/* What it has may be another's by now. */
static void expire(struct step *s)
{
	struct hand *hand = s->hand;
	if (!hand->term || expires_ns(hand) > s->now_ns)
		return;
	size_t before = hand->count;
	for (size_t i = hand->count; i > 0; i--)
		if (hand->leases[i - 1].state != HAND_ENDED)
			discard(s, &hand->leases[i - 1]);
	/* A HELLO that named what is discarded is not true any more. */
	if (!hand->linked || (!hand->welcome && hand->count == before))
		return;
	act(s, HAND_DO_HANG_UP);
	hand->linked = hand->welcome = false;
}

/* ---- events ---- */

static void on_welcome(struct step *s)
{
	struct hand *hand = s->hand;
	if (!hand->linked || hand->welcome)
		return;
	hand->welcome = true;
	hand->answered_ns = MAX(hand->answered_ns, hand->hello_ns);
	hand->beat_ns = ns_add(s->now_ns, hand->config.period_ns);
	if (s->event->term != hand->term) {
		while (hand->count > 0)
			discard(s, &hand->leases[hand->count - 1]);
		hand->term = s->event->term;
	}
	expire(s); /* a welcome that was long under way */
	for (size_t i = 0; i < hand->count; i++) {
		const struct hand_lease *lease = &hand->leases[i];
		if (lease->state == HAND_FETCHING)
			act_on(s, HAND_DO_FETCH, lease); /* what was under way is gone */
		if (lease->state == HAND_STARTED)
			act_on(s, HAND_DO_STARTED, lease);
		for (uint32_t n = lease->confirmed; n < lease->results; n++)
			send_result(s, lease, n);
	}
}

static void on_given(struct step *s)
{
	struct hand *hand = s->hand;
	if (!can_send(hand) || find(hand, s->event->lease))
		return;
	ARRAY_RESERVE(hand->leases, hand->count, hand->cap);
	struct hand_lease *lease = &hand->leases[hand->count++];
	*lease = (struct hand_lease){ .order = s->event->order,
				      .lease = s->event->lease,
				      .state = s->event->files ? HAND_FETCHING : HAND_QUEUED };
	if (hand->stop == WORKLIST_GO) {
		act_on(s, s->event->files ? HAND_DO_FETCH : HAND_DO_RUN, lease);
		return;
	}
	act_on(s, HAND_DO_RETURNED, lease);
	erase(hand, lease);
}

static void on_files(struct step *s)
{
	struct hand_lease *lease = find(s->hand, s->event->lease);
	if (!lease || lease->state != HAND_FETCHING)
		return;
	lease->state = HAND_QUEUED;
	act_on(s, HAND_DO_RUN, lease);
}

static void on_ack(struct step *s)
{
	struct hand_lease *lease = find(s->hand, s->event->lease);
	if (!lease || s->event->number != lease->confirmed || lease->confirmed >= lease->results)
		return;
	lease->confirmed++;
	act_on(s, HAND_DO_FORGET, lease)->number = s->event->number;
	if (lease->state == HAND_ENDED && lease->confirmed == lease->results)
		erase(s->hand, lease);
}

static void return_some(struct step *s, uint32_t count)
{
	for (size_t i = s->hand->count; i > 0 && count > 0; i--) {
		struct hand_lease *lease = &s->hand->leases[i - 1];
		if (lease->state > HAND_QUEUED)
			continue;
		give_back(s, lease);
		count--;
	}
}

static void on_recall(struct step *s)
{
	return_some(s, s->event->count);
	if (can_send(s->hand))
		act(s, HAND_DO_RECALLED);
}

static void on_stop(struct step *s)
{
	if (s->event->stop <= s->hand->stop)
		return;
	s->hand->stop = s->event->stop;
	return_some(s, UINT32_MAX);
	act(s, HAND_DO_STOP)->stop = s->event->stop;
}

static void on_started(struct step *s)
{
	struct hand_lease *lease = find(s->hand, s->event->lease);
	if (!lease || lease->state != HAND_QUEUED)
		return;
	lease->state = HAND_STARTED;
	if (can_send(s->hand))
		act_on(s, HAND_DO_STARTED, lease);
}

static void on_result(struct step *s)
{
	struct hand_lease *lease = find(s->hand, s->event->lease);
	if (!lease || lease->state == HAND_ENDED)
		return;
	uint32_t number = lease->results++;
	if (s->event->final)
		lease->state = HAND_ENDED;
	send_result(s, lease, number);
}

static bool has_work(const struct hand *hand)
{
	for (size_t i = 0; i < hand->count; i++)
		if (hand->leases[i].state != HAND_ENDED)
			return true;
	return false;
}

static void beat(struct step *s)
{
	struct hand *hand = s->hand;
	if (!can_send(hand) || hand->beat_ns > s->now_ns)
		return;
	hand->beat_ns = ns_add(s->now_ns, hand->config.period_ns);
	act(s, HAND_DO_BEAT)->cookie = s->now_ns;
}

void hand_step(struct hand *hand, const struct hand_event *event, uint64_t now_ns,
	       struct hand_actions *actions)
{
	struct step s = { hand, event, now_ns, actions };
	expire(&s);
	switch (event->type) {
	case HAND_EV_LINK_UP:
		hand->linked = true;
		hand->welcome = false;
		hand->hello_ns = now_ns;
		act(&s, HAND_DO_HELLO);
		break;
	case HAND_EV_LINK_DOWN:
		hand->linked = hand->welcome = false;
		break;
	case HAND_EV_WELCOME:
		on_welcome(&s);
		break;
	case HAND_EV_COORDINATES:
		while (hand->count > 0)
			discard(&s, &hand->leases[hand->count - 1]);
		hand->linked = hand->welcome = false;
		hand->term = 0;
		hand->config.lease_ns = NS_NEVER;
		break;
	case HAND_EV_GIVEN:
		on_given(&s);
		break;
	case HAND_EV_FILES:
		on_files(&s);
		break;
	case HAND_EV_ACK:
		on_ack(&s);
		break;
	case HAND_EV_DROP: {
		struct hand_lease *lease = find(hand, event->lease);
		if (lease)
			discard(&s, lease);
		break;
	}
	case HAND_EV_RECALL:
		on_recall(&s);
		break;
	case HAND_EV_STOP:
		on_stop(&s);
		break;
	case HAND_EV_ANSWERED:
		if (can_send(hand) && event->cookie <= now_ns)
			hand->answered_ns = MAX(hand->answered_ns, event->cookie);
		break;
	case HAND_EV_STARTED:
		on_started(&s);
		break;
	case HAND_EV_RESULT:
		on_result(&s);
		break;
	case HAND_EV_TIMER:
		beat(&s);
		break;
	}
}

uint64_t hand_deadline_ns(const struct hand *hand)
{
	uint64_t next = can_send(hand) ? hand->beat_ns : NS_NEVER;
	if (hand->term && (has_work(hand) || can_send(hand)))
		next = MIN(next, expires_ns(hand));
	return next;
}
