/* Counts and times the job's steps as calls of torch's agent. */
#include "run/tell/happening.h"

static void on_job_started(struct telling *telling, const struct happening *happening UNUSED)
{
	uint64_t started_ns = telling->history->started_ns;
	torch_metrics_begin(&telling->torch, TORCH_CALL_RUN, started_ns);
	torch_metrics_begin(&telling->torch, TORCH_CALL_RENDEZVOUS, started_ns);
	torch_metrics_begin(&telling->torch, TORCH_CALL_INITIALIZE, started_ns);
}

static void on_formed(struct telling *telling, const struct happening *happening)
{
	struct torch_metrics *metrics = &telling->torch;
	uint64_t now_ns = happening->when_ns;
	torch_metrics_end(metrics, TORCH_CALL_RENDEZVOUS, true, now_ns);
	torch_metrics_begin(metrics, TORCH_CALL_ASSIGN_RANKS,
			    now_ns); /* the ranks come with the round */
	torch_metrics_end(metrics, TORCH_CALL_ASSIGN_RANKS, true, now_ns);
	torch_metrics_begin(metrics, TORCH_CALL_START, now_ns);
	metrics->starting = telling->config->nproc;
	metrics->start_failed = false;
}

/* One more worker is started, or not: with the last one the round's start is over. */
static void on_started(struct telling *telling, const struct happening *happening)
{
	struct torch_metrics *metrics = &telling->torch;
	uint64_t now_ns = happening->when_ns;
	metrics->start_failed |= happening->kind == HAPPENED_WORKER_NOT_STARTED;
	if (metrics->starting == 0 || --metrics->starting > 0)
		return;
	torch_metrics_end(metrics, TORCH_CALL_START, !metrics->start_failed, now_ns);
	torch_metrics_end(metrics, TORCH_CALL_INITIALIZE, !metrics->start_failed, now_ns);
	torch_metrics_end(metrics, TORCH_CALL_RESTART, !metrics->start_failed, now_ns);
}

static void on_heard(struct telling *telling, const struct happening *happening)
{
	torch_metrics_begin(&telling->torch, TORCH_CALL_MONITOR, happening->since_ns);
	torch_metrics_end(&telling->torch, TORCH_CALL_MONITOR, true, happening->when_ns);
}

static void on_stopping(struct telling *telling, const struct happening *happening)
{
	torch_metrics_begin(&telling->torch, TORCH_CALL_STOP, happening->when_ns);
	torch_metrics_begin(&telling->torch, TORCH_CALL_RESTART, happening->when_ns);
}

static void on_gone(struct telling *telling, const struct happening *happening)
{
	torch_metrics_end(&telling->torch, TORCH_CALL_STOP, true, happening->when_ns);
	torch_metrics_begin(&telling->torch, TORCH_CALL_RESTART, happening->when_ns);
	torch_metrics_begin(&telling->torch, TORCH_CALL_RENDEZVOUS, happening->when_ns);
	torch_metrics_begin(&telling->torch, TORCH_CALL_INITIALIZE, happening->when_ns);
}

static void on_decided(struct telling *telling, const struct happening *happening)
{
	enum outcome_kind kind = happening->outcome->kind;
	torch_metrics_end(&telling->torch, TORCH_CALL_RUN,
			  kind == OUTCOME_DONE || kind == OUTCOME_FAILED, happening->when_ns);
}

const struct listener listen_torch_metrics = {
	.on = {
		[HAPPENED_JOB_STARTED] = on_job_started,
		[HAPPENED_ROUND_FORMED] = on_formed,
		[HAPPENED_WORKER_STARTED] = on_started,
		[HAPPENED_WORKER_NOT_STARTED] = on_started,
		[HAPPENED_WARDEN_HEARD] = on_heard,
		[HAPPENED_GROUP_STOPPING] = on_stopping,
		[HAPPENED_GROUP_GONE] = on_gone,
		[HAPPENED_JOB_DECIDED] = on_decided,
	},
};
