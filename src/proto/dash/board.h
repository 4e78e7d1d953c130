/* What the page shows of a job, and what has changed since it was last told.
 *
 * The states of all hosts (/api/state of each) go in, board_begin() to board_end(). Out comes JSON:
 * everything (board_put_all), or what has changed since the last call of board_put_changes(). Ranks
 * are columns of small integers, so that a change of every rank of 1,000 is a few kB:
 *
 *     {"all":true,"n":4,"base":17,"c":{"state":[2,2,2,2],...},"hosts":[[0,{...}],...],"job":{...}}
 *     {"base":18,"c":{"cpu":[0,35,2,40]},"sample":[...]}
 *
 * A column is an array of all values, or (in changes, where that is shorter) an array of pairs
 * under its name with a "~" before it: how many ranks to skip, and the new value. Values that
 * tremble are only told when they have changed enough to be seen. The steps of ranks are told
 * relative to the least one, "base". Pure. */
#ifndef PROTO_DASH_BOARD_H
#define PROTO_DASH_BOARD_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/util.h"

#define BOARD_RANKS_MAX ((size_t)1 << 20)
#define BOARD_HOSTS_MAX ((size_t)1 << 17)
#define BOARD_SAMPLES_MAX 512 /* of the charts; older ones become fewer */

enum board_column {
	BOARD_HOST, /* its place in the list of hosts */
	BOARD_STATE,
	BOARD_PID,
	BOARD_CPU,    /* per cent of one CPU */
	BOARD_MEMORY, /* MiB */
	BOARD_STEP,   /* above the least; -1: it tells none */
	/* seconds without a sign of life, or a step where that is far longer than usual, rounded
	 * down to a power of 2; 0: less than 4, or unknown */
	BOARD_SILENT,
	BOARD_COLUMN_COUNT,
};

enum board_state {
	BOARD_UNKNOWN, /* its host does not answer */
	BOARD_STARTING,
	BOARD_RUNNING,
	BOARD_ENDED,
	BOARD_FAILED,
	BOARD_STOPPED, /* muster ended it, because of another one or of a user */
	BOARD_STATE_COUNT,
};

/* Texts of JSON that the caller supplies. */
enum board_part {
	BOARD_JOB,	/* an object: what is known of the whole job */
	BOARD_ATTEMPTS, /* an array */
	BOARD_ABOUT,	/* an object: command, options, environment */
	BOARD_PART_COUNT,
};

struct board_rank {
	int64_t now[BOARD_COLUMN_COUNT], told[BOARD_COLUMN_COUNT];
	int64_t step; /* -1: it tells none */
	double cpu_s; /* so far */
	uint64_t seen_ns;
	bool heard; /* since board_begin() */
};

struct board_text {
	struct buf now, told;
};

/* A moment of the charts. */
struct board_sample {
	int64_t when_ms; /* wall time */
	int64_t running, cpu, memory, step;
	double rate;
};

/* Fields are private; read them in tests only. */
struct board {
	struct board_rank *ranks;
	size_t count, cap;
	struct board_text *hosts;
	size_t host_count, hosts_cap;
	size_t next_host; /* between board_begin() and board_end() */
	struct board_text parts[BOARD_PART_COUNT];
	struct board_text progress;
	int64_t base, told_base; /* the least step */
	bool reshaped;		 /* changes would not do: tell everything */
	uint64_t now_ns, wall_ms;
	struct board_sample samples[BOARD_SAMPLES_MAX];
	size_t sample_count;
	uint64_t sample_every_ms;
	bool sampled;	     /* the last sample is not told yet */
	double rate, left_s; /* steps per second; negative: unknown */
	double still_s; /* as in struct step_progress_sum; negative: none runs that tells steps */
	double usual_s;
	int64_t total; /* steps; 0: unknown */
};

struct board *board_new(void);
void board_free(struct board *board); /* NULL is fine */

/* The states of all hosts follow, in the order of their ranks. */
void board_begin(struct board *board, size_t world_size, uint64_t now_ns, uint64_t wall_ms);

/* One host: its state as JSON, or why it has none. -EINVAL: that is not a state; the host is listed
 * with this as the reason. */
int board_take(struct board *board, const char *name, int64_t group_rank, bool failed,
	       struct bytes text);
void board_end(struct board *board);

/* The job is over. Workers that have not failed and were not stopped have ended: those of `count`
 * ranks from `first` on, the others too if it is over `everywhere`; otherwise nobody knows of them
 * any more. */
struct board_over {
	size_t first, count;
	bool everywhere;
};
void board_finish(struct board *board, const struct board_over *over, uint64_t wall_ms);
void board_mark(struct board *board, int64_t rank, enum board_state state); /* this one ended so */

void board_set_part(struct board *board, enum board_part part, const struct buf *json);

/* Appends everything, for one who knows nothing yet. Does not count as telling. */
void board_put_all(struct board *board, struct buf *out);

/* Appends what has changed since the last call. False: nothing has, and nothing is appended. After
 * a change of the job's size that is everything. */
bool board_put_changes(struct board *board, struct buf *out);

#endif
