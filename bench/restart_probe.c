/* A worker for timing a restart: in the first attempt rank 0 says "down NS" and dies; in the next
 * every worker says "up NS" as its first act.
 *
 * usage: restart_probe RECORD          (both ranks; the clock is the monotonic one)
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"

#define SETTLE_US 200000 /* until both workers and their launcher have come to rest */

static void say(const char *path, const char *what)
{
	int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0 || dprintf(fd, "%s %llu\n", what, (unsigned long long)clock_now_ns()) < 0)
		abort();
	close(fd);
}

int main(int argc, char **argv)
{
	const char *count = getenv("TORCHELASTIC_RESTART_COUNT"), *rank = getenv("RANK");
	if (argc != 2 || !count || !rank)
		return 2;
	if (strcmp(count, "0") != 0) {
		say(argv[1], "up");
		return 0;
	}
	if (strcmp(rank, "0") != 0)
		for (;;)
			pause();
	usleep(SETTLE_US);
	say(argv[1], "down");
	_exit(1);
}
