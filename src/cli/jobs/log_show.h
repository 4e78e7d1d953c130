/* Shows the logs that hosts send as answers: line by line, each after the ranks that print it. */
#ifndef CLI_JOBS_LOG_SHOW_H
#define CLI_JOBS_LOG_SHOW_H

#include "core/rounds/msg.h"

struct log_show_options {
	const char *grep; /* only lines with this text; NULL: all */
	bool raw;	  /* the bytes as they are, without ranks: of one worker */
	bool each;	  /* equal lines of several workers are not shown as one */
	bool live;	  /* show lines soon after they come */
};

struct log_show;

struct log_show *log_show_new(const struct log_show_options *options);

/* For an asker_handler (cli/jobs/asker.h), whose `arg` is the log_show. */
void log_show_reply(void *arg, const struct msg_reply *reply);
void log_show_tick(void *arg);

/* Shows what is left, and frees it all. False: a host could not answer, which was said. */
bool log_show_finish(struct log_show *show);

#endif
