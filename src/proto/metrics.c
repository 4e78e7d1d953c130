#include "proto/metrics.h"

static const struct {
	const char *name;
	const char *type;
	const char *help;
} metrics[] = {
	[METRIC_BUILD_INFO] = { "muster_build_info", "gauge", "Always 1; the version is a label." },
	[METRIC_ROUND] = { "muster_round", "gauge", "Number of the current round." },
	[METRIC_BALLOT_EPOCH] = { "muster_ballot_epoch", "gauge",
				  "Term of the coordinator that formed the round." },
	[METRIC_BALLOT_ROUND] = { "muster_ballot_round", "gauge",
				  "Number of the round among all nodes." },
	[METRIC_MEMBERS] = { "muster_members", "gauge", "Nodes in the round." },
	[METRIC_WORLD_SIZE] = { "muster_world_size", "gauge",
				"Workers in the round, on all nodes." },
	[METRIC_RESTARTS] = { "muster_restarts_total", "counter",
			      "Times the group was started again, by cause." },
	[METRIC_RESTARTS_USED] = { "muster_restarts_used", "gauge",
				   "Restarts that count against those allowed." },
	[METRIC_MAX_RESTARTS] = { "muster_max_restarts", "gauge", "Restarts allowed." },
	[METRIC_FAILURES] = { "muster_failures_total", "counter", "Failed attempts by reason." },
	[METRIC_WORKER_UP] = { "muster_worker_up", "gauge", "1 while the worker runs." },
	[METRIC_WORKER_CPU] = { "muster_worker_cpu_seconds_total", "counter",
				"CPU time of the worker's main process; once it ended, with the "
				"children it waited for." },
	[METRIC_WORKER_RSS] = { "muster_worker_resident_bytes", "gauge",
				"Memory of the worker's main process." },
	[METRIC_WORKER_PEAK_RSS] = { "muster_worker_peak_resident_bytes", "gauge",
				     "Most memory a worker that ended ever had; 0 while it runs." },
	[METRIC_WORKER_OUTPUT] = { "muster_worker_output_bytes_total", "counter",
				   "What the worker printed, where it is read." },
	[METRIC_WORKER_HEARTBEATS] = { "muster_worker_heartbeats_total", "counter",
				       "Heartbeats of the worker." },
	[METRIC_WORKER_STEP] = { "muster_worker_step", "gauge", "The step that the worker is at." },
	[METRIC_WORKER_STEP_RATE] = { "muster_worker_steps_per_second", "gauge",
				      "Steps per second over the last 64 steps." },
	[METRIC_WORKER_SAVED_STEP] = { "muster_worker_saved_step", "gauge",
				       "The last step whose state the worker has saved." },
	[METRIC_WORKER_STRAGGLER] = { "muster_worker_straggler", "gauge",
				      "1 while the worker comes last too often and holds the "
				      "others "
				      "up." },
	[METRIC_LEFT] = { "muster_left_seconds", "gauge",
			  "Time until the last step, where the number of steps is known." },
	[METRIC_STANDSTILL] = { "muster_standstill_seconds", "gauge",
				"How long no worker here has told a step, where that is far longer "
				"than usual; 0 while steps go on." },
	[METRIC_TIMERS_ARMED] = { "muster_timers_armed", "gauge", "Watchdog timers armed now." },
	[METRIC_TIMER_REQUESTS] = { "muster_timer_requests_total", "counter",
				    "Watchdog requests accepted." },
	[METRIC_TIMERS_EXPIRED] = { "muster_timers_expired_total", "counter",
				    "Watchdog timers that expired." },
	[METRIC_TIMER_REJECTED] = { "muster_timer_rejected_total", "counter",
				    "Watchdog requests rejected, by reason." },
	[METRIC_STORE_REQUESTS] = { "muster_store_requests_total", "counter",
				    "Requests that the workers' store on this host executed, by "
				    "kind." },
	[METRIC_STORE_CONNECTIONS] = { "muster_store_connections", "gauge",
				       "Clients of the workers' store on this host." },
	[METRIC_LOOP_LATENCY] = { "muster_loop_latency_seconds", "gauge",
				  "How long this request waited for the loop." },
	[METRIC_UPTIME] = { "muster_uptime_seconds", "gauge", "Age of the job on this host." },
};
static_assert(ARRAY_LEN(metrics) == METRIC_COUNT, "every metric needs a row");

void metrics_begin(struct buf *out, enum metric metric)
{
	buf_printf(out, "# HELP %s %s\n# TYPE %s %s\n", metrics[metric].name, metrics[metric].help,
		   metrics[metric].name, metrics[metric].type);
}

static void append_escaped(struct buf *out, const char *text)
{
	for (; *text; text++) {
		if (*text == '\n') {
			buf_append_str(out, "\\n");
			continue;
		}
		if (*text == '"' || *text == '\\')
			buf_append_char(out, '\\');
		buf_append_char(out, *text);
	}
}

void metrics_sample(struct buf *out, enum metric metric, double value, const char *const *labels)
{
	buf_append_str(out, metrics[metric].name);
	for (size_t i = 0; labels[i]; i += 2) {
		buf_printf(out, "%s%s=\"", i == 0 ? "{" : ",", labels[i]);
		append_escaped(out, labels[i + 1]);
		buf_append_char(out, '"');
	}
	buf_printf(out, "%s %.17g\n", labels[0] ? "}" : "", value);
}
