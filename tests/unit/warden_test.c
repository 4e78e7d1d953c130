#include "unit.h"

#include "loop.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/strv.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/procfs.h"
#include "base/str.h"
#include "sys/cgroup.h"
#include "sys/cgroup_find.h"
#include "sys/proctree.h"
#include "sys/sweeper.h"
#include "sys/warden.h"

#define PATIENCE_NS (20 * NS_PER_S)

static struct warden *new_warden(void)
{
	struct warden *warden;
	ck_assert_int_eq(warden_new(NULL, &warden, NULL), 0);
	return warden;
}

static struct warden_event next_event(struct warden *warden)
{
	struct warden_event event;
	uint64_t deadline_ns = clock_now_ns() + PATIENCE_NS;
	while (!warden_next(warden, &event))
		ck_assert_int_eq(warden_wait(warden, deadline_ns), 0);
	return event;
}

/* Passes over other events. */
static struct warden_event await(struct warden *warden, enum warden_event_type type)
{
	for (;;) {
		struct warden_event event = next_event(warden);
		if (event.type == type)
			return event;
		ck_assert_int_ne(event.type, WARDEN_LOST);
	}
}

static char *no_env[] = { NULL };

static void start_full(struct warden *warden, uint64_t id, const char *script, int out,
		       unsigned flags)
{
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)script, NULL };
	struct spawn_spec spec = { .path = "/bin/sh",
				   .argv = argv,
				   .envp = no_env,
				   .stdio = { SPAWN_NULL, out, SPAWN_NULL } };
	ck_assert_int_eq(warden_spawn(warden, id, &spec, flags, NULL), 0);
}

static void start(struct warden *warden, uint64_t id, const char *script)
{
	start_full(warden, id, script, SPAWN_NULL, 0);
}

/* What the script wrote on its standard output until all processes had closed it. */
static void output_of(struct warden *warden, const char *script, struct buf *out)
{
	int ends[2];
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	start_full(warden, 1, script, ends[1], 0);
	close(ends[1]);
	ck_assert_int_eq(fd_read_all(ends[0], 1 << 20, out, NULL), 0);
	close(ends[0]);
	await(warden, WARDEN_EMPTY);
}

static bool exists(pid_t pid)
{
	return kill(pid, 0) == 0;
}

TEST(a_program_is_started_and_its_end_is_told_with_code_times_and_usage)
{
	struct warden *warden = new_warden();
	uint64_t before_ns = clock_now_ns();
	start(warden, 7, "exit 3");
	struct warden_event spawned = next_event(warden);
	ck_assert_int_eq(spawned.type, WARDEN_SPAWNED);
	ck_assert_uint_eq(spawned.id, 7);
	ck_assert_int_eq(spawned.pidfd, -1);
	struct warden_event exited = next_event(warden);
	ck_assert_int_eq(exited.type, WARDEN_EXITED);
	ck_assert_uint_eq(exited.id, 7);
	ck_assert_int_eq(exited.pid, spawned.pid);
	ck_assert_int_eq(exited.status.kind, EXIT_CODE);
	ck_assert_int_eq(exited.status.value, 3);
	ck_assert(exited.usage.ru_maxrss > 0);
	ck_assert(before_ns <= spawned.start_ns && spawned.start_ns < spawned.ns);
	ck_assert(spawned.ns <= exited.ns && exited.ns <= clock_now_ns());
	ck_assert_int_eq(next_event(warden).type, WARDEN_EMPTY);
	warden_free(warden);
}

TEST(a_death_by_signal_is_told_as_such)
{
	struct warden *warden = new_warden();
	start(warden, 1, "kill -SEGV $$");
	struct warden_event exited = await(warden, WARDEN_EXITED);
	ck_assert_int_eq(exited.status.kind, EXIT_SIGNAL);
	ck_assert_int_eq(exited.status.value, SIGSEGV);
	warden_free(warden);
}

TEST(a_missing_program_is_an_error_of_the_start)
{
	struct warden *warden = new_warden();
	char *argv[] = { (char *)"x", NULL };
	struct spawn_spec spec = { .path = "/nonexistent/x",
				   .argv = argv,
				   .envp = no_env,
				   .stdio = { SPAWN_NULL, SPAWN_NULL, SPAWN_NULL } };
	ck_assert_int_eq(warden_spawn(warden, 5, &spec, 0, NULL), 0);
	struct warden_event failed = next_event(warden);
	ck_assert_int_eq(failed.type, WARDEN_SPAWN_FAILED);
	ck_assert_uint_eq(failed.id, 5);
	ck_assert_int_eq(failed.error, ENOENT);
	ck_assert_int_eq(failed.step, SPAWN_EXEC);
	ck_assert_int_eq(next_event(warden).type, WARDEN_EMPTY);

	spec.path = "/bin/true";
	spec.cwd = "/dev/null/x";
	ck_assert_int_eq(warden_spawn(warden, 6, &spec, 0, NULL), 0);
	failed = next_event(warden);
	ck_assert_int_eq(failed.error, ENOTDIR);
	ck_assert_int_eq(failed.step, SPAWN_CWD);
	warden_free(warden);
}

