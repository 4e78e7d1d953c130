#include "base/piped.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/child.h"
#include "base/fd.h"

#define STDIO_COUNT 3
#define ABOVE_EXTRA (STDIO_COUNT + PIPED_EXTRA_MAX)

/* The child's ends of the pipes. */
struct ends {
	int stdio[STDIO_COUNT];
	int failed; /* tells the error of exec */
};

/* First all to numbers that none of them is to get. */
static bool place_extra(const struct piped_spec *spec)
{
	int moved[PIPED_EXTRA_MAX];
	for (size_t i = 0; i < spec->extra_count; i++)
		if ((moved[i] = fcntl(spec->extra[i], F_DUPFD_CLOEXEC, ABOVE_EXTRA)) < 0)
			return false;
	for (size_t i = 0; i < spec->extra_count; i++)
		if (dup2(moved[i], STDIO_COUNT + (int)i) < 0)
			return false;
	return true;
}

/* In the child: only what is safe between fork and exec of a process with threads. */
static void become(const struct piped_spec *spec, pid_t parent, const struct ends *ends)
{
	sigset_t none;
	sigemptyset(&none);
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent) /* the parent died before the line above */
		_exit(1);
	setsid();
	/* Out of the way of the extra descriptors. */
	int failed = fcntl(ends->failed, F_DUPFD_CLOEXEC, ABOVE_EXTRA);
	for (int i = 0; i < STDIO_COUNT; i++)
		dup2(ends->stdio[i], i);
	signal(SIGPIPE, SIG_DFL);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (place_extra(spec) && (!spec->cwd || chdir(spec->cwd) == 0))
		execvpe(spec->argv[0], spec->argv, spec->envp);
	int error = errno;
	ssize_t ignored UNUSED = write(failed, &error, sizeof(error));
	_exit(127);
}

/* End of file without an error code: the program was executed. */
static int exec_error(int fd)
{
	int error = 0;
	ssize_t n;
	do
		n = read(fd, &error, sizeof(error));
	while (n < 0 && errno == EINTR);
	return n == sizeof(error) ? error : 0;
}

static int open_input(bool deaf, int *ret_read, int *ret_write, struct err *err)
{
	if (!deaf)
		return fd_open_pipe(ret_read, ret_write, err);
	*ret_read = open("/dev/null", O_RDONLY | O_CLOEXEC);
	return *ret_read < 0 ? err_set(err, errno, "/dev/null: %m") : 0;
}

int piped_start(const struct piped_spec *spec, struct piped *ret_piped, struct err *err)
{
	AUTO(fd_close) int in = -1, to_in = -1, from_out = -1, out = -1, from_err = -1;
	AUTO(fd_close) int to_err = -1, from_failed = -1, failed = -1;
	int r;
	if ((r = open_input(spec->deaf, &in, &to_in, err)) < 0 ||
	    (r = fd_open_pipe(&from_out, &out, err)) < 0 ||
	    (r = fd_open_pipe(&from_err, &to_err, err)) < 0 ||
	    (r = fd_open_pipe(&from_failed, &failed, err)) < 0)
		return r;
	const struct ends ends = { { in, out, to_err }, failed };
	pid_t parent = getpid(), pid = child_fork();
	if (pid < 0)
		return err_set(err, errno, "fork: %m");
	if (pid == 0)
		become(spec, parent, &ends);
	fd_close(&failed);
	int error = exec_error(from_failed);
	AUTO(fd_close) int pidfd = error ? -1 : pidfd_open(pid, 0);
	if (pidfd < 0) {
		error = error ? error : errno;
		kill(pid, SIGKILL);
		child_wait(pid);
		return err_set(err, error, "cannot start %s: %m", spec->argv[0]);
	}
	*ret_piped = (struct piped){ .pid = pid,
				     .pidfd = fd_take(&pidfd),
				     .in = fd_take(&to_in),
				     .out = fd_take(&from_out),
				     .err = fd_take(&from_err) };
	return 0;
}

void piped_done(struct piped *piped)
{
	fd_close(&piped->in);
	fd_close(&piped->out);
	fd_close(&piped->err);
	fd_close(&piped->pidfd);
	*piped = PIPED_INIT;
}
