/* `muster bisect`: which commit made a benchmark slower. core/batch/bisect.h decides; here are git,
 * the builds, the measurements and the file that --resume goes on from.
 *
 * Everything is kept in one directory: COMMIT/ is the worktree of a commit, COMMIT.log what its
 * build said, COMMIT.built that it was built (with which command), state.jsonl what was measured.
 * Names of commits are cut to one length, for the length of a path can change what is measured. */
#ifndef BATCH_BISECT_HUNT_H
#define BATCH_BISECT_HUNT_H

#include "base/buf.h"
#include "base/fd.h"
#include "batch/config.h"
#include "core/batch/bisect.h"
#include "core/batch/metric.h"

#define HUNT_NAME 12	  /* digits of a commit */
#define HUNT_BUILDS_MAX 8 /* at a time */

struct hunt_options {
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

struct hunt_commit {
	char hash[HUNT_NAME + 1];
	char *full, *subject;
};

struct hunt {
	const struct hunt_options *options;
	char *dir;
	struct hunt_commit *commits;
	size_t count, cap;
	struct bisect bisect;
	enum bisect_result result;
	double good_count; /* of the good commit, with --count; 0: not counted yet */
	int state_fd;
	int code; /* of a measurement that was interrupted; 0: none was */
};

#define HUNT_INIT ((struct hunt){ .state_fd = -1 })

/* Searches to the end. -EINTR: interrupted, hunt->code is the exit code. */
int hunt_run(struct hunt *hunt, const struct hunt_options *options, struct err *err);
void hunt_done(struct hunt *hunt);

/* Reports of what was found; all append. */
void hunt_text(const struct hunt *hunt, struct buf *out);
void hunt_json(const struct hunt *hunt, struct buf *out);
void hunt_html(const struct hunt *hunt, struct buf *out);
/* One commit: its state, effect and subject. */
void hunt_line(const struct hunt *hunt, size_t commit, struct buf *out);

/* ----------------------------------------------- between the files of this folder */

/* A batch that says nothing: one order at a time, its output kept in the directory `results`. */
struct batch_config hunt_batch_config(const char *output, const char *results);

/* What to say when a batch ended with this code: a signal stopped it, or it could not begin. */
int hunt_stopped(struct hunt *hunt, int code, struct err *err);

/* The worktree of a commit, or with an ending a file beside it. */
char *hunt_path(const struct hunt *hunt, size_t commit, const char *ending);

/* A file of orders that run a command in the worktrees of commits; a commit is the order's id. */
int hunt_write_orders(const struct hunt *hunt, const size_t *commits, size_t n, const char *command,
		      const char *path, struct err *err);

/* Builds these commits side by side, if they are not, and tells the machine. */
int hunt_build(struct hunt *hunt, const size_t *commits, size_t n, struct err *err);

/* Measures pairs of the good commit and this one, or counts, and tells the machine. */
int hunt_measure(struct hunt *hunt, size_t commit, struct err *err);

/* The file that --resume reads. */
int hunt_state_open(struct hunt *hunt, struct err *err);
int hunt_state_read(struct hunt *hunt, const char *line, size_t len); /* a line of it; -EINVAL */
int hunt_state_pair(struct hunt *hunt, size_t commit, double good, double candidate,
		    struct err *err);
int hunt_state_failed(struct hunt *hunt, size_t commit, struct err *err);

#endif
