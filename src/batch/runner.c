#include "batch/runner.h"

#include <errno.h>
#include <event2/event.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/procfs.h"
#include "batch/cpu_time.h"
#include "batch/runner_private.h"
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

static uint64_t cpu_used(const struct place *place, const struct warden *warden)
{
	return warden ? cpu_time_below(warden_pid(warden)) - place->cpu_base_ns : 0;
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
		if (warden)
			warden_kill_all(warden);
		break;
	case BATCH_QUERY_CPU:
		runner_post(runner, &(struct batch_event){ .type = BATCH_CPU_USED,
							   .slot = action->slot,
							   .cpu_ns = cpu_used(place, warden) });
		break;
	case BATCH_FINISH:
		runner_finish(runner, action);
		break;
	case BATCH_END:
		event_base_loopbreak(runner->base);
		break;
	}
}

static void drive(struct runner *runner)
{
	/* Actions may post new events: these wait for their turn. */
	if (runner->driving)
		return;
	runner->driving = true;
	for (size_t i = 0; i < runner->event_count; i++) {
		struct batch_event event = runner->events[i];
		runner->actions.count = 0;
		batch_step(&runner->batch, &event, clock_now_ns(), &runner->actions);
		for (size_t a = 0; a < runner->actions.count; a++)
			carry_out(runner, &runner->actions.items[a]);
	}
	runner->event_count = 0;
	runner->driving = false;
	arm(runner->timer, batch_next_deadline(&runner->batch));
	if (runner->job->journal->dirty && !event_pending(runner->sync_timer, EV_TIMEOUT, NULL))
		arm(runner->sync_timer, clock_now_ns() + SYNC_PERIOD_NS);
}

void runner_post(struct runner *runner, const struct batch_event *event)
{
	ARRAY_RESERVE(runner->events, runner->event_count, runner->event_cap);
	runner->events[runner->event_count++] = *event;
	drive(runner);
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
	runner->stop_signal = (int)sig;
	runner_post(runner, &(struct batch_event){ .type = BATCH_INTERRUPT });
}

/* ---- setting up and taking down ---- */

/* Leaves the measured cores, if some were kept for us. */
static void move_aside(const struct plan *plan, struct warden *const *wardens)
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
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGWINCH };
	*runner = (struct runner){ .job = job,
				   .launcher = { .shell = job->config->shell,
						 .env = measure_env(job->measure) },
				   .start_ns = clock_now_ns() };
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
	runner->hash_event = event_new(runner->base, -1, 0, on_hash, runner);
	runner->status_timer = event_new(runner->base, -1, EV_PERSIST, on_status, runner);
	for (size_t i = 0; i < ARRAY_LEN(signals); i++) {
		runner->signals[i] = evsignal_new(runner->base, signals[i], on_signal, runner);
		event_add(runner->signals[i], NULL);
	}
	runner->sweeper = sweeper_new(runner->base, on_clear, runner);
	runner->printer = printer_new(runner->base);
	batch_init(&runner->batch, &job->opts, &job->plan->pool, job->batch_orders, job->count);
	runner->places = mem_alloc((size_t)job->plan->jobs * sizeof(*runner->places));
	for (int i = 0; i < job->plan->jobs; i++) {
		place_init(&runner->places[i], runner, i);
		place_watch(&runner->places[i]);
	}
	status_init(runner);
	return 0;
}

static void done(struct runner *runner)
{
	log_set_sink(NULL, NULL);
	for (int i = 0; runner->places && i < runner->job->plan->jobs; i++)
		place_done(&runner->places[i]);
	free(runner->places);
	batch_done(&runner->batch);
	batch_actions_done(&runner->actions);
	free(runner->events);
	launcher_done(&runner->launcher);
	printer_free(runner->printer);
	struct event *events[] = { runner->timer,	 runner->sync_timer, runner->hash_event,
				   runner->status_timer, runner->signals[0], runner->signals[1],
				   runner->signals[2],	 runner->signals[3] };
	for (size_t i = 0; i < ARRAY_LEN(events); i++)
		if (events[i])
			event_free(events[i]);
	sweeper_free(runner->sweeper);
	/* Before their loop. */
	for (int i = 0; i < runner->job->plan->jobs; i++) {
		warden_free(runner->job->wardens[i]);
		runner->job->wardens[i] = NULL;
	}
	if (runner->base)
		event_base_free(runner->base);
}

static int exit_code(const struct runner *runner)
{
	const struct batch *batch = &runner->batch;
	if (runner->exit_code)
		return runner->exit_code;
	if (batch->stop == BATCH_STOP_INTERRUPT)
		return EXIT_CODE_SIGNAL_BASE + runner->stop_signal;
	/* --halt success=1: the user did not want the rest. */
	if (batch->stop == BATCH_STOP_HALT && batch->opts.halt.what == HALT_SUCCESS)
		return EXIT_CODE_OK;
	return batch->ok == batch->total ? EXIT_CODE_OK : EXIT_CODE_FAILED;
}

int runner_run(const struct runner_job *job)
{
	struct runner runner;
	if (init(&runner, job) < 0)
		return EXIT_CODE_SYSTEM;
	signal(SIGPIPE, SIG_IGN);
	/* Outputs that wait for a slow terminal keep their files open. Orders keep the old limit:
	 * their wardens started before this. */
	fd_limit_raise();
	move_aside(job->plan, job->wardens);
	if (runner.bar || runner.plain) {
		struct timeval period = clock_timeval(runner.bar ? BAR_PERIOD_NS : PLAIN_PERIOD_NS);
		event_add(runner.status_timer, &period);
	}
	runner_post(&runner, &(struct batch_event){ .type = BATCH_START });
	if (!runner.batch.ended)
		event_base_dispatch(runner.base);
	runner_finish_all(&runner);
	journal_sync(job->journal);
	struct err err = ERR_INIT;
	if (journal_check(job->journal, &err) < 0)
		runner_fatal(&runner, &err);
	status_summary(&runner);
	printer_flush(runner.printer);
	int code = exit_code(&runner);
	done(&runner);
	return code;
}
