/* The FIFO channel of the watchdog, for torch's FileTimerClient.
 *
 * It is opened for reading and writing, so it never ends and never blocks, whichever process holds
 * it open. Its pipe is as large as the system allows, so that a burst of requests does not become
 * an error in a worker. A bad line costs only itself. A line that stays unfinished for a second is
 * dropped.
 *
 * In a burst of requests it is read once in FIFO_REST_NS, not once per request; it is always read
 * before a timer expires. A silent FIFO causes no wake-ups. */
#ifndef WATCH_FIFO_H
#define WATCH_FIFO_H

#include "base/err.h"
#include "watch/watchdog.h"

#define FIFO_TORN_NS NS_PER_S	 /* how long a line may stay unfinished */
#define FIFO_REST_NS NS_PER_MS	 /* between two reads in a burst */
#define FIFO_PIPE_SIZE (1 << 20) /* the most an unprivileged process may ask for */

struct fifo;

/* Makes the FIFO, mode 0600 whatever the umask. Replaces what exists at `path` only if it is a FIFO
 * of this user; else -EEXIST. */
int fifo_new(struct event_base *base, struct watchdog *watchdog, const char *path,
	     struct fifo **ret, struct err *err);
void fifo_free(struct fifo *fifo); /* removes it, if it is still ours */

#endif
