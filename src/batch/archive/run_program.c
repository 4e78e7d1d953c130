#include "batch/archive/run_program.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

#define OUTPUT_MAX ((size_t)64 << 20)

extern char **environ;

static void actions_done(posix_spawn_file_actions_t *actions)
{
	posix_spawn_file_actions_destroy(actions);
}

static int wait_for(pid_t pid, const char *name, struct err *err)
{
	int status;
	while (waitpid(pid, &status, 0) < 0)
		if (errno != EINTR)
			return err_set(err, errno, "wait for %s: %m", name);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
		return 0;
	return WIFEXITED(status)
		       ? err_set(err, ECHILD, "%s exited with %d", name, WEXITSTATUS(status))
		       : err_set(err, ECHILD, "%s was ended by signal %d", name, WTERMSIG(status));
}

int program_output(char *const *argv, const char *cwd, bool quiet, struct buf *ret_output,
		   struct err *err)
{
	int ends[2];
	pid_t pid;
	if (pipe2(ends, O_CLOEXEC) < 0)
		return err_set(err, errno, "pipe: %m");
	AUTO(fd_close) int reader = ends[0];
	AUTO(fd_close) int writer = ends[1];
	AUTO(actions_done) posix_spawn_file_actions_t actions;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, writer, STDOUT_FILENO);
	if (quiet)
		posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
	if (cwd)
		posix_spawn_file_actions_addchdir_np(&actions, cwd);
	int failed = posix_spawnp(&pid, argv[0], &actions, NULL, argv, environ);
	if (failed)
		return err_set(err, failed, "run %s: %m", argv[0]);
	fd_close(&writer);
	int r = fd_read_all(reader, OUTPUT_MAX, ret_output, err);
	fd_close(&reader); /* a program that writes more than we take must not wait for us */
	int ended = wait_for(pid, argv[0], err);
	return r < 0 ? r : ended;
}
