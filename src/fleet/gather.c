#include "fleet/gather.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/fd.h"

#define CHUNK ((size_t)16 << 10)
#define KILLED_MS 200 /* in which a process that was killed ends, unless it hangs in the kernel */
#define CODE_NOT_FOUND 127

enum { OUTPUT, ERRORS, END, FDS };

void gather_item_done(struct gather_item *item)
{
	strv_done(&item->argv);
	buf_done(&item->output);
	buf_done(&item->errors);
}

/* ---- starting ---- */

_Noreturn static void child_main(const struct gather_item *item, pid_t parent, int output,
				 int errors)
{
	setpgid(0, 0); /* the command and what it starts are killed together */
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	int none = open("/dev/null", O_RDONLY | O_CLOEXEC);
	if (getppid() != parent || none < 0)
		_exit(CODE_NOT_FOUND);
	dup2(none, STDIN_FILENO);
	dup2(output, STDOUT_FILENO);
	dup2(errors, STDERR_FILENO);
	execvp(item->argv.items[0], strv_argv(&item->argv));
	dprintf(STDERR_FILENO, "cannot start %s: %s\n", item->argv.items[0], strerror(errno));
	_exit(CODE_NOT_FOUND);
}

static void fail(struct gather_item *item, const char *why)
{
	buf_printf(&item->errors, "%s\n", why);
	item->status = CODE_NOT_FOUND << 8;
}

static void start(struct gather_item *item, uint64_t timeout_ns)
{
	int output[2] = { -1, -1 }, errors[2] = { -1, -1 };
	struct err err = ERR_INIT;
	if (fd_open_pipe(&output[0], &output[1], &err) < 0 ||
	    fd_open_pipe(&errors[0], &errors[1], &err) < 0) {
		fail(item, err.msg);
	} else {
		pid_t parent = getpid();
		item->pid = child_fork();
		if (item->pid == 0)
			child_main(item, parent, output[1], errors[1]);
		if (item->pid < 0)
			fail(item, strerror(errno));
	}
	if (item->pid > 0) {
		setpgid(item->pid, item->pid); /* whoever is first */
		item->deadline_ns = ns_add(clock_now_ns(), timeout_ns);
		item->pidfd = pidfd_open(item->pid, 0);
		item->output_fd = fd_take(&output[0]);
		item->errors_fd = fd_take(&errors[0]);
		fd_set_nonblock(item->output_fd, true);
		fd_set_nonblock(item->errors_fd, true);
	}
	for (int i = 0; i < 2; i++) {
		fd_close(&output[i]);
		fd_close(&errors[i]);
	}
}

/* ---- reading ---- */

/* False: nothing more can be read now. */
static bool read_some(int *fd, struct buf *buf)
{
	if (*fd < 0)
		return false;
	ssize_t n = read(*fd, buf_reserve(buf, CHUNK), CHUNK);
	if (n < 0)
		return errno == EINTR;
	buf_commit(buf, (size_t)n);
	if (n == 0)
		fd_close(fd);
	return n > 0;
}

static bool read_output(struct gather_item *item)
{
	bool more = read_some(&item->output_fd, &item->output);
	item->too_much |= buf_len(&item->output) > GATHER_OUTPUT_MAX;
	return more && !item->too_much;
}

/* The last words count. */
static bool read_errors(struct gather_item *item)
{
	bool more = read_some(&item->errors_fd, &item->errors);
	if (buf_len(&item->errors) > GATHER_ERRORS_MAX)
		buf_consume(&item->errors, buf_len(&item->errors) - GATHER_ERRORS_MAX);
	return more;
}

/* ---- ending ---- */

static bool is_running(const struct gather_item *item)
{
	return item->pid > 0;
}

static void finish(struct gather_item *item, bool ended)
{
	/* It was not waited for yet, so the number of its group is still its own. */
	kill(-item->pid, SIGKILL);
	if (ended) {
		while (read_output(item))
			;
		while (read_errors(item))
			;
		item->status = child_wait(item->pid);
	} else {
		poll(&(struct pollfd){ .fd = item->pidfd, .events = POLLIN }, 1, KILLED_MS);
		child_try_wait(item->pid, &item->status);
	}
	fd_close(&item->pidfd);
	fd_close(&item->output_fd);
	fd_close(&item->errors_fd);
	item->pid = -1;
}

static void see(struct gather_item *item, const struct pollfd fds[FDS], uint64_t now_ns)
{
	if (fds[OUTPUT].revents)
		read_output(item);
	if (fds[ERRORS].revents)
		read_errors(item);
	/* What it started may hold its output open: the end of the process counts. */
	bool ended = fds[END].revents;
	item->late = !ended && !item->too_much && now_ns >= item->deadline_ns;
	if (ended || item->late || item->too_much)
		finish(item, ended);
}

/* Waits for whatever is next of those that run, which are in `running`. */
static void wait_once(struct gather_item *const *running, size_t count)
{
	struct pollfd fds[GATHER_AT_ONCE * FDS];
	uint64_t deadline_ns = UINT64_MAX, now_ns = clock_now_ns();
	for (size_t i = 0; i < count; i++) {
		const struct gather_item *item = running[i];
		struct pollfd *of = &fds[i * FDS];
		of[OUTPUT] = (struct pollfd){ .fd = item->output_fd, .events = POLLIN };
		of[ERRORS] = (struct pollfd){ .fd = item->errors_fd, .events = POLLIN };
		of[END] = (struct pollfd){ .fd = item->pidfd, .events = POLLIN };
		deadline_ns = MIN(deadline_ns, item->deadline_ns);
	}
	uint64_t left_ms = deadline_ns > now_ns ? (deadline_ns - now_ns) / NS_PER_MS + 1 : 0;
	if (poll(fds, count * FDS, (int)MIN(left_ms, (uint64_t)INT_MAX)) < 0)
		return;
	now_ns = clock_now_ns();
	for (size_t i = 0; i < count; i++)
		see(running[i], &fds[i * FDS], now_ns);
}

void gather_run(struct gather_item *items, size_t count, uint64_t timeout_ns)
{
	struct gather_item *running[GATHER_AT_ONCE];
	size_t next = 0, run = 0;
	for (;;) {
		for (; next < count && run < GATHER_AT_ONCE; next++) {
			start(&items[next], timeout_ns);
			if (is_running(&items[next]))
				running[run++] = &items[next];
		}
		if (run == 0)
			return;
		wait_once(running, run);
		size_t kept = 0;
		for (size_t i = 0; i < run; i++)
			if (is_running(running[i]))
				running[kept++] = running[i];
		run = kept;
	}
}
