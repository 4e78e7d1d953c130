/* How long the look at /proc takes that comes before an expired worker is signalled, for a process
 * with THREADS threads: "snapshot MEDIAN_US".
 *
 *     watch_snapshot THREADS
 */
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/str.h"
#include "watch/procinfo.h"

#define TRIALS 200
#define STACK ((size_t)64 << 10)

static void *sleep_forever(void *arg)
{
	for (;;)
		pause();
	return arg;
}

/* The one that is looked at; tells when it is complete. */
static void be_subject(int64_t threads, int ready)
{
	pthread_attr_t attr;
	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, STACK);
	for (int64_t i = 1; i < threads; i++) {
		pthread_t thread;
		if (pthread_create(&thread, &attr, sleep_forever, NULL) != 0)
			_exit(1);
	}
	close(ready);
	sleep_forever(NULL);
}

static int compare_times(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return x < y ? -1 : x > y;
}

int main(int argc, char **argv)
{
	int64_t threads;
	int ends[2];
	char byte;
	if (argc != 2 || str_to_i64(argv[1], &threads) < 0 || pipe(ends) < 0)
		return 2;
	pid_t pid = fork();
	if (pid == 0) {
		close(ends[0]);
		be_subject(threads, ends[1]);
	}
	close(ends[1]);
	if (read(ends[0], &byte, 1) < 0)
		return 1;
	uint64_t took_ns[TRIALS];
	for (int i = 0; i < TRIALS; i++) {
		AUTO(buf_done) struct buf text = BUF_INIT;
		uint64_t start_ns = clock_now_ns();
		procinfo_snapshot(pid, &text);
		took_ns[i] = clock_now_ns() - start_ns;
	}
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	qsort(took_ns, TRIALS, sizeof(*took_ns), compare_times);
	printf("snapshot %.1f\n", (double)took_ns[TRIALS / 2] / NS_PER_US);
	return 0;
}