TEST(arguments_beyond_the_kernels_limit_are_refused_and_the_warden_lives_on)
{
	struct warden *warden = new_warden();
	AUTO(strv_done) struct strv argv = STRV_INIT;
	strv_add(&argv, "true");
	char text[1001];
	memset(text, 'x', sizeof(text) - 1);
	text[sizeof(text) - 1] = '\0';
	for (int i = 0; i < 8000; i++)
		strv_add(&argv, text);
	struct spawn_spec spec = { .path = "/bin/true",
				   .argv = strv_argv(&argv),
				   .envp = no_env,
				   .stdio = { SPAWN_NULL, SPAWN_NULL, SPAWN_NULL } };
	ck_assert_int_eq(warden_spawn(warden, 1, &spec, 0, NULL), 0);
	start(warden, 2, "exit 0");
	struct warden_event failed = next_event(warden);
	ck_assert_int_eq(failed.type, WARDEN_SPAWN_FAILED);
	ck_assert_int_eq(failed.error, E2BIG);
	ck_assert_uint_eq(await(warden, WARDEN_EXITED).id, 2);
	warden_free(warden);
}

TEST(a_worker_leads_its_own_session_with_clean_signals_and_descriptors)
{
	signal(SIGINT, SIG_IGN); /* as a shell does for a job started with & */
	sigset_t some;
	sigemptyset(&some);
	sigaddset(&some, SIGUSR1);
	sigprocmask(SIG_BLOCK, &some, NULL);
	int leaked = open("/dev/null", O_RDONLY); /* without CLOEXEC, on purpose */
	ck_assert_int_ge(leaked, 0);
	struct warden *warden = new_warden();
	AUTO(buf_done) struct buf out = BUF_INIT;
	output_of(warden, "exec cut -d' ' -f1,5,6 /proc/self/stat", &out);
	int pid, pgid, sid;
	ck_assert_int_eq(sscanf(buf_str(&out), "%d %d %d", &pid, &pgid, &sid), 3);
	ck_assert_int_eq(pgid, pid);
	ck_assert_int_eq(sid, pid);
	buf_clear(&out);
	output_of(warden, "readlink /proc/self/fd/0; exec ls /proc/self/fd", &out);
	ck_assert_str_eq(buf_str(&out), "/dev/null\n0\n1\n2\n3\n"); /* 3 is what ls reads */

	/* Not asked of a shell: it blocks signals itself while it starts something. */
	buf_clear(&out);
	output_of(warden, "exec grep -E 'Sig(Blk|Ign)' /proc/self/status", &out);
	unsigned long blocked, ignored;
	ck_assert_int_eq(sscanf(buf_str(&out), "SigBlk: %lx SigIgn: %lx", &blocked, &ignored), 2);
	ck_assert_uint_eq(blocked, 0);
	ck_assert_uint_eq(ignored, 0);
	warden_free(warden);
}

TEST(a_program_may_share_the_wardens_session_in_a_group_of_its_own)
{
	struct warden *warden = new_warden();
	AUTO(buf_done) struct buf out = BUF_INIT;
	int ends[2];
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	char *argv[] = { (char *)"cut", (char *)"-d ", (char *)"-f1,5,6", (char *)"/proc/self/stat",
			 NULL };
	struct spawn_spec spec = { .path = "/usr/bin/cut",
				   .argv = argv,
				   .envp = no_env,
				   .stdio = { SPAWN_NULL, ends[1], SPAWN_NULL },
				   .group_only = true };
	ck_assert_int_eq(warden_spawn(warden, 1, &spec, 0, NULL), 0);
	close(ends[1]);
	ck_assert_int_eq(fd_read_all(ends[0], 1 << 20, &out, NULL), 0);
	close(ends[0]);
	int pid, pgid, sid;
	ck_assert_int_eq(sscanf(buf_str(&out), "%d %d %d", &pid, &pgid, &sid), 3);
	ck_assert_int_eq(pgid, pid);
	ck_assert_int_eq(sid, warden_pid(warden));
	warden_free(warden);
}

/* Starts a program that writes its variable X. */
static void start_echo(struct warden *warden, char *const *env, int out, unsigned flags)
{
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)"echo $X", NULL };
	struct spawn_spec spec = {
		.path = "/bin/sh", .argv = argv, .envp = env, .stdio = { SPAWN_NULL, out, out }
	};
	ck_assert_int_eq(warden_spawn(warden, 1, &spec, flags, NULL), 0);
	await(warden, WARDEN_EMPTY);
}

TEST(environment_and_descriptors_can_be_sent_once)
{
	struct warden *warden = new_warden();
	AUTO(buf_done) struct buf out = BUF_INIT;
	char *one[] = { (char *)"A=b", (char *)"X=one", NULL };
	char *two[] = { (char *)"X=two", NULL };
	int ends[2], others[2];
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	ck_assert_int_eq(pipe2(others, O_CLOEXEC), 0);
	start_echo(warden, one, ends[1], WARDEN_KEEP);
	start_echo(warden, two, others[1], 0); /* leaves what is kept alone */
	start_echo(warden, two, -1, WARDEN_SAME);
	start_echo(warden, two, others[1], WARDEN_KEEP);
	start_echo(warden, one, -1, WARDEN_SAME);
	close(ends[1]);
	close(others[1]);
	/* The first pipe was given up for the second, which ends with the warden. */
	ck_assert_int_eq(fd_read_all(ends[0], 1 << 20, &out, NULL), 0);
	ck_assert_str_eq(buf_str(&out), "one\none\n");
	warden_free(warden);
	buf_clear(&out);
	ck_assert_int_eq(fd_read_all(others[0], 1 << 20, &out, NULL), 0);
	ck_assert_str_eq(buf_str(&out), "two\ntwo\ntwo\n");
	close(ends[0]);
	close(others[0]);
}

