#include "run/tell/torch_metrics.h"

#include <stdio.h>

#include "base/clock.h"

static const char *const names[] = {
	[TORCH_CALL_RUN] = "SimpleElasticAgent.run",
	[TORCH_CALL_RENDEZVOUS] = "SimpleElasticAgent._rendezvous",
	[TORCH_CALL_ASSIGN_RANKS] = "SimpleElasticAgent._assign_worker_ranks",
	[TORCH_CALL_INITIALIZE] = "SimpleElasticAgent._initialize_workers",
	[TORCH_CALL_RESTART] = "SimpleElasticAgent._restart_workers",
	[TORCH_CALL_START] = "LocalElasticAgent._start_workers",
	[TORCH_CALL_STOP] = "LocalElasticAgent._stop_workers",
	[TORCH_CALL_MONITOR] = "LocalElasticAgent._monitor_workers",
};
static_assert(ARRAY_LEN(names) == TORCH_CALL_COUNT, "every call needs a name");

const char *torch_call_name(enum torch_call call)
{
	return names[call];
}

void torch_metrics_begin(struct torch_metrics *metrics, enum torch_call call, uint64_t now_ns)
{
	if (!metrics->calls[call].began_ns)
		metrics->calls[call].began_ns = now_ns;
}

void torch_metrics_end(struct torch_metrics *metrics, enum torch_call call, bool ok,
		       uint64_t now_ns)
{
	if (!metrics->calls[call].began_ns)
		return;
	metrics->calls[call].duration_ns += now_ns - metrics->calls[call].began_ns;
	metrics->calls[call].began_ns = 0;
	if (ok)
		metrics->calls[call].success++;
	else
		metrics->calls[call].failure++;
}

static void put(struct event_number *number, const char *prefix, const char *name,
		const char *suffix, uint64_t value)
{
	snprintf(number->name, sizeof(number->name), "%s%s%s", prefix, name, suffix);
	number->value = (int64_t)value;
}

size_t torch_metrics_list(const struct torch_metrics *metrics, const struct history *history,
			  const char *role, uint32_t max_restarts,
			  struct event_number ret_list[TORCH_METRICS_MAX])
{
	size_t n = 0;
	for (size_t i = 0; i < TORCH_CALL_COUNT; i++) {
		put(&ret_list[n++], "", names[i], ".success", metrics->calls[i].success);
		put(&ret_list[n++], "", names[i], ".failure", metrics->calls[i].failure);
		put(&ret_list[n++], "", names[i], ".duration.ms",
		    metrics->calls[i].duration_ns / NS_PER_MS);
	}
	const struct history_attempt *last = history_last(history);
	uint64_t used = last ? last->restart_count : 0,
		 left = max_restarts - MIN(used, max_restarts);
	bool done = last && last->end == ATTEMPT_DONE;
	const struct {
		const char *name;
		uint64_t value;
	} run[] = {
		{ ".remaining_restarts", left },
		{ ".run_total", 1 },
		{ ".run_success_with_retries", done && used > 0 },
		{ ".run_success_no_retries", done && used == 0 },
		{ ".run_failed_with_retries", !done && used > 0 },
		{ ".run_failed_no_retries", !done && used == 0 },
		{ ".flakiness",
		  done ? 100 - (100 * (left + 1) + max_restarts) / (max_restarts + 1) : 100 },
	};
	for (size_t i = 0; i < ARRAY_LEN(run); i++)
		put(&ret_list[n++], "workers.", role, run[i].name, run[i].value);
	return n;
}
