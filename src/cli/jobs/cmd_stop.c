/* muster stop, restart and checkpoint: requests to a running job, on all its hosts. */
#include "base/clock.h"
#include "cli/jobs/asker.h"

extern const struct command command_stop;
extern const struct command command_restart;
extern const struct command command_checkpoint;

struct request_options {
	uint64_t timeout_ns;
	struct asker_options narrow; /* a stop only by `here`, and from outside */
	bool goes_on;		     /* of checkpoint */
};

static const struct opt stop_opts[] = {
	ASKER_PLACE_OPTS(struct request_options, narrow),
	OPT_FLAG("here", NULL, struct request_options, narrow.here,
		 "only the part of the job on this host"),
	OPT_DURATION("timeout", NULL, struct request_options, timeout_ns, "TIME",
		     "how long to wait for the answers of other hosts (default 10s)"),
	OPT_END,
};

static const struct opt restart_opts[] = {
	ASKER_PLACE_OPTS(struct request_options, narrow),
	OPT_DURATION("timeout", NULL, struct request_options, timeout_ns, "TIME",
		     "how long to wait for the answers of other hosts (default 10s)"),
	OPT_END,
};

static const struct opt checkpoint_opts[] = {
	ASKER_PLACE_OPTS(struct request_options, narrow),
	OPT_FLAG("continue", NULL, struct request_options, goes_on,
		 "save and go on; without it the workers save and leave"),
	OPT_DURATION("timeout", NULL, struct request_options, timeout_ns, "TIME",
		     "how long to wait for the answers of other hosts (default 10s)"),
	OPT_END,
};

static const char *const paths[ASK_KIND_COUNT] = {
	[ASK_STOP] = "/api/stop",
	[ASK_RESTART] = "/api/restart",
	[ASK_LEAVE] = "/api/leave",
	[ASK_SAVE] = "/api/save",
};

static int send_request(const struct command *self, const struct request_options *o,
			const struct job_list *list, enum ask_kind kind)
{
	if ((o->narrow.here && list->jobs[0].dir) || !job_is_wide(&list->jobs[0]))
		return jobs_post(self, list, paths[kind], NULL);
	AUTO(host_answers_done) struct host_answers answers;
	struct msg_ask ask = { .ask = { .kind = kind, .timeout_ns = o->timeout_ns } };
	return asker_collect(self, &list->jobs[0], &ask, &answers);
}

static int request(const struct command *self, int argc, char **argv, enum ask_kind kind)
{
	struct request_options o = { .timeout_ns = ASKER_DEFAULT_NS };
	AUTO(job_list_done) struct job_list list;
	int status;
	if (!jobs_parse_one(self, &o, &o.narrow.place, argc, argv, &list, &status))
		return status;
	return send_request(self, &o, &list, kind == ASK_LEAVE && o.goes_on ? ASK_SAVE : kind);
}

static int stop_main(const struct command *self, int argc, char **argv)
{
	return request(self, argc, argv, ASK_STOP);
}

static int restart_main(const struct command *self, int argc, char **argv)
{
	return request(self, argc, argv, ASK_RESTART);
}

static int checkpoint_main(const struct command *self, int argc, char **argv)
{
	return request(self, argc, argv, ASK_LEAVE);
}

const struct command command_stop = {
	.name = "stop",
	.synopsis = "[--here] JOB",
	.summary = "ask a running job to end on all its hosts, as SIGTERM would",
	.opts = stop_opts,
	.mode = OPT_PERMUTE,
	.main = stop_main,
};

const struct command command_restart = {
	.name = "restart",
	.synopsis = "JOB",
	.summary = "ask a running job to start its workers again",
	.opts = restart_opts,
	.mode = OPT_PERMUTE,
	.main = restart_main,
};

const struct command command_checkpoint = {
	.name = "checkpoint",
	.synopsis = "[--continue] JOB",
	.summary = "have all workers of a running job save after the same step, and leave",
	.opts = checkpoint_opts,
	.mode = OPT_PERMUTE,
	.main = checkpoint_main,
};
