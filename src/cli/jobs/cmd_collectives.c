/* muster collectives: which collective the workers of a running job wait in, and who did not come;
 * or those of a job that has ended, from what they dumped. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "cli/jobs/asker.h"
#include "cli/jobs/jobs.h"
#include "core/worker/exit_code.h"
#include "run/forensics.h"

extern const struct command command_collectives;

struct collectives_options {
	uint64_t timeout_ns, patience_ns;
	struct asker_options narrow;
	const char *dumps;
	bool json;
};

static const struct opt collectives_opts[] = {
	OPT_DURATION("timeout", NULL, struct collectives_options, timeout_ns, "TIME",
		     "give up after this time (default 10 s)"),
	OPT_DURATION("patience", NULL, struct collectives_options, patience_ns, "TIME",
		     "blame no rank for a collective that waits less than this (default 5 s)"),
	OPT_FLAG("json", NULL, struct collectives_options, json,
		 "for programs: an object with the findings"),
	OPT_FLAG("here", NULL, struct collectives_options, narrow.here,
		 "only of this host, without asking the others"),
	OPT_STR("dumps", NULL, struct collectives_options, dumps, "PATH",
		"read PyTorch's dump files in place of a running job"),
	OPT_END,
};

static const char *const kinds[] = {
	[FINDING_WAITS] = "waits",
	[FINDING_DIFFERS] = "differs",
	[FINDING_ALL_CAME] = "all_came",
};
static_assert(ARRAY_LEN(kinds) == FINDING_KIND_COUNT, "every kind needs a name");

static void put_ranks(struct json_out *out, const char *key, const struct rank_list *list)
{
	json_out_open(out, key, '[');
	for (size_t i = 0; i < list->count; i++)
		json_out_int(out, NULL, list->items[i]);
	json_out_close(out, ']');
}

static void put_finding(struct json_out *out, const struct finding *finding)
{
	json_out_open(out, NULL, '{');
	json_out_text(out, "kind", kinds[finding->kind]);
	json_out_text(out, "group", finding->group->name);
	json_out_text_if(out, "description", finding->group->desc);
	json_out_text(out, "operation", finding->entry->op);
	json_out_int(out, "number", (int64_t)finding->entry->seq);
	json_out_int(out, "size", (int64_t)finding->size);
	json_out_real(out, "waits_s", (double)finding->age_ns / (double)NS_PER_S);
	json_out_bool(out, "early", finding->early);
	put_ranks(out, "came", &finding->came);
	put_ranks(out, "missing", &finding->missing);
	put_ranks(out, "no_record", &finding->silent);
	put_ranks(out, "not_asked", &finding->unasked);
	put_ranks(out, "odd", &finding->odd);
	put_ranks(out, "culprits", &finding->culprits);
	json_out_close(out, '}');
}

static void put_laggard(struct json_out *out, const struct laggard *laggard)
{
	json_out_open(out, NULL, '{');
	json_out_int(out, "rank", laggard->news.rank);
	json_out_text(out, "group", laggard->group->name);
	json_out_int(out, "times", laggard->news.times);
	json_out_int(out, "of", laggard->news.of);
	json_out_real(out, "lag_s", (double)laggard->news.lag_ns / (double)NS_PER_S);
	json_out_close(out, '}');
}

static void print_json(const struct forensics *forensics)
{
	AUTO(buf_done) struct buf text = BUF_INIT, said = BUF_INIT;
	struct json_out out = JSON_OUT(&text, .indent = 2);
	json_out_open(&out, NULL, '{');
	forensics_collectives(forensics, &said);
	forensics_laggards(forensics, &said);
	json_out_text(&out, "text", buf_str(&said));
	json_out_open(&out, "findings", '[');
	for (size_t i = 0; i < forensics->findings.count; i++)
		put_finding(&out, &forensics->findings.items[i]);
	json_out_close(&out, ']');
	json_out_open(&out, "late", '[');
	for (size_t i = 0; i < forensics->laggards.count; i++)
		put_laggard(&out, &forensics->laggards.items[i]);
	json_out_close(&out, ']');
	json_out_close(&out, '}');
	puts(buf_str(&text));
}

static bool any_record(const struct forensics *forensics)
{
	for (size_t i = 0; i < forensics->count; i++)
		if (forensics->answers[i].given)
			return true;
	return false;
}

static int show(const struct command *self, const struct collectives_options *o,
		const struct forensics *forensics)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	forensics_collectives(forensics, &text);
	forensics_laggards(forensics, &text);
	if (forensics->count == 0) {
		command_complain(self, "none of these workers runs now");
		return EXIT_CODE_FAILED;
	}
	if (!any_record(forensics)) {
		command_complain(self, "%sstart the job with 'muster run --flight-recorder'",
				 buf_str(&text));
		return EXIT_CODE_FAILED;
	}
	if (o->json)
		print_json(forensics);
	else
		command_print("%s", buf_str(&text));
	return EXIT_CODE_OK;
}

/* Without asking this host's muster: that may be the one that hangs. */
static int collect_here(const struct job_state *job, const struct collectives_options *o,
			struct forensics *ret_forensics)
{
	AUTO_FREE char *dumps = mem_printf("%s/" FLIGHT_DUMPS, job->dir);
	struct forensics_question question = {
		.flight = { .dir = job->dir, .dumps = dumps },
		.world_size = (size_t)job_number(job->json, "world_size"),
		.patience_ns = o->patience_ns,
		.deadline_ns = ns_add(clock_now_ns(), o->timeout_ns),
		.cancel_fd = -1,
	};
	AUTO_FREE struct stacks_worker *workers = jobs_running_workers(job->json, &question.count);
	question.workers = workers;
	forensics_collect(&question, ret_forensics);
	forensics_find_laggards(ret_forensics);
	return EXIT_CODE_OK;
}

