/* The running jobs of this user on this host, as their private sockets describe them. */
#ifndef CLI_JOBS_H
#define CLI_JOBS_H

#include "base/buf.h"
#include "cli/command.h"
#include "proto/json_value.h"

/* The state of a job, as /api/state gives it. */
struct job_state {
	char *text;
	struct json_value json; /* of `text` */
};

struct job_list {
	struct job_state *jobs;
	size_t count, cap;
	const char *name; /* run id or pid; NULL: all */
	char *socket;	  /* of the last one found */
};

/* Numbers of a state; 0 if it has none of that name. */
int64_t job_number(struct json_value object, const char *name);

void jobs_find(struct job_list *list, const char *name);
void job_list_done(struct job_list *list);

/* Parses the command line of a command about one JOB, and finds that job. False: *ret_status is the
 * exit code, and the error has been printed. Free `list` in any case. */
bool jobs_parse_one(const struct command *self, void *options, int argc, char **argv,
		    struct job_list *list, int *ret_status);

/* Sends the job of `list` a POST request, prints its error if it refuses, and returns the exit
 * code. */
int jobs_post(const struct command *self, const struct job_list *list, const char *path);

#endif
