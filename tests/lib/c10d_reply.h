/* Writes a whole reply, which the server puts together as it has the parts. */
#ifndef TESTS_C10D_REPLY_H
#define TESTS_C10D_REPLY_H

#include "proto/c10d.h"

static void c10d_put_reply(struct buf *buf, const struct c10d_message *reply)
{
	switch (reply->query) {
	case C10D_COMPARE_SET:
	case C10D_GET:
		c10d_put_string(buf, reply->string[0]);
		break;
	case C10D_ADD:
	case C10D_GETNUMKEYS:
	case C10D_DELETE_KEY:
	case C10D_QUEUE_LEN:
	case C10D_QUEUE_POP:
		c10d_put_i64(buf, reply->number);
		if (reply->query == C10D_QUEUE_POP && reply->number > 0)
			c10d_put_string(buf, reply->string[0]);
		break;
	case C10D_PING:
		c10d_put_u32(buf, (uint32_t)reply->number);
		break;
	case C10D_LIST_KEYS:
		c10d_put_i64(buf, (int64_t)reply->count);
		buf_append(buf, reply->list.data, reply->list.len);
		break;
	case C10D_MULTI_GET:
		buf_append(buf, reply->list.data, reply->list.len);
		break;
	default:
		if (c10d_has_reply(reply->query))
			buf_append_char(buf, (char)reply->number);
	}
}

#endif
