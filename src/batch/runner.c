#include "batch/runner.h"

#include <errno.h>
#include <event2/event.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/procfs.h"
#include "batch/runner_private.h"
#include "batch/tree_memory.h"
#include "core/worker/exit_code.h"

#define SYNC_PERIOD_NS NS_PER_S
#define BAR_PERIOD_NS (200 * NS_PER_MS)
#define PLAIN_PERIOD_NS (30 * NS_PER_S)

static void arm(struct event *timer, uint64_t deadline_ns)
{
	if (deadline_ns == NS_NEVER) {
		event_del(timer);
		return;
	}
	struct timeval wait = clock_left(deadline_ns, clock_now_ns());
	event_add(timer, &wait);
}

/* ---- events and actions ---- */

static uint64_t cpu_used(const struct place *place, struct warden *warden)
{
	return warden ? cpu_time_below(warden_pid(warden)) - place->cpu_base_ns : 0;
}

/* The load average lags by a minute: what runs now counts, but not we ourselves. */
static void answer_host(struct runner *runner)
{
	uint64_t running = procfs_running();
	runner_post(runner, &(struct batch_event){ .type = BATCH_HOST,
						   .slot = -1,
						   .memory_free = procfs_memory_available(),
						   .load = running ? (double)running - 1 : 0 });
}

static void answer_memory(struct place *place, struct warden *warden)
{
	struct batch_event event = { .type = BATCH_MEMORY_USED, .slot = place->number };
	if (place->group.path) {
		event.memory = memory_group_kills(&place->group) > 0 ? UINT64_MAX : 0;
	} else if (warden) {
		event.memory = tree_memory(warden_pid(warden), place->order->memory_limit);
		place->memory_peak = MAX(place->memory_peak, event.memory);
	}
	runner_post(place->runner, &event);
}

static void take_back(struct runner *runner, struct batch_order *order)
{
	runner_post(runner,
		    &(struct batch_event){ .type = BATCH_TAKEN_BACK, .slot = -1, .order = order });
}

static void carry_out(struct runner *runner, const struct batch_action *action)
{
	struct place *place = action->slot >= 0 ? &runner->places[action->slot] : NULL;
	struct warden *warden = action->slot >= 0 ? runner->job->wardens[action->slot] : NULL;
	switch (action->type) {
	case BATCH_SPAWN:
		place_spawn(place, action);
		break;
	case BATCH_SIGNAL:
		if (warden) /* otherwise all of the slot is being killed */
			warden_signal_all(warden, action->sig);
		break;
	case BATCH_KILL:
		memory_group_kill(&place->group);
		if (warden)
			warden_kill_all(warden);
		break;
	case BATCH_QUERY_CPU:
		runner_post(runner, &(struct batch_event){ .type = BATCH_CPU_USED,
							   .slot = action->slot,
							   .cpu_ns = cpu_used(place, warden) });
		break;
	case BATCH_QUERY_MEMORY:
		answer_memory(place, warden);
		break;
	case BATCH_QUERY_HOST:
		answer_host(runner);
		break;
	case BATCH_FETCH:
		runner->fetching = action->order;
		if (!runner->job->source) /* which sends what it has */
			stdin_blocks_want(runner->blocks);
		break;
	case BATCH_FINISH:
		runner_finish(runner, action);
		break;
	case BATCH_LAY:
		runner_lay(runner, action->order);
		break;
	case BATCH_TAKE_ONE:
		take_back(runner, ahead_take_back(&runner->ahead));
		break;
	case BATCH_TAKE_ALL:
		for (struct batch_order *order; (order = ahead_take_back(&runner->ahead));)
			take_back(runner, order);
		break;
	case BATCH_END:
		if (runner->job->source)
			runner->job->source->idle(runner->job->source_arg);
		else
			event_base_loopbreak(runner->base);
		break;
	}
}

static void take(void *arg, const struct batch_event *event)
{
	struct runner *runner = arg;
	runner->actions.count = 0;
	batch_step(&runner->batch, event, clock_now_ns(), &runner->actions);
	for (size_t i = 0; i < runner->actions.count; i++)
		carry_out(runner, &runner->actions.items[i]);
}

void runner_post(struct runner *runner, const struct batch_event *event)
{
	batch_push(&runner->queue, event);
	if (!batch_drive(&runner->queue, take, runner))
		return;
	if (!runner->told_wait && batch_waits_for_host(&runner->batch)) {
		runner->told_wait = true;
		status_wait(runner);
	}
	arm(runner->timer, batch_next_deadline(&runner->batch));
	if (runner->job->journal->dirty && !event_pending(runner->sync_timer, EV_TIMEOUT, NULL))
		arm(runner->sync_timer, clock_now_ns() + SYNC_PERIOD_NS);
}

