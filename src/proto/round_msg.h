/* The messages of core/rounds/msg.h as bytes. docs/PROTOCOL.md describes every one of them.
 *
 * A message travels in a frame (proto/frame.h) whose type says which one it is; this codec handles
 * the body. It checks every value against its range in both directions: what decodes is safe for
 * core. It ignores bytes behind the last known field; a later minor version may put some there. */
#ifndef PROTO_ROUND_MSG_H
#define PROTO_ROUND_MSG_H

#include "base/err.h"
#include "core/rounds/msg.h"
#include "proto/frame.h"

/* The longest lease that can be sent. */
#define ROUND_MSG_PERIOD_MAX_NS (24 * 3600 * NS_PER_S)
#define ROUND_MSG_LEASE_PERIODS_MAX 10000

/* The longest time for leaving or saving together. */
#define ROUND_MSG_NOTICE_MAX_NS (24 * 3600 * NS_PER_S)

/* Appends the frame; -EINVAL, nothing appended, if a value is out of its range. */
int round_msg_encode(const struct msg *msg, struct buf *out, struct err *err);

/* The message in `frame`. A JOIN's node is stored in `node`, and the message borrows it from there.
 * -EPROTO: not a message, or a value that no sender would send. */
int round_msg_decode(const struct frame *frame, struct node_info *node, struct msg *ret_msg,
		     struct err *err);

#endif
