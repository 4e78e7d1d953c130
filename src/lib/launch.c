/* Launching: the muster program runs as a child that writes events into a pipe and ends when we
 * close another pipe. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <muster/muster.h>
#include "base/env.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "lib/last_error.h"
#include "lib/worker_ends.h"

#define LINE_MAX_BYTES (1 << 20) /* of an event; longer ones are skipped */
#define READ_SIZE 16384
#define FIRST_FREE_FD 3

struct muster_job {
	pid_t pid;
	int pidfd;
	int events;   /* the program writes its events here */
	int lifeline; /* open as long as we live */
	struct buf input;
	struct worker_ends ends;
	bool ended;
	struct muster_result *result; /* once it has ended, until it is taken */
};

/* ---- starting ---- */

/* A copy with a number above 2, out of reach of redirections. */
static int above_stdio(int fd)
{
	int copy = fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FREE_FD);
	return copy < 0 ? -errno : copy;
}

static int make_pipe(int *ret_read, int *ret_write)
{
	int fds[2];
	if (pipe2(fds, O_CLOEXEC) < 0)
		return -errno;
	AUTO(fd_close) int from = fds[0];
	AUTO(fd_close) int to = fds[1];
	AUTO(fd_close) int high_from = above_stdio(from);
	AUTO(fd_close) int high_to = above_stdio(to);
	if (high_from < 0 || high_to < 0)
		return MIN(high_from, high_to);
	*ret_read = fd_take(&high_from);
	*ret_write = fd_take(&high_to);
	return 0;
}

static void add_words(struct strv *argv, const char *const *words)
{
	for (; words && *words; words++)
		strv_add(argv, *words);
}

static void make_argv(const struct muster_launch_config *config, int events, int lifeline,
		      struct strv *argv)
{
	strv_add(argv, "muster");
	strv_add(argv, "run");
	strv_take(argv, mem_printf("--events=fd:%d", events));
	strv_take(argv, mem_printf("--lifeline=%d", lifeline));
	if (config->nproc_per_node)
		strv_take(argv, mem_printf("--nproc-per-node=%d", config->nproc_per_node));
	if (config->max_restarts)
		strv_take(argv, mem_printf("--max-restarts=%d", config->max_restarts));
	add_words(argv, config->options);
	strv_add(argv, "--");
	add_words(argv, config->command);
}

static void make_env(const char *const *changes, struct strv *env)
{
	strv_add_all(env, environ);
	for (; changes && *changes; changes++) {
		const char *equals = strchr(*changes, '=');
		AUTO_FREE char *name = equals ? mem_strndup(*changes, (size_t)(equals - *changes))
					      : mem_strdup(*changes);
		if (equals)
			env_set(env, name, equals + 1);
		else
			env_unset(env, name);
	}
}

/* Default signal actions, none blocked, its own process group: Ctrl-C goes to the caller, who
 * decides about the job. */
static void set_attributes(posix_spawnattr_t *attr)
{
	sigset_t none, all;
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawnattr_init(attr);
	posix_spawnattr_setsigmask(attr, &none);
	posix_spawnattr_setsigdefault(attr, &all);
	posix_spawnattr_setpgroup(attr, 0);
	posix_spawnattr_setflags(attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
					       POSIX_SPAWN_SETPGROUP);
}

/* The child's end of each pipe keeps its number; a copy onto itself clears its CLOEXEC. */
static void set_actions(posix_spawn_file_actions_t *actions, const char *cwd, const int stdio[3],
			int events, int lifeline)
{
	posix_spawn_file_actions_init(actions);
	for (int i = 0; i < 3; i++)
		if (stdio[i] >= 0)
			posix_spawn_file_actions_adddup2(actions, stdio[i], i);
	posix_spawn_file_actions_adddup2(actions, events, events);
	posix_spawn_file_actions_adddup2(actions, lifeline, lifeline);
	if (cwd)
		posix_spawn_file_actions_addchdir_np(actions, cwd);
}

static int spawn_program(const struct muster_launch_config *config, const int stdio[3], int events,
			 int lifeline, pid_t *ret_pid, struct err *err)
{
	const char *named = config->program ? config->program : getenv("MUSTER_PROGRAM");
	const char *program = named && *named ? named : "muster";
	AUTO(strv_done) struct strv argv = STRV_INIT;
	AUTO(strv_done) struct strv env = STRV_INIT;
	make_argv(config, events, lifeline, &argv);
	make_env(config->env, &env);
	posix_spawnattr_t attr;
	posix_spawn_file_actions_t actions;
	set_attributes(&attr);
	set_actions(&actions, config->cwd, stdio, events, lifeline);
	int code =
		posix_spawnp(ret_pid, program, &actions, &attr, strv_argv(&argv), strv_argv(&env));
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	return code ? err_set(err, code, "cannot start the program '%s': %m", program) : 0;
}

/* Pipes that must be closed again if the start fails. */
static int start(const struct muster_launch_config *config, struct muster_job *job, struct err *err)
{
	AUTO(fd_close) int events = -1;
	AUTO(fd_close) int lifeline = -1;
	AUTO(fd_close) int in = -1;
	AUTO(fd_close) int out = -1;
	AUTO(fd_close) int errors = -1;
	int *const copies[] = { &in, &out, &errors };
	for (int i = 0; i < 3; i++) {
		if (config->stdio[i] < 0)
			continue;
		*copies[i] = above_stdio(config->stdio[i]);
		if (*copies[i] < 0)
			return err_set(err, -*copies[i], "descriptor %d: %m", config->stdio[i]);
	}
	int r = make_pipe(&job->events, &events);
	if (r == 0)
		r = make_pipe(&lifeline, &job->lifeline);
	if (r < 0)
		return err_set(err, -r, "cannot make a pipe: %m");
	fd_set_nonblock(job->events, true);
	r = spawn_program(config, (const int[]){ in, out, errors }, events, lifeline, &job->pid,
			  err);
	if (r == 0)
		job->pidfd = pidfd_open(job->pid, 0);
	return r;
}