static int collect_all(const struct command *self, const struct job_state *job,
		       const struct collectives_options *o, struct forensics *ret_forensics)
{
	struct msg_ask ask = { .ask = { .kind = ASK_COLLECTIVES, .timeout_ns = o->timeout_ns } };
	AUTO(host_answers_done) struct host_answers answers;
	int status = asker_collect(self, job, &ask, &answers);
	forensics_begin(ret_forensics);
	for (size_t i = 0; i < answers.count; i++) {
		struct host_answer *answer = &answers.items[i];
		struct err err = ERR_INIT;
		if (forensics_read(ret_forensics, answer->name, buf_str(&answer->text),
				   buf_len(&answer->text), &err) == 0)
			continue;
		command_complain(self, "%s: %s", answer->name, err.msg);
		status = EXIT_CODE_FAILED;
	}
	forensics_judge(ret_forensics, (size_t)job_number(job->json, "world_size"), o->patience_ns);
	forensics_find_laggards(ret_forensics);
	return status;
}

/* False: there are none, and that was printed. */
static bool collect_dumps(const struct command *self, const struct collectives_options *o,
			  struct forensics *ret_forensics)
{
	struct err err = ERR_INIT;
	forensics_begin(ret_forensics);
	if (forensics_read_dumps(ret_forensics, o->dumps, &err) < 0) {
		command_complain(self, "%s", err.msg);
		return false;
	}
	forensics_judge(ret_forensics, ret_forensics->count, 0);
	return true;
}

/* Of the job that the only word names. False: *ret_status is the exit code, and the reason was
 * printed. */
static bool collect_job(const struct command *self, const struct collectives_options *o, int count,
			char **words, struct forensics *ret_forensics, int *ret_status)
{
	AUTO(job_list_done) struct job_list list;
	if (!jobs_pick_one(self, NULL, count, words, &list, ret_status))
		return false;
	const struct job_state *job = &list.jobs[0];
	*ret_status = o->narrow.here || !job_is_wide(job)
			      ? collect_here(job, o, ret_forensics)
			      : collect_all(self, job, o, ret_forensics);
	return true;
}

static int collectives_main(const struct command *self, int argc, char **argv)
{
	struct collectives_options o = { .timeout_ns = STACKS_DEFAULT_NS,
					 .patience_ns = JOIN_PATIENCE_NS };
	struct forensics forensics;
	int first, status = EXIT_CODE_OK;
	if (!command_parse(self, &o, argc, argv, NULL, &first, &status))
		return status;
	if (o.dumps && argc > first)
		return command_usage_error(self, "--dumps takes the place of a job");
	if (o.dumps) {
		if (!collect_dumps(self, &o, &forensics))
			return EXIT_CODE_FAILED;
	} else if (!collect_job(self, &o, argc - first, argv + first, &forensics, &status)) {
		return status;
	}
	int shown = show(self, &o, &forensics);
	forensics_done(&forensics);
	return shown ? shown : status;
}

const struct command command_collectives = {
	.name = "collectives",
	.synopsis = "[--timeout TIME] [--patience TIME] [--here] [--json] JOB | --dumps PATH",
	.summary = "show which collective a running job waits in, and who did not come",
	.opts = collectives_opts,
	.mode = OPT_PERMUTE,
	.main = collectives_main,
};
