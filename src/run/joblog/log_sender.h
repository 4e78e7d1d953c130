/* This host's part in the job's one log (--job-log): what its workers print, line by line, as the
 * answer to the coordinator's question (proto/joblog/line_block.h).
 *
 * It belongs to the job, not to the question: a coordinator that asks again gets what the last
 * stream did not. It sends no faster than its share (core/lines/line_queue.h); lines for which
 * there is no room until then are dropped, and counted by their numbers. */
#ifndef RUN_JOBLOG_LOG_SENDER_H
#define RUN_JOBLOG_LOG_SENDER_H

#include <event2/event.h>

#include "sys/output.h"

struct log_sender;

struct log_sender *log_sender_new(struct event_base *base, struct output *output);
void log_sender_free(struct log_sender *sender); /* NULL is fine */

/* A stream begins, of a job with so many nodes. `on_more` says, from the loop, that
 * log_sender_take() is worth calling. */
void log_sender_begin(struct log_sender *sender, uint32_t nodes, void (*on_more)(void *arg),
		      void *arg);
void log_sender_end(struct log_sender *sender); /* and ends */

/* Appends about `max` bytes of what there is, perhaps none. */
void log_sender_take(struct log_sender *sender, size_t max, struct buf *out);

/* OUTPUT_LINES: there is more. */
void log_sender_wake(struct log_sender *sender);

/* The workers of a round have ended: send what is left as fast as it is taken, or not any more. */
void log_sender_hurry(struct log_sender *sender, bool hurry);

/* Whether all that was printed has been taken. */
bool log_sender_is_empty(const struct log_sender *sender);

/* Lines that did not leave this host. */
uint64_t log_sender_left(struct log_sender *sender);

#endif