TEST(nothing_is_started_with_what_was_never_kept)
{
	struct warden *warden = new_warden();
	char *argv[] = { (char *)"true", NULL };
	struct spawn_spec spec = { .path = "/bin/true",
				   .argv = argv,
				   .envp = no_env,
				   .stdio = { SPAWN_NULL, SPAWN_NULL, SPAWN_NULL } };
	ck_assert_int_eq(warden_spawn(warden, 1, &spec, WARDEN_SAME, NULL), 0);
	struct warden_event failed = next_event(warden);
	ck_assert_int_eq(failed.type, WARDEN_SPAWN_FAILED);
	ck_assert_int_eq(failed.error, EPROTO);
	warden_free(warden);
}

TEST(stdio_can_be_inherited_from_the_agent)
{
	int ends[2];
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	int saved = dup(1);
	fflush(stdout);
	dup2(ends[1], 1);
	struct warden *warden = new_warden();
	dup2(saved, 1);
	close(ends[1]);
	start_full(warden, 1, "echo hello", SPAWN_INHERIT, 0);
	await(warden, WARDEN_EMPTY);
	warden_free(warden);
	AUTO(buf_done) struct buf out = BUF_INIT;
	ck_assert_int_eq(fd_read_all(ends[0], 100, &out, NULL), 0);
	ck_assert_str_eq(buf_str(&out), "hello\n");
}

TEST(working_directory_cpus_limit_and_memory_policy_are_set)
{
	struct warden *warden = new_warden();
	int ends[2];
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	cpu_set_t cpus;
	CPU_ZERO(&cpus);
	CPU_SET(0, &cpus);
	unsigned long nodes = 1;
	char *argv[] = { (char *)"sh", (char *)"-c",
			 (char *)"pwd; grep Cpus_allowed_list /proc/$$/status; ulimit -Sn; "
				 "grep -c bind:0 /proc/$$/numa_maps",
			 NULL };
	struct spawn_spec spec = { .path = "/bin/sh",
				   .argv = argv,
				   .envp = no_env,
				   .cwd = "/usr",
				   .stdio = { SPAWN_NULL, ends[1], SPAWN_NULL },
				   .cpus = &cpus,
				   .cpus_size = sizeof(cpus),
				   .nofile_soft = 99 };
	if (access("/proc/self/numa_maps", R_OK) == 0) {
		spec.mem_mode = 2; /* MPOL_BIND */
		spec.mem_nodes = &nodes;
		spec.mem_nodes_size = sizeof(nodes);
	}
	ck_assert_int_eq(warden_spawn(warden, 1, &spec, 0, NULL), 0);
	close(ends[1]);
	AUTO(buf_done) struct buf out = BUF_INIT;
	ck_assert_int_eq(fd_read_all(ends[0], 4096, &out, NULL), 0);
	int limit, bound = -1;
	char where[32], allowed[32];
	int n = sscanf(buf_str(&out), "%31s Cpus_allowed_list: %31s %d %d", where, allowed, &limit,
		       &bound);
	ck_assert_int_ge(n, 3);
	ck_assert_str_eq(where, "/usr");
	ck_assert_str_eq(allowed, "0");
	ck_assert_int_eq(limit, 99);
	if (spec.mem_mode)
		ck_assert_int_gt(bound, 0);
	warden_free(warden);
}

TEST(a_pidfd_is_given_on_request)
{
	struct warden *warden = new_warden();
	start_full(warden, 1, "exec sleep 1000", SPAWN_NULL, WARDEN_PIDFD);
	struct warden_event spawned = next_event(warden);
	ck_assert_int_ge(spawned.pidfd, 0);
	AUTO(fd_close) int pidfd = spawned.pidfd;
	warden_signal(warden, 1, SIGTERM);
	ck_assert_int_eq(await(warden, WARDEN_EXITED).status.value, SIGTERM);
	warden_free(warden);
}

TEST(a_quiet_start_is_told_only_by_its_end)
{
	struct warden *warden = new_warden();
	start_full(warden, 4, "exit 1", SPAWN_NULL, WARDEN_QUIET);
	ck_assert_int_eq(next_event(warden).type, WARDEN_EXITED);
	ck_assert_int_eq(next_event(warden).type, WARDEN_EMPTY);
	warden_free(warden);
}

TEST(orphans_are_signalled_without_touching_main_processes)
{
	struct warden *warden = new_warden();
	start(warden, 1, "exec sleep 1000");
	start(warden, 2, "(sleep 1000; true) & sh -c '(sleep 1000; true) & sleep 1000' & exit 0");
	ck_assert_uint_eq(await(warden, WARDEN_EXITED).id, 2);
	warden_signal_orphans(warden, SIGKILL);
	warden_signal(warden, 1, SIGUSR1);
	ck_assert_int_eq(await(warden, WARDEN_EXITED).status.value, SIGUSR1);
	ck_assert_int_eq(next_event(warden).type, WARDEN_EMPTY);
	warden_free(warden);
}

TEST(a_signal_to_orphans_reaches_the_whole_tree_below_them)
{
	struct warden *warden = new_warden();
	AUTO(buf_done) struct buf out = BUF_INIT;
	int ends[2];
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	start_full(warden, 1,
		   "sh -c 'sh -c \"trap \\\"echo deep; exit\\\" TERM; echo up; while :; do sleep "
		   "0.01; done\"; :' & exit 0",
		   ends[1], 0);
	close(ends[1]);
	char up[3];
	ck_assert_int_eq(read(ends[0], up, 3), 3);
	await(warden, WARDEN_EXITED);
	warden_signal_orphans(warden, SIGTERM);
	ck_assert_int_eq(fd_read_all(ends[0], 4096, &out, NULL), 0);
	ck_assert_str_eq(buf_str(&out), "deep\n");
	await(warden, WARDEN_EMPTY);
	warden_free(warden);
}

