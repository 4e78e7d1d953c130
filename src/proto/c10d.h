/* The wire format of PyTorch's TCPStore (torch 2.13): 19 queries and their replies.
 *
 * A request is one byte that names the query, then its arguments; a reply is just its values. There
 * is no length prefix and no request id, so a receiver must parse to know where a message ends, and
 * a client must remember what it asked. All integers are little-endian; a string is a u64 length
 * and its bytes; a list is a u64 count and its strings.
 *
 * Everything here is a function of bytes. One `struct c10d_message` describes a request or a reply
 * in both directions, and one table of signatures (c10d.c) drives encoder and decoder alike. */
#ifndef PROTO_C10D_H
#define PROTO_C10D_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/err.h"

enum c10d_query {
	C10D_VALIDATE,
	C10D_SET,
	C10D_COMPARE_SET,
	C10D_GET,
	C10D_ADD,
	C10D_CHECK,
	C10D_WAIT,
	C10D_GETNUMKEYS,
	C10D_DELETE_KEY,
	C10D_APPEND,
	C10D_MULTI_GET,
	C10D_MULTI_SET,
	C10D_CANCEL_WAIT,
	C10D_PING,
	C10D_QUEUE_PUSH,
	C10D_QUEUE_POP,
	C10D_QUEUE_LEN,
	C10D_LIST_KEYS,
	C10D_BARRIER,
	C10D_QUERY_COUNT,
};

#define C10D_MAGIC 0x3C85F7CEu /* the argument of VALIDATE, the first request on a connection */

/* Replies of one byte. */
enum { C10D_READY = 0, C10D_NOT_READY = 1 };	   /* CHECK */
enum { C10D_STOP_WAITING = 0, C10D_CANCELED = 1 }; /* WAIT and BARRIER; CANCEL_WAIT */

/* Every length and count from the wire is compared with one of these before it is used. The first
 * three are PyTorch's own; a message has a total limit because 131,072 values of 8 MiB are an
 * attack. */
#define C10D_KEY_MAX ((size_t)8192)
#define C10D_VALUE_MAX ((size_t)8 << 20)
#define C10D_KEYS_MAX ((size_t)131072)
#define C10D_MESSAGE_MAX ((size_t)64 << 20)

struct c10d_limits {
	size_t key_max;	    /* bytes of a key, prefixes included */
	size_t value_max;   /* bytes of a value in a request */
	size_t keys_max;    /* keys or pairs in one list */
	size_t message_max; /* bytes of a whole message */
};

#define C10D_LIMITS_DEFAULT \
	((struct c10d_limits){ .key_max = C10D_KEY_MAX, \
			       .value_max = C10D_VALUE_MAX, \
			       .keys_max = C10D_KEYS_MAX, \
			       .message_max = C10D_MESSAGE_MAX })

/* Which fields count depends on the query:
 *
 *   request                          string[]             number       list
 *   VALIDATE, PING                                        magic/nonce
 *   SET, APPEND, QUEUE_PUSH          key, value
 *   COMPARE_SET                      key, expected, desired
 *   GET, DELETE_KEY, QUEUE_POP/LEN   key
 *   ADD, BARRIER                     key                  delta/world size
 *   CHECK, WAIT, MULTI_GET                                             keys
 *   MULTI_SET                                                          key, value, key, value, …
 *   GETNUMKEYS, LIST_KEYS, CANCEL_WAIT: nothing
 *
 *   reply
 *   COMPARE_SET, GET                 value
 *   ADD, GETNUMKEYS, DELETE_KEY, QUEUE_LEN, CHECK, WAIT, BARRIER, CANCEL_WAIT, PING: number
 *   QUEUE_POP                        value if number > 0  length before
 *   MULTI_GET                                                          values, no count on the wire
 *   LIST_KEYS                                                          keys
 *   VALIDATE, SET, APPEND, MULTI_SET, QUEUE_PUSH have no reply.
 */
struct c10d_message {
	enum c10d_query query;
	struct bytes string[3];
	int64_t number;
	size_t count; /* keys, values or pairs in the list */
	/* its strings in wire form: read with c10d_list_next, built with c10d_put_string */
	struct bytes list;
	size_t size; /* of the message on the wire; set by the decoder */
};

const char *c10d_query_name(enum c10d_query query); /* "COMPARE_SET" */
bool c10d_has_reply(enum c10d_query query);

/* Takes the next string off a list that a decoder accepted; false at its end. */
bool c10d_list_next(struct bytes *list, struct bytes *ret_string);

/* Encoding, appended to `buf`. */
void c10d_put_request(struct buf *buf, const struct c10d_message *request);
void c10d_put_string(struct buf *buf, struct bytes string);
void c10d_put_i64(struct buf *buf, int64_t number);
void c10d_put_u32(struct buf *buf, uint32_t number);

/* How far the decoding of one message has come, so that no byte of a message that arrives in pieces
 * is read twice. A zeroed parser is ready, and is ready again after a whole message. */
struct c10d_parser {
	size_t need;	/* bytes of the message without which no progress can be made */
	size_t pos;	/* bytes understood */
	unsigned field; /* of the signature */
	bool in_list;
	uint64_t left; /* strings of the list still to come */
	size_t list_at;
	unsigned strings;
	struct {
		size_t at, len;
	} string[3];
	uint64_t number;
	size_t count;
};

#define C10D_PARSER_INIT ((struct c10d_parser){ .need = 0 })

/* Decode one message that begins at `data`. Call again with the same beginning and more bytes until
 * it is whole: 1 (ret_… points into `data` and takes ret_…->size bytes), 0 (more bytes are needed,
 * at least parser->need in all), or -EPROTO/-EMSGSIZE (the rest of the stream is unusable). */
int c10d_parse_request(struct c10d_parser *parser, const struct c10d_limits *limits,
		       const void *data, size_t len, struct c10d_message *ret_request,
		       struct err *err);

/* The reply to `query`; `count` is the number of keys asked for by a MULTI_GET. */
int c10d_parse_reply(struct c10d_parser *parser, const struct c10d_limits *limits,
		     enum c10d_query query, size_t count, const void *data, size_t len,
		     struct c10d_message *ret_reply, struct err *err);

#endif
