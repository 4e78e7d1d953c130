/* Which of a worker's streams go where: the options --redirects, --tee, --local-ranks-filter,
 * --duplicate-*-filters, --prefix, --merge-output, --capture and --log-max-size, checked, and what
 * they mean for one worker.
 *
 * As with torchrun a stream is either shown, or redirected to its log file, or both (tee, with a
 * prefix on each line), and without a log tree everything is simply shown. --prefix and
 * --merge-output are ours: they put a prefix on all that is shown and need no file for it.
 *
 * The end of each stream is kept for `muster logs` and the report, unless the stream is a terminal
 * (--capture): then workers must see that it is one, and write to it themselves.
 */
#ifndef RUN_STREAMS_H
#define RUN_STREAMS_H

#include "run/logdir.h"
#include "sys/output.h"

struct run_options;

struct run_streams {
	uint8_t *redirects, *tee; /* enum stream_mask, by local rank */
	bool *shown;		  /* by local rank */
	bool prefix_all;
	bool tail_always[OUTPUT_STREAM_COUNT]; /* read the stream just to keep its tail */
	bool tail_if_piped;		       /* keep the tail of a stream that we read anyway */
	struct output_config output;	       /* for output_new() */
};

#define RUN_STREAMS_INIT ((struct run_streams){ .redirects = NULL })

/* Borrows the texts of `options`. */
int run_streams_make(const struct run_options *options, uint32_t nproc,
		     struct run_streams *ret_streams, struct err *err);
void run_streams_done(struct run_streams *streams);

/* The log file of a worker's stream in the current round, which the caller frees; NULL: none. */
char *run_streams_file(const struct run_streams *streams, const struct logdir *logdir,
		       uint32_t local_rank, enum output_stream kind);

/* Sets the routes of one worker, and whether its tails are kept. The paths in them belong to
 * `paths`. */
void run_streams_route(const struct run_streams *streams, const struct logdir *logdir,
		       uint32_t local_rank, struct strv *paths, struct output_worker *worker);

#endif
