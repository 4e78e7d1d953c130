/* How long a program thinks it ran, and how long the one who started it thinks so.
 *
 *     own_clock run FILE         works for a millisecond and appends its own nanoseconds to FILE
 *     own_clock bare N FILE      starts "run" N times the bare way (vfork, waitpid), one after the
 *                                other, and prints the nanoseconds it saw, one line each: the floor
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"

#define WORK_NS NS_PER_MS

static int run(const char *path)
{
	uint64_t start = clock_now_ns();
	while (clock_now_ns() - start < WORK_NS)
		;
	uint64_t own = clock_now_ns() - start;
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	return fd >= 0 && dprintf(fd, "%llu\n", (unsigned long long)own) > 0 ? 0 : 1;
}

static uint64_t start_one(const char *self, const char *path)
{
	uint64_t start = clock_now_ns();
	pid_t pid = vfork();
	if (pid == 0) {
		execl(self, self, "run", path, NULL);
		_exit(127);
	}
	int status;
	waitpid(pid, &status, 0);
	return clock_now_ns() - start;
}

static int bare(const char *self, unsigned long times, const char *path)
{
	for (unsigned long i = 0; i < times; i++)
		printf("%llu\n", (unsigned long long)start_one(self, path));
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 3 && !strcmp(argv[1], "run"))
		return run(argv[2]);
	if (argc == 4 && !strcmp(argv[1], "bare"))
		return bare(argv[0], strtoul(argv[2], NULL, 10), argv[3]);
	return 2;
}
