/* A question to all hosts of a job: the command's side (core/rounds/ask_msg.h).
 *
 * Asked through the socket of a job on this host, whoever coordinates it, or from outside: at its
 * coordinator, with the job's token. */
#ifndef CLI_JOBS_ASKER_H
#define CLI_JOBS_ASKER_H

#include "base/buf.h"
#include "cli/command.h"
#include "cli/jobs/jobs.h"
#include "core/rounds/msg.h"
#include "run/ask/host_answers.h"

#define ASKER_DEFAULT_NS (10 * NS_PER_S)

/* The options that narrow a question, for the table of a command. */
struct asker_options {
	const char *host;  /* NULL: all */
	const char *ranks; /* "3,17"; NULL: all */
	bool here;	   /* this host only, without asking the others */
	struct job_place place;
};

#define ASKER_PLACE_OPTS(type, member) \
	OPT_STR("rdzv-endpoint", NULL, type, member.place.endpoint, "HOST:PORT", \
		"ask the coordinator there; the job need not run on this host"), \
		OPT_STR("token-file", NULL, type, member.place.token_file, "FILE", \
			"the job's token, for that (default: the variable MUSTER_TOKEN, if set)")

#define ASKER_OPTS(type, member) \
	ASKER_PLACE_OPTS(type, member), \
		OPT_STR("host", NULL, type, member.host, "NAME", "only of this host of the job"), \
		OPT_STR("rank", NULL, type, member.ranks, "N[,N...]", \
			"only of the workers with these ranks"), \
		OPT_FLAG("here", NULL, type, member.here, \
			 "only of this host, without asking the others")

/* Pieces of one host's answer arrive in order; several hosts answer at a time. `reply` is borrowed;
 * NULL: the question is asked again, forget what came. */
struct asker_handler {
	void (*on_reply)(void *arg, const struct msg_reply *reply);
	void (*on_tick)(void *arg); /* every ASKER_TICK_NS; may be NULL */
	void *arg;
};

#define ASKER_TICK_NS (200 * NS_PER_MS)

/* Fills in the host and the ranks of `ask`. False: the error was printed, *ret_status is the exit
 * code. */
bool asker_narrow(const struct command *self, const struct asker_options *options,
		  struct msg_ask *ask, int *ret_status);

/* Asks, calls back for each piece, prints on stderr which hosts did not answer and returns the exit
 * code: EXIT_CODE_OK only if all did. ASK_FOLLOW ends well with the job. */
int asker_ask(const struct command *self, const struct job_state *job, struct msg_ask *ask,
	      const struct asker_handler *handler);

/* The answers of all hosts, in the order of their ranks. Failed ones are printed on stderr, too,
 * and only whole good ones are left. */
int asker_collect(const struct command *self, const struct job_state *job, struct msg_ask *ask,
		  struct host_answers *ret_answers);

#endif
