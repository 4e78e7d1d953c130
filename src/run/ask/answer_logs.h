/* What the workers of this host printed, as the answer to a question: their log files, read by a
 * thread; else the end of their output that is kept in memory. A stream of proto/log_block.h.
 *
 * Files come whole, or their tails only, of the present attempt; one that follows goes on with the
 * files, or the output, of the next. */
#ifndef RUN_ASK_ANSWER_LOGS_H
#define RUN_ASK_ANSWER_LOGS_H

#include <event2/event.h>

#include "core/rounds/ask_msg.h"
#include "run/tell/pages.h"

#define ANSWER_LOGS_PERIOD_NS (200 * NS_PER_MS) /* between two looks at output in memory */

struct answer_logs;

/* `on_more` says, from the loop, that answer_logs_take() is worth calling. NULL: nothing is kept of
 * what these workers print, and never will be. */
struct answer_logs *answer_logs_new(struct event_base *base, const struct pages *pages,
				    const struct inquiry *ask, bool tail,
				    void (*on_more)(void *arg), void *arg);
void answer_logs_free(struct answer_logs *logs); /* NULL is fine */

/* Appends about `max` bytes of what there is, perhaps none. True: that was all. */
bool answer_logs_take(struct answer_logs *logs, size_t max, struct buf *out);

/* The next round is about to begin, so the workers of the last are gone; it has begun. */
void answer_logs_round_ends(struct answer_logs *logs);
void answer_logs_round_begins(struct answer_logs *logs);

#endif
