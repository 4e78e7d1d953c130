/* muster dash: the address of the page of a running job. */
#include <stdio.h>

#include "cli/jobs/jobs.h"

extern const struct command command_dash;

static const struct opt dash_opts[] = {
	OPT_END,
};

static int dash_main(const struct command *self, int argc, char **argv)
{
	AUTO(job_list_done) struct job_list list;
	int status;
	if (!jobs_parse_one(self, NULL, NULL, argc, argv, &list, &status))
		return status;
	AUTO(buf_done) struct buf address = BUF_INIT;
	status = jobs_post(self, &list, "/api/dash", &address);
	fputs(buf_str(&address), stdout);
	return status;
}

const struct command command_dash = {
	.name = "dash",
	.synopsis = "JOB",
	.summary = "print the address of the page that shows a running job in a browser",
	.opts = dash_opts,
	.mode = OPT_PERMUTE,
	.main = dash_main,
};
