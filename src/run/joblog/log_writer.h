/* The job's one log, written where the coordinator is: while it leads, all hosts are asked for what
 * their workers print (ASK_JOB_LOG), and proto/joblog/job_log.h makes lines of it.
 *
 * Best effort: the file is written by a thread of its own, and what finds no room there is lost and
 * counted, as are lines that did not come. Nothing waits for it. */
#ifndef RUN_JOBLOG_LOG_WRITER_H
#define RUN_JOBLOG_LOG_WRITER_H

#include "run/ask/own_question.h"

struct log_writer;

/* Opens no file yet. `path` is borrowed. */
struct log_writer *log_writer_new(struct event_base *base, const char *path, uint64_t max_size,
				  struct routes *routes, const struct own_question_hooks *hooks);

/* A round has formed under the coordinator of this process: asks its hosts. */
void log_writer_formed(struct log_writer *writer);

/* The coordinator is not in this process any more. */
void log_writer_pause(struct log_writer *writer);

/* Ends the file, and appends a line for each kind of loss. NULL is fine. */
void log_writer_finish(struct log_writer *writer, struct buf *missing);
void log_writer_free(struct log_writer *writer); /* NULL is fine */

#endif
