/* The messages of the watchdog socket (AF_UNIX, SOCK_SEQPACKET, path in MUSTER_WATCHDOG): one fixed
 * head in the host's byte order, then the scope's bytes. Documented in muster-timer(1).
 *
 * A message arms timers of the process that connected; the kernel tells its pid, so the message has
 * none. */
#ifndef PROTO_WATCH_MSG_H
#define PROTO_WATCH_MSG_H

#include <string.h>

#include "base/util.h"

#define WATCH_MSG_VERSION 1
#define WATCH_MSG_SCOPE_MAX 1024 /* bytes, without NUL */

enum watch_op {
	WATCH_OP_ACQUIRE = 1,
	WATCH_OP_RELEASE = 2,
	WATCH_OP_PAGE = 3, /* asks for the worker's page; the reply carries its descriptor */
	/* asks for memory that outlives the worker, with the scope as its name; likewise */
	WATCH_OP_KEEP = 4,
};

enum watch_flag {
	WATCH_FLAG_NEST =
		1, /* on top of an armed timer of the same scope, instead of renewing it */
	WATCH_FLAG_WORKER = 2, /* for the worker that the sender belongs to, not for the sender */
	WATCH_FLAG_REPLY = 4,  /* send a struct watch_reply; PAGE and KEEP always get one */
};

struct watch_msg {
	uint8_t version;
	uint8_t op;
	uint16_t flags;
	int32_t signal;	      /* at expiry; <= 0: only report */
	uint64_t duration_ns; /* from now; KEEP: bytes of a state */
	char scope[WATCH_MSG_SCOPE_MAX];
};

#define WATCH_MSG_HEAD offsetof(struct watch_msg, scope)
static_assert(WATCH_MSG_HEAD == 16, "the head is part of the protocol");

struct watch_reply {
	int32_t result; /* 0 or -errno */
};

/* Whether a message of `len` bytes is well-formed; gives its scope as a C string of at most
 * WATCH_MSG_SCOPE_MAX bytes. */
static inline bool watch_msg_check(const struct watch_msg *msg, size_t len,
				   char ret_scope[WATCH_MSG_SCOPE_MAX + 1])
{
	if (len < WATCH_MSG_HEAD || len > sizeof(*msg) || msg->version != WATCH_MSG_VERSION)
		return false;
	size_t scope_len = len - WATCH_MSG_HEAD;
	if (memchr(msg->scope, '\0', scope_len))
		return false;
	memcpy(ret_scope, msg->scope, scope_len);
	ret_scope[scope_len] = '\0';
	return msg->op >= WATCH_OP_ACQUIRE && msg->op <= WATCH_OP_KEEP;
}

#endif
