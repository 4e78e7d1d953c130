#include "watch/stack_tool.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/env.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"

#define OUT_MAX ((size_t)4 << 20)
#define ERR_MAX ((size_t)16 << 10)
#define CHUNK 65536
#define WORDS_MAX 16
#define PID "@" /* stands for the process's number in the words */

/* gdb asks no server for debugging symbols, runs no code of the program's files and prints no
 * values, which could be secret. */
static const struct {
	const char *words[WORDS_MAX];
	const char *source;
	stack_reader_fn *read;
} tools[] = {
	[STACK_TOOL_PYSPY_NATIVE] = { { "py-spy", "dump", "--json", "--native", "--pid", PID },
				      "pip install py-spy",
				      stack_read_pyspy },
	[STACK_TOOL_PYSPY] = { { "py-spy", "dump", "--json", "--pid", PID },
			       "pip install py-spy",
			       stack_read_pyspy },
	[STACK_TOOL_PYSPY_STOPPED] = { { "py-spy", "dump", "--json", "--nonblocking", "--pid",
					 PID },
				       "pip install py-spy",
				       stack_read_pyspy },
	[STACK_TOOL_EUSTACK] = { { "eu-stack", "-m", "-s", "-p", PID },
				 "the package elfutils",
				 stack_read_eustack },
	[STACK_TOOL_GDB] = { { "gdb", "-nx", "-batch", "-iex", "set auto-load off", "-iex",
			       "set print frame-arguments none", "-ex", "thread apply all bt 256",
			       "-p", PID },
			     "the package gdb",
			     stack_read_gdb },
};
static_assert(ARRAY_LEN(tools) == STACK_TOOL_COUNT, "every program needs a row");

const char *stack_tool_program(enum stack_tool tool)
{
	return tools[tool].words[0];
}

const char *stack_tool_source(enum stack_tool tool)
{
	return tools[tool].source;
}

bool stack_tool_is_there(enum stack_tool tool)
{
	AUTO_FREE char *path = path_search(stack_tool_program(tool), NULL);
	return path;
}

int stack_run_start(struct stack_run *run, enum stack_tool tool, pid_t pid, struct err *err)
{
	char number[16];
	AUTO(strv_done) struct strv argv = STRV_INIT, env = STRV_INIT;
	snprintf(number, sizeof(number), "%d", (int)pid);
	for (size_t i = 0; i < WORDS_MAX && tools[tool].words[i]; i++) {
		const char *word = tools[tool].words[i];
		strv_add(&argv, str_eq(word, PID) ? number : word);
	}
	strv_add_all(&env, environ);
	env_unset(&env, "DEBUGINFOD_URLS");
	struct piped_spec spec = { .argv = strv_argv(&argv),
				   .envp = strv_argv(&env),
				   .deaf = true };
	*run = (struct stack_run){ .tool = tool, .child = PIPED_INIT };
	return piped_start(&spec, &run->child, err);
}

void stack_run_poll(const struct stack_run *run, struct pollfd fds[STACK_RUN_POLLS])
{
	fds[0] = (struct pollfd){ .fd = run->child.out, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = run->child.err, .events = POLLIN };
}

static void read_some(int *fd, struct buf *text, size_t max)
{
	ssize_t n = read(*fd, buf_reserve(text, CHUNK), CHUNK);
	if (n > 0)
		buf_commit(text, (size_t)n);
	if (n == 0 || (n < 0 && errno != EINTR) || buf_len(text) > max)
		fd_close(fd);
}

bool stack_run_read(struct stack_run *run, const struct pollfd fds[STACK_RUN_POLLS])
{
	if (fds[0].revents)
		read_some(&run->child.out, &run->out, OUT_MAX);
	if (fds[1].revents)
		read_some(&run->child.err, &run->err, ERR_MAX);
	return run->child.out < 0 && run->child.err < 0;
}

void stack_run_end(struct stack_run *run)
{
	/* Our child that was not yet waited for: the number is still its own. */
	if (run->child.pid > 0) {
		kill(run->child.pid, SIGKILL);
		child_wait(run->child.pid);
	}
	run->child.pid = 0;
	fd_close(&run->child.out);
	fd_close(&run->child.err);
	fd_close(&run->child.pidfd);
}

/* Users see the first line of an error only. */
static void first_line(struct buf *text, struct buf *out)
{
	const char *rest = buf_str(text);
	size_t len;
	for (const char *line; (line = str_split(&rest, '\n', &len));) {
		line = str_trim(line, &len);
		if (len == 0)
			continue;
		buf_append(out, line, len);
		return;
	}
}

int stack_run_result(struct stack_run *run, const struct stack_target *target,
		     struct stack_process *process, struct buf *ret_why)
{
	if (buf_len(&run->out) && tools[run->tool].read((const char *)buf_data(&run->out),
							buf_len(&run->out), target, process) == 0)
		return 0;
	stack_process_done(process);
	buf_printf(ret_why, "%s: ", stack_tool_program(run->tool));
	size_t before = buf_len(ret_why);
	first_line(&run->err, ret_why);
	if (buf_len(ret_why) == before)
		first_line(&run->out, ret_why);
	if (buf_len(ret_why) == before)
		buf_append_str(ret_why, "it printed nothing");
	return -EBADMSG;
}

void stack_run_done(struct stack_run *run)
{
	stack_run_end(run);
	buf_done(&run->out);
	buf_done(&run->err);
}
