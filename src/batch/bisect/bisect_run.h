/* `muster bisect`: which commit made a benchmark slower. core/batch/bisect.h decides; here are git,
 * the builds, the measurements and the file that --resume goes on from.
 *
 * Everything is kept in one directory: COMMIT/ is the worktree of a commit, COMMIT.log what its
 * build said, COMMIT.built that it was built (with which command), state.jsonl what was measured.
 * Names of commits are cut to one length, for the length of a path can change what is measured. */
#ifndef BATCH_BISECT_BISECT_RUN_H
#define BATCH_BISECT_BISECT_RUN_H

#include "base/buf.h"
#include "base/fd.h"
#include "batch/config.h"
#include "core/batch/bisect.h"
#include "core/batch/metric.h"

#define BISECT_RUN_NAME 12	/* digits of a commit */
#define BISECT_RUN_BUILDS_MAX 8 /* at a time */

struct bisect_run_options {
	const char *good, *bad; /* as git understands them */
	const char *build;	/* for the shell, in the worktree; NULL: nothing to build */
	const char *bench;	/* for the shell, in the worktree */
	const char *dir;	/* NULL: muster-bisect in git's own directory */
	double confidence, min_change;
	int64_t max_pairs, jobs; /* jobs: builds at a time; 0: as many as CPUs */
	int metric;		 /* enum metric */
	struct measure_options measure;
	bool resume, quiet;
};

struct bisect_run_commit {
	char hash[BISECT_RUN_NAME + 1];
	char *full, *subject;
};

struct bisect_run {
	const struct bisect_run_options *options;
	char *dir;
	struct bisect_run_commit *commits;
	size_t count, cap;
	struct bisect bisect;
	enum bisect_result result;
	double good_count; /* of the good commit, with --count; 0: not counted yet */
	int state_fd;
	int code; /* of a measurement that was interrupted; 0: none was */
};

#define BISECT_RUN_INIT ((struct bisect_run){ .state_fd = -1 })

/* Searches to the end. -EINTR: interrupted, run->code is the exit code. */
int bisect_run_search(struct bisect_run *run, const struct bisect_run_options *options,
		      struct err *err);
void bisect_run_done(struct bisect_run *run);

/* Reports of what was found; all append. */
void bisect_run_text(const struct bisect_run *run, struct buf *out);
void bisect_run_json(const struct bisect_run *run, struct buf *out);
void bisect_run_html(const struct bisect_run *run, struct buf *out);
/* One commit: its state, effect and subject. */
void bisect_run_line(const struct bisect_run *run, size_t commit, struct buf *out);

/* ----------------------------------------------- between the files of this folder */

/* A batch that says nothing: one order at a time, its output kept in the directory `results`. */
struct batch_config bisect_run_batch_config(const char *output, const char *results);

/* What to say when a batch ended with this code: a signal stopped it, or it could not begin. */
int bisect_run_stopped(struct bisect_run *run, int code, struct err *err);

/* The worktree of a commit, or with an ending a file beside it. */
char *bisect_run_path(const struct bisect_run *run, size_t commit, const char *ending);

/* A file of orders that run a command in the worktrees of commits; a commit is the order's id. */
int bisect_run_write_orders(const struct bisect_run *run, const size_t *commits, size_t n,
			    const char *command, const char *path, struct err *err);

/* Builds these commits side by side, if they are not, and tells the machine. */
int bisect_run_build(struct bisect_run *run, const size_t *commits, size_t n, struct err *err);

/* Measures pairs of the good commit and this one, or counts, and tells the machine. */
int bisect_run_measure(struct bisect_run *run, size_t commit, struct err *err);

/* The file that --resume reads. */
int bisect_run_state_open(struct bisect_run *run, struct err *err);
int bisect_run_state_read(struct bisect_run *run, const char *line,
			  size_t len); /* a line of it; -EINVAL */
int bisect_run_state_pair(struct bisect_run *run, size_t commit, double good, double candidate,
			  struct err *err);
int bisect_run_state_failed(struct bisect_run *run, size_t commit, struct err *err);

#endif
