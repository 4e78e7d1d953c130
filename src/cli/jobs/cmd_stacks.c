/* muster stacks: the stacks of the workers of a running job. */
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/jobs/asker.h"
#include "core/worker/exit_code.h"
#include "proto/stacks/stack_json.h"
#include "watch/stack_kernel.h"

extern const struct command command_stacks;

struct stacks_options {
	uint64_t timeout_ns;
	struct asker_options narrow;
	bool json, folded;
};

static const struct opt stacks_opts[] = {
	OPT_DURATION("timeout", NULL, struct stacks_options, timeout_ns, "TIME",
		     "give up after this time (default 10 s)"),
	OPT_FLAG("folded", NULL, struct stacks_options, folded,
		 "for flame graphs: a line for each stack, with the number of threads"),
	OPT_FLAG("json", NULL, struct stacks_options, json,
		 "for programs: an object with the stacks"),
	ASKER_OPTS(struct stacks_options, narrow),
	OPT_END,
};

/* Of the workers on this host, without asking its muster: that may be the one that hangs. */
static void collect_here(const struct job_state *job, uint64_t timeout_ns, struct stack_set *set)
{
	size_t count;
	AUTO_FREE struct stacks_worker *workers = jobs_running_workers(job->json, &count);
	stacks_read(workers, count, ns_add(clock_now_ns(), timeout_ns), -1, set);
}

static int collect_all(const struct command *self, const struct job_state *job, struct msg_ask *ask,
		       struct stack_set *set)
{
	AUTO(host_answers_done) struct host_answers answers;
	int status = asker_collect(self, job, ask, &answers);
	bool wide = job_is_wide(job);
	for (size_t i = 0; i < answers.count; i++) {
		struct host_answer *answer = &answers.items[i];
		struct err err = ERR_INIT;
		/* A host without workers that were asked about has nothing to say. */
		if (buf_len(&answer->text) == 0 ||
		    stack_json_read(buf_str(&answer->text), buf_len(&answer->text),
				    wide ? answer->name : NULL, set, &err) == 0)
			continue;
		command_complain(self, "%s: %s", answer->name, err.msg);
		status = EXIT_CODE_FAILED;
	}
	return status;
}

static void show(const struct stacks_options *o, const struct stack_set *set)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct json_out out = JSON_OUT(&text, .indent = 2, .flat = 6);
	if (o->json) {
		stack_json_write(&out, set);
		buf_append_char(&text, '\n');
	} else if (o->folded) {
		stack_set_folded(set, &text);
	} else {
		stack_set_print(set, &text);
	}
	command_print("%s", buf_str(&text));
}

/* This command may not look at the workers itself where only their ancestors may. */
static bool asks_muster(const struct stacks_options *o, const struct job_state *job)
{
	if (o->narrow.here && job->dir)
		return false;
	return o->narrow.host || o->narrow.ranks || job_is_wide(job) || stack_kernel_is_strict();
}

static int stacks_main(const struct command *self, int argc, char **argv)
{
	struct stacks_options o = { .timeout_ns = STACKS_DEFAULT_NS };
	AUTO(job_list_done) struct job_list list;
	int status;
	if (!jobs_parse_one(self, &o, &o.narrow.place, argc, argv, &list, &status))
		return status;
	struct msg_ask ask = { .ask = { .kind = ASK_STACKS, .timeout_ns = o.timeout_ns } };
	if (!asker_narrow(self, &o.narrow, &ask, &status))
		return status;
	if (o.json && o.folded)
		return command_usage_error(self, "choose one of --json and --folded");
	const struct job_state *job = &list.jobs[0];
	AUTO(stack_set_done) struct stack_set set = STACK_SET_INIT;
	status = EXIT_CODE_OK;
	if (asks_muster(&o, job))
		status = collect_all(self, job, &ask, &set);
	else
		collect_here(job, o.timeout_ns, &set);
	show(&o, &set);
	if (set.count == 0 && status == EXIT_CODE_OK) {
		command_complain(self, "none of these workers runs now");
		status = EXIT_CODE_FAILED;
	}
	return status;
}

const struct command command_stacks = {
	.name = "stacks",
	.synopsis = "[--timeout TIME] [--host NAME] [--rank N,...] [--folded | --json] JOB",
	.summary =
		"show where the workers of a running job are, on all its hosts, the odd ones first",
	.opts = stacks_opts,
	.mode = OPT_PERMUTE,
	.main = stacks_main,
};
