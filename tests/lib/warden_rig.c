#include "warden_rig.h"

#include <check.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "loop.h"
#include "sys/sweeper.h"

#define PATIENCE_NS (20 * NS_PER_S)

char *no_env[] = { NULL };

struct warden *new_warden(void)
{
	struct warden *warden;
	ck_assert_int_eq(warden_new(NULL, &warden, NULL), 0);
	return warden;
}

struct warden_event any_event(struct warden *warden)
{
	struct warden_event event;
	uint64_t deadline_ns = clock_now_ns() + PATIENCE_NS;
	while (!warden_next(warden, &event))
		ck_assert_int_eq(warden_wait(warden, deadline_ns), 0);
	return event;
}

struct warden_event next_event(struct warden *warden)
{
	struct warden_event event;
	do
		event = any_event(warden);
	while (event.type == WARDEN_SURVIVOR);
	return event;
}

struct warden_event await(struct warden *warden, enum warden_event_type type)
{
	for (;;) {
		struct warden_event event = any_event(warden);
		if (event.type == type)
			return event;
		ck_assert_int_ne(event.type, WARDEN_LOST);
	}
}

void start_full(struct warden *warden, uint64_t id, const char *script, int out, unsigned flags)
{
	char *argv[] = { (char *)"sh", (char *)"-c", (char *)script, NULL };
	struct spawn_spec spec = { .path = "/bin/sh",
				   .argv = argv,
				   .envp = no_env,
				   .stdio = { SPAWN_NULL, out, SPAWN_NULL } };
	ck_assert_int_eq(warden_spawn(warden, id, &spec, flags, NULL), 0);
}

void start(struct warden *warden, uint64_t id, const char *script)
{
	start_full(warden, id, script, SPAWN_NULL, 0);
}

void output_of(struct warden *warden, const char *script, struct buf *out)
{
	int ends[2];
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	start_full(warden, 1, script, ends[1], 0);
	close(ends[1]);
	ck_assert_int_eq(fd_read_all(ends[0], 1 << 20, out, NULL), 0);
	close(ends[0]);
	await(warden, WARDEN_EMPTY);
}

bool exists(pid_t pid)
{
	return kill(pid, 0) == 0;
}

pid_t first_pid(struct warden *warden, const char *script)
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

void kill_warden(struct warden *warden)
{
	kill(warden_pid(warden), SIGKILL);
	while (next_event(warden).type != WARDEN_LOST)
		;
}

static void note_clear(void *arg)
{
	*(bool *)arg = true;
}

void sweep_after(struct warden *lost)
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
