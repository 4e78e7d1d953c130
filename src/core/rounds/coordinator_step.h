/* Shared by the parts of the coordinator only: coordinator.c (events), admission.c (joining),
 * advance.c and formation.c (rounds), losses.c, inspection.c, accord.c and closing.c (the job's
 * end). */
#ifndef CORE_ROUNDS_COORDINATOR_STEP_H
#define CORE_ROUNDS_COORDINATOR_STEP_H

#include "core/rounds/coordinator.h"

/* One event, and the actions that follow from it. */
struct step {
	struct coordinator *c;
	const struct coordinator_event *event;
	uint64_t now_ns;
	struct coordinator_actions *actions;
};

/* Borrowed until the next action. */
struct coordinator_action *step_act(struct step *s, enum coordinator_action_type type,
				    uint64_t link);
struct msg *step_send(struct step *s, uint64_t link, enum msg_type type);

/* Not below what the agent has heard of: it would take us for an old coordinator. */
void step_raise(struct msg *msg, struct ballot heard);

void step_send_stop(struct step *s, const struct member *member, enum stop_why why,
		    const struct cause *cause);

/* A note about the agent `name`, or about none if NULL. */
struct note *step_note(struct step *s, enum note_kind kind, const char *name);

void step_set_state(struct step *s, enum coordinator_state state);

/* The earliest death is the first cause, whichever report came first. rule: first-cause */
void step_note_cause(struct step *s, const struct cause *cause, uint64_t died_ns);

/* Some report has told what the flight records say. */
static inline bool step_is_blamed(const struct coordinator *c)
{
	return c->cause.blame.named || *c->cause.blame.text;
}

/* The round is past: its failure and its ruling no longer count. */
void step_forget_round(struct step *s);

/* Sends STOP to all members with workers. */
void step_stop_round(struct step *s, enum stop_why why);

/* Whether `ballot` proves that another coordinator has replaced us. Before we form a round, a
 * higher ballot is only history that we still have to learn. rule: ballots */
bool step_outranked(const struct step *s, struct ballot ballot);

/* Closes all links: a higher ballot exists. again: as in struct stepped_down. */
void step_down(struct step *s, bool again);

/* Has workers of this round, and is not done. */
static inline bool step_is_active(const struct member *member)
{
	return member->in_round && member->status == MEMBER_ACTIVE;
}

/* Has workers and has not been sent STOP. */
static inline bool step_stoppable(const struct member *member)
{
	return member->status == MEMBER_ACTIVE || member->status == MEMBER_DONE;
}

#endif
