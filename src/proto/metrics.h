/* Metrics in Prometheus' text format. One table has every metric: name, type and help. */
#ifndef PROTO_METRICS_H
#define PROTO_METRICS_H

#include "base/buf.h"

#define METRICS_TYPE "text/plain; version=0.0.4; charset=utf-8"

enum metric {
	METRIC_BUILD_INFO,
	METRIC_ROUND,
	METRIC_BALLOT_EPOCH,
	METRIC_BALLOT_ROUND,
	METRIC_MEMBERS,
	METRIC_WORLD_SIZE,
	METRIC_RESTARTS,
	METRIC_RESTARTS_USED,
	METRIC_MAX_RESTARTS,
	METRIC_FAILURES,
	METRIC_WORKER_UP,
	METRIC_WORKER_CPU,
	METRIC_WORKER_RSS,
	METRIC_WORKER_PEAK_RSS,
	METRIC_WORKER_OUTPUT,
	METRIC_WORKER_HEARTBEATS,
	METRIC_WORKER_STEP,
	METRIC_WORKER_STEP_RATE,
	METRIC_WORKER_SAVED_STEP,
	METRIC_WORKER_STRAGGLER,
	METRIC_LEFT,
	METRIC_STANDSTILL,
	METRIC_TIMERS_ARMED,
	METRIC_TIMER_REQUESTS,
	METRIC_TIMERS_EXPIRED,
	METRIC_TIMER_REJECTED,
	METRIC_STORE_REQUESTS,
	METRIC_STORE_CONNECTIONS,
	METRIC_LOOP_LATENCY,
	METRIC_UPTIME,
	METRIC_COUNT,
};

/* Writes HELP and TYPE; the samples of the metric must follow before the next metric. */
void metrics_begin(struct buf *out, enum metric metric);

/* One sample. `labels` is a list of name, value pairs that ends in NULL; values are escaped. */
void metrics_sample(struct buf *out, enum metric metric, double value, const char *const *labels);

#define METRICS_LABELS(...) ((const char *const[]){ __VA_ARGS__, NULL })
#define METRICS_NO_LABELS ((const char *const[]){ NULL })

#endif
