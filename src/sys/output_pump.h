/* The inside of sys/output.h: what the supervising loop and the output thread share, and the
 * thread.
 *
 * The loop prepares a `struct worker`, passes it to the thread through `added` and keeps it in
 * `workers` for its tail. It is freed when both have released it. */
#ifndef SYS_OUTPUT_PUMP_H
#define SYS_OUTPUT_PUMP_H

#include <pthread.h>

#include "base/heap.h"
#include "base/list.h"
#include "base/map.h"
#include "core/lines/line_queue.h"
#include "core/lines/line_split.h"
#include "core/lines/merge.h"
#include "core/lines/tail.h"
#include "core/worker/worker_page.h"
#include "sys/console.h"
#include "sys/disk.h"
#include "sys/output.h"

struct worker;

/* The names of a prefix. Texts are owned. */
struct prefix_names {
	char *role_name;
	char *host;
	int64_t rank_base; /* rank of local rank 0 */
	int64_t group_rank;
};

/* One pipe. Belongs to the thread once it has it. */
struct stream {
	struct worker *worker; /* NULL: there is no such stream */
	int fd;
	uint64_t number; /* of all streams ever, as the screen's writer */
	enum output_stream kind;
	bool console;
	bool tail;
	bool merge;   /* its lines wait for equal ones */
	char *prefix; /* "": none */
	char *filter_prefix;
	char *file_path;
	char *filter_path;
	struct disk_file *file;
	struct disk_file *filter_file;
	struct line_split split;
	struct tail kept;	/* guarded by output->lock */
	struct heap_node drain; /* when the thread stops waiting for its end */
	struct heap_node show;	/* when its unfinished line is shown */
};

struct worker {
	uint64_t id;
	uint32_t local_rank;
	struct prefix_names names;
	struct stream streams[OUTPUT_STREAM_COUNT];
	bool shares_pipe;	  /* both of its streams are the one of stderr */
	bool ended;		  /* used by the loop: it has told the thread */
	_Atomic uint64_t bytes;	  /* read so far; written by the thread, read by the loop */
	struct worker_page *page; /* its steps, likewise; NULL: not looked for */

	/* Used by the thread: */
	struct list link; /* in pump->workers */
	unsigned open_streams;
	bool draining;

	/* Guarded by output->lock: */
	struct list added_link;
	struct list ended_link;
	uint64_t ended_ns;
	bool with_loop; /* the loop may ask for the tail */
	bool with_pump; /* the thread reads for it */
};

struct event_node {
	struct list link;
	struct output_event event;
};

struct output {
	char *prefix_template;
	uint32_t merge;
	uint64_t log_max_size;
	struct strv filters[OUTPUT_STREAM_COUNT];
	const struct step_pattern *steps;
	bool queues;
	struct console consoles[OUTPUT_STREAM_COUNT];
	bool one_console; /* stdout and stderr are one file: consoles[0] is both */

	/* Used by the loop: */
	bool finished;
	uint64_t next_number;
	struct map workers; /* id -> struct worker */

	int epoll_fd;  /* the thread waits on it; set before it starts */
	int wake_fd;   /* eventfd: wakes the thread */
	int notify_fd; /* eventfd: wakes the loop */

	pthread_mutex_t lock; /* never held during I/O; guards: */
	pthread_t thread;
	bool started;
	bool woken; /* the thread will look at what follows */
	struct list added;
	struct list ended;
	struct list events;
	size_t undrained; /* workers */
	struct line_queue queue;
	struct buf messages; /* for stderr */
	uint64_t dropped_messages;
	bool finishing;
	bool exited;	   /* no thread takes messages any more */
	struct disk *disk; /* made by the thread; the loop asks it about losses */
	uint64_t console_missing[OUTPUT_STREAM_COUNT];
	int console_error[OUTPUT_STREAM_COUNT];
};

/* "[default3]:" for local ranks and ranks as texts. */
void output_render_prefix(const struct output *output, const struct prefix_names *names,
			  const char *rank, const char *local_rank, struct buf *out);
struct console *output_console(struct output *output, enum output_stream kind);
void output_post(struct output *output, const struct output_event *event);
/* frees it if neither side holds it; with the lock */
void output_worker_release(struct worker *worker);
void *output_pump_main(void *output);

#endif
