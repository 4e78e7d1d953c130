/* What all hosts answered to the wish of a page, as the page gets it: JSON. */
#ifndef RUN_DASH_DASH_ANSWER_H
#define RUN_DASH_DASH_ANSWER_H

#include "proto/dash/wish.h"
#include "run/ask/host_answers.h"

void dash_answer_put(const struct wish *wish, struct host_answers *answers, size_t world_size,
		     struct buf *out);

#endif
