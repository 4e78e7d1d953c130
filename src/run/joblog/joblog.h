/* This host's part in the job's one log (--job-log): sends what its workers print, writes the log
 * where the coordinator is, and says how long the end of an attempt waits for the last lines. */
#ifndef RUN_JOBLOG_JOBLOG_H
#define RUN_JOBLOG_JOBLOG_H

#include "core/lines/log_wait.h"
#include "run/ask/own_question.h"
#include "run/joblog/log_sender.h"

struct log_writer;

/* All 0: there is no --job-log. */
struct joblog {
	const char *path; /* borrowed, as is `output` */
	struct output *output;
	struct log_sender *sender;
	struct log_writer *writer;
	struct log_wait last_lines;
};

/* Opens no file yet. All is borrowed. */
void joblog_open(struct joblog *log, struct event_base *base, const char *path, uint64_t max_size,
		 struct output *output, struct routes *routes,
		 const struct own_question_hooks *hooks);
void joblog_close(struct joblog *log);

void joblog_round(struct joblog *log);	/* a round begins here */
void joblog_asked(struct joblog *log);	/* the coordinator asks for the lines of this host */
void joblog_formed(struct joblog *log); /* and has formed a round, in this process */

/* The workers have ended. True: nobody should hear of it before joblog_step() says so. */
bool joblog_ended(struct joblog *log, uint64_t now_ns);

/* Something has happened. `leads`: the coordinator is in this process; `taken`: it has taken all
 * that was sent. True: what waits for the last lines no longer has to. */
bool joblog_step(struct joblog *log, bool leads, bool taken, uint64_t now_ns);

/* When joblog_step() is worth calling without news. */
uint64_t joblog_deadline_ns(const struct joblog *log);

/* Ends the log; appends what is missing in it. */
void joblog_finish(struct joblog *log, struct buf *missing);

#endif
