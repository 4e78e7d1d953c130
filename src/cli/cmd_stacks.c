/* muster stacks: where the workers of a running job stand. */
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
		     "wait no longer for stacks (default 10 s)"),
	OPT_END,
};

static size_t list_running(const json_t *job, struct stacks_worker *workers)
{
	size_t i, count = 0;
	const json_t *worker;
	json_array_foreach(json_object_get(job, "workers"), i, worker)
	{
		const char *state = json_string_value(json_object_get(worker, "state"));
		if (state && str_eq(state, "running"))
			workers[count++] = (struct stacks_worker){
				.rank = (size_t)json_integer_value(json_object_get(worker, "rank")),
				.pid = (pid_t)json_integer_value(json_object_get(worker, "pid")),
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
	const json_t *job = json_array_get(list.jobs, 0);
	size_t max = json_array_size(json_object_get(job, "workers"));
	AUTO_FREE struct stacks_worker *workers = mem_alloc((max + 1) * sizeof(*workers));
	size_t count = list_running(job, workers);
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
	.summary = "show where the Python workers of a running job stand",
	.opts = stacks_opts,
	.mode = OPT_PERMUTE,
	.main = stacks_main,
};
