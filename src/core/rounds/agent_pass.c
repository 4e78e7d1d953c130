#include "core/rounds/agent_pass.h"

#include <string.h>

#include "base/clock.h"
#include "core/pace/looks.h"

/* Only the part that its type uses: the rest may not be there. */
static void pass_on(struct step *s, enum agent_action_type type)
{
	const struct msg *msg = s->event->msg;
	memcpy(&agent_act(s, type)->msg, msg, msg_size(msg->type));
}

void agent_pass_peers(struct step *s)
{
	pass_on(s, AGENT_PEERS);
}

void agent_pass_pair(struct step *s)
{
	s->agent->pair_serial = s->event->msg->pair.serial;
	pass_on(s, AGENT_MEASURE);
}

/* On a new link, its serial number would be another's. */
void agent_pass_measured(struct step *s)
{
	if (!s->agent->pair_serial || s->event->paired.serial != s->agent->pair_serial)
		return;
	s->agent->pair_serial = 0;
	agent_send(s, MSG_PAIRED)->paired = s->event->paired;
}

/* Times of this host on the coordinator's clock, as soon as that is known. */
void agent_pass_pace(struct step *s)
{
	struct agent *agent = s->agent;
	bool same_clock =
		agent->config.node.period_ns == 0; /* the coordinator is in this process */
	uint32_t can = s->event->group == LOOKS_GROUP ? CAN_SIGNS
		       : s->event->group	      ? CAN_ARRIVE
						      : CAN_PACE;
	if (!(agent->can & can) || (!same_clock && !agent->clock.known))
		return;
	bool looks = s->event->group == LOOKS_GROUP; /* they count on the coordinator's clock */
	bool exact = same_clock || looks;
	uint64_t error_ns = exact ? 0 : clock_offset_error_ns(&agent->clock, s->now_ns);
	for (size_t at = 0; at < s->event->mark_count; at += MSG_MARKS_MAX) {
		struct msg_pace *pace = &agent_send(s, MSG_PACE)->pace;
		pace->group = s->event->group;
		pace->size = s->event->size;
		pace->error_ns = ns_add(error_ns, s->event->error_ns);
		pace->count = (uint8_t)MIN(s->event->mark_count - at, (size_t)MSG_MARKS_MAX);
		for (size_t i = 0; i < pace->count; i++) {
			struct step_mark *mark = &pace->marks[i];
			*mark = s->event->marks[at + i];
			if (looks)
				continue;
			mark->last_ns = clock_offset_there(&agent->clock, mark->last_ns);
			mark->mean_ns = clock_offset_there(&agent->clock, mark->mean_ns);
		}
	}
}

void agent_pass_late(struct step *s)
{
	if (ballot_eq(s->event->msg->ballot, s->agent->memory.heard.ballot))
		agent_act(s, AGENT_LATE)->late = s->event->msg->late.news;
}

/* rule: silence */
void agent_pass_signs(struct step *s)
{
	if (s->agent->can & CAN_SIGNS)
		agent_send(s, MSG_SIGNS)->signs = s->event->signs;
}

void agent_pass_found(struct step *s)
{
	if (s->agent->can & CAN_SIGNS)
		agent_send(s, MSG_FOUND)->found = s->event->found;
}

void agent_pass_look(struct step *s)
{
	if (ballot_eq(s->event->msg->ballot, s->agent->memory.heard.ballot))
		agent_act(s, AGENT_LOOK)->look = s->event->msg->look;
}

/* ---- pairs of MPI's ranks ---- */

/* A coordinator of an earlier version ignores what it does not know: the ranks would wait. */
static bool is_served(struct step *s)
{
	if (s->agent->can & CAN_EXCHANGE)
		return true;
	agent_act(s, AGENT_NO_EXCHANGE);
	return false;
}

void agent_pass_put(struct step *s)
{
	struct bytes pairs = s->event->put.pairs;
	if (!is_served(s))
		return;
	for (bool last = false; !last;) {
		size_t len = MIN(pairs.len, (size_t)EXCHANGE_PIECE_MAX);
		last = len == pairs.len;
		agent_send(s, MSG_PUT)->put = (struct msg_put){ .seq = s->event->put.seq,
								.last = last,
								.pairs = { pairs.data, len } };
		pairs = bytes_of(pairs.data + len, pairs.len - len);
	}
}

void agent_pass_want(struct step *s)
{
	if (is_served(s))
		agent_send(s, MSG_WANT)->want = s->event->want;
}

void agent_pass_exchanged(struct step *s)
{
	const struct msg *msg = s->event->msg;
	if (ballot_eq(msg->ballot, s->agent->memory.heard.ballot))
		memcpy(&agent_act(s, AGENT_EXCHANGED)->msg, msg, msg_size(msg->type));
}
