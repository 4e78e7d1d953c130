/* Times of starting and reaping /bin/true: a bare posix_spawn() loop, and the warden.
 *
 * usage: spawn bare|warden COUNT          all at once, then reap all
 *        spawn bare|warden COUNT SLOTS    at most SLOTS at a time, as `muster batch` does
 *
 * Prints the seconds it took.
 */
#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "sys/warden.h"

#define PROGRAM "/bin/true"

extern char **environ;
static char *const arguments[] = { (char *)"true", NULL };

static void bare_start(void)
{
	pid_t pid;
	if (posix_spawn(&pid, PROGRAM, NULL, NULL, arguments, environ) != 0)
		abort();
}

static void bare(size_t count, size_t slots)
{
	for (size_t started = 0, ended = 0; ended < count;) {
		for (; started < count && started - ended < slots; started++)
			bare_start();
		if (wait(NULL) > 0)
			ended++;
	}
}

/* One warden for all, or one per slot, each with one program at a time. */
struct bench {
	struct event_base *base;
	size_t count, started, ended;
};

static void warden_start(struct bench *bench, struct warden *warden)
{
	struct spawn_spec spec = { .path = PROGRAM,
				   .argv = arguments,
				   .envp = environ,
				   .stdio = { SPAWN_NULL, SPAWN_INHERIT, SPAWN_INHERIT } };
	if (warden_spawn(warden, bench->started++, &spec, WARDEN_QUIET, NULL) < 0)
		abort();
}

static void on_warden(struct warden *warden, void *arg)
{
	struct bench *bench = arg;
	struct warden_event event;
	while (warden_next(warden, &event)) {
		if (event.type == WARDEN_SPAWN_FAILED || event.type == WARDEN_LOST)
			abort();
		if (event.type == WARDEN_EXITED && ++bench->ended == bench->count)
			event_base_loopbreak(bench->base);
		if (event.type == WARDEN_EMPTY && bench->started < bench->count)
			warden_start(bench, warden);
	}
}

static void wardens(size_t count, size_t slots)
{
	struct bench bench = { .count = count };
	size_t warden_count = slots < count ? slots : 1;
	struct warden **all = NEW_ARRAY(struct warden *, warden_count);
	for (size_t i = 0; i < warden_count; i++)
		if (warden_new(NULL, &all[i], NULL) < 0)
			abort();
	bench.base = event_base_new();
	for (size_t i = 0; i < warden_count; i++)
		warden_watch(all[i], bench.base, on_warden, &bench);
	for (size_t i = 0; i < slots; i++)
		warden_start(&bench, all[i % warden_count]);
	event_base_dispatch(bench.base);
	for (size_t i = 0; i < warden_count; i++)
		warden_free(all[i]);
	event_base_free(bench.base);
	free(all);
}

int main(int argc, char **argv)
{
	uint64_t count, slots;
	if (argc < 3 || str_to_u64(argv[2], &count) < 0 || count == 0)
		return 2;
	slots = count;
	if (argc > 3 && (str_to_u64(argv[3], &slots) < 0 || slots == 0 || slots > count))
		return 2;
	uint64_t start_ns = clock_now_ns();
	if (str_eq(argv[1], "bare"))
		bare(count, slots);
	else
		wardens(count, slots);
	printf("%.6f\n", (double)(clock_now_ns() - start_ns) / (double)NS_PER_S);
	return 0;
}
