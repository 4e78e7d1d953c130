/* Fills the story of a job (proto/story.h) from its history, once for all who tell it. */
#ifndef RUN_TELL_MAKE_STORY_H
#define RUN_TELL_MAKE_STORY_H

#include "proto/story.h"
#include "run/tell/report.h"

/* Reads the error file of the first cause. */
void story_of(const struct report *report, struct story *ret_story);

/* The same of one attempt that has failed, for those who tell of it while the job goes on; without
 * the error file. */
void story_of_attempt(const struct report *report, const struct history_attempt *attempt,
		      struct story *ret_story);

/* "ended with exit code 3" */
void story_say_how(struct buf *out, const struct history_failure *failure);

/* " after 3.2 s": how long it lived; nothing where nobody knows. */
void story_say_life(struct buf *out, const struct history_failure *failure);

#endif
