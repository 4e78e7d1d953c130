#include "msg_rig.h"

#include <check.h>
#include <string.h>

void put(const struct msg *msg, struct buf *out)
{
	struct err err = ERR_INIT;
	ck_assert_msg(round_msg_encode(msg, out, &err) == 0, "%s", err.msg);
}

struct frame split(const struct buf *bytes)
{
	struct frame frame;
	size_t size;
	ck_assert_int_eq(frame_next(buf_data(bytes), buf_len(bytes), &frame, &size, NULL), 1);
	ck_assert_uint_eq(size, buf_len(bytes));
	return frame;
}

int get(const struct buf *bytes, struct node_info *node, struct msg *msg)
{
	struct frame frame = split(bytes);
	return round_msg_decode(&frame, node, msg, NULL);
}

void expect_equal(const struct msg *a, const struct msg *b)
{
	ck_assert_int_eq(a->type, b->type);
	struct msg x = *a, y = *b;
	if (a->type == MSG_JOIN) {
		ck_assert(memcmp(a->join.node, b->join.node, sizeof(*a->join.node)) == 0);
		x.join.node = y.join.node = NULL;
	}
	if (msg_borrowed(&x)) {
		ck_assert(bytes_eq(*msg_borrowed(&x), *msg_borrowed(&y)));
		*msg_borrowed(&x) = *msg_borrowed(&y) = bytes_of(NULL, 0);
	}
	ck_assert(memcmp(&x, &y, msg_size(a->type)) == 0);
}
