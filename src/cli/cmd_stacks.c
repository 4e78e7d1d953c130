/* muster stacks: the stacks of the workers of a running job. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/jobs.h"
#include "core/worker/exit_code.h"
#include "watch/stacks.h"

extern const struct command command_stacks;

struct stacks_options {
	uint64_t timeout_ns;
};

static const struct opt stacks_opts[] = {
	OPT_DURATION("timeout", NULL, struct stacks_options, timeout_ns, "TIME",
		     "give up after this time (default 10 s)"),
	OPT_END,
};

static size_t list_running(struct json_value workers, struct stacks_worker *ret_workers)
{
	struct json_value worker;
	struct json_in in;
	size_t count = 0;
	for (json_value_enter(workers, &in); json_value_next(&in, &worker);) {
		AUTO_FREE char *state = json_value_text(json_value_get(worker, "state"));
		if (state && str_eq(state, "running"))
			ret_workers[count++] = (struct stacks_worker){
				.rank = (size_t)job_number(worker, "rank"),
				.pid = (pid_t)job_number(worker, "pid"),
			};
	}
	return count;
}

static int stacks_main(const struct command *self, int argc, char **argv)
{
	struct stacks_options o = { .timeout_ns = STACKS_DEFAULT_NS };
	AUTO(job_list_done) struct job_list list;
	int status;
	if (!jobs_parse_one(self, &o, argc, argv, &list, &status))
		return status;
	struct json_value all = json_value_get(list.jobs[0].json, "workers");
	AUTO_FREE struct stacks_worker *workers =
		NEW_ARRAY(struct stacks_worker, json_value_count(all) + 1);
	size_t count = list_running(all, workers);
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct err err = ERR_INIT;
	if (stacks_collect(workers, count, ns_add(clock_now_ns(), o.timeout_ns), -1, &text, &err) <
	    0) {
		fprintf(stderr, "%s: %s\n", command_title(self), err.msg);
		return EXIT_CODE_SYSTEM;
	}
	fputs(buf_str(&text), stdout);
	return EXIT_CODE_OK;
}

const struct command command_stacks = {
	.name = "stacks",
	.synopsis = "[--timeout TIME] JOB",
	.summary = "show the stacks of the Python workers of a running job",
	.opts = stacks_opts,
	.mode = OPT_PERMUTE,
	.main = stacks_main,
};
