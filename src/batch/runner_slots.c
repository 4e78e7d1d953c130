/* Slots: a warden each, output files, and the order that runs there. */
#include <errno.h>
#include <fcntl.h>
#include <linux/mempolicy.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/procfs.h"
#include "batch/runner_private.h"
#include "batch/show/output_file.h"
#include "batch/tree_memory.h"

extern char **environ;

const struct order *place_order(const struct place *place)
{
	const struct order_source *source = place->source;
	size_t variant = place->trial.variant ? (size_t)(place->trial.variant - 'A') : 0;
	return &source->orders->items[place->order->item.index + variant * source->variant_step];
}

/* Neither measured nor shown. */
bool place_is_hook(const struct place *place)
{
	return place->trial.hook != BATCH_HOOK_NONE && place->trial.hook != BATCH_HOOK_TIMED;
}

/* The command to execute: the order, or one of its hooks. */
static const struct order *command_of(const struct place *place)
{
	const struct orders *hooks = place->source->hooks;
	size_t hook = place->trial.hook;
	if (!place_is_hook(place))
		return place_order(place);
	bool own = hooks->count > BATCH_HOOK_COUNT;
	return &hooks->items[hook + (own ? place->order->item.index * BATCH_HOOK_COUNT : 0)];
}

const char *place_tag(const struct place *place)
{
	const struct order_extra *extra = place_order(place)->extra;
	return extra ? extra->tag : NULL;
}

size_t place_turn(const struct place *place)
{
	const struct order_source *source = place->source;
	return source->pipe ? (size_t)place->order->number
			    : (size_t)(place->order - source->list.orders);
}

static struct warden **warden_of(const struct place *place)
{
	return &place->runner->job->wardens[place->number];
}

void place_init(struct place *place, struct runner *runner, int number)
{
	*place = (struct place){
		.runner = runner,
		.number = number,
		.fds = { -1, -1 },
		.watches = { -1, -1 },
		.writer = STDIN_WRITE_INIT,
		.group = MEMORY_GROUP_INIT,
	};
}

void place_done(struct place *place)
{
	fd_close(&place->fds[0]);
	fd_close(&place->fds[1]);
	free(place->paths[0]);
	free(place->paths[1]);
	free(place->failure);
	strv_done(&place->env);
	stdin_write_stop(&place->writer);
	memory_group_remove(&place->group);
}

/* ---- output ---- */

static char *output_path(const struct place *place, int stream)
{
	return output_file(place_order(place), place->source->results, &place->trial,
			   place->order->runs > 1 || place->order->repeat, stream);
}

static int open_output(struct place *place, struct err *err)
{
	const char *dir = place->source->results;
	if (place->runner->job->config->ungroup)
		return 0; /* the order writes to ours */
	if (dir || place->fds[0] < 0 || place->fds[1] < 0)
		place->kept = false;
	for (int i = 0; i < 2; i++) {
		if (!dir) {
			/* what the timed run wrote before this one */
			if (place->fds[i] >= 0 && place->has_timed && !place->trial.hook &&
			    ftruncate(place->fds[i], 0) < 0)
				return err_set(err, errno, "empty an output file: %m");
			if (place->fds[i] < 0 && (place->fds[i] = file_temporary(err)) < 0)
				return place->fds[i];
			continue;
		}
		fd_close(&place->fds[i]);
		free(place->paths[i]);
		place->paths[i] = output_path(place, i);
		place->fds[i] = output_open(place->paths[i], place_order(place), err);
		if (place->fds[i] < 0)
			return place->fds[i];
	}
	return 0;
}

/* ---- live output ---- */

static void show_lines(struct place *place, int i)
{
	uint64_t end = live_lines_end(place->fds[i], place->shown[i]);
	AUTO(fd_close) int copy = fcntl(place->fds[i], F_DUPFD_CLOEXEC, 0);
	if (copy < 0)
		return;
	outputs_add(place->runner->outputs, place_turn(place), i + 1, place_tag(place), &copy,
		    place->shown[i], end);
	place->shown[i] = end;
}

static void on_stdout(void *arg)
{
	show_lines(arg, 0);
}

static void on_stderr(void *arg)
{
	show_lines(arg, 1);
}

