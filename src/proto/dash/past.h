/* A job that is over, from what it left in its log directory: the events and the report of each
 * host, and the ends of its log files. Out comes what the page shows, as a saved page has it.
 *
 * All of it comes from files that anybody may have changed: what does not make sense is passed
 * over. Pure. */
#ifndef PROTO_DASH_PAST_H
#define PROTO_DASH_PAST_H

#include "base/buf.h"
#include "base/bytes.h"
#include "proto/log_block.h"

#define PAST_HOSTS_MAX 4096
#define PAST_ROUNDS_MAX 1000	    /* of a host; later ones are not shown */
#define PAST_WORKERS_MAX (1u << 16) /* of a host, in all rounds together */

struct past;

struct past *past_new(const char *log_dir); /* shown */
void past_free(struct past *past);	    /* NULL is fine */

/* One more host; what follows is about it. -E2BIG: there are too many. */
int past_add_host(struct past *past);

/* A line of its events.jsonl. -EINVAL: it is none. */
int past_take_event(struct past *past, struct bytes line);

/* Its report.json. -EINVAL: it is none. */
int past_take_report(struct past *past, struct bytes text);

/* When all hosts are known: a log file of the `attempt`th attempt of one of them, from 0 on. */
void past_take_log(struct past *past, size_t host, size_t attempt, int64_t local_rank,
		   enum log_stream stream, struct bytes bytes);

/* The log files of all hosts for this attempt are there: lines that are alike become one. */
void past_end_attempt(struct past *past, size_t attempt);

/* The job that the events of the last host belong to; NULL: they do not say. */
const char *past_run_id(const struct past *past);

/* Appends {"kind":"job","board":{...},"log":{...},"more":{...}}. */
void past_put(struct past *past, struct buf *out);

#endif
