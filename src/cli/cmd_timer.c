/* muster timer: timers and heartbeat for shell scripts. The timer belongs to the worker as a whole,
 * because this process ends at once. */
#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "cli/command.h"
#include "core/worker/exit_code.h"
#include "core/worker/worker_page.h"
#include "watch/client.h"

struct timer_options {
	int signal;
};

static int parse_signal(const char *text, void *field, struct err *err)
{
	int signal = str_eq(text, "0") ? 0 : str_to_signal(text);
	if (signal < 0)
		return err_set(err, EINVAL, "unknown signal '%s'", text);
	*(int *)field = signal;
	return 0;
}

static const struct opt timer_opts[] = {
	OPT_CALL("signal", NULL, struct timer_options, signal, parse_signal, "SIG",
		 "with acquire: what the worker gets at expiry; 0: only report (default: SIGKILL)"),
	OPT_END,
};

static int fail(const char *what, int code)
{
	fprintf(stderr, "muster timer: %s: %s\n", what, strerror(-code));
	return EXIT_CODE_SYSTEM;
}

/* Waits for the answer: it proves that the timer is armed, and keeps this process alive until the
 * launcher knows which worker it belongs to. */
static int exchange(int fd, const struct watch_msg *msg, int len)
{
	AUTO(fd_close) int unused = -1;
	int r = watch_client_send(fd, msg, (size_t)len);
	if (r == 0)
		r = watch_client_receive(fd, &unused);
	return r < 0 ? fail("the launcher refused", r) : EXIT_CODE_OK;
}

static int beat(int fd)
{
	struct worker_page *page;
	int r = watch_client_map_page(fd, &page);
	if (r < 0)
		return fail("heartbeat", r);
	atomic_fetch_add(&page->beats, 1);
	return EXIT_CODE_OK;
}

static int timer_main(const struct command *self, int argc, char **argv)
{
	struct timer_options o = { .signal = SIGKILL };
	int first, status;
	if (!command_parse(self, &o, argc, argv, NULL, &first, &status))
		return status;
	char **words = argv + first;
	int count = argc - first;
	struct watch_msg msg;
	int len;
	uint64_t duration_ns;
	if (count == 3 && str_eq(words[0], "acquire")) {
		if (str_to_duration_ns(words[2], &duration_ns) < 0)
			return command_usage_error(self, "'%s' is not a duration", words[2]);
		len = watch_client_fill(&msg, WATCH_OP_ACQUIRE,
					WATCH_FLAG_WORKER | WATCH_FLAG_REPLY, words[1],
					(double)duration_ns / (double)NS_PER_S, o.signal);
	} else if (count == 2 && str_eq(words[0], "release")) {
		len = watch_client_fill(&msg, WATCH_OP_RELEASE,
					WATCH_FLAG_WORKER | WATCH_FLAG_REPLY, words[1], 0, 0);
	} else if (count == 1 && str_eq(words[0], "heartbeat")) {
		len = 0;
	} else {
		return command_usage_error(
			self, "use: acquire SCOPE DURATION, release SCOPE or heartbeat");
	}
	if (len < 0)
		return command_usage_error(self, "the scope is too long");

	const char *path = getenv("MUSTER_WATCHDOG");
	if (!path) {
		fputs("muster timer: not inside a worker of muster (MUSTER_WATCHDOG is not set)\n",
		      stderr);
		return EXIT_CODE_SYSTEM;
	}
	AUTO(fd_close) int fd = watch_client_connect(path);
	if (fd < 0)
		return fail(path, fd);
	return len == 0 ? beat(fd) : exchange(fd, &msg, len);
}

const struct command command_timer = {
	.name = "timer",
	.synopsis = "acquire SCOPE DURATION | release SCOPE | heartbeat",
	.summary = "arm, release and beat from inside a worker's shell script",
	.footer = "Examples, in a worker script:\n"
		  "  muster timer acquire step 10m      stop this worker unless released by then\n"
		  "  ./step\n"
		  "  muster timer release step\n",
	.opts = timer_opts,
	.mode = OPT_PERMUTE,
	.main = timer_main,
};