/* A caller compiled with an earlier version has a shorter struct; its missing members are zero. */
static int read_config(const struct muster_launch_config *given,
		       struct muster_launch_config *config, struct err *err)
{
	if (given->size < offsetof(struct muster_launch_config, options))
		return err_set(
			err, EINVAL,
			"the configuration has no size: begin with MUSTER_LAUNCH_CONFIG_INIT");
	memcpy(config, given, MIN(given->size, sizeof(*config)));
	if (!config->command || !config->command[0])
		return err_set(err, EINVAL, "the configuration has no command");
	return 0;
}

int muster_job_start(const struct muster_launch_config *given, struct muster_job **ret_job)
{
	struct err err = ERR_INIT;
	struct muster_launch_config config = MUSTER_LAUNCH_CONFIG_INIT;
	int r = read_config(given, &config, &err);
	if (r < 0)
		return last_error(r, &err);
	struct muster_job *job = NEW(struct muster_job);
	*job = (struct muster_job){ .pidfd = -1, .events = -1, .lifeline = -1 };
	r = start(&config, job, &err);
	if (r < 0) {
		muster_job_free(job);
		return last_error(r, &err);
	}
	*ret_job = job;
	return 0;
}

/* ---- following ---- */

int muster_job_fd(const struct muster_job *job)
{
	return job->events;
}

pid_t muster_job_pid(const struct muster_job *job)
{
	return job->ended ? 0 : job->pid;
}

static void take_line(struct muster_job *job, const char *line, size_t len,
		      muster_event_fn *on_event, void *arg)
{
	AUTO(event_in_done) struct event_in event = EVENT_IN_INIT;
	if (event_in_parse(line, len, &event) < 0)
		return;
	worker_ends_note(&job->ends, &event);
	if (!on_event)
		return;
	AUTO_FREE char *json = mem_strndup(line, len);
	const struct muster_event told = {
		.name = buf_str(&event.name),
		.json = json,
		.rank = event.rank,
		.local_rank = event.local_rank,
		.pid = (pid_t)event.pid,
		.round = event.round,
		.restarts = event.restarts,
	};
	on_event(arg, &told);
}

static void take_lines(struct muster_job *job, muster_event_fn *on_event, void *arg)
{
	const unsigned char *data, *end;
	while ((data = buf_data(&job->input)) && (end = memchr(data, '\n', buf_len(&job->input)))) {
		size_t len = (size_t)(end - data);
		take_line(job, (const char *)data, len, on_event, arg);
		buf_consume(&job->input, len + 1);
	}
	if (buf_len(&job->input) > LINE_MAX_BYTES)
		buf_clear(&job->input);
}

/* Through the pidfd if there is one: if the caller has already waited for our child, another
 * process may have its number. */
static int wait_for_program(struct muster_job *job)
{
	siginfo_t info = { .si_pid = 0 };
	int r;
	do
		r = waitid(job->pidfd >= 0 ? P_PIDFD : P_PID,
			   (id_t)(job->pidfd >= 0 ? job->pidfd : job->pid), &info, WEXITED);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return -1;
	return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

int muster_job_step(struct muster_job *job, muster_event_fn *on_event, void *arg)
{
	ssize_t n = -1;
	while (!job->ended) {
		n = read(job->events, buf_reserve(&job->input, READ_SIZE), READ_SIZE);
		if (n < 0 && errno == EINTR)
			continue;
		if (n <= 0)
			break;
		buf_commit(&job->input, (size_t)n);
		take_lines(job, on_event, arg);
	}
	if (job->ended)
		return 1;
	if (n < 0 && errno == EAGAIN)
		return 0;
	if (n < 0)
		return last_error(-errno, NULL);
	job->result = worker_ends_take(&job->ends, wait_for_program(job));
	job->ended = true;
	return 1;
}

int muster_job_signal(struct muster_job *job, int signal)
{
	if (job->ended || job->pidfd < 0)
		return last_error(-ESRCH, NULL);
	return pidfd_send_signal(job->pidfd, signal, NULL, 0) < 0 ? last_error(-errno, NULL) : 0;
}

struct muster_result *muster_job_take_result(struct muster_job *job)
{
	struct muster_result *result = job->result;
	job->result = NULL;
	return result;
}

void muster_job_free(struct muster_job *job)
{
	if (!job)
		return;
	if (job->pid > 0 && !job->ended) {
		muster_job_signal(job, SIGKILL);
		wait_for_program(job);
	}
	fd_close(&job->events);
	fd_close(&job->lifeline);
	fd_close(&job->pidfd);
	buf_done(&job->input);
	worker_ends_done(&job->ends);
	muster_result_free(job->result);
	free(job);
}

int muster_launch(const struct muster_launch_config *config, muster_event_fn *on_event, void *arg,
		  struct muster_result **ret_result)
{
	struct muster_job *job = NULL;
	int r = muster_job_start(config, &job);
	while (r == 0) {
		struct pollfd pfd = { .fd = muster_job_fd(job), .events = POLLIN };
		poll(&pfd, 1, -1);
		r = muster_job_step(job, on_event, arg);
	}
	if (r > 0)
		*ret_result = muster_job_take_result(job);
	muster_job_free(job);
	return MIN(r, 0);
}
