/* Messages between agents and coordinators as bytes, and back. */
#ifndef MSG_RIG_H
#define MSG_RIG_H

#include "proto/round_msg.h"

void put(const struct msg *msg, struct buf *out);

/* The frame that these bytes are, no more and no less. */
struct frame split(const struct buf *bytes);

/* As round_msg_decode(). */
int get(const struct buf *bytes, struct node_info *node, struct msg *msg);

void expect_equal(const struct msg *a, const struct msg *b);

#endif
