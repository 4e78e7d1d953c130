/* The log tree of a job. With --log-dir (made with its parents if missing) as torchrun names it:
 *
 *     LOGDIR/RUNID_xxxxxxxx/attempt_N/LOCALRANK/{error.json,stdout.log,stderr.log}
 *     LOGDIR/RUNID_xxxxxxxx/report.json
 *
 * Without, it is a temporary directory, which is removed at the end unless something was written
 * into it. That is the common case, so it costs one directory and not one for each worker and
 * start; those of logs are made by what writes the logs:
 *
 *     $TMPDIR/torchelastic_xxxxxxxx/attempt_N_LOCALRANK_error.json
 *     $TMPDIR/torchelastic_xxxxxxxx/attempt_N/LOCALRANK/{stdout.log,stderr.log}
 *     $TMPDIR/torchelastic_xxxxxxxx/report.json
 *
 * /dev/null means no tree. N counts the starts of this host's workers, whatever the reason (a
 * failure, a node that joined), so no round ever writes over what an earlier one wrote.
 */
#ifndef RUN_LOGDIR_H
#define RUN_LOGDIR_H

#include "base/clock.h"
#include "base/err.h"
#include "base/util.h"

struct logdir {
	bool temporary;	 /* we remove it */
	char *run;	 /* LOGDIR/RUNID_xxxxxxxx, or the temporary directory; NULL: no tree */
	char *attempt;	 /* of the current round; NULL: none yet, or it could not be made */
	uint32_t starts; /* attempts so far */
};

#define LOGDIR_INIT ((struct logdir){ .run = NULL })

/* `log_dir` as in run_config. A directory that the user named must be usable, and for root, unless
 * it is `shared`, one that other users cannot replace; without a usable temporary one the job runs
 * without a tree: then it returns 0, `run` is NULL and err says why. Below `log_dir` the tree is
 * the process's held directory (base/dir) until logdir_done(). */
int logdir_open(struct logdir *logdir, const char *log_dir, const char *run_id, bool shared,
		struct err *err);

/* Makes the directories of one round, unless the tree is temporary: attempt_N and one for each
 * worker. Waits at most LOGDIR_WAIT_NS for a file system that does not answer; then the directories
 * come later. */
#define LOGDIR_WAIT_NS (50 * NS_PER_MS)
int logdir_begin(struct logdir *logdir, uint32_t nproc, struct err *err);

/* The worker's error file, which the caller frees; "" if it has no directory. */
char *logdir_error_file(const struct logdir *logdir, uint32_t local_rank);

/* Removes a temporary tree in which nothing is, so that logdir_done() need not: some file systems
 * take their time. Nobody may write into the tree any more. */
void logdir_drop_empty(struct logdir *logdir);

/* Frees, and removes the empty parts of a temporary tree. */
void logdir_done(struct logdir *logdir);

#endif
