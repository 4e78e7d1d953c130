/* Explains a hang: which collective the workers wait in and who did not come, from their flight
 * records, with the places where they stand, from their stacks.
 *
 * forensics_collect() does it for the workers of this host. For a whole job each host writes what
 * it has collected, and the one that asks adds up and judges:
 *
 *     forensics_begin(&f);
 *     forensics_read(&f, host, text, len, &err);       for each host
 *     forensics_judge(&f, world_size, patience_ns);
 */
#ifndef RUN_FORENSICS_H
#define RUN_FORENSICS_H

#include "base/err.h"
#include "core/collectives/arrivals.h"
#include "core/rounds/msg.h"
#include "run/tell/finding_text.h"
#include "watch/flight_fetch.h"
#include "watch/stacks.h"

struct forensics_question {
	struct flight_source flight; /* without a directory there is no flight recorder */
	/* Those without a pid have died: their records are looked for, stacks they have none. */
	const struct stacks_worker *workers;
	size_t count;
	size_t world_size;    /* 0: do not judge */
	uint64_t patience_ns; /* see core/collectives/join.h */
	uint64_t deadline_ns;
	int cancel_fd;	  /* -1: none */
	const char *host; /* its name, for those who join the records of several; NULL: none */
};

struct forensics {
	/* One for each worker, by rank after the judgement; NULL: no flight recorder. */
	struct flight_answer *answers;
	size_t count, cap;
	bool many_hosts;	  /* after the judgement: their names tell something */
	struct join join;	  /* after the judgement */
	struct findings findings; /* the same */
	struct laggards laggards; /* after forensics_find_laggards() */
	struct stack_set stacks;
	struct buf missed; /* hosts that gave nothing, a line each */
};

/* Blocks for as long as the deadline says: call it in a command or in a thread outside the loop. */
void forensics_collect(const struct forensics_question *question, struct forensics *ret_forensics);

void forensics_begin(struct forensics *forensics);
void forensics_judge(struct forensics *forensics, size_t world_size, uint64_t patience_ns);
void forensics_done(struct forensics *forensics);

/* After the judgement, of records that were fetched just now: who comes last to collectives too
 * often. Ranks of several hosts are compared if the records have the hosts' clocks. */
void forensics_find_laggards(struct forensics *forensics);

/* The records and places of this host's workers as JSON, and back. -EPROTO: not such a text.
 * `clock`: the job's clock minus this host's. */
void forensics_write(const struct forensics *forensics, const struct wall_offset *clock,
		     struct buf *out);
int forensics_read(struct forensics *forensics, const char *host, const char *text, size_t len,
		   struct err *err);

/* Takes the records from files instead: see watch/flight_dumps.h. Judge with the number of answers
 * as the size of the world. */
int forensics_read_dumps(struct forensics *forensics, const char *path, struct err *err);

/* A host gave nothing. */
void forensics_miss(struct forensics *forensics, const char *host, const char *why);

/* The first finding and its culprit, for other hosts. `exclude`: leave the culprit's host out, if
 * it is one host and does not come; a worker that comes with another operation, size or type has a
 * fault in its program. */
void forensics_blame(const struct forensics *forensics, bool exclude, struct blame *ret_blame);

/* Whether the records prove that a collective cannot end: ranks came with something else, wait for
 * each other in a circle, or the one that is missing does nothing. One that works may be on its
 * way, unless it has been for long. */
bool forensics_cannot_end(const struct forensics *forensics, bool long_since);

/* Where the records name nobody: the worker that is stopped, or elsewhere than the most. */
void forensics_suspect(const struct forensics *forensics, struct blame *ret_blame);

/* What is known of the collectives, a line each: the findings; or why there is none. "" without a
 * flight recorder. */
void forensics_collectives(const struct forensics *forensics, struct buf *out);

/* A line for each that comes last too often; "" if there is none. */
void forensics_laggards(const struct forensics *forensics, struct buf *out);

#endif