static void watch_output(struct place *place)
{
	static live_fn *const callbacks[] = { on_stdout, on_stderr };
	struct live *live = place->runner->live;
	for (int i = 0; live && i < 2; i++) {
		place->shown[i] = 0;
		if (place->fds[i] >= 0)
			place->watches[i] = live_watch(live, place->fds[i], callbacks[i], place);
	}
}

void place_unwatch_output(struct place *place)
{
	for (int i = 0; place->runner->live && i < 2; i++)
		live_forget(place->runner->live, place->watches[i]);
}

/* ---- starting ---- */

static void fail_spawn(struct place *place, const char *why)
{
	free(place->failure);
	place->failure = mem_strdup(why);
	runner_post(place->runner,
		    &(struct batch_event){ .type = BATCH_SPAWN_FAILED, .slot = place->number });
}

/* The memory node of the cores, if they are all on one of several nodes. */
static unsigned long near_nodes(const struct place *place)
{
	const struct topology *topology = &place->runner->job->plan->topology;
	unsigned long nodes = 0, all = 0;
	for (size_t i = 0; i < topology->count; i++) {
		int node = topology->cpus[i].node;
		if (node >= (int)(8 * sizeof(nodes)))
			return 0;
		all |= 1ul << node;
		if (cpuset_has(&place->cpus, topology->cpus[i].id))
			nodes |= 1ul << node;
	}
	bool one_of_many = __builtin_popcountl(nodes) == 1 && __builtin_popcountl(all) > 1;
	return one_of_many ? nodes : 0;
}

/* Whether the warden is to be on the same cores. One that has cores of its own stays there; and
 * where orders have limits, one that keeps its core busy must not be in the way. */
static unsigned along(const struct place *place)
{
	const struct runner *runner = place->runner;
	bool plain = runner->batch.opts.ahead > 0;
	return plain && cpuset_empty(&runner->job->plan->pool.reserved) ? WARDEN_ALONG : 0;
}

