/* The job's one log: streams of line blocks go in, one for each host, and text comes out.
 *
 *     [3]: a line that rank 3 wrote to stdout, or to both in one
 *     [3!]: a line that it wrote to stderr
 *     muster: 1204 lines of node7 are missing here
 *
 * It holds one unfinished block for each host at most, and a number. Pure. */
#ifndef PROTO_JOBLOG_JOB_LOG_H
#define PROTO_JOBLOG_JOB_LOG_H

#include "base/map.h"
#include "proto/joblog/line_block.h"

#define JOB_LOG_HOSTS_MAX (1u << 16) /* ids that are remembered */

/* Fields are private but for the counts. */
struct job_log {
	struct map streams; /* slot -> struct stream, while the host sends */
	struct map hosts;   /* id -> struct host */
	uint64_t lines;	    /* written */
	uint64_t missing;   /* known to be */
};

#define JOB_LOG_INIT ((struct job_log){ .lines = 0 })
void job_log_done(struct job_log *log);

/* All hosts begin new streams. */
void job_log_restart(struct job_log *log);

/* A piece of the stream that comes as `slot`, from the host with this name; `last`: it is over.
 * Appends lines. -EPROTO: it is not such a stream; the rest of it is passed over. */
int job_log_take(struct job_log *log, uint16_t slot, const char *name, struct bytes piece,
		 bool last, struct buf *out);

/* Appends a line about what is missing in all; nothing if nothing is. */
void job_log_sum(const struct job_log *log, struct buf *out);

#endif
