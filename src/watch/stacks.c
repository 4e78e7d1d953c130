#include "watch/stacks.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "base/child.h"
#include "base/env.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/piped.h"
#include "base/procfs.h"
#include "base/str.h"
#include "proto/stacks/stack_in.h"
#include "watch/stack_kernel.h"

/* One program that reads the stack of one process: it is started, its output is collected, and it
 * is ended. */

enum stack_tool {
	STACK_TOOL_PYSPY_NATIVE,
	STACK_TOOL_PYSPY,
	STACK_TOOL_PYSPY_STOPPED, /* of a process that is stopped: without native frames */
	STACK_TOOL_EUSTACK,
	STACK_TOOL_GDB,
	STACK_TOOL_COUNT,
};

struct stack_run {
	enum stack_tool tool;
	struct piped child; /* pid 0: it does not run */
	struct buf out, err;
};

#define STACK_RUN_POLLS 2

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

static const char *stack_tool_program(enum stack_tool tool)
{
	return tools[tool].words[0];
}

/* what to install, for users */
static const char *stack_tool_source(enum stack_tool tool)
{
	return tools[tool].source;
}

/* in PATH */
static bool stack_tool_is_there(enum stack_tool tool)
{
	AUTO_FREE char *path = path_search(stack_tool_program(tool), NULL);
	return path;
}

static int stack_run_start(struct stack_run *run, enum stack_tool tool, pid_t pid, struct err *err)
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

/* What to wait for, and what to do after that: true when the output is complete. */
static void stack_run_poll(const struct stack_run *run, struct pollfd fds[STACK_RUN_POLLS])
{
	fds[0] = (struct pollfd){ .fd = run->child.out, .events = POLLIN };
	fds[1] = (struct pollfd){ .fd = run->child.err, .events = POLLIN };
}

static void read_some(int *fd, struct buf *text, size_t max)
{
	if (fd_read_some(*fd, CHUNK, text) <= 0 || buf_len(text) > max)
		fd_close(fd);
}

static bool stack_run_read(struct stack_run *run, const struct pollfd fds[STACK_RUN_POLLS])
{
	if (fds[0].revents)
		read_some(&run->child.out, &run->out, OUT_MAX);
	if (fds[1].revents)
		read_some(&run->child.err, &run->err, ERR_MAX);
	return run->child.out < 0 && run->child.err < 0;
}

/* Ends the program. */
static void stack_run_end(struct stack_run *run)
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

