/* The private directory of a running job on this host, and the list of them.
 *
 * It holds the sockets and the FIFO that other processes connect to: watchdog and status. Its mode
 * is 0700 and it is in $XDG_RUNTIME_DIR/muster, else in muster-UID under $TMPDIR or /tmp, which
 * must also belong to this user and be closed to others; else, for another user may have made
 * muster-UID, it is itself in $TMPDIR or /tmp, with muster-UID- before its name. A place that
 * another user can replace (dir_check()) is not used. The job holds a
 * lock in it as long as it runs: if the lock is free, the job was killed, and its heir
 * (sys/warden) or the next job removes the directory. */
#ifndef WATCH_JOBDIR_H
#define WATCH_JOBDIR_H

#include <sys/un.h>

#include "base/err.h"

#define JOBDIR_NAME_MAX 32 /* "PID-RANDOM" */

/* Longest path that leaves room for "/watchdog" in a socket address. */
#define JOBDIR_PATH_MAX (sizeof(((struct sockaddr_un *)0)->sun_path) - 16)

struct jobdir {
	char path[JOBDIR_PATH_MAX];
	int lock_fd;
};

#define JOBDIR_INIT ((struct jobdir){ .lock_fd = -1 })

/* Makes one for this process and removes those of dead jobs. */
int jobdir_init(struct jobdir *jobdir, struct err *err);

/* Removes those of dead jobs. */
void jobdir_clear_dead(void);

/* Removes it with all its files. */
void jobdir_done(struct jobdir *jobdir);

/* Path of a file in it; the caller frees it. */
char *jobdir_file(const struct jobdir *jobdir, const char *name);

/* Calls back for the directory of every job of this user that is running now. */
typedef void jobdir_fn(void *arg, const char *path, pid_t pid);
void jobdir_foreach(jobdir_fn *on_job, void *arg);

#endif
