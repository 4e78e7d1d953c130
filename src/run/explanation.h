/* Explains a hang from the records of all ranks: collects those of this host and the stacks of its
 * workers in a thread (run/diagnosis.h), asks the other hosts at the same time, and judges when
 * both are there or the time is over. */
#ifndef RUN_EXPLANATION_H
#define RUN_EXPLANATION_H

#include "run/ask/own_question.h"
#include "run/diagnosis.h"

struct explanation;

/* Borrows `asker` (NULL: there are no other hosts) and copies the rest, as diagnosis_start() does.
 * `self`, with an asker: this host, which answers its own question with nothing. The explanation is
 * over and freed, with what was found, after the callback. -errno: it could not start. */
int explanation_start(struct event_base *base, const struct forensics_question *question,
		      uint64_t timeout_ns, const char *path, struct own_question *asker,
		      const struct node_info *self, diagnosis_fn *on_done, void *arg,
		      struct explanation **ret);

/* Ends it soon, without a callback. NULL is allowed. */
void explanation_cancel(struct explanation *explanation);

/* Whether it is this host that asks. */
bool explanation_is_own(const struct inquiry *ask, const struct node_info *self);

#endif
