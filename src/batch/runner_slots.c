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
#include "base/str.h"
#include "batch/cpu_time.h"
#include "batch/runner_private.h"

extern char **environ;

const struct order *place_order(const struct place *place)
{
	const struct runner_job *job = place->runner->job;
	size_t variant = place->trial.variant == 'B' ? job->b_offset : 0;
	return &job->orders->items[place->order->item.index + variant];
}

/* The command to execute: the order, or one of its hooks. */
static const struct order *command_of(const struct place *place)
{
	enum batch_hook hook = place->trial.hook;
	return hook ? &place->runner->job->hooks->items[hook] : place_order(place);
}

static struct warden **warden_of(const struct place *place)
{
	return &place->runner->job->wardens[place->number];
}

void place_init(struct place *place, struct runner *runner, int number)
{
	*place = (struct place){ .runner = runner, .number = number, .fds = { -1, -1 } };
}

void place_done(struct place *place)
{
	fd_close(&place->fds[0]);
	fd_close(&place->fds[1]);
	free(place->paths[0]);
	free(place->paths[1]);
	free(place->failure);
	strv_done(&place->env);
}

/* ---- output ---- */

/* An unnamed file in the temporary directory. */
static int open_temporary(struct err *err)
{
	const char *dir = getenv("TMPDIR");
	dir = dir && *dir ? dir : "/tmp";
	int fd = open(dir, O_TMPFILE | O_RDWR | O_APPEND | O_CLOEXEC, 0600);
	if (fd < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
		AUTO_FREE char *path = mem_printf("%s/muster-XXXXXX", dir);
		fd = mkostemp(path, O_APPEND | O_CLOEXEC);
		if (fd >= 0)
			unlink(path);
	}
	return fd < 0 ? err_set(err, errno, "%s: cannot make a temporary file: %m", dir) : fd;
}

/* "ID", "ID.run2", "ID.try3": characters that a file name cannot hold become %XX. */
static char *output_name(const struct place *place)
{
	AUTO(buf_done) struct buf id = BUF_INIT, name = BUF_INIT;
	order_append_id(place_order(place), &id);
	for (const char *p = buf_str(&id); *p; p++) {
		bool dot_first = *p == '.' && p == buf_str(&id);
		if (*p == '/' || *p == '%' || (unsigned char)*p < 0x20 || dot_first)
			buf_printf(&name, "%%%02X", (unsigned char)*p);
		else
			buf_append_char(&name, *p);
	}
	if (place->trial.variant)
		buf_printf(&name, ".%c", place->trial.variant);
	if (place->trial.warmup)
		buf_append_str(&name, ".warmup");
	if (place->order->runs > 1 || place->order->repeat)
		buf_printf(&name, ".run%d", place->trial.run);
	if (place->trial.attempt > 1)
		buf_printf(&name, ".try%d", place->trial.attempt);
	return buf_take_str(&name);
}

