/* What all workers of a job print, for the page: streams of log blocks (proto/log_block.h) go in,
 * one for each host, and lines come out as JSON, each with the ranks that print it:
 *
 *     [milliseconds, "0-3,8", text]
 *
 * Lines that many ranks print alike within a moment become one. The last ones are kept for whoever
 * comes later. What the reader has no room for is left out and counted. Pure. */
#ifndef PROTO_DASH_LOG_FEED_H
#define PROTO_DASH_LOG_FEED_H

#include "base/buf.h"
#include "base/bytes.h"

#define LOG_FEED_LINE_MAX 2048		 /* bytes; longer lines are cut into pieces */
#define LOG_FEED_KEPT_MAX 4096		 /* lines, */
#define LOG_FEED_KEPT_BYTES (256u << 10) /* and together */
#define LOG_FEED_WRITERS_MAX (1u << 17)	 /* streams of workers; more are not shown */
#define LOG_FEED_RANK_MAX ((uint32_t)1 << 20)

struct log_feed;

struct log_feed *log_feed_new(void);
void log_feed_free(struct log_feed *feed); /* NULL is fine */

/* A piece of the stream that comes as `slot`; `last`: the stream is over. -EPROTO: it is not one.
 */
int log_feed_take(struct log_feed *feed, uint16_t slot, struct bytes piece, bool last,
		  uint64_t now_ns);

/* All streams are over: lines without an end are shown, too. */
void log_feed_end(struct log_feed *feed, uint64_t now_ns);

/* Lines have waited long enough for equal ones: keeps them, with this time. False: none has. */
bool log_feed_collect(struct log_feed *feed, uint64_t now_ns, uint64_t wall_ms);

/* Appends an object: {"lines":[...],"lost":3}, with the kept lines after number *at, which moves
 * on. About `max` bytes: older ones are left out. False: there are none, and nothing is appended.
 */
bool log_feed_put(const struct log_feed *feed, uint64_t *at, size_t max, struct buf *out);

#endif