TEST(kill_all_leaves_nothing_and_cancels_starts_that_come_meanwhile)
{
	struct warden *warden = new_warden();
	for (uint64_t id = 0; id < 20; id++)
		start(warden, id,
		      "trap '' TERM; setsid sh -c 'sleep 1000 & sleep 1000' & kill -STOP $$");
	for (uint64_t id = 0; id < 20; id++)
		ck_assert_int_eq(await(warden, WARDEN_SPAWNED).id, id);
	warden_kill_all(warden);
	start(warden, 99, "exit 0");
	size_t exits = 0;
	struct warden_event event;
	bool refused = false;
	while ((event = next_event(warden)).type != WARDEN_EMPTY) {
		exits += event.type == WARDEN_EXITED;
		if (event.type == WARDEN_SPAWN_FAILED)
			refused = event.error == ECANCELED;
	}
	/* Behind a kill that was quick it comes in time, and is then served like any other. */
	ck_assert_uint_eq(exits, refused ? 20 : 21);
	start(warden, 100, "exit 0");
	ck_assert_uint_eq(await(warden, WARDEN_EXITED).id, 100);
	ck_assert_int_eq(next_event(warden).type, WARDEN_EMPTY);
	warden_kill_all(warden);
	ck_assert_int_eq(next_event(warden).type, WARDEN_EMPTY);
	warden_free(warden);
}

/* The pid that a background process of the script printed first. */
static pid_t first_pid(struct warden *warden, const char *script)
{
	int ends[2];
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	start_full(warden, 1, script, ends[1], 0);
	close(ends[1]);
	char text[32] = "";
	ck_assert_int_gt(read(ends[0], text, sizeof(text) - 1), 0);
	close(ends[0]);
	return (pid_t)atoi(text);
}

TEST(programs_start_and_live_after_everything_was_killed)
{
	struct warden *warden = new_warden();
	for (uint64_t round = 1; round <= 6; round += 2) {
		start(warden, round, "setsid sleep 1000 & exec sleep 1000");
		await(warden, WARDEN_SPAWNED);
		warden_kill_all(warden);
		await(warden, WARDEN_EMPTY);
		start(warden, round + 1, "exit 7");
		struct warden_event exited = await(warden, WARDEN_EXITED);
		ck_assert_uint_eq(exited.id, round + 1);
		ck_assert_int_eq(exited.status.kind, EXIT_CODE);
		ck_assert_int_eq(exited.status.value, 7);
	}
	warden_free(warden);
}

/* An orphan of the warden's, after the main process that made it has ended. */
static pid_t make_orphan(struct warden *warden, const char *script)
{
	pid_t pid = first_pid(warden, script);
	ck_assert_uint_eq(await(warden, WARDEN_EXITED).id, 1);
	return pid;
}

TEST(an_adopted_orphan_is_let_in_and_counts_as_a_main_process)
{
	struct warden *warden = new_warden();
	int gate[2];
	ck_assert_int_eq(pipe2(gate, O_CLOEXEC), 0);
	pid_t orphan = make_orphan(
		warden,
		"sh -c 'trap \"exit 5\" TERM; echo $$; while :; do sleep 0.01; done' & exit 0");
	ck_assert_int_eq(warden_adopt(warden, 9, orphan, gate[1], NULL), 0);
	struct warden_event spawned = next_event(warden);
	ck_assert_int_eq(spawned.type, WARDEN_SPAWNED);
	ck_assert_uint_eq(spawned.id, 9);
	ck_assert_int_eq(spawned.pid, orphan);
	char byte;
	ck_assert_int_eq(read(gate[0], &byte, 1), 1);
	warden_signal_orphans(warden, SIGKILL);
	warden_signal(warden, 9, SIGTERM);
	struct warden_event exited = await(warden, WARDEN_EXITED);
	ck_assert_uint_eq(exited.id, 9);
	ck_assert_int_eq(exited.status.value, 5);
	ck_assert_int_eq(next_event(warden).type, WARDEN_EMPTY);
	close(gate[0]);
	close(gate[1]);
	warden_free(warden);
}

TEST(only_an_orphan_of_the_wardens_is_adopted_and_the_gate_stays_shut_for_others)
{
	struct warden *warden = new_warden();
	int gate[2];
	ck_assert_int_eq(pipe2(gate, O_CLOEXEC | O_NONBLOCK), 0);
	start(warden, 1, "exec sleep 1000");
	pid_t main_pid = await(warden, WARDEN_SPAWNED).pid;
	const pid_t wrong[] = { getpid(), warden_pid(warden), main_pid, 1 };
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++) {
		ck_assert_int_eq(warden_adopt(warden, 9, wrong[i], gate[1], NULL), 0);
		struct warden_event failed = next_event(warden);
		ck_assert_int_eq(failed.type, WARDEN_SPAWN_FAILED);
		ck_assert_int_eq(failed.error, ECHILD);
	}
	ck_assert_int_eq(warden_adopt(warden, 9, 0, -1, NULL), 0);
	ck_assert_int_eq(next_event(warden).error, ECANCELED);
	char byte;
	ck_assert_int_eq(read(gate[0], &byte, 1), -1);
	close(gate[0]);
	close(gate[1]);
	warden_free(warden);
}

TEST(a_start_that_is_taken_back_leaves_the_warden_empty)
{
	struct warden *warden = new_warden();
	ck_assert_int_eq(warden_adopt(warden, 3, 0, -1, NULL), 0);
	ck_assert_int_eq(next_event(warden).type, WARDEN_SPAWN_FAILED);
	ck_assert_int_eq(next_event(warden).type, WARDEN_EMPTY);
	warden_free(warden);
}

