#include "lib/program.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/env.h"
#include "base/fd.h"
#include "base/mem.h"

#define FIRST_FREE_FD 3

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
			const struct program *program)
{
	posix_spawn_file_actions_init(actions);
	for (int i = 0; i < 3; i++)
		if (stdio[i] >= 0)
			posix_spawn_file_actions_adddup2(actions, stdio[i], i);
	posix_spawn_file_actions_adddup2(actions, program->its_news, program->its_news);
	posix_spawn_file_actions_adddup2(actions, program->its_lifeline, program->its_lifeline);
	if (cwd)
		posix_spawn_file_actions_addchdir_np(actions, cwd);
}

int program_open(struct program *program, struct err *err)
{
	int r = make_pipe(&program->news, &program->its_news);
	if (r == 0)
		r = make_pipe(&program->its_lifeline, &program->lifeline);
	if (r < 0)
		return err_set(err, -r, "cannot make a pipe: %m");
	return fd_set_nonblock(program->news, true);
}

static int spawn_program(struct program *program, const struct program_spec *spec,
			 const int stdio[3], struct err *err)
{
	const char *named = spec->program ? spec->program : getenv("MUSTER_PROGRAM");
	const char *path = named && *named ? named : "muster";
	AUTO(strv_done) struct strv env = STRV_INIT;
	make_env(spec->env, &env);
	posix_spawnattr_t attr;
	posix_spawn_file_actions_t actions;
	set_attributes(&attr);
	set_actions(&actions, spec->cwd, stdio, program);
	int code = posix_spawnp(&program->pid, path, &actions, &attr, strv_argv(spec->argv),
				strv_argv(&env));
	posix_spawn_file_actions_destroy(&actions);
	posix_spawnattr_destroy(&attr);
	return code ? err_set(err, code, "cannot start the program '%s': %m", path) : 0;
}

int program_start(struct program *program, const struct program_spec *spec, struct err *err)
{
	AUTO(fd_close) int in = -1;
	AUTO(fd_close) int out = -1;
	AUTO(fd_close) int errors = -1;
	int *const copies[] = { &in, &out, &errors };
	for (int i = 0; i < 3; i++) {
		if (spec->stdio[i] < 0)
			continue;
		*copies[i] = above_stdio(spec->stdio[i]);
		if (*copies[i] < 0)
			return err_set(err, -*copies[i], "descriptor %d: %m", spec->stdio[i]);
	}
	int r = spawn_program(program, spec, (const int[]){ in, out, errors }, err);
	fd_close(&program->its_news);
	fd_close(&program->its_lifeline);
	if (r == 0)
		program->pidfd = pidfd_open(program->pid, 0);
	return r;
}

/* Through the pidfd if there is one: if the caller has already waited for our child, another
 * process may have its number. */
int program_wait(struct program *program)
{
	siginfo_t info = { .si_pid = 0 };
	int r;
	program->ended = true;
	do
		r = waitid(program->pidfd >= 0 ? P_PIDFD : P_PID,
			   (id_t)(program->pidfd >= 0 ? program->pidfd : program->pid), &info,
			   WEXITED);
	while (r < 0 && errno == EINTR);
	if (r < 0)
		return -1;
	return info.si_code == CLD_EXITED ? info.si_status : 128 + info.si_status;
}

int program_signal(struct program *program, int signal)
{
	if (program->ended || program->pidfd < 0)
		return -ESRCH;
	return pidfd_send_signal(program->pidfd, signal, NULL, 0) < 0 ? -errno : 0;
}

void program_done(struct program *program)
{
	if (program->pid > 0 && !program->ended) {
		program_signal(program, SIGKILL);
		program_wait(program);
	}
	fd_close(&program->news);
	fd_close(&program->lifeline);
	fd_close(&program->its_news);
	fd_close(&program->its_lifeline);
	fd_close(&program->pidfd);
	*program = PROGRAM_INIT;
}
