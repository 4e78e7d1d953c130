/* The processes below the main ones: orphans, those that are adopted or aside, and the end of all.
 */
#include "unit.h"

#include "warden_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"

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
	while ((event = any_event(warden)).type != WARDEN_SURVIVOR)
		ck_assert_int_eq(event.type, WARDEN_SPAWNED);
	ck_assert_int_eq(event.pid, orphan);
	warden_kill_all(warden);
	ck_assert_int_eq(next_event(warden).type, WARDEN_EXITED);
	ck_assert_int_eq(waitpid(orphan, NULL, __WALL), orphan);
	ck_assert_int_eq(next_event(warden).type, WARDEN_EMPTY);
	ck_assert_int_eq(next_event(warden).type, WARDEN_SYNCED);
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
