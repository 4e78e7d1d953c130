/* The FIFO channel of the watchdog: what torch's FileTimerClient writes to.
 *
 * It is opened for reading and writing, so it never ends and never blocks, whoever holds it open;
 * its pipe is made as large as the system allows, so that a burst of requests does not become an
 * error in a worker. A bad line costs only itself. A line that stays unfinished for a second is
 * dropped.
 *
 * While requests come thick and fast it is read once in FIFO_REST_NS, not once a request; it is
 * always read before a timer expires. A FIFO that is silent wakes nobody.
 */
#ifndef WATCH_FIFO_H
#define WATCH_FIFO_H

#include "base/err.h"
#include "watch/watchdog.h"

#define FIFO_TORN_NS NS_PER_S	 /* how long a line may stay unfinished */
#define FIFO_REST_NS NS_PER_MS	 /* between two reads in a burst */
#define FIFO_PIPE_SIZE (1 << 20) /* what an unprivileged process may ask for */

struct fifo;

/* Makes the FIFO, mode 0600 whatever the umask. What exists at `path` is replaced only if it is a
 * FIFO of this user; anything else is -EEXIST. The path's directory is the caller's choice. */
int fifo_new(struct event_base *base, struct watchdog *watchdog, const char *path,
	     struct fifo **ret, struct err *err);
void fifo_free(struct fifo *fifo); /* removes it, if it is still ours */

#endif
