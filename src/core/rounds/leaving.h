/* The agent's part in leaving: because the user stops it, or together with all others after a
 * notice. Saving together goes the same way. rule: together. core/rounds/accord.h has the
 * coordinator's part. */
#ifndef CORE_ROUNDS_LEAVING_H
#define CORE_ROUNDS_LEAVING_H

#include "core/rounds/agent_step.h"

/* STOP_REQUESTED: without workers, with workers, while waiting for the others, and once more. */
void leaving_stop_idle(struct step *s);
void leaving_stop_busy(struct step *s);
void leaving_stop_waiting(struct step *s);
void leaving_stop_again(struct step *s);

/* NOTICE, PLAN and POSITIONS while the round runs. */
void leaving_notice(struct step *s);
void leaving_plan(struct step *s);
void leaving_positions(struct step *s);

/* Stops the workers that are still there at the deadline of a notice. */
void leaving_keep_deadline(struct step *s);

/* The round has ended in another way than by leaving together: there is no time for the next. */
bool leaving_is_overtaken(const struct agent *agent);

/* While LEAVING. */
void leaving_link_down(struct step *s);
void leaving_timer(struct step *s);
void leaving_gone(struct step *s);
void leaving_stuck(struct step *s);

#endif