struct event_base *runner_base(const struct runner *runner)
{
	return runner->base;
}

struct printer *runner_printer(const struct runner *runner)
{
	return runner->printer;
}

struct outputs *runner_outputs(const struct runner *runner)
{
	return runner->outputs;
}

int runner_stop_signal(const struct runner *runner)
{
	return runner->stop_signal;
}

void runner_fatal(struct runner *runner, const struct err *err)
{
	if (runner->exit_code)
		return;
	runner->exit_code = EXIT_CODE_SYSTEM;
	log_error("%s", err->msg);
	runner_post(runner, &(struct batch_event){ .type = BATCH_FATAL });
}

/* ---- callbacks ---- */

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	runner_post(arg, &(struct batch_event){ .type = BATCH_TICK });
}

static void on_sync(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct runner *runner = arg;
	journal_sync(runner->job->journal);
}

static void on_status(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	status_show(arg);
}

static void on_hash(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	runner_hash_some(arg);
}

static void on_block(void *arg, const struct stdin_blocks_block *block, const struct err *why)
{
	struct runner *runner = arg;
	struct err err = why ? *why : ERR_INIT;
	struct batch_order *order = runner->fetching;
	AUTO(fd_close) int input = block->fd;
	int r = input >= 0 ? pipe_orders_put(runner->job->pipe, order, &input, &err) : -err.code;
	if (r < 0)
		runner_fatal(runner, &err);
	bool there = r >= 0 && block->fd >= 0;
	runner_post(runner, &(struct batch_event){ .type = there ? BATCH_OFFER : BATCH_CLOSED,
						   .order = order });
}

/* Nothing is left of what lost wardens had. */
static void on_clear(void *arg)
{
	struct runner *runner = arg;
	for (int i = 0; i < runner->job->plan->jobs; i++)
		place_renew(&runner->places[i]);
}

static void on_signal(evutil_socket_t sig, short what UNUSED, void *arg)
{
	struct runner *runner = arg;
	if (sig == SIGWINCH) {
		printer_status(runner->printer, "");
		status_show(runner);
		return;
	}
	if (sig == SIGUSR1) {
		status_tell(runner);
		return;
	}
	runner->stop_signal = (int)sig;
	if (runner->job->source) {
		runner->job->source->signalled(runner->job->source_arg, (int)sig);
		return;
	}
	runner_post(runner,
		    &(struct batch_event){ .type = sig == SIGHUP ? BATCH_DRAIN : BATCH_INTERRUPT });
}

/* The process that started us holds the other end of this pipe. End of file means that it is
 * gone. */
static void on_lifeline(evutil_socket_t fd, short what UNUSED, void *arg)
{
	struct runner *runner = arg;
	char bytes[64];
	ssize_t n = read((int)fd, bytes, sizeof(bytes));
	if (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)))
		return;
	event_del(runner->lifeline);
	log_warn("the process that started this batch is gone; stopping it");
	runner->stop_signal = SIGTERM;
	if (runner->job->source)
		runner->job->source->signalled(runner->job->source_arg, SIGTERM);
	else
		runner_post(runner, &(struct batch_event){ .type = BATCH_INTERRUPT });
}

/* ---- setting up and taking down ---- */

/* Leaves the measured cores, if some were kept for us. */
static void move_aside(const struct batch_plan *plan, struct warden *const *wardens)
{
	const struct cpuset *spare = &plan->pool.reserved;
	if (cpuset_empty(spare) || !plan->pinned)
		return;
	sched_setaffinity(0, sizeof(*spare), (const cpu_set_t *)spare);
	for (int i = 0; i < plan->jobs; i++)
		sched_setaffinity(warden_pid(wardens[i]), sizeof(*spare), (const cpu_set_t *)spare);
}