static int open_output(struct place *place, struct err *err)
{
	static const char *const suffixes[] = { "out", "err" };
	const char *dir = place->runner->job->config->results;
	AUTO_FREE char *name = dir ? output_name(place) : NULL;
	for (int i = 0; i < 2; i++) {
		if (!dir) {
			if (place->fds[i] < 0 && (place->fds[i] = open_temporary(err)) < 0)
				return place->fds[i];
			continue;
		}
		fd_close(&place->fds[i]);
		free(place->paths[i]);
		place->paths[i] = mem_printf("%s/%s.%s", dir, name, suffixes[i]);
		place->fds[i] = open(place->paths[i],
				     O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
		if (place->fds[i] < 0)
			return err_set(err, errno, "%s: %m", place->paths[i]);
	}
	return 0;
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

static int send_spawn(struct place *place, bool force_shell, struct err *err)
{
	AUTO(launch_done) struct launch launch = LAUNCH_INIT;
	AUTO(fd_close) int input = -1;
	const struct order *order = command_of(place);
	const struct order_extra *extra = order->extra;
	bool hook = place->trial.hook != BATCH_HOOK_NONE; /* neither measured nor shown */
	int r = launch_make(&place->runner->launcher, order, place->number + 1, force_shell,
			    &launch, err);
	if (r < 0)
		return r;
	if (extra && extra->stdin_path) {
		input = open(extra->stdin_path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
		if (input < 0)
			return err_set(err, errno, "stdin %s: %m", extra->stdin_path);
	}
	if (!hook)
		measure_wrap(place->runner->job->measure, place->number, &launch.path,
			     &launch.argv);
	unsigned long nodes = near_nodes(place);
	bool pinned = !cpuset_empty(&place->cpus);
	struct spawn_spec spec = {
		.path = launch.path,
		.argv = strv_argv(&launch.argv),
		.envp = launch.env.count ? strv_argv(&launch.env) : environ,
		.cwd = extra ? extra->cwd : NULL,
		.stdio = { input >= 0 ? input : SPAWN_NULL, hook ? SPAWN_NULL : place->fds[0],
			   hook ? SPAWN_NULL : place->fds[1] },
		.cpus = pinned ? (const cpu_set_t *)&place->cpus : NULL,
		.cpus_size = pinned ? sizeof(place->cpus) : 0,
		.mem_mode = nodes ? MPOL_PREFERRED : 0,
		.mem_nodes = nodes ? &nodes : NULL,
		.mem_nodes_size = nodes ? sizeof(nodes) : 0,
	};
	place->by_shell = launch.by_shell || order->argv;
	if (place->order->cpu_timeout_ns)
		place->cpu_base_ns = cpu_time_below(warden_pid(*warden_of(place)));
	if (!hook)
		measure_begin(place->runner->job->measure, place->number, &place->cpus);
	r = warden_spawn(*warden_of(place), (uint64_t)place->number, &spec, WARDEN_QUIET, err);
	strv_done(&place->env);
	place->env = launch.env;
	launch.env = STRV_INIT;
	return r;
}

void place_spawn(struct place *place, const struct batch_action *action)
{
	struct err err = ERR_INIT;
	place->order = action->order;
	place->cpus = action->cpus;
	place->trial = action->outcome.trial;
	place->has_usage = false;
	place->asked_wall_ns = clock_wall_ns();
	free(place->failure);
	place->failure = NULL;
	if (open_output(place, &err) < 0)
		runner_fatal(place->runner, &err);
	int r = err.code ? -err.code : send_spawn(place, false, &err);
	if (r < 0 && r != -EPIPE) /* EPIPE: LOST follows */
		fail_spawn(place, err.msg);
}

/* ---- events ---- */

/* One kill by the kernel explains one killed order. */
static bool was_oom(struct runner *runner, const struct exit_status *status)
{
	if (!exit_status_killed(status))
		return false;
	uint64_t count = procfs_vmstat("oom_kill");
	if (count <= runner->oom_kills)
		return false;
	runner->oom_kills++;
	return true;
}

static void on_exited(struct place *place, const struct warden_event *event, bool empty)
{
	place->usage = event->usage;
	place->has_usage = true;
	bool suspect = !place->trial.hook &&
		       measure_exited(place->runner->job->measure, place->number, &event->usage);
	runner_post(place->runner,
		    &(struct batch_event){ .type = BATCH_EXITED,
					   .slot = place->number,
					   .status = event->status,
					   .empty = empty,
					   .oom = was_oom(place->runner, &event->status),
					   .start_ns = event->start_ns,
					   .end_ns = event->ns,
					   .suspect = suspect });
}

static void on_spawn_failed(struct place *place, const struct warden_event *event)
{
	struct err err = ERR_INIT;
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

/* What it had comes to us, and is swept; the slot waits for place_renew(). */
static void drop_warden(struct place *place)
{
	struct warden **warden = warden_of(place);
	warden_free(*warden);
	*warden = NULL;
	sweeper_start(place->runner->sweeper);
}

void place_renew(struct place *place)
{
	struct err err = ERR_INIT;
	struct warden **warden = warden_of(place);
	if (*warden)
		return;
	if (warden_new(NULL, warden, &err) < 0)
		runner_fatal(place->runner, &err);
	else
		place_watch(place);
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
