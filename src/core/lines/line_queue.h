/* Lines on their way from the output of this host's workers to the job's one log (--job-log).
 *
 * Bounded: a line that finds no room is dropped. Every line has a number, dropped ones too, so that
 * whoever reads the numbers sees how many are missing. Pure; the caller locks. */
#ifndef CORE_LINES_LINE_QUEUE_H
#define CORE_LINES_LINE_QUEUE_H

#include "base/buf.h"
#include "base/clock.h"

#define LINE_QUEUE_BYTES ((size_t)1 << 20)    /* waiting, with their heads */
#define LINE_QUEUE_LINE_MAX ((size_t)8 << 10) /* longer lines become several */

/* How fast a host may send: all hosts together LINE_PACE_TOTAL, but each at least LINE_PACE_LEAST,
 * in bytes a second. What is above that waits in the queue, or is dropped. */
#define LINE_PACE_TOTAL ((uint64_t)8 << 20)
#define LINE_PACE_LEAST ((uint64_t)16 << 10)
#define LINE_PACE_BURST ((uint64_t)256 << 10) /* may be sent at once after a pause */

struct queued_line {
	uint64_t number;
	uint32_t rank;
	uint32_t len;
	uint8_t stream;		   /* the caller's */
	const unsigned char *text; /* borrowed until the queue changes */
};

/* Fields are private but for `next` and `dropped`. */
struct line_queue {
	struct buf bytes;
	uint64_t next;	  /* the number of the line to come */
	uint64_t dropped; /* lines */
};

#define LINE_QUEUE_INIT ((struct line_queue){ .next = 0 })
void line_queue_done(struct line_queue *queue);

/* A line without its end. */
void line_queue_put(struct line_queue *queue, uint32_t rank, uint8_t stream, const void *text,
		    size_t len);
bool line_queue_empty(const struct line_queue *queue);

/* The oldest one; false: there is none. line_queue_drop() takes it out. */
bool line_queue_first(const struct line_queue *queue, struct queued_line *ret_line);
void line_queue_drop(struct line_queue *queue);

/* All 0 is the beginning: a whole burst may be sent. */
struct line_pace {
	uint64_t spent;	   /* bytes that count against the burst */
	uint64_t since_ns; /* up to when `spent` has been paid off */
};

uint64_t line_pace_rate(uint32_t nodes); /* bytes a second, of one host among so many */

/* How many bytes may be sent now. */
uint64_t line_pace_room(struct line_pace *pace, uint64_t rate, uint64_t now_ns);
void line_pace_spend(struct line_pace *pace, uint64_t bytes);

/* When a good part of a burst may be sent again. */
uint64_t line_pace_due_ns(const struct line_pace *pace, uint64_t rate);

#endif
