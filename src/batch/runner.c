#include "batch/runner.h"

#include <errno.h>
#include <event2/event.h>
#include <locale.h>
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
		runner->source->ops->fetch(runner->source->arg, action->order);
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
		runner->job->owner->idle(runner->job->owner_arg);
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
	runner->job->owner->stepped(runner->job->owner_arg);
	arm(runner->timer, batch_next_deadline(&runner->batch));
}

void runner_adopt(struct runner *runner, struct order_source *source)
{
	runner->source = source;
	batch_adopt(&runner->batch, &source->list);
	runner_post(runner, &(struct batch_event){ .type = BATCH_LOOK, .slot = -1 });
}

struct event_base *runner_base(const struct runner *runner)
{
	return runner->base;
}

const struct batch *runner_batch(const struct runner *runner)
{
	return &runner->batch;
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

void runner_end(struct runner *runner)
{
	runner->over = true;
	event_base_loopbreak(runner->base);
}

int runner_failed(const struct runner *runner)
{
	return runner->exit_code;
}

void runner_fail(struct runner *runner, const struct err *err)
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

static void on_hash(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	runner_hash_some(arg);
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
	if (sig != SIGWINCH && sig != SIGUSR1)
		runner->stop_signal = (int)sig;
	runner->job->owner->signalled(runner->job->owner_arg, (int)sig);
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
	runner->job->owner->signalled(runner->job->owner_arg, SIGTERM);
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

static void log_line(void *arg, enum log_level level UNUSED, const char *line, size_t len)
{
	struct runner *runner = arg;
	printer_text(runner->printer, STDERR_FILENO, line, len);
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
	runner->hash_event = evtimer_new(runner->base, on_hash, runner);
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
	setlocale(LC_CTYPE, "");
	log_set_sink(log_line, runner);
	runner->source = job->owner->open(job->owner_arg, runner, &err);
	if (!runner->source) {
		log_error("%s", err.msg);
		return -err.code;
	}
	batch_init(&runner->batch, &job->opts, &job->plan->pool, &runner->source->list);
	runner->places = mem_alloc((size_t)job->plan->jobs * sizeof(*runner->places));
	for (int i = 0; i < job->plan->jobs; i++) {
		place_init(&runner->places[i], runner, i);
		place_watch(&runner->places[i]);
	}
	return 0;
}

static void done(struct runner *runner, int code)
{
	log_set_sink(NULL, NULL);
	runner->job->owner->close(runner->job->owner_arg, code);
	for (int i = 0; runner->places && i < runner->job->plan->jobs; i++)
		place_done(&runner->places[i]);
	free(runner->places);
	batch_done(&runner->batch);
	batch_actions_done(&runner->actions);
	batch_queue_done(&runner->queue);
	launcher_done(&runner->launcher);
	outputs_free(runner->outputs);
	live_free(runner->live);
	printer_free(runner->printer);
	struct event *events[] = { runner->lifeline, runner->timer, runner->hash_event };
	for (size_t i = 0; i < ARRAY_LEN(events); i++)
		if (events[i])
			event_free(events[i]);
	for (size_t i = 0; i < ARRAY_LEN(runner->signals); i++)
		if (runner->signals[i])
			event_free(runner->signals[i]);
	sweeper_free(runner->sweeper);
	/* Before their loop. */
	for (int i = 0; i < runner->job->plan->jobs; i++) {
		warden_free(runner->job->wardens[i]);
		runner->job->wardens[i] = NULL;
	}
	if (runner->base)
		event_base_free(runner->base);
}

int runner_run(const struct runner_job *job)
{
	struct runner runner;
	if (init(&runner, job) < 0) {
		if (!runner.base)
			return EXIT_CODE_SYSTEM;
		printer_flush(runner.printer);
		done(&runner, EXIT_CODE_SYSTEM);
		return EXIT_CODE_SYSTEM;
	}
	signal(SIGPIPE, SIG_IGN);
	/* Outputs that wait for a slow terminal keep their files open. Orders keep the old limit:
	 * their wardens started before this. */
	fd_limit_raise();
	move_aside(job->plan, job->wardens);
	runner_post(&runner, &(struct batch_event){ .type = BATCH_START });
	if (!runner.over)
		event_base_dispatch(runner.base);
	runner_finish_all(&runner);
	outputs_flush(runner.outputs);
	int code = job->owner->finish(job->owner_arg);
	printer_flush(runner.printer);
	if (runner.exit_code)
		code = runner.exit_code;
	done(&runner, code);
	return code;
}