TEST(the_warden_is_in_step_once_what_was_asked_before_is_done)
{
	struct warden *warden = new_warden();
	warden_sync(warden);
	ck_assert_int_eq(next_event(warden).type, WARDEN_SYNCED);
	for (uint64_t id = 1; id <= 3; id++)
		start(warden, id, "sleep 1000 & sleep 1000");
	warden_kill_all(warden);
	warden_sync(warden);
	size_t exits = 0;
	struct warden_event event;
	while ((event = next_event(warden)).type != WARDEN_SYNCED)
		exits += event.type == WARDEN_EXITED;
	ck_assert_uint_eq(exits, 3);
	warden_free(warden);
}

TEST(a_process_aside_outlives_the_group_and_its_orphans_do_not)
{
	struct warden *warden = new_warden();
	int ends[2];
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	start_full(warden, 7,
		   "p=$(sh -c 'sleep 1000 >/dev/null & echo $!'); echo $p; exec sleep 1000",
		   ends[1], WARDEN_ASIDE);
	pid_t aside = await(warden, WARDEN_SPAWNED).pid;
	char text[32] = "";
	ck_assert_int_gt(read(ends[0], text, sizeof(text) - 1), 0);
	pid_t orphan = (pid_t)atoi(text);
	close(ends[0]);
	close(ends[1]);

	start(warden, 2, "exec sleep 1000");
	await(warden, WARDEN_SPAWNED);
	warden_signal_all(warden, SIGUSR1);
	ck_assert_uint_eq(await(warden, WARDEN_EXITED).id, 2);
	warden_kill_all(warden);
	await(warden, WARDEN_EMPTY);
	ck_assert(!exists(orphan));
	ck_assert(exists(aside));

	warden_signal(warden, 7, SIGTERM);
	ck_assert_int_eq(await(warden, WARDEN_EXITED).status.value, SIGTERM);
	start_full(warden, 8, "exec sleep 1000", SPAWN_NULL, WARDEN_ASIDE);
	aside = await(warden, WARDEN_SPAWNED).pid;
	warden_free(warden);
	ck_assert(!exists(aside));
}

TEST(closing_the_connection_kills_every_descendant)
{
	struct warden *warden = new_warden();
	pid_t escaped = first_pid(warden, "setsid sh -c 'echo $$; exec sleep 1000' & wait");
	ck_assert(exists(escaped));
	pid_t pid = warden_pid(warden);
	warden_free(warden);
	ck_assert(!exists(escaped));
	ck_assert(!exists(pid));
}

static void kill_warden(struct warden *warden)
{
	kill(warden_pid(warden), SIGKILL);
	while (next_event(warden).type != WARDEN_LOST)
		;
}

static void note_clear(void *arg)
{
	*(bool *)arg = true;
}

/* Until nothing is left of what it had. */
static void sweep_after(struct warden *lost)
{
	struct {
		struct event_base *base;
	} loop = { event_base_new() };
	bool clear = false;
	struct sweeper *sweeper = sweeper_new(loop.base, note_clear, &clear);
	sweeper_start(sweeper, lost);
	WAIT_FOR(&loop, clear);
	sweeper_free(sweeper);
	event_base_free(loop.base);
}

TEST(a_killed_warden_is_told_and_what_it_leaves_can_be_swept)
{
	struct warden *warden = new_warden(), *other = new_warden();
	start(other, 2, "exec sleep 1000");
	pid_t bystander = await(other, WARDEN_SPAWNED).pid;
	pid_t escaped = first_pid(warden, "setsid sh -c 'echo $$; exec sleep 1000' & wait");
	kill_warden(warden);
	struct warden_event event;
	ck_assert_int_eq(warden_next(warden, &event), 0);
	struct err err;
	char *argv[] = { (char *)"x", NULL };
	struct spawn_spec spec = { .path = "/bin/true", .argv = argv, .envp = no_env };
	ck_assert_int_eq(warden_spawn(warden, 1, &spec, 0, &err), -EPIPE);

	sweep_after(warden);
	ck_assert(!exists(escaped));
	ck_assert(exists(bystander));
	warden_free(other);
	ck_assert(!exists(bystander));
}

static void stop(pid_t pid)
{
	struct proc_stat stat;
	kill(pid, SIGSTOP);
	do
		ck_assert_int_eq(procfs_stat(pid, &stat), 0);
	while (stat.state != 'T');
}

TEST(a_stopped_warden_is_continued_when_its_agent_lets_go)
{
	struct warden *warden = new_warden();
	pid_t escaped = first_pid(warden, "setsid sh -c 'echo $$; exec sleep 1000' & wait");
	stop(warden_pid(warden));
	warden_free(warden);
	ck_assert(!exists(escaped));
}

TEST(a_stopped_warden_kills_when_it_is_asked_to)
{
	struct warden *warden = new_warden();
	start(warden, 1, "trap '' TERM; exec sleep 1000");
	await(warden, WARDEN_SPAWNED);
	stop(warden_pid(warden));
	warden_kill_all(warden);
	await(warden, WARDEN_EMPTY);
	warden_free(warden);
}

static pid_t first_child(pid_t parent)
{
	AUTO(pids_done) struct pids found = PIDS_INIT;
	while (found.count == 0)
		procfs_children(parent, &found);
	return found.items[0];
}

TEST(a_warden_that_is_stopped_at_its_birth_is_continued)
{
	struct warden *warden = new_warden();
	stop(first_child(first_child(getpid())));
	start(warden, 1, "trap '' TERM; exec sleep 1000");
	warden_kill_all(warden);
	await(warden, WARDEN_EMPTY);
	warden_free(warden);
}

