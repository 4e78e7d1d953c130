/* muster stop and muster restart: requests to a running job. */
#include "cli/jobs.h"

extern const struct command command_stop;
extern const struct command command_restart;

static const struct opt no_opts[] = { OPT_END };

static int request(const struct command *self, int argc, char **argv, const char *path)
{
	AUTO(job_list_done) struct job_list list;
	int status;
	if (!jobs_parse_one(self, NULL, argc, argv, &list, &status))
		return status;
	return jobs_post(self, &list, path);
}

static int stop_main(const struct command *self, int argc, char **argv)
{
	return request(self, argc, argv, "/api/stop");
}

static int restart_main(const struct command *self, int argc, char **argv)
{
	return request(self, argc, argv, "/api/restart");
}

const struct command command_stop = {
	.name = "stop",
	.synopsis = "JOB",
	.summary = "ask a running job to end, as SIGTERM would",
	.opts = no_opts,
	.mode = OPT_PERMUTE,
	.main = stop_main,
};

const struct command command_restart = {
	.name = "restart",
	.synopsis = "JOB",
	.summary = "ask a running job to start its workers again",
	.opts = no_opts,
	.mode = OPT_PERMUTE,
	.main = restart_main,
};
