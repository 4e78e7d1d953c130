/* The metrics of torch's agent: how often each of its steps succeeded and failed and how long it
 * took, and at the end how the run went. /metrics has the steps, the event `job.ended` has
 * everything, under torch's own names. */
#ifndef RUN_TELL_TORCH_METRICS_H
#define RUN_TELL_TORCH_METRICS_H

#include "proto/event.h"
#include "run/tell/history.h"

enum torch_call {
	TORCH_CALL_RUN,
	TORCH_CALL_RENDEZVOUS,
	TORCH_CALL_ASSIGN_RANKS,
	TORCH_CALL_INITIALIZE, /* a round, until all its workers are started */
	TORCH_CALL_RESTART,    /* the same, from the end of the previous round */
	TORCH_CALL_START,
	TORCH_CALL_STOP,
	TORCH_CALL_MONITOR, /* messages of the warden were handled; torch polls */
	TORCH_CALL_COUNT,
};

struct torch_metrics {
	struct {
		uint64_t began_ns; /* 0: not running */
		uint64_t success, failure, duration_ns;
	} calls[TORCH_CALL_COUNT];
	uint32_t starting; /* workers of the round that are not yet started */
	bool start_failed;
};

const char *torch_call_name(enum torch_call call); /* "SimpleElasticAgent._rendezvous" */

/* Begins a call, unless it is running; ends it, if it is. */
void torch_metrics_begin(struct torch_metrics *metrics, enum torch_call call, uint64_t now_ns);
void torch_metrics_end(struct torch_metrics *metrics, enum torch_call call, bool ok,
		       uint64_t now_ns);

#define TORCH_METRICS_MAX (3 * TORCH_CALL_COUNT + 7)

/* All of them, at the end of the job; returns how many. Calls that never happened have 0. */
size_t torch_metrics_list(const struct torch_metrics *metrics, const struct history *history,
			  const char *role, uint32_t max_restarts,
			  struct event_number ret_list[TORCH_METRICS_MAX]);

#endif