static int send_spawn(struct place *place, bool force_shell, struct err *err)
{
	AUTO(launch_done) struct launch launch = LAUNCH_INIT;
	AUTO(fd_close) int input = -1;
	const struct order *order = command_of(place);
	const struct order_extra *extra = order->extra;
	bool hook = place_is_hook(place), timed = place->trial.hook == BATCH_HOOK_TIMED;
	bool shared = place->runner->job->config->ungroup;
	/* Its output is that of the run that follows. */
	bool silent = hook || (timed && (shared || place->runner->live));
	int r = launch_make(&place->runner->launcher, order, place->number + 1, force_shell,
			    &launch, err);
	if (r < 0)
		return r;
	if (extra && extra->stdin_path) {
		input = open(extra->stdin_path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (input < 0)
			return err_set(err, errno, "stdin %s: %m", extra->stdin_path);
	}
	const struct pipe_orders *pipe = hook ? NULL : place->source->pipe;
	if (pipe) {
		r = stdin_write_start(&place->writer, place->runner->base,
				      pipe_orders_input(pipe, place->order), &input, err);
		if (r < 0)
			return r;
	}
	if (!hook && !timed)
		measure_wrap(place->runner->job->measure, place->number, &launch.path,
			     &launch.argv);
	unsigned long nodes = near_nodes(place);
	bool pinned = !cpuset_empty(&place->cpus);
	struct spawn_spec spec = {
		.path = launch.path,
		.argv = strv_argv(&launch.argv),
		.envp = launch.env.count ? strv_argv(&launch.env) : environ,
		.cwd = extra ? extra->cwd : NULL,
		.stdio = { input >= 0 ? input : SPAWN_NULL,
			   silent   ? SPAWN_NULL
			   : shared ? SPAWN_INHERIT
				    : place->fds[0],
			   silent   ? SPAWN_NULL
			   : shared ? SPAWN_INHERIT
				    : place->fds[1] },
		.nice = (int)place->runner->job->config->nice,
		.cpus = pinned ? (const cpu_set_t *)&place->cpus : NULL,
		.cpus_size = pinned ? sizeof(place->cpus) : 0,
		.mem_mode = nodes ? MPOL_PREFERRED : 0,
		.mem_nodes = nodes ? &nodes : NULL,
		.mem_nodes_size = nodes ? sizeof(nodes) : 0,
		.group_fd = hook ? 0 : MAX(place->group.fd, 0),
		.group_only = true,
	};
	place->by_shell = launch.by_shell || order->argv;
	if (place->order->cpu_timeout_ns)
		place->cpu_base_ns = cpu_time_below(warden_pid(*warden_of(place)));
	if (!hook)
		measure_begin(place->runner->job->measure, place->number,
			      place->has_timed ? NULL : &place->cpus);
	/* What most orders have in common is sent once. */
	bool common = !silent && !shared && input < 0 && spec.envp == environ;
	unsigned keep = !common ? 0 : place->kept ? WARDEN_SAME : WARDEN_KEEP;
	r = warden_spawn(*warden_of(place), (uint64_t)place->number, &spec,
			 WARDEN_QUIET | keep | along(place), err);
	place->kept = place->kept || (common && r == 0);
	strv_done(&place->env);
	place->env = launch.env;
	launch.env = STRV_INIT;
	return r;
}

/* A group of its own for every run: the kernel forgets the peak of one only with it. */
static int renew_group(struct place *place, struct err *err)
{
	const struct runner_job *job = place->runner->job;
	memory_group_remove(&place->group);
	if (!job->memory->path || place_is_hook(place))
		return 0;
	return memory_group_make(job->memory, job->config->memory_limit, &place->group, err);
}

static void begin_order(struct place *place, const struct batch_action *action)
{
	place->order = action->order;
	place->source = container_of(action->list, struct order_source, list);
	place->cpus = action->cpus;
	place->trial = action->outcome.trial;
	place->has_usage = false;
	place->memory_peak = 0;
	if (place->trial.hook == BATCH_HOOK_TIMED)
		place->has_timed = false;
	place->asked_wall_ns = clock_wall_ns();
	free(place->failure);
	place->failure = NULL;
	place->source->ops->started(place->source->arg, action->order);
}

/* Where nothing of its start depends on the slot. */
static bool lay(struct runner *runner, struct batch_order *order)
{
	AUTO(launch_done) struct launch launch = LAUNCH_INIT;
	const struct order *what = &runner->source->orders->items[order->item.index];
	if (launch_make(&runner->launcher, what, 0, false, &launch, NULL) < 0)
		return false;
	struct spawn_spec spec = {
		.path = launch.path,
		.argv = strv_argv(&launch.argv),
		.cwd = what->extra ? what->extra->cwd : NULL,
		.nice = (int)runner->job->config->nice,
		.group_only = true,
	};
	return ahead_lay(&runner->ahead, order, &spec, launch.by_shell || what->argv);
}

void runner_lay(struct runner *runner, struct batch_order *order)
{
	runner_post(runner, &(struct batch_event){ .type = BATCH_LAID,
						   .slot = -1,
						   .order = order,
						   .refused = !lay(runner, order) });
}

/* Everything of the slot stays as it is. */
static void go_on(struct place *place, const struct batch_action *action)
{
	place->passed_on = false;
	place->by_shell = place->next_by_shell;
	begin_order(place, action);
	measure_begin(place->runner->job->measure, place->number, &place->cpus);
}

void place_spawn(struct place *place, const struct batch_action *action)
{
	struct err err = ERR_INIT;
	if (action->runs) {
		go_on(place, action);
		return;
	}
	begin_order(place, action);
	if (open_output(place, &err) < 0)
		runner_fail(place->runner, &err);
	else
		watch_output(place);
	int r = err.code ? -err.code : renew_group(place, &err);
	if (r >= 0)
		r = send_spawn(place, false, &err);
	if (r < 0 && r != -EPIPE) /* EPIPE: LOST follows */
		fail_spawn(place, err.msg);
}

/* ---- events ---- */

/* One kill by the kernel explains one killed order. */
static bool was_oom(const struct place *place, const struct exit_status *status)
{
	struct runner *runner = place->runner;
	if (!exit_status_killed(status))
		return false;
	if (memory_group_kills(&place->group) > 0)
		return true;
	uint64_t count = procfs_vmstat("oom_kill");
	if (count <= runner->oom_kills)
		return false;
	runner->oom_kills++;
	return true;
}

uint64_t place_peak(const struct place *place)
{
	return MAX(memory_group_peak(&place->group), place->memory_peak);
}

/* NULL: its warden has started none by itself. */
static struct batch_order *pass_on(struct place *place, const struct ahead_order *next)
{
	place->passed_on = next->order;
	place->next_by_shell = next->by_shell;
	return next->order;
}

static void on_exited(struct place *place, const struct warden_event *event, bool empty)
{
	struct ahead_order next = { .order = NULL };
	if (event->next)
		next = ahead_taken(&place->runner->ahead, event->next);
	place->usage = event->usage;
	place->has_usage = true;
	if (place->trial.hook == BATCH_HOOK_TIMED) {
		place->has_timed = true;
		place->timed_usage = event->usage;
		place->timed_peak = place_peak(place);
	}
	bool suspect = !place_is_hook(place) &&
		       measure_exited(place->runner->job->measure, place->number, &event->usage);
	runner_post(place->runner, &(struct batch_event){ .type = BATCH_EXITED,
							  .slot = place->number,
							  .status = event->status,
							  .empty = empty,
							  .next = pass_on(place, &next),
							  .oom = was_oom(place, &event->status),
							  .start_ns = event->start_ns,
							  .end_ns = event->ns,
							  .suspect = suspect });
}

static void on_spawn_failed(struct place *place, const struct warden_event *event)
{
	struct err err = ERR_INIT;
	place->kept = false;
	/* A script without "#!": only a shell runs it. */
	if (event->error == ENOEXEC && !place->by_shell) {
		if (send_spawn(place, true, &err) == 0)
			return;
		fail_spawn(place, err.msg);
		return;
	}
	AUTO(buf_done) struct buf why = BUF_INIT;
	buf_printf(&why, "cannot %s: %s", spawn_step_name(event->step), strerror(event->error));
	fail_spawn(place, buf_str(&why));
}

/* What it had is swept; the slot waits for place_renew(). */
static void drop_warden(struct place *place)
{
	struct warden **warden = warden_of(place);
	sweeper_start(place->runner->sweeper, *warden);
	*warden = NULL;
	place->kept = false;
}

void place_renew(struct place *place)
{
	struct err err = ERR_INIT;
	struct warden **warden = warden_of(place);
	if (*warden)
		return;
	const struct warden_opts opts = { .ring = place->runner->ahead.ring,
					  .taker = place->number };
	struct ahead_order next = ahead_lost(&place->runner->ahead, place->number);
	if (warden_new(&opts, warden, &err) < 0)
		runner_fail(place->runner, &err);
	else
		place_watch(place);
	if (next.order)
		runner_post(place->runner, &(struct batch_event){ .type = BATCH_LOST,
								  .slot = place->number,
								  .next = pass_on(place, &next) });
	runner_post(place->runner,
		    &(struct batch_event){ .type = BATCH_LOST, .slot = place->number });
}

static void on_warden(struct warden *warden, void *arg)
{
	struct place *place = arg;
	struct warden_event event, exited = { .type = WARDEN_EVENT_COUNT };
	bool lost = false;
	while (!lost && warden_next(warden, &event)) {
		switch (event.type) {
		case WARDEN_EXITED:
			if (event.next)
				on_exited(place, &event, true);
			else
				exited = event;
			break;
		case WARDEN_EMPTY:
			if (exited.type == WARDEN_EXITED)
				on_exited(place, &exited, true);
			else
				runner_post(place->runner,
					    &(struct batch_event){ .type = BATCH_EMPTY,
								   .slot = place->number });
			exited.type = WARDEN_EVENT_COUNT;
			break;
		case WARDEN_SPAWN_FAILED:
			on_spawn_failed(place, &event);
			break;
		case WARDEN_SURVIVOR:
			log_warn("process %d (%s) of slot %d does not end: %s", (int)event.pid,
				 event.comm, place->number + 1, strerror(event.error));
			break;
		case WARDEN_LOST:
			lost = true;
			break;
		default:
			break;
		}
	}
	if (exited.type == WARDEN_EXITED)
		on_exited(place, &exited, false);
	if (lost)
		drop_warden(place);
}

void place_watch(struct place *place)
{
	warden_watch(*warden_of(place), place->runner->base, on_warden, place);
	measure_watch(place->runner->job->measure, place->number, warden_pid(*warden_of(place)));
}
