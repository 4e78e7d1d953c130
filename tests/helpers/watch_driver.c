/* A watchdog and nothing else: runs workers as its own children, prints what the watchdog reports,
 * one line each, and signals what expired. Stands in for the launcher where only the watchdog is in
 * question.
 *
 *     watch_driver FIFO SOCKET N COMMAND…
 *
 * "expired RANK PID SIGNAL LATE_NS SCOPE", "rejected NAME: DETAIL", "exited RANK STATUS"; a line on
 * standard input is answered with "stats ARMED REQUESTS EXPIRED REJECTED CPU_NS". Ends with its
 * last worker; with N = 0 at the end of standard input.
 */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "watch/fifo.h"
#include "watch/socket.h"

struct driver {
	struct event_base *base;
	struct watchdog *watchdog;
	pid_t *pids;
	size_t count;
	size_t alive;
	struct event *input;
};

static void on_expired(void *arg, const struct watchdog_expiry *expiry)
{
	struct driver *driver = arg;
	if (expiry->signal > 0)
		kill(driver->pids[expiry->rank], expiry->signal);
	printf("expired %zu %d %d %llu %s\n", expiry->rank, (int)expiry->pid, expiry->signal,
	       (unsigned long long)expiry->late_ns, expiry->scope);
}

static void on_rejected(UNUSED void *arg, enum watchdog_rejection rejection, const char *detail)
{
	printf("rejected %s: %s\n", watchdog_rejection_name(rejection), detail);
}

static void on_child(UNUSED evutil_socket_t sig, UNUSED short what, void *arg)
{
	struct driver *driver = arg;
	int status;
	for (pid_t pid; (pid = waitpid(-1, &status, WNOHANG)) > 0;)
		for (size_t i = 0; i < driver->count; i++)
			if (driver->pids[i] == pid) {
				printf("exited %zu %d\n", i,
				       WIFSIGNALED(status) ? -WTERMSIG(status)
							   : WEXITSTATUS(status));
				driver->alive--;
			}
	if (driver->alive == 0)
		event_base_loopbreak(driver->base);
}

static void on_input(evutil_socket_t fd, UNUSED short what, void *arg)
{
	struct driver *driver = arg;
	char line[256];
	if (read(fd, line, sizeof(line)) <= 0) {
		event_del(driver->input);
		if (driver->count == 0)
			event_base_loopbreak(driver->base);
		return;
	}
	watchdog_drain(driver->watchdog); /* what was written before the question counts */
	struct watchdog_stats stats = watchdog_stats(driver->watchdog);
	uint64_t rejected = 0;
	for (size_t i = 0; i < REJECT_COUNT; i++)
		rejected += stats.rejected[i];
	struct timespec cpu;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
	printf("stats %zu %llu %llu %llu %llu\n", stats.armed, (unsigned long long)stats.requests,
	       (unsigned long long)stats.expired, (unsigned long long)rejected,
	       (unsigned long long)cpu.tv_sec * NS_PER_S + (unsigned long long)cpu.tv_nsec);
}

static void start_worker(struct driver *driver, size_t rank, char **argv)
{
	char text[16];
	pid_t pid = fork();
	if (pid == 0) {
		setsid();
		if (!freopen("/dev/null", "r", stdin))
			_exit(127);
		snprintf(text, sizeof(text), "%zu", rank);
		setenv("LOCAL_RANK", text, 1);
		execvp(argv[0], argv);
		_exit(127);
	}
	driver->pids[rank] = pid;
	watchdog_add_worker(driver->watchdog, rank, pid);
}

int main(int argc, char **argv)
{
	int64_t count;
	if (argc < 4 || str_to_i64(argv[3], &count) < 0)
		return 2;
	setvbuf(stdout, NULL, _IOLBF, 0);
	struct event_config *config = event_config_new();
	event_config_set_flag(config, EVENT_BASE_FLAG_PRECISE_TIMER);
	struct driver driver = { .base = event_base_new_with_config(config),
				 .count = (size_t)count,
				 .alive = (size_t)count };
	event_config_free(config);
	driver.pids = calloc((size_t)count + 1, sizeof(pid_t));
	driver.watchdog =
		watchdog_new(driver.base, &(struct watchdog_hooks){ .on_expired = on_expired,
								    .on_rejected = on_rejected,
								    .arg = &driver });
	watchdog_set_warden(driver.watchdog, getpid());

	struct worker_pages pages = WORKER_PAGES_INIT;
	worker_pages_reset(&pages, (size_t)count);
	struct keeps *keeps = keeps_new((size_t)count, 1 << 20);
	struct fifo *fifo = NULL;
	struct watch_socket *server = NULL;
	struct err err = ERR_INIT;
	if (fifo_new(driver.base, driver.watchdog, argv[1], &fifo, &err) < 0 ||
	    watch_socket_new(driver.base, driver.watchdog, &pages, keeps, argv[2], &server, &err) <
		    0) {
		fprintf(stderr, "watch_driver: %s\n", err.msg);
		fifo_free(fifo);
		return 1;
	}
	setenv("TORCHELASTIC_TIMER_FILE", argv[1], 1);
	setenv("MUSTER_WATCHDOG", argv[2], 1);

	struct event *child = evsignal_new(driver.base, SIGCHLD, on_child, &driver);
	driver.input =
		event_new(driver.base, STDIN_FILENO, EV_READ | EV_PERSIST, on_input, &driver);
	event_add(child, NULL);
	event_add(driver.input, NULL);
	for (size_t i = 0; i < driver.count; i++)
		start_worker(&driver, i, argv + 4);
	puts("ready");
	event_base_dispatch(driver.base);

	for (size_t i = 0; i < driver.count; i++)
		printf("heartbeats %zu %llu\n", i,
		       (unsigned long long)worker_pages_beats(&pages, i));
	fifo_free(fifo);
	watch_socket_free(server);
	worker_pages_done(&pages);
	keeps_free(keeps);
	watchdog_free(driver.watchdog);
	event_free(child);
	event_free(driver.input);
	event_base_free(driver.base);
	free(driver.pids);
	return 0;
}
