/* The lines that torch's FileTimerClient writes into its FIFO, and a splitter for the byte stream
 * that they arrive in.
 *
 *     {"version": 1, "pid": 18266, "scope_id": "step", "expiration_time": 1700000000.25, "signal":
 * 9}
 *
 * Accepts what Python's json module accepts: any member order, unknown members, all escapes, NaN
 * and the infinities; the last of equal members counts. `pid` and `signal` must be integers,
 * `expiration_time` a number, `scope_id` a string. The caller must check the values. */
#ifndef PROTO_TIMER_LINE_H
#define PROTO_TIMER_LINE_H

#include "base/buf.h"

#define TIMER_LINE_MAX 16384 /* bytes before the newline */

/* Why a line was dropped. Reported once per kind, counted always. */
enum timer_fault {
	TIMER_FAULT_NONE,
	TIMER_FAULT_EMPTY,
	TIMER_FAULT_TOO_LONG,
	TIMER_FAULT_NOT_UTF8,
	TIMER_FAULT_SYNTAX,
	TIMER_FAULT_MEMBER_MISSING,
	TIMER_FAULT_MEMBER_TYPE,
	TIMER_FAULT_OUT_OF_RANGE, /* an integer beyond 64 bits */
	TIMER_FAULT_TORN,	  /* its rest did not come in time */
	TIMER_FAULT_COUNT,
};

const char *timer_fault_text(enum timer_fault fault);

struct timer_line {
	int64_t pid;
	double expiration_s; /* since the epoch, may be NaN or infinite; negative: release */
	int64_t signal;
	struct buf scope; /* valid UTF-8 without NUL (U+FFFD stands for NUL and lone surrogates) */
};

#define TIMER_LINE_INIT ((struct timer_line){ .scope = BUF_INIT })

void timer_line_done(struct timer_line *line);

/* Parses one line without its newline; `line` is reused from call to call. On a fault its content
 * is unspecified. */
enum timer_fault timer_line_parse(const char *text, size_t len, struct timer_line *line);

/* The monotonic time of a deadline that is neither NaN nor a release. The worker has the same wall
 * clock, so the distance to now is right on receipt; later steps of the wall clock do not
 * matter. */
uint64_t timer_line_deadline_ns(double expiration_s, uint64_t wall_ns, uint64_t now_ns);

/* Cuts a stream into lines. Feed bytes in any pieces; then take lines until none is left. */
struct timer_splitter {
	struct buf pending;
	size_t scanned; /* bytes of `pending` known to hold no newline */
	bool skipping;	/* inside a line that was too long */
};

#define TIMER_SPLITTER_INIT ((struct timer_splitter){ .pending = BUF_INIT })

void timer_splitter_done(struct timer_splitter *splitter);
void timer_splitter_feed(struct timer_splitter *splitter, const void *data, size_t len);

enum timer_split {
	TIMER_SPLIT_NONE,     /* no whole line yet */
	TIMER_SPLIT_LINE,     /* *ret_text is one, good until the next call */
	TIMER_SPLIT_TOO_LONG, /* one was dropped; reported once per line */
};

enum timer_split timer_splitter_next(struct timer_splitter *splitter, const char **ret_text,
				     size_t *ret_len);

/* Whether a line has begun and not ended. Drop discards it; the next byte begins a line. */
bool timer_splitter_partial(const struct timer_splitter *splitter);
void timer_splitter_drop(struct timer_splitter *splitter);

#endif
