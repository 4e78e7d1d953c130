#include "unit.h"

#include "warden_rig.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/strv.h"
#include "base/fd.h"
#include "base/procfs.h"
#include "sys/start/process_title.h"

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
	/* not one behind the other, as the kernel has them: /proc is asked */
	process_title_know_arguments(2, (char *[]){ (char[]){ "muster" }, (char[]){ "run" } });
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
