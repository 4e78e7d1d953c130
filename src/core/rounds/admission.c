#include "core/rounds/admission.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "core/rounds/closing.h"
#include "core/rounds/fence.h"
#include "core/rounds/formation.h"

static struct msg *send_refused(struct step *s, uint64_t link, const char *name,
				enum refusal reason, const char *text)
{
	struct note *note = step_note(s, NOTE_REFUSED, name);
	snprintf(note->refused, sizeof(note->refused), "%s", text);
	struct msg *msg = step_send(s, link, MSG_REFUSED);
	msg->refused.reason = reason;
	snprintf(msg->refused.text, sizeof(msg->refused.text), "%s", text);
	return msg;
}

/* The job. */

static bool same_job(const struct coordinator *c, const struct node_info *node)
{
	return !c->has_job || (node->min_nodes == c->min_nodes && node->max_nodes == c->max_nodes);
}

static void other_job_text(char *text, uint32_t job_min, uint32_t job_max, uint32_t min,
			   uint32_t max)
{
	snprintf(text, MSG_TEXT_MAX, "this job has --nnodes=%u:%u, this agent --nnodes=%u:%u",
		 job_min, job_max, min, max);
}

static void learn_job(struct coordinator *c, const struct node_info *node)
{
	c->has_job = true;
	c->min_nodes = node->min_nodes;
	c->max_nodes = node->max_nodes;
}

/* The first agent defines the job. But if it was not a member of a round and this one was, this one
 * is right: an agent started with wrong options must not end the job by coming first.
 * rule: same-job */
static void correct_job(struct step *s)
{
	struct coordinator *c = s->c;
	const struct msg_join *join = &s->event->msg->join;
	if (same_job(c, join->node) || !ballot_is_none(c->roster.heard.ballot) ||
	    ballot_is_none(join->memory.heard.ballot))
		return;
	char text[MSG_TEXT_MAX];
	other_job_text(text, join->node->min_nodes, join->node->max_nodes, c->min_nodes,
		       c->max_nodes);
	for (size_t i = c->roster.count; i-- > 0;) {
		struct member *member = c->roster.members[i];
		if (member->link)
			send_refused(s, member->link, member->name, REFUSED_NODES, text);
		roster_part(&c->roster, member, true);
	}
	learn_job(c, join->node);
}

/* One agent with a long keep-alive must not make the lease too short for all. A coordinator with a
 * longer lease may have let it in before. rule: fence */
static bool outlives_lease(const struct coordinator *c, const struct msg_join *join)
{
	uint64_t death_ns = node_death_ns(join->node);
	return formation_by_lease(c) && death_ns > c->fence_ns &&
	       ballot_is_none(join->memory.heard.ballot) &&
	       !fence_is_covered(death_ns, c->lease_ns);
}

/* Returns the reason to refuse, or REFUSED_REASON_COUNT. rule: node-rank */
static enum refusal check_join(const struct coordinator *c, const struct msg_join *join, char *text)
{
	const struct node_info *node = join->node;
	if (!same_job(c, node)) {
		other_job_text(text, c->min_nodes, c->max_nodes, node->min_nodes, node->max_nodes);
		return REFUSED_NODES;
	}
	if (outlives_lease(c, join)) {
		snprintf(text, MSG_TEXT_MAX,
			 "its workers may live %.1f s without an answer, those of this job %.1f s, "
			 "which its lease covers; give all the same keep_alive_interval",
			 (double)node_death_ns(node) / (double)NS_PER_S,
			 (double)c->fence_ns / (double)NS_PER_S);
		return REFUSED_NODES;
	}
	if (node->node_rank < 0)
		return REFUSED_REASON_COUNT;
	if ((uint32_t)node->node_rank >= node->max_nodes) {
		snprintf(text, MSG_TEXT_MAX, "--node-rank=%d is not below the %u nodes of this job",
			 node->node_rank, node->max_nodes);
		return REFUSED_NODE_RANK;
	}
	const struct member *holder = roster_by_rank(&c->roster, node->node_rank);
	if (!holder || agent_id_eq(holder->id, node->id))
		return REFUSED_REASON_COUNT;
	snprintf(text, MSG_TEXT_MAX, "--node-rank=%d is held by another agent", node->node_rank);
	return REFUSED_NODE_RANK;
}

static bool refuse(struct step *s)
{
	char text[MSG_TEXT_MAX];
	const struct msg_join *join = &s->event->msg->join;
	enum refusal reason = check_join(s->c, join, text);
	if (reason == REFUSED_REASON_COUNT)
		return false;
	struct msg *msg = send_refused(s, s->event->link, join->node->name, reason, text);
	step_raise(msg, join->memory.heard.ballot);
	return true;
}

/* The past. */

/* The ruling is made. It stays valid once agents know it, even if we hear of a higher round now.
 * Where a lease decides, it also stays valid for us: whoever formed that round under an earlier
 * epoch can no longer have an end recorded, and we may have. rule: record */
static bool ruling_stands(const struct coordinator *c, struct ballot heard)
{
	return c->state == COORDINATOR_CLOSED ||
	       ballot_compare(heard, c->roster.heard.ballot) <= 0 ||
	       (formation_by_lease(c) && heard.epoch < c->epoch);
}

