/* The running jobs of this user on this host, as their private sockets describe them. */
#ifndef CLI_JOBS_JOBS_H
#define CLI_JOBS_JOBS_H

#include "base/buf.h"
#include "cli/command.h"
#include "proto/json_value.h"
#include "watch/stacks.h"

/* Where the coordinator of a job is that does not run on this host. */
struct job_place {
	const char *endpoint;	/* NULL: the job runs here */
	const char *token_file; /* NULL: MUSTER_TOKEN, if set */
};

/* The state of a job, as /api/state gives it. Of a job elsewhere only its name is known. */
struct job_state {
	char *text;
	struct json_value json; /* of `text` */
	char *dir;		/* its private directory; NULL: it is elsewhere */
	struct job_place place;
};

struct job_list {
	struct job_state *jobs;
	size_t count, cap;
	const char *name; /* run id or pid; NULL: all */
};

/* Numbers of a state; 0 if it has none of that name. */
int64_t job_number(struct json_value object, const char *name);

/* Whether the job has, or may have, other hosts. */
bool job_is_wide(const struct job_state *job);

/* The running workers of a job on this host, to free. */
struct stacks_worker *jobs_running_workers(struct json_value job, size_t *ret_count);

/* Of a job with several agents on this host, only the first is listed, unless `name` is a pid. */
void jobs_find(struct job_list *list, const char *name);
/* As jobs_find(), or the job with this run id at a coordinator elsewhere if `place` names one. */
void jobs_find_at(struct job_list *list, const char *name, const struct job_place *place);

void job_list_done(struct job_list *list);

/* Parses the command line of a command about one JOB, and finds that job. `place`, a part of
 * `options`, may name a coordinator elsewhere; NULL: the command is about this host. False:
 * *ret_status is the exit code, and the error has been printed. Free `list` in any case. */
bool jobs_parse_one(const struct command *self, void *options, const struct job_place *place,
		    int argc, char **argv, struct job_list *list, int *ret_status);

/* The same for a command about all jobs of this host, or about one. A job elsewhere must be named.
 * `ret_name`: NULL if there is none; borrowed. */
bool jobs_parse_any(const struct command *self, void *options, const struct job_place *place,
		    int argc, char **argv, const char **ret_name, int *ret_status);

/* The second half of jobs_parse_one(), for a command that parses by itself: finds the job that the
 * one word after the options names. */
bool jobs_pick_one(const struct command *self, const struct job_place *place, int count,
		   char **words, struct job_list *list, int *ret_status);

/* Sends the job of `list` a POST request, prints its error if it refuses, and returns the exit
 * code. `ret_answer` gets what it says if it does not; NULL: that does not matter. */
int jobs_post(const struct command *self, const struct job_list *list, const char *path,
	      struct buf *ret_answer);

#endif