/* Then: the threads that it found. -EBADMSG: none; *ret_why has its own words. */
static int stack_run_result(struct stack_run *run, const struct stack_target *target,
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

static void stack_run_done(struct stack_run *run)
{
	stack_run_end(run);
	buf_done(&run->out);
	buf_done(&run->err);
}

#define AT_ONCE 16
#define CHILDREN_MAX 64 /* of one worker, at any depth */

/* Which programs to try, in this order. */
static const enum stack_tool python_plan[] = { STACK_TOOL_PYSPY_NATIVE, STACK_TOOL_PYSPY,
					       STACK_TOOL_EUSTACK, STACK_TOOL_GDB,
					       STACK_TOOL_COUNT };
static const enum stack_tool stopped_plan[] = { STACK_TOOL_PYSPY_STOPPED, STACK_TOOL_EUSTACK,
						STACK_TOOL_GDB, STACK_TOOL_COUNT };
static const enum stack_tool program_plan[] = { STACK_TOOL_EUSTACK, STACK_TOOL_GDB,
						STACK_TOOL_COUNT };
static const enum stack_tool no_plan[] = { STACK_TOOL_COUNT };

struct target {
	size_t rank;
	pid_t pid;
	bool python;
	char exe[PATH_MAX];
	const enum stack_tool *plan; /* the next to try */
	struct buf why;		     /* those before it failed */
	struct stack_process process;
};

struct run {
	struct target *target; /* NULL: free */
	struct stack_run tool;
	uint64_t deadline_ns;
};

struct looker {
	struct target *targets;
	size_t count, cap, next;
	struct run runs[AT_ONCE];
	bool there[STACK_TOOL_COUNT];
	uint64_t deadline_ns;
	int cancel_fd;
};

/* ---- what to look at ---- */

static bool is_python(const char *exe)
{
	const char *slash = strrchr(exe, '/');
	const char *name = slash ? slash + 1 : exe;
	return str_starts(name, "python") || str_starts(name, "pypy");
}

static void add_target(struct looker *looker, size_t rank, pid_t pid, bool child, bool stopped)
{
	struct proc_stat info;
	if (procfs_stat(pid, &info) < 0 || info.state == 'Z')
		return;
	ARRAY_RESERVE(looker->targets, looker->count, looker->cap);
	struct target *target = &looker->targets[looker->count++];
	*target = (struct target){ .rank = rank, .pid = pid, .why = BUF_INIT };
	target->process.child = child;
	stack_set_text(&target->process.command, bytes_str(info.comm));
	procfs_exe(pid, target->exe, sizeof(target->exe));
	target->python = is_python(target->exe);
	target->plan = !target->python		      ? program_plan
		       : stopped || info.state == 'T' ? stopped_plan
						      : python_plan;
	if (info.state == 'D') { /* a program that looks at it would hang with it */
		target->plan = no_plan;
		buf_append_str(&target->why, "it waits in the kernel where no signal reaches it");
	}
}

static void add_children(struct looker *looker, const struct stacks_worker *worker)
{
	AUTO(pids_done) struct pids found = PIDS_INIT;
	pids_add(&found, worker->pid);
	for (size_t i = 0; i < found.count && found.count <= CHILDREN_MAX; i++)
		procfs_children(found.items[i], &found);
	for (size_t i = 1; i < MIN(found.count, (size_t)CHILDREN_MAX); i++)
		add_target(looker, worker->rank, found.items[i], true, false);
}

/* ---- what is missing ---- */

static void add_reason(struct buf *why, const char *reason)
{
	buf_printf(why, "%s%s", buf_len(why) ? "; " : "", reason);
}

/* Numbers of processes differ between workers that are in the same place. */
static void forget_pid(pid_t pid, struct buf *text)
{
	char number[16];
	AUTO(buf_done) struct buf out = BUF_INIT;
	snprintf(number, sizeof(number), "%d", (int)pid);
	const char *rest = buf_str(text), *at;
	for (; (at = strstr(rest, number)); rest = at + strlen(number)) {
		buf_append(&out, rest, (size_t)(at - rest));
		buf_append_str(&out, "PID");
	}
	buf_append_str(&out, rest);
	buf_clear(text);
	buf_append(text, buf_data(&out), buf_len(&out));
}

static const char *what_is_missing(const struct target *target, bool by_kernel)
{
	if (by_kernel)
		return "only what the kernel tells";
	bool pyspy = *target->plan == STACK_TOOL_PYSPY || *target->plan == STACK_TOOL_PYSPY_STOPPED;
	return target->python && !pyspy ? "no Python frames" : "no native frames";
}

static void add_note(struct target *target, bool by_kernel)
{
	AUTO(buf_done) struct buf note = BUF_INIT;
	bool plain = !target->python && !by_kernel; /* gdb is as good as eu-stack */
	if (!buf_len(&target->why) || plain)
		return;
	buf_printf(&note, "%s: %s", what_is_missing(target, by_kernel), buf_str(&target->why));
	const char *remedy = by_kernel ? stack_kernel_refusal(target->pid) : "";
	if (*remedy)
		buf_printf(&note, "; %s", remedy);
	forget_pid(target->pid, &note);
	stack_set_text(&target->process.note, bytes_of(buf_data(&note), buf_len(&note)));
}

/* ---- looking ---- */

static void name_threads(struct target *target)
{
	for (size_t i = 0; i < target->process.count; i++) {
		struct stack_thread *thread = &target->process.threads[i];
		struct proc_stat info;
		if (!thread->name[0] && thread->tid &&
		    procfs_thread_stat(target->pid, thread->tid, &info) == 0)
			stack_set_text(&thread->name, bytes_str(info.comm));
	}
}

static void finish(struct target *target)
{
	bool by_kernel = target->process.count == 0;
	if (by_kernel)
		stack_kernel_read(target->pid, &target->process);
	else
		name_threads(target);
	add_note(target, by_kernel);
	stack_process_settle(&target->process);
}

/* Skips programs that are not there, with a word about each. */
static void skip_missing(const struct looker *looker, struct target *target)
{
	for (; *target->plan != STACK_TOOL_COUNT && !looker->there[*target->plan]; target->plan++) {
		AUTO_FREE char *reason =
			mem_printf("%s is not in PATH (%s)", stack_tool_program(*target->plan),
				   stack_tool_source(*target->plan));
		if (!strstr(buf_str(&target->why), reason))
			add_reason(&target->why, reason);
	}
}

/* Starts the next program that can be. Without one the target is finished. */
static void try_next(const struct looker *looker, struct run *run, struct target *target)
{
	run->target = NULL;
	for (;; target->plan++) {
		struct err err = ERR_INIT;
		uint64_t now_ns = clock_now_ns();
		skip_missing(looker, target);
		if (*target->plan == STACK_TOOL_COUNT)
			break;
		if (now_ns >= looker->deadline_ns) {
			add_reason(&target->why, "there was no time left");
			break;
		}
		/* Half of the time that is left: the next one gets its turn, whatever hangs. */
		run->deadline_ns = now_ns + (looker->deadline_ns - now_ns) / 2;
		if (stack_run_start(&run->tool, *target->plan, target->pid, &err) == 0) {
			run->target = target;
			return;
		}
		add_reason(&target->why, err.msg);
	}
	finish(target);
}

/* The program has ended, or has taken too long. */
static void conclude(const struct looker *looker, struct run *run, bool late)
{
	struct target *target = run->target;
	AUTO(buf_done) struct buf why = BUF_INIT;
	/* The interpreter's own code is not the user's. */
	struct stack_target about = { .pid = target->pid,
				      .exe = target->python ? "" : target->exe };
	struct stack_process found = STACK_PROCESS_INIT;
	stack_run_end(&run->tool);
	if (late)
		buf_printf(&why, "%s did not answer in time", stack_tool_program(*target->plan));
	bool good = !late && stack_run_result(&run->tool, &about, &found, &why) == 0;
	stack_run_done(&run->tool);
	if (!good) {
		add_reason(&target->why, buf_str(&why));
		target->plan++;
		try_next(looker, run, target);
		return;
	}
	target->process.threads = found.threads;
	target->process.count = found.count;
	target->process.cap = found.cap;
	run->target = NULL;
	finish(target);
}

static int poll_ms(const struct looker *looker)
{
	uint64_t now_ns = clock_now_ns(), first_ns = UINT64_MAX;
	for (size_t i = 0; i < AT_ONCE; i++)
		if (looker->runs[i].target)
			first_ns = MIN(first_ns, looker->runs[i].deadline_ns);
	return clock_left_ms(first_ns, now_ns);
}

/* Starts programs for the next targets; false: all are finished. */
static bool fill(struct looker *looker)
{
	bool busy = false;
	for (size_t i = 0; i < AT_ONCE; i++) {
		struct run *run = &looker->runs[i];
		while (!run->target && looker->next < looker->count)
			try_next(looker, run, &looker->targets[looker->next++]);
		busy |= run->target != NULL;
	}
	return busy;
}

static void look(struct looker *looker)
{
	while (fill(looker)) {
		struct pollfd fds[AT_ONCE * STACK_RUN_POLLS + 1];
		for (size_t i = 0; i < AT_ONCE; i++) {
			struct pollfd *at = &fds[i * STACK_RUN_POLLS];
			if (looker->runs[i].target)
				stack_run_poll(&looker->runs[i].tool, at);
			else
				at[0] = at[1] = (struct pollfd){ .fd = -1 };
		}
		fds[AT_ONCE * STACK_RUN_POLLS] =
			(struct pollfd){ .fd = looker->cancel_fd, .events = POLLIN };
		if (poll(fds, ARRAY_LEN(fds), poll_ms(looker)) < 0 && errno != EINTR)
			looker->deadline_ns = 0;
		if (fds[AT_ONCE * STACK_RUN_POLLS].revents)
			looker->deadline_ns = 0;
		for (size_t i = 0; i < AT_ONCE; i++) {
			struct run *run = &looker->runs[i];
			if (!run->target)
				continue;
			bool whole = stack_run_read(&run->tool, &fds[i * STACK_RUN_POLLS]);
			if (whole || clock_now_ns() >= MIN(run->deadline_ns, looker->deadline_ns))
				conclude(looker, run, !whole);
		}
	}
}

static int turn_fd = -1; /* readable: no thread of this process reads stacks */

static void make_turn(void)
{
	turn_fd = eventfd(1, EFD_CLOEXEC | EFD_NONBLOCK);
}

/* The kernel lets one process at a time read the stack of a worker. False: the deadline came, or
 * the end of the caller. */
static bool take_turn(uint64_t deadline_ns, int cancel_fd)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, make_turn);
	for (;;) {
		struct pollfd fds[] = { { .fd = turn_fd, .events = POLLIN },
					{ .fd = cancel_fd, .events = POLLIN } };
		uint64_t now_ns = clock_now_ns();
		eventfd_t value;
		if (eventfd_read(turn_fd, &value) == 0)
			return true;
		if (errno != EAGAIN || now_ns >= deadline_ns)
			return false;
		if (poll(fds, ARRAY_LEN(fds), clock_left_ms(deadline_ns, now_ns)) < 0 &&
		    errno != EINTR)
			return false;
		if (fds[1].revents)
			return false;
	}
}

void stacks_read(const struct stacks_worker *workers, size_t count, uint64_t deadline_ns,
		 int cancel_fd, struct stack_set *set)
{
	struct looker *looker = NEW(struct looker);
	looker->deadline_ns = deadline_ns;
	looker->cancel_fd = cancel_fd;
	for (size_t i = 0; i < STACK_TOOL_COUNT; i++)
		looker->there[i] = stack_tool_is_there((enum stack_tool)i);
	for (size_t i = 0; i < count; i++)
		add_target(looker, workers[i].rank, workers[i].pid, false, workers[i].stopped);
	for (size_t i = 0; i < count; i++)
		add_children(looker, &workers[i]);
	bool turn = take_turn(deadline_ns, cancel_fd);
	look(looker);
	if (turn)
		eventfd_write(turn_fd, 1);
	for (size_t i = 0; i < looker->count; i++) {
		struct target *target = &looker->targets[i];
		struct stack_member member = { .rank = target->rank };
		stack_set_add(set, &target->process, &member, 1);
		buf_done(&target->why);
	}
	free(looker->targets);
	free(looker);
}
