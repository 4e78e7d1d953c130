/* What the parts of a coordinator share: coordinator.c (rounds and members), admission.c (who may
 * join) and closing.c (the job's end). Nobody else includes this. */
#ifndef CORE_ROUNDS_COORDINATOR_STEP_H
#define CORE_ROUNDS_COORDINATOR_STEP_H

#include "core/rounds/coordinator.h"

/* One event, and where the actions go that follow from it. */
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
void step_send_stop(struct step *s, const struct member *member, enum stop_why why);

/* A note, about the agent called `name` unless that is NULL. */
struct note *step_note(struct step *s, enum note_kind kind, const char *name);

void step_set_state(struct step *s, enum coordinator_state state);

/* The earliest death is the first cause, whoever reported first. */
void step_note_cause(struct step *s, const struct cause *cause, uint64_t died_ns);

/* The round is past: neither its failure nor its ruling counts any more. */
void step_forget_round(struct step *s);

/* Tells all who have workers to stop them. */
void step_stop_round(struct step *s, enum stop_why why);

/* A round above ours exists. One of the past, which we have yet to learn of, if we have formed
 * none. */
bool step_outranked(const struct step *s, struct ballot ballot);

/* Hangs up on everyone: a higher ballot exists. */
void step_down(struct step *s);

/* Has workers and was not told to stop them. */
static inline bool step_stoppable(const struct member *member)
{
	return member->status == MEMBER_ACTIVE || member->status == MEMBER_DONE;
}

#endif