/* Returns false when this coordinator must step down. */
static bool learn_rounds(struct step *s, const struct memory *memory)
{
	struct coordinator *c = s->c;
	struct roster *roster = &c->roster;
	struct round_ref heard = roster->heard, base = roster->base;
	bool higher = ballot_compare(memory->heard.ballot, heard.ballot) > 0;
	bool new_base = ballot_compare(memory->base.ballot, base.ballot) > 0;
	if (c->state >= COORDINATOR_CLOSING)
		return ruling_stands(c, memory->heard.ballot);
	if (memory->restarts > c->restarts)
		c->stall.attempts = memory->stall.attempts;
	c->stall.reached = MAX(c->stall.reached, memory->stall.reached);
	c->restarts = MAX(c->restarts, memory->restarts);
	if (higher) {
		if (step_outranked(s, memory->heard.ballot))
			return false;
		heard = memory->heard;
		c->coordinator_in_heard = false;
		step_forget_round(s);
		formation_forget_acks(c);
	}
	/* Whoever only heard of that round does not know who was in it. */
	if (!c->own && ballot_eq(memory->heard.ballot, heard.ballot) &&
	    memory_was_in(memory, heard.ballot))
		c->coordinator_in_heard = memory->coordinator_in_heard;
	if (new_base)
		base = memory->base;
	if (higher || new_base)
		roster_set_rounds(roster, &heard, &base);
	if (new_base)
		formation_recount_acks(c);
	return true;
}

/* Sets how long to wait after this JOIN for other coordinators and their members: they may take
 * this long to notice that an agent has left them. rule: takeover */
static void wait_for_others(struct step *s, const struct member *member, bool again,
			    struct ballot known)
{
	struct coordinator *c = s->c;
	const struct memory *memory = &s->event->msg->join.memory;
	uint64_t noticed_ns = ns_add(s->now_ns, member->death_ns + member->death_ns / 5);
	bool left =
		!again && memory->joined_id != JOINED_NOBODY && memory->joined_id != c->config.id;
	/* A round other than the one we count: we cannot know its members, nor whether they run. */
	struct ballot heard = memory->heard.ballot;
	bool other = !ballot_is_none(known) && !ballot_is_none(heard) && !ballot_eq(known, heard) &&
		     !(c->own && heard.epoch == c->epoch);
	if (left || other)
		c->moved_ns = MAX(c->moved_ns, noticed_ns);
	if (!c->own && !ballot_is_none(heard))
		c->regather_ns = noticed_ns;
}

/* Learns how the agent's workers ended in the last round. */
static void learn_work(struct step *s, const struct member *member)
{
	struct coordinator *c = s->c;
	const struct memory *memory = &member->memory;
	const struct cause *cause = &s->event->msg->join.cause;
	if (!ballot_eq(memory->heard.ballot, c->roster.heard.ballot))
		return;
	bool ruled = memory->ruling == RULING_FAILED; /* spares hear of that, too */
	if (!ruled && !roster_in_heard(&c->roster, member))
		return;
	/* What was ruled is what agents may have acted on. rule: one-cause */
	if (ruled && !c->cause_is_ruled && c->state < COORDINATOR_CLOSING)
		c->has_cause = false;
	c->cause_is_ruled |= ruled;
	if (ruled || (memory->work == WORK_FAILED && !c->cause_is_ruled))
		step_note_cause(s, cause, s->now_ns - MIN(s->now_ns, cause->age_ns));
	if (memory->work == WORK_FAILED && !c->own)
		c->failed = true;
}

/* An old JOIN comes from an agent that gave us up: it may have joined another coordinator, and its
 * LEAVE may be the next message. rule: fresh */
static bool may_be_stale(const struct step *s)
{
	uint64_t death_ns = node_death_ns(s->event->msg->join.node);
	return death_ns && s->now_ns >= ns_add(s->event->greeted_ns, death_ns);
}

/* The agent has been in, or heard of, a round of the job that the arbiter has on record as ended.
 * One that has not begins the job again. rule: record */
static bool is_past(const struct coordinator *c, const struct memory *memory)
{
	return !ballot_is_none(memory->heard.ballot) &&
	       memory->heard.ballot.epoch <= c->config.past.epoch;
}

bool admission_is_beyond_reason(const struct coordinator *c, struct ballot ballot)
{
	return ballot.round > BALLOT_MAX / 2 || (!c->config.epoch && ballot.epoch > BALLOT_MAX / 2);
}

struct member *admission_join(struct step *s)
{
	struct coordinator *c = s->c;
	const struct msg_join *join = &s->event->msg->join;
	if (admission_is_beyond_reason(c, join->memory.heard.ballot)) {
		step_act(s, COORDINATOR_HANG_UP, s->event->link);
		return NULL;
	}
	if (is_past(c, &join->memory)) {
		closing_send_past(s);
		return NULL;
	}
	correct_job(s);
	if (refuse(s))
		return NULL;
	learn_job(c, join->node);
	struct ballot known = c->roster.heard.ballot;
	if (!learn_rounds(s, &join->memory)) {
		step_down(s, !step_outranked(s, join->memory.heard.ballot));
		return NULL;
	}
	struct member *member = roster_by_id(&c->roster, join->node->id);
	bool again = member && member->link == s->event->link;
	/* rule: link-count */
	if ((member && join->attempt < member->attempt) || (!again && may_be_stale(s))) {
		step_act(s, COORDINATOR_HANG_UP, s->event->link);
		return NULL;
	}
	if (member && member->link && !again)
		step_act(s, COORDINATOR_HANG_UP, member->link);
	member = roster_join(&c->roster, s->event->link, join, s->event->greeted_ns, s->now_ns);
	if (!again)
		step_note(s, NOTE_JOINED, member->name);
	c->fence_ns = MAX(c->fence_ns, member->death_ns);
	learn_work(s, member);
	if (ballot_eq(join->memory.heard.ballot, c->roster.heard.ballot))
		formation_ack(c, member);
	wait_for_others(s, member, again, known);
	return member;
}
