/* What the hosts of a batch and its coordinator tell each other: a stream of messages, which
 * travels in the FRAME_WORK frames of a link, cut anywhere.
 *
 *     host -> coordinator                            coordinator -> host
 *     HELLO     this is me, and what I have          WELCOME   my term is this
 *     STARTED   this order runs                      GIVE      run this order
 *     OUTPUT    a piece of what it wrote             ACK       this result is written
 *     RESULT    how it ended                         DROP      this lease is another's
 *     RETURNED  it did not start                     RECALL    return some
 *     RECALLED  that was all                         STOP      stop what runs
 *     BEAT      I am here                            ANSWERED  so am I
 *     FETCH     send this part of a file             PIECE     here is some of it; for a
 *               or a directory, or beneath it                  directory: of what is in it
 *     FILE      a piece of a file it made            BYE       the batch is over
 *
 * core/deal has the machines at both ends. A message is a head of fixed size and a text, all
 * little-endian; docs/PROTOCOL.md has every byte. Pure functions on bytes. */
#ifndef PROTO_DEAL_WORK_MSG_H
#define PROTO_DEAL_WORK_MSG_H

#include "base/buf.h"
#include "base/err.h"
#include "core/deal/deal.h"
#include "proto/orders.h"

#define WORK_MSG_MAX ((size_t)17 << 20) /* a result line, and some */
#define WORK_OUTPUT_MAX ((size_t)64 << 10)
#define WORK_FETCH_MAX ((size_t)1 << 20) /* that a host may ask for at a time */
#define WORK_HELD_MAX 4096
#define WORK_VARIANTS_MAX 8
#define WORK_NAME_MAX NEEDS_NAME_MAX

enum work_type {
	WORK_HELLO,
	WORK_STARTED,
	WORK_OUTPUT,
	WORK_RESULT,
	WORK_RETURNED,
	WORK_RECALLED,
	WORK_BEAT,
	WORK_WELCOME,
	WORK_GIVE,
	WORK_ACK,
	WORK_DROP,
	WORK_RECALL,
	WORK_STOP,
	WORK_ANSWERED,
	WORK_BYE,
	WORK_FETCH,
	WORK_FILE,
	WORK_PIECE,
	WORK_TYPE_COUNT,
};

static inline bool work_from_host(enum work_type type)
{
	return type < WORK_WELCOME || type == WORK_FETCH || type == WORK_FILE;
}

/* Flags of RESULT; FINAL also of FILE and PIECE: the last one of a file. */
#define WORK_FINAL 1
#define WORK_OK 2
#define WORK_UNRUN 4
#define WORK_FAILED 8 /* PIECE: the file cannot be had, and the text says why */
#define WORK_LIST 16  /* PIECE: it is a directory, and the text lists it: names, each with a NUL */
#define WORK_LINK 32  /* PIECE: it is a symbolic link, and the text is where it leads */

/* Value of GIVE, else 0; older hosts run it as any order, but have no commands around orders. */
#define WORK_CANARY 1

struct work_msg {
	enum work_type type;
	uint8_t flags;
	uint32_t order, lease;
	/* RESULT, ACK: of the result; OUTPUT: stream; GIVE: attempts before; FETCH, FILE, PIECE: of
	 * the file, in the order's list */
	uint32_t number;
	/* RECALL; STOP: enum worklist_halt; BYE: exit code; GIVE: the first run; FETCH: bytes;
	 * FILE, PIECE: mode of the file */
	uint32_t count;
	/* HELLO, WELCOME: term; BEAT: cookie; RESULT: start, wall clock ns; FETCH, FILE, PIECE:
	 * offset; GIVE: what kind of order it is */
	uint64_t value;
	const void *text; /* borrowed */
	size_t len;
};

void work_put(struct buf *out, const struct work_msg *msg);

/* Splits off the message at `data`: 1, 0 (more bytes are needed) or -EPROTO. *ret_size is its
 * size; its text points into `data`. */
int work_next(const void *data, size_t len, struct work_msg *ret_msg, size_t *ret_size,
	      struct err *err);

/* The text of HELLO. Of the facts, those that are numbers. */
struct work_hello {
	struct agent_id id;
	struct host_facts facts;
	char name[WORK_NAME_MAX];
	char features[NEEDS_FEATURES_MAX]; /* "gpu,ssd" */
	uint32_t held[WORK_HELD_MAX];
	uint32_t held_count;
};

void work_put_hello(struct buf *out, const struct work_hello *hello);
int work_get_hello(const void *text, size_t len, struct work_hello *ret_hello, struct err *err);

/* The text of GIVE: what an order runs, as a line of an order file, with its identity in front; A,
 * B, ... of one that has variants follow each other, with newlines between them. */
void work_put_order(struct buf *out, const struct order *order);
int work_get_orders(const void *text, size_t len, struct orders *orders, struct err *err);

#endif