TEST(a_warden_that_is_stopped_again_and_again_is_replaced_by_its_heir)
{
	struct warden *warden = new_warden();
	pid_t escaped = first_pid(warden, "setsid sh -c 'echo $$; exec sleep 1000' & wait");
	pid_t pid = warden_pid(warden), stopper = fork();
	if (stopper == 0)
		for (;;)
			kill(pid, SIGSTOP);
	warden_free(warden);
	kill(stopper, SIGKILL);
	ck_assert_int_eq(waitpid(stopper, NULL, 0), stopper);
	ck_assert(!exists(escaped));
}

static pid_t parent_of(pid_t pid)
{
	struct proc_stat stat;
	ck_assert_int_eq(procfs_stat(pid, &stat), 0);
	return stat.ppid;
}

/* An agent in a process of its own: its escaped process, and its warden. SIGUSR1 makes it ask for
 * another program. */
static pid_t fork_agent(pid_t *ret_escaped, pid_t *ret_warden)
{
	sigset_t usr1;
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	int ends[2];
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	pid_t agent = fork();
	if (agent == 0) {
		struct warden *warden = new_warden();
		pid_t pids[] = { first_pid(warden,
					   "setsid sh -c 'echo $$; exec sleep 1000' & wait"),
				 warden_pid(warden) };
		ck_assert_int_eq(write(ends[1], pids, sizeof(pids)), sizeof(pids));
		sigwaitinfo(&usr1, NULL);
		start(warden, 2, "exec sleep 1000");
		pause();
		_exit(0);
	}
	pid_t pids[2];
	ck_assert_int_eq(read(ends[0], pids, sizeof(pids)), sizeof(pids));
	close(ends[0]);
	close(ends[1]);
	*ret_escaped = pids[0];
	*ret_warden = pids[1];
	return agent;
}

TEST(nothing_survives_when_agent_and_warden_are_killed_at_once)
{
	pid_t escaped, warden;
	pid_t agent = fork_agent(&escaped, &warden);
	pid_t heir = parent_of(warden);
	ck_assert_int_eq(parent_of(heir), agent);
	AUTO(fd_close) int heir_fd = pidfd_open(heir, 0);
	kill(warden, SIGKILL);
	kill(agent, SIGKILL);
	ck_assert_int_eq(waitpid(agent, NULL, 0), agent);
	struct pollfd ended = { .fd = heir_fd, .events = POLLIN };
	ck_assert_int_eq(poll(&ended, 1, -1), 1);
	ck_assert(!exists(escaped));
}

/* Stops the next program of the warden at its birth: the warden hangs in its start. */
static void hang_next_start(pid_t warden, pid_t agent)
{
	ck_assert_int_eq(ptrace(PTRACE_SEIZE, warden, NULL, PTRACE_O_TRACEVFORK), 0);
	kill(agent, SIGUSR1);
	int status;
	do {
		ck_assert_int_eq(waitpid(warden, &status, __WALL), warden);
		ck_assert(WIFSTOPPED(status));
		ck_assert_int_eq(ptrace(PTRACE_CONT, warden, NULL, NULL), 0);
	} while (status >> 16 != PTRACE_EVENT_VFORK);
}

TEST(nothing_survives_an_agent_whose_warden_hangs_in_the_start_of_a_program)
{
	pid_t escaped, warden;
	pid_t agent = fork_agent(&escaped, &warden);
	hang_next_start(warden, agent);
	kill(agent, SIGKILL);
	while (waitpid(-1, NULL, __WALL) > 0 || errno != ECHILD)
		; /* the agent, and what we trace */
	while (exists(escaped))
		poll(NULL, 0, 1);
}

/* Where SIGCONT does not help. */
static void hold(pid_t pid)
{
	ck_assert_int_eq(ptrace(PTRACE_SEIZE, pid, NULL, NULL), 0);
	ck_assert_int_eq(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL), 0);
	int status;
	ck_assert_int_eq(waitpid(pid, &status, __WALL), pid);
	ck_assert(WIFSTOPPED(status));
}

static void note_loss(struct warden *warden, void *arg)
{
	struct warden_event event;
	while (warden_next(warden, &event))
		*(bool *)arg |= event.type == WARDEN_LOST;
}

TEST(a_warden_that_does_not_answer_a_kill_is_replaced_by_its_heir)
{
	struct warden *warden = new_warden();
	struct {
		struct event_base *base;
	} loop = { event_base_new() };
	bool lost = false;
	pid_t escaped = first_pid(warden, "setsid sh -c 'echo $$; exec sleep 1000' & wait");
	pid_t pid = warden_pid(warden);
	ck_assert_int_eq(warden_watch(warden, loop.base, note_loss, &lost), 0);
	hold(pid);
	warden_kill_all(warden);
	WAIT_FOR(&loop, lost);
	ck_assert_int_eq(waitpid(pid, NULL, __WALL), pid); /* we trace it */
	sweep_after(warden);
	ck_assert(!exists(escaped));
	event_base_free(loop.base);
}

/* A start that waits for SYNCED comes after EMPTY, so it cannot wait for ever: the group gives up
 * on processes that keep EMPTY from coming. */
