/* A worker over its time: arms one timer through the FIFO, says "worker PID DEADLINE" (seconds
 * since the epoch), and waits for its end. Small, so that its dying takes no time of its own.
 *
 *     watch_late FIFO SECONDS
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"

static int send_text(int fd, const char *text, int len)
{
	return write(fd, text, (size_t)len) == len ? 0 : -1;
}

int main(int argc, char **argv)
{
	char text[256];
	if (argc != 3)
		return 2;
	double end = (double)clock_wall_ns() / (double)NS_PER_S + strtod(argv[2], NULL);
	int fifo = open(argv[1], O_WRONLY);
	int len = snprintf(text, sizeof(text),
			   "{\"version\": 1, \"pid\": %d, \"scope_id\": \"s\", "
			   "\"expiration_time\": %.6f, \"signal\": 9}\n",
			   (int)getpid(), end);
	if (fifo < 0 || send_text(fifo, text, len) < 0)
		return 1;
	close(fifo);
	len = snprintf(text, sizeof(text), "worker %d %.6f\n", (int)getpid(), end);
	if (send_text(STDOUT_FILENO, text, len) < 0)
		return 1;
	for (;;)
		pause();
}
