/* What the workers print: to muster's own stdout and stderr, to log files, and the last of it kept
 * for the report. One thread reads the workers' pipes and writes; the supervising loop never does.
 *
 * - Nothing is lost, nothing is torn: lines come out whole and in each worker's order. A terminal
 * or a disk that is slow (Ctrl-S, NFS) slows the workers through their pipes and nobody else.
 * Memory is bounded: a pipe, a line (LINE_SPLIT_MAX) and a tail (TAIL_MAX) a stream.
 * - The thread, its pipes and log files exist only if a worker or a message needs them; workers
 * whose output is neither changed nor kept inherit muster's own.
 * - Our stdout and stderr are shared with others, so they are never made non-blocking.
 * - Log files are written by a second thread (sys/disk.h), so that a dead file server stops
 * nothing.
 *
 * All functions belong to the supervising loop's thread and return at once, output_free() excepted;
 * output_log() may be called by any thread.
 * Watch output_fd() for reading and take the news with output_next().
 */
#ifndef SYS_OUTPUT_H
#define SYS_OUTPUT_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/strv.h"
#include "base/err.h"
#include "base/log.h"

#define OUTPUT_DRAIN_NS NS_PER_S /* how long a dead worker's heirs may hold its pipes open */
#define OUTPUT_PREFIX_DEFAULT "[${role_name}${local_rank}]:"

struct output;

enum output_stream {
	OUTPUT_STDOUT,
	OUTPUT_STDERR,
	OUTPUT_STREAM_COUNT,
};

struct output_config {
	const char *prefix; /* template, see output_add(); NULL: OUTPUT_PREFIX_DEFAULT */
	uint32_t merge;	    /* this many workers: lines they print alike are shown once; 0: not */
	uint64_t log_max_size; /* a log file is set aside as NAME.1 beyond this; 0: never */
	/* A line of a worker that has one of these in it goes to the worker's filter file too. */
	struct strv filters[OUTPUT_STREAM_COUNT];
};

/* Borrows nothing. Starts no thread yet. */
int output_new(const struct output_config *config, struct output **ret_output, struct err *err);

/* After OUTPUT_FINISHED this gives everything back. Before it (someone is in a hurry) the thread is
 * left to itself, to end with the process. */
void output_free(struct output *output);

/* Where one stream of a worker goes. All false or NULL: to /dev/null. */
struct output_route {
	bool console;		 /* to our own stdout or stderr */
	bool prefix;		 /* each line with the prefix in front, on the console */
	const char *file;	 /* log file, raw bytes; NULL: none */
	const char *filter_file; /* for lines that match, with prefix; may be shared; NULL: none */
};

struct output_worker {
	uint64_t id; /* never used before in this run: counts starts, not ranks */
	struct output_route route[OUTPUT_STREAM_COUNT];
	bool keep_tail; /* of its stderr, for output_tail() */
	bool count;	/* read both streams in any case, for output_bytes() */

	/* The names a prefix template knows: role_name, rank, local_rank, group_rank, host. */
	const char *role_name;
	int64_t rank;
	uint32_t local_rank;
	int64_t group_rank;
	const char *host;
};

/* Prepares the streams of a worker about to be started. Its descriptors 1 and 2 are to become
 * ret_fds[], which are the caller's to close once the worker has them; -1: inherits ours. When both
 * streams end up in one place unchanged they share one pipe, so that their order is kept. */
int output_add(struct output *output, const struct output_worker *worker,
	       int ret_fds[OUTPUT_STREAM_COUNT], struct err *err);

/* The worker's main process has ended. Its pipes are read to their end, for OUTPUT_DRAIN_NS at most
 * if something it left behind keeps them open; then comes OUTPUT_DRAINED. */
void output_worker_ended(struct output *output, uint64_t id);

/* Appends the last TAIL_MAX bytes the worker wrote to stderr (to both, where they share a pipe).
 * Complete once it is drained. -ENOENT if there is no such worker, or nothing of it was kept. */
int output_tail(struct output *output, uint64_t id, struct buf *ret_tail);

/* How much the worker has written so far; 0 for one that is not known. */
uint64_t output_bytes(const struct output *output, uint64_t id);

/* Lets go of a worker's tail. Its stream goes on until it is drained. */
void output_forget(struct output *output, uint64_t id);

/* Prints whole lines to our stderr, in order, before what comes later. Never dropped. */
void output_print(struct output *output, const char *text, size_t len);

/* A sink for log_set_sink(), `arg` is the output: messages while a terminal is paused are kept up
 * to a limit, then counted. */
void output_log(void *arg, enum log_level level, const char *line, size_t len);

/* No worker comes any more: all that are left count as ended, and once everything is written comes
 * OUTPUT_FINISHED. A paused terminal is waited for, as `cat` would. */
void output_finish(struct output *output);

enum output_event_type {
	OUTPUT_DRAINED, /* of worker `id`: everything it wrote has been read */
	OUTPUT_TROUBLE, /* `text`: a log file or our own output cannot be written; said once each */
	OUTPUT_FINISHED,
};

struct output_event {
	enum output_event_type type;
	uint64_t id;
	char text[ERR_MSG_MAX];
};

int output_fd(const struct output *output);
bool output_next(struct output *output, struct output_event *ret_event);

/* Appends one line for each place that lost something and why: "FILE: N bytes are missing
 * (reason)". */
void output_missing(struct output *output, struct buf *out);

#endif
