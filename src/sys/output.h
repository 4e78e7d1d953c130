/* What the workers print: shown on muster's own stdout and stderr, written to log files, and the
 * end of it kept for the report. A thread reads the workers' pipes and writes; the supervising loop
 * never does.
 *
 * - Nothing is lost, nothing is torn: lines come out whole and in each worker's order. A slow
 *   terminal or disk (Ctrl-S, NFS) slows the workers through their pipes, and nothing else.
 *   Memory is bounded: a pipe, a line (LINE_SPLIT_MAX) and a tail (TAIL_MAX) per stream.
 * - The thread, its pipes and log files exist only if a worker or a message needs them; workers
 *   whose output is neither changed nor kept inherit muster's own.
 * - Other processes share our stdout and stderr, so these never become non-blocking.
 * - A second thread (sys/disk.h) writes log files, so that a dead file server stops nothing.
 *
 * All functions belong to the supervising loop's thread and return at once, except output_free();
 * any thread may call output_log(). When output_fd() is readable, take the events with
 * output_next().
 */
#ifndef SYS_OUTPUT_H
#define SYS_OUTPUT_H

#include "base/buf.h"
#include "base/clock.h"
#include "base/strv.h"
#include "base/err.h"
#include "base/log.h"
#include "core/worker/step_progress.h"

#define OUTPUT_DRAIN_NS NS_PER_S /* how long a dead worker's children may hold its pipes open */
#define OUTPUT_PREFIX_DEFAULT "[${role_name}${local_rank}]:"

struct output;
struct step_pattern;
struct queued_line;

enum output_stream {
	OUTPUT_STDOUT,
	OUTPUT_STDERR,
	OUTPUT_STREAM_COUNT,
};

struct output_config {
	const char *prefix;    /* template, see output_add(); NULL: OUTPUT_PREFIX_DEFAULT */
	uint32_t merge;	       /* from this many workers, show equal lines once; 0: no */
	uint64_t log_max_size; /* a log file is set aside as NAME.1 beyond this; 0: never */
	/* A worker's line that contains one of these also goes to the worker's filter file. */
	struct strv filters[OUTPUT_STREAM_COUNT];
	bool queue; /* lines of all workers wait for output_line(), too, if they find room */
	/* finds steps in the lines of all workers; NULL: not wanted. Borrowed. */
	const struct step_pattern *steps;
};

/* Copies the configuration. Does not start the thread yet. */
int output_new(const struct output_config *config, struct output **ret_output, struct err *err);

/* After OUTPUT_FINISHED this frees everything. Before it (we are in a hurry) the thread is left
 * alone and ends with the process. */
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
	bool keep_tail[OUTPUT_STREAM_COUNT]; /* for output_tail() */
	bool count;			     /* read both streams in any case, for output_bytes() */

	/* The names a prefix template knows: role_name, rank, local_rank, group_rank, host. */
	const char *role_name;
	int64_t rank;
	uint32_t local_rank;
	int64_t group_rank;
	const char *host;
};

/* Prepares the streams of a worker that is about to start. Its descriptors 1 and 2 should become
 * ret_fds[], which the caller closes once the worker has them; -1: inherits ours. When both streams
 * go unchanged to one place they share a pipe, which keeps their order. */
int output_add(struct output *output, const struct output_worker *worker,
	       int ret_fds[OUTPUT_STREAM_COUNT], struct err *err);

/* The worker's main process has ended. The thread reads its pipes to their end, but only for
 * OUTPUT_DRAIN_NS if a process it left behind keeps them open; then comes OUTPUT_DRAINED. */
void output_worker_ended(struct output *output, uint64_t id);

/* Where both streams share a pipe, stderr is both, and stdout is not there. */
bool output_shares_pipe(const struct output *output, uint64_t id);

/* Appends the last TAIL_MAX bytes that the worker wrote to the stream. Complete once it is drained.
 * -ENOENT if there is no such worker, or its tail was not kept. */
int output_tail(struct output *output, uint64_t id, enum output_stream stream,
		struct buf *ret_tail);

/* The same without the first *seen bytes that it wrote; then *seen counts all. */
int output_tail_since(struct output *output, uint64_t id, enum output_stream stream, uint64_t *seen,
		      struct buf *ret_tail);

/* How much the worker has written so far; 0 if unknown. */
uint64_t output_bytes(const struct output *output, uint64_t id);

/* What the lines of the worker said about its steps (output_config.steps). */
void output_headway(const struct output *output, uint64_t id, struct step_progress *ret_headway);

/* Frees a worker's tail. Its stream goes on until it is drained. */
void output_forget(struct output *output, uint64_t id);

/* Prints whole lines to our stderr, in order, before later output. Never dropped. */
void output_print(struct output *output, const char *text, size_t len);

/* A sink for log_set_sink(), `arg` is the output: keeps messages up to a limit while a terminal is
 * paused, then counts them. */
void output_log(void *arg, enum log_level level, const char *line, size_t len);

/* No more workers will come: all that are left count as ended, and OUTPUT_FINISHED follows when
 * everything is written. Waits for a paused terminal, as `cat` would. */
void output_finish(struct output *output);

enum output_event_type {
	OUTPUT_DRAINED, /* of worker `id`: everything it wrote has been read */
	/* `text`: a log file or our own output cannot be written; reported once each */
	OUTPUT_TROUBLE,
	OUTPUT_LINES, /* lines are waiting, and none were */
	OUTPUT_FINISHED,
};

struct output_event {
	enum output_event_type type;
	uint64_t id;
	char text[ERR_MSG_MAX];
};

int output_fd(const struct output *output);
bool output_next(struct output *output, struct output_event *ret_event);

/* Whether everything that workers wrote has been read, of all that came so far, and no line of it
 * waits for output_line(). */
bool output_is_drained(struct output *output);

/* With output_config.queue: the oldest line that waits. False: none does, and *ret_next is the
 * number of the one to come (core/lines/line_queue.h). A line's `stream` is its enum output_stream,
 * OUTPUT_STREAM_COUNT if both share a pipe. Its text is appended to `text`, and it does not wait
 * any more. */
bool output_line(struct output *output, struct queued_line *ret_line, struct buf *text,
		 uint64_t *ret_next);

/* Appends one line for each file with losses: "FILE: N bytes are missing (reason)". */
void output_missing(struct output *output, struct buf *out);

#endif