TEST(an_orphan_that_does_not_end_holds_back_empty_as_well_as_synced)
{
	struct warden *warden = new_warden();
	pid_t orphan = first_pid(warden, "setsid sh -c 'echo $$; exec sleep 1000' & exit 0");
	start(warden, 2, "exec sleep 1000");
	await(warden, WARDEN_EXITED);
	ck_assert_int_eq(ptrace(PTRACE_SEIZE, orphan, NULL, NULL), 0); /* only we can reap it */
	warden_signal_orphans(warden, SIGKILL);
	warden_sync(warden);
	struct warden_event event;
	while ((event = next_event(warden)).type != WARDEN_SURVIVOR)
		ck_assert_int_eq(event.type, WARDEN_SPAWNED);
	ck_assert_int_eq(event.pid, orphan);
	warden_kill_all(warden);
	ck_assert_int_eq(next_event(warden).type, WARDEN_EXITED);
	ck_assert_int_eq(waitpid(orphan, NULL, __WALL), orphan);
	ck_assert_int_eq(next_event(warden).type, WARDEN_EMPTY);
	ck_assert_int_eq(next_event(warden).type, WARDEN_SYNCED);
	warden_free(warden);
}

TEST(an_heir_is_not_killed_while_anything_below_it_lives)
{
	struct warden *warden = new_warden();
	pid_t escaped = first_pid(warden, "setsid sh -c 'echo $$; exec sleep 1000' & wait");
	pid_t heir = parent_of(warden_pid(warden));
	AUTO(fd_close) int escaped_fd = pidfd_open(escaped, 0);
	hold(heir);
	kill_warden(warden);

	AUTO(pids_done) struct pids heirs = PIDS_INIT;
	pids_add(&heirs, heir);
	while (proctree_sweep(&heirs) > 0)
		ck_assert(!warden_try_free(warden, false));
	struct pollfd dead = { .fd = escaped_fd, .events = POLLIN };
	ck_assert_int_eq(poll(&dead, 1, -1), 1);
	ck_assert(exists(heir));

	sweep_after(warden);
	ck_assert(!exists(heir));
	ck_assert(!exists(escaped));
}

TEST(what_a_killed_heir_had_is_swept)
{
	struct warden *warden = new_warden();
	pid_t escaped = first_pid(warden, "setsid sh -c 'echo $$; exec sleep 1000' & wait");
	pid_t heir = parent_of(warden_pid(warden));
	hold(heir);
	kill_warden(warden);
	kill(heir, SIGKILL);
	sweep_after(warden);
	ck_assert(!exists(escaped));
}

TEST(a_stopped_heir_goes_on_when_agent_and_warden_are_killed)
{
	pid_t escaped, warden;
	pid_t agent = fork_agent(&escaped, &warden);
	pid_t heir = parent_of(warden);
	AUTO(fd_close) int heir_fd = pidfd_open(heir, 0);
	stop(heir);
	kill(warden, SIGKILL);
	kill(agent, SIGKILL);
	ck_assert_int_eq(waitpid(agent, NULL, 0), agent);
	struct pollfd ended = { .fd = heir_fd, .events = POLLIN };
	ck_assert_int_eq(poll(&ended, 1, -1), 1);
	ck_assert(!exists(escaped));
}

TEST(a_killed_heir_costs_nothing)
{
	struct warden *warden = new_warden();
	kill(parent_of(warden_pid(warden)), SIGKILL);
	pid_t escaped = first_pid(warden, "setsid sh -c 'echo $$; exec sleep 1000' & wait");
	warden_kill_all(warden);
	await(warden, WARDEN_EMPTY);
	ck_assert(!exists(escaped));
	warden_free(warden);
}

TEST(a_warden_that_cannot_read_proc_kills_the_main_processes)
{
	struct warden *warden = new_warden();
	start(warden, 1, "exec sleep 1000");
	start(warden, 2, "exec sleep 1000");
	await(warden, WARDEN_SPAWNED);
	await(warden, WARDEN_SPAWNED);
	struct rlimit few = { 3, 3 }; /* its descriptors are above: it can open no directory */
	ck_assert_int_eq(prlimit(warden_pid(warden), RLIMIT_NOFILE, &few, NULL), 0);
	warden_kill_all(warden);
	await(warden, WARDEN_EXITED);
	await(warden, WARDEN_EXITED);
	await(warden, WARDEN_EMPTY);
	warden_free(warden);
}

TEST(a_sweep_leaves_the_children_that_we_have_started_ourselves)
{
	pid_t own = child_fork();
	if (own == 0) {
		pause();
		_exit(0);
	}
	while (proctree_sweep(NULL) > 0)
		;
	int status;
	ck_assert_int_eq(child_try_wait(own, &status), 0);
	kill(own, SIGUSR1);
	status = child_wait(own);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
	ck_assert_int_eq(child_wait(own), -ECHILD);
}

TEST(orphans_are_reaped_also_behind_a_dead_child_of_our_own)
{
	struct warden *warden = new_warden(); /* makes us a subreaper */
	pid_t own = child_fork();
	if (own == 0)
		_exit(3);
	siginfo_t info;
	ck_assert_int_eq(waitid(P_PID, (id_t)own, &info, WEXITED | WNOWAIT), 0);
	int ready[2];
	ck_assert_int_eq(pipe(ready), 0);
	pid_t parent = child_fork();
	if (parent == 0) {
		pid_t orphan = fork();
		if (orphan == 0)
			_exit(0);
		_exit(write(ready[1], &orphan, sizeof(orphan)) != sizeof(orphan));
	}
	pid_t orphan;
	ck_assert_int_eq(read(ready[0], &orphan, sizeof(orphan)), sizeof(orphan));
	ck_assert_int_eq(WEXITSTATUS(child_wait(parent)), 0);
	ck_assert_int_eq(waitid(P_PID, (id_t)orphan, &info, WEXITED | WNOWAIT), 0);
	proctree_reap_orphans();
	ck_assert(!exists(orphan));
	ck_assert_int_eq(WEXITSTATUS(child_wait(own)), 3);
	close(ready[0]);
	close(ready[1]);
	warden_free(warden);
}

