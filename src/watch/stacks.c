#include "watch/stacks.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "core/lines/stack_groups.h"

#define PROGRAM "py-spy"
#define AT_ONCE 16
#define DUMP_MAX ((size_t)1 << 20)
#define CHUNK 4096

struct dump {	     /* one py-spy */
	pid_t child; /* 0: it could not be started */
	int fd;
	struct buf text;
};

static int spawn_dump(const struct stacks_worker *worker, int out_fd, pid_t *ret_child)
{
	char number[16];
	snprintf(number, sizeof(number), "%d", (int)worker->pid);
	char *const argv[] = {
		PROGRAM, "dump", "--pid", number, worker->stopped ? "--nonblocking" : NULL, NULL
	};
	sigset_t none, all;
	sigemptyset(&none);
	sigfillset(&all);
	posix_spawn_file_actions_t actions;
	posix_spawnattr_t attr;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, out_fd, 1);
	posix_spawn_file_actions_adddup2(&actions, out_fd, 2);
	posix_spawnattr_init(&attr);
	posix_spawnattr_setsigmask(&attr, &none);
	posix_spawnattr_setsigdefault(&attr, &all);
	posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
	child_begin();
	int r = posix_spawnp(ret_child, PROGRAM, &actions, &attr, argv, environ);
	child_started(r == 0 ? *ret_child : 0);
	posix_spawnattr_destroy(&attr);
	posix_spawn_file_actions_destroy(&actions);
	return -r;
}

static int dump_start(struct dump *dump, const struct stacks_worker *worker)
{
	*dump = (struct dump){ .fd = -1, .text = BUF_INIT };
	int ends[2];
	if (pipe2(ends, O_CLOEXEC) < 0)
		return -errno;
	int r = spawn_dump(worker, ends[1], &dump->child);
	fd_close(&ends[1]);
	if (r < 0) {
		dump->child = 0;
		fd_close(&ends[0]);
		return r;
	}
	dump->fd = ends[0];
	return 0;
}

static void dump_read(struct dump *dump)
{
	ssize_t n = read(dump->fd, buf_reserve(&dump->text, CHUNK), CHUNK);
	if (n > 0)
		buf_commit(&dump->text, (size_t)n);
	if (n == 0 || (n < 0 && errno != EINTR) || buf_len(&dump->text) > DUMP_MAX)
		fd_close(&dump->fd);
}

/* Reads from all until end of file, the deadline, or the cancellation. */
static void dumps_read(struct dump *dumps, size_t count, uint64_t deadline_ns, int cancel_fd)
{
	for (;;) {
		struct pollfd fds[AT_ONCE + 1];
		size_t open_count = 0;
		for (size_t i = 0; i < count; i++) {
			fds[i] = (struct pollfd){ .fd = dumps[i].fd, .events = POLLIN };
			open_count += dumps[i].fd >= 0;
		}
		fds[count] = (struct pollfd){ .fd = cancel_fd, .events = POLLIN };
		uint64_t now_ns = clock_now_ns();
		if (open_count == 0 || now_ns >= deadline_ns)
			return;
		uint64_t left_ms = (deadline_ns - now_ns) / NS_PER_MS + 1;
		if (poll(fds, count + 1, (int)MIN(left_ms, (uint64_t)INT32_MAX)) < 0 &&
		    errno != EINTR)
			return;
		if (fds[count].revents)
			return;
		for (size_t i = 0; i < count; i++)
			if (fds[i].revents)
				dump_read(&dumps[i]);
	}
}

/* Users see only the first line of an error. */
static void cut_error(struct buf *text)
{
	const char *end = buf_len(text) ? memchr(buf_data(text), '\n', buf_len(text)) : NULL;
	AUTO(buf_done) struct buf line = BUF_INIT;
	buf_append(&line, buf_data(text),
		   end ? (size_t)(end - (const char *)buf_data(text)) : buf_len(text));
	buf_clear(text);
	buf_printf(text, "no stack: " PROGRAM ": %s\n", buf_str(&line));
}

static void dump_finish(struct dump *dump, int error)
{
	if (!dump->child) {
		buf_printf(&dump->text, "no stack: " PROGRAM ": %s\n", strerror(error));
		return;
	}
	bool late = dump->fd >= 0;
	int status = 0;
	if (late)
		kill(dump->child,
		     SIGKILL); /* our child, not yet waited for: the pid is still its own */
	status = child_wait(dump->child);
	fd_close(&dump->fd);
	if (late) {
		buf_clear(&dump->text);
		buf_append_str(&dump->text, "no stack: " PROGRAM " did not answer in time\n");
	} else if (status != 0) {
		cut_error(&dump->text);
	}
}

int stacks_collect(const struct stacks_worker *workers, size_t count, uint64_t deadline_ns,
		   int cancel_fd, struct buf *out, struct err *err)
{
	AUTO(stack_groups_done) struct stack_groups groups = STACK_GROUPS_INIT;
	bool missing = false;
	for (size_t first = 0; first < count && !missing; first += AT_ONCE) {
		struct dump dumps[AT_ONCE];
		int errors[AT_ONCE];
		size_t n = MIN(count - first, (size_t)AT_ONCE);
		for (size_t i = 0; i < n; i++) {
			errors[i] = -dump_start(&dumps[i], &workers[first + i]);
			missing |= errors[i] == ENOENT;
		}
		dumps_read(dumps, n, deadline_ns, cancel_fd);
		for (size_t i = 0; i < n; i++) {
			dump_finish(&dumps[i], errors[i]);
			stack_groups_add(&groups, workers[first + i].rank,
					 (const char *)buf_data(&dumps[i].text),
					 buf_len(&dumps[i].text));
			buf_done(&dumps[i].text);
		}
	}
	if (missing)
		return err_set(err, ENOENT, "no stacks: " PROGRAM " is not in PATH");
	stack_groups_print(&groups, out);
	return 0;
}