static int init(struct runner *runner, const struct runner_job *job)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGWINCH, SIGUSR1 };
	static_assert(ARRAY_LEN(signals) == ARRAY_LEN(runner->signals), "a place for each signal");
	*runner = (struct runner){ .job = job,
				   .launcher = { .shell = job->config->shell,
						 .env = measure_env(job->measure) },
				   .ahead = { .ring = job->ring } };
	runner->oom_kills = procfs_vmstat("oom_kill");
	list_init(&runner->endings);
	struct event_config *config = event_config_new();
	event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
	runner->base = event_base_new_with_config(config);
	event_config_free(config);
	if (!runner->base)
		return -ENOMEM;
	runner->timer = evtimer_new(runner->base, on_timer, runner);
	runner->sync_timer = evtimer_new(runner->base, on_sync, runner);
	runner->hash_event = evtimer_new(runner->base, on_hash, runner);
	runner->status_timer = event_new(runner->base, -1, EV_PERSIST, on_status, runner);
	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		runner->signals[i] = evsignal_new(runner->base, signals[i], on_signal, runner);
		event_add(runner->signals[i], NULL);
	}
	if (job->config->lifeline >= 0) {
		runner->lifeline = event_new(runner->base, (int)job->config->lifeline,
					     EV_READ | EV_PERSIST, on_lifeline, runner);
		event_add(runner->lifeline, NULL);
	}
	runner->sweeper = sweeper_new(runner->base, on_clear, runner);
	runner->printer = printer_new(runner->base);
	runner->outputs = outputs_new(runner->printer, job->config->keep_order);
	struct err err = ERR_INIT;
	if (job->config->line_buffer && live_new(runner->base, &runner->live, &err) < 0)
		log_warn("outputs are shown when their orders end: %s", err.msg);
	worklist_init(&runner->list, &job->opts.list, job->batch_orders, job->count);
	batch_init(&runner->batch, &job->opts, &job->plan->pool, &runner->list);
	runner->places = mem_alloc((size_t)job->plan->jobs * sizeof(*runner->places));
	for (int i = 0; i < job->plan->jobs; i++) {
		place_init(&runner->places[i], runner, i);
		place_watch(&runner->places[i]);
	}
	status_init(runner);
	if (job->pipe && stdin_blocks_new(runner->base, STDIN_FILENO, &job->pipe->rules, on_block,
					  runner, &runner->blocks, &err) < 0) {
		log_error("%s", err.msg);
		return -err.code;
	}
	if (job->config->http && !job->source && status_page_open(runner, &err) < 0) {
		log_error("%s", err.msg);
		return -err.code;
	}
	return 0;
}

static void done(struct runner *runner)
{
	log_set_sink(NULL, NULL);
	for (int i = 0; runner->places && i < runner->job->plan->jobs; i++)
		place_done(&runner->places[i]);
	free(runner->places);
	batch_done(&runner->batch);
	worklist_done(&runner->list);
	batch_actions_done(&runner->actions);
	batch_queue_done(&runner->queue);
	launcher_done(&runner->launcher);
	stdin_blocks_free(runner->blocks);
	outputs_free(runner->outputs);
	live_free(runner->live);
	recorder_done(&runner->recorder);
	printer_free(runner->printer);
	struct event *events[] = { runner->lifeline, runner->timer, runner->sync_timer,
				   runner->hash_event, runner->status_timer };
	for (size_t i = 0; i < ARRAY_LEN(events); i++)
		if (events[i])
			event_free(events[i]);
	for (size_t i = 0; i < ARRAY_LEN(runner->signals); i++)
		if (runner->signals[i])
			event_free(runner->signals[i]);
	sweeper_free(runner->sweeper);
	if (runner->job->source)
		runner->job->source->close(runner->job->source_arg);
	/* Before their loop. */
	for (int i = 0; i < runner->job->plan->jobs; i++) {
		warden_free(runner->job->wardens[i]);
		runner->job->wardens[i] = NULL;
	}
	if (runner->base)
		event_base_free(runner->base);
}

static int finish(struct runner *runner)
{
	struct err err = ERR_INIT;
	journal_sync(runner->job->journal);
	if (journal_check(runner->job->journal, &err) < 0)
		runner_fatal(runner, &err);
	return status_sum_up(runner);
}

int runner_run(const struct runner_job *job)
{
	struct runner runner;
	if (init(&runner, job) < 0) {
		if (!runner.base)
			return EXIT_CODE_SYSTEM;
		printer_flush(runner.printer);
		done(&runner);
		return EXIT_CODE_SYSTEM;
	}
	signal(SIGPIPE, SIG_IGN);
	/* Outputs that wait for a slow terminal keep their files open. Orders keep the old limit:
	 * their wardens started before this. */
	fd_limit_raise();
	move_aside(job->plan, job->wardens);
	if (job->source)
		job->source->begin(job->source_arg, &runner);
	else if (runner.recorder.bar || runner.recorder.plain) {
		struct timeval period =
			clock_timeval(runner.recorder.bar ? BAR_PERIOD_NS : PLAIN_PERIOD_NS);
		event_add(runner.status_timer, &period);
	}
	runner_post(&runner, &(struct batch_event){ .type = BATCH_START });
	if (!runner.batch.ended)
		event_base_dispatch(runner.base);
	runner_finish_all(&runner);
	outputs_flush(runner.outputs);
	int code = job->source ? job->source->finish(job->source_arg) : finish(&runner);
	printer_flush(runner.printer);
	if (runner.exit_code)
		code = runner.exit_code;
	batch_page_close(runner.recorder.page, code);
	done(&runner);
	return code;
}