static void count_exits(struct warden *warden, void *arg)
{
	struct event_base *base = arg;
	static int exits;
	struct warden_event event;
	while (warden_next(warden, &event)) {
		exits += event.type == WARDEN_EXITED;
		if (exits == 300)
			event_base_loopbreak(base);
	}
}

TEST(hundreds_of_starts_with_descriptors_queue_up_without_blocking)
{
	struct warden *warden = new_warden();
	struct event_base *base = event_base_new();
	ck_assert_int_eq(warden_watch(warden, base, count_exits, base), 0);
	int ends[2];
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	for (uint64_t id = 0; id < 300; id++)
		start_full(warden, id, "echo x", ends[1], 0);
	close(ends[1]);
	event_base_dispatch(base);
	AUTO(buf_done) struct buf out = BUF_INIT;
	warden_free(warden);
	ck_assert_int_eq(fd_read_all(ends[0], 4096, &out, NULL), 0);
	ck_assert_uint_eq(buf_len(&out), 600);
	event_base_free(base);
}

TEST(the_warden_bears_a_neutral_name_and_leads_its_own_session)
{
	struct warden *warden = new_warden();
	start(warden, 1, "exit 0");
	await(warden, WARDEN_EMPTY);
	char path[64];
	AUTO(buf_done) struct buf text = BUF_INIT;
	snprintf(path, sizeof(path), "/proc/%d/cmdline", (int)warden_pid(warden));
	ck_assert_int_eq(file_read(path, 65536, &text, NULL), 0);
	ck_assert_str_eq(buf_str(&text), "warden");
	struct proc_stat stat;
	ck_assert_int_eq(procfs_stat(warden_pid(warden), &stat), 0);
	ck_assert_str_eq(stat.comm, "warden");
	ck_assert_int_eq(getsid(warden_pid(warden)), warden_pid(warden));
	warden_free(warden);
}

TEST(the_v2_hierarchy_is_found_alone_beside_v1_and_below_the_top)
{
	static const char hybrid[] =
		"32 31 0:29 / /sys/fs/cgroup/cpu rw,relatime - cgroup cgroup rw,cpu\n"
		"41 31 0:38 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n";
	static const struct {
		const char *mountinfo, *membership, *path;
	} cases[] = {
		{ hybrid, "4:memory:/x\n0::/\n", "/sys/fs/cgroup/unified" },
		{ hybrid, "0::/user.slice/a.scope\n", "/sys/fs/cgroup/unified/user.slice/a.scope" },
		{ hybrid, "4:memory:/x\n", NULL },
		{ "32 31 0:29 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw\n", "0::/\n", NULL },
		{ "30 1 0:26 /pod/c1 /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw\n",
		  "0::/pod/c1/job\n", "/sys/fs/cgroup/job" },
		{ "30 1 0:26 / /mnt/a\\040b rw - cgroup2 none rw\n", "0::/x\n", "/mnt/a b/x" },
		{ "30 1 0:26 /pod/c1 /mnt rw - cgroup2 none rw\n", "0::/pod/c12\n", NULL },
		{ "", "", NULL },
		{ "30 1 0:26 / - cgroup2 none rw\n", "0::/x\n", NULL },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct cgroup_place place = CGROUP_PLACE_INIT;
		cgroup_find(CGROUP_V2, cases[i].mountinfo, cases[i].membership, &place);
		if (cases[i].path)
			ck_assert_str_eq(place.own, cases[i].path);
		else
			ck_assert_ptr_null(place.own);
		cgroup_place_done(&place);
	}
}

/* The cgroup of the programs. Where none can be had the test is skipped: nothing depends on it. */
static struct cgroup leaf_of(struct warden *warden)
{
	AUTO(buf_done) struct buf out = BUF_INIT;
	output_of(warden, "exec sed -n s/^0:://p /proc/self/cgroup", &out);
	const char *text = buf_str(&out), *name = strstr(text, "/warden-");
	if (!name) {
		warden_free(warden);
		unit_skip("the warden cannot make a cgroup here");
	}
	AUTO_FREE char *leaf = mem_strndup(name + 1, strcspn(name + 1, "\n"));
	struct cgroup cgroup;
	ck_assert_int_eq(cgroup_open(leaf, &cgroup, NULL), 0);
	return cgroup;
}

TEST(programs_are_born_in_a_cgroup_that_goes_with_the_warden)
{
	struct warden *warden = new_warden();
	struct cgroup cgroup = leaf_of(warden);
	start_full(warden, 2, "exit 4", SPAWN_NULL, WARDEN_PIDFD);
	AUTO(fd_close) int pidfd = await(warden, WARDEN_SPAWNED).pidfd;
	ck_assert_int_ge(pidfd, 0);
	ck_assert_int_eq(await(warden, WARDEN_EXITED).status.value, 4);
	pid_t escaped = first_pid(warden, "setsid sh -c 'echo $$; exec sleep 1000' & wait");
	warden_free(warden);
	ck_assert(!exists(escaped));
	ck_assert_int_eq(access(cgroup.path, F_OK), -1);
	cgroup_done(&cgroup);
}

TEST(the_cgroup_of_a_killed_warden_is_removed)
{
	struct warden *warden = new_warden();
	struct cgroup cgroup = leaf_of(warden);
	first_pid(warden, "setsid sh -c 'echo $$; exec sleep 1000' & wait");
	kill_warden(warden);
	sweep_after(warden);
	ck_assert_int_eq(access(cgroup.path, F_OK), -1);
	cgroup_done(&cgroup);
}
