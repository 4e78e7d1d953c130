/* What a page wants done: the JSON that it posts, {"do":"stacks","ranks":[3,17]}. Pure. */
#ifndef PROTO_DASH_WISH_H
#define PROTO_DASH_WISH_H

#include "base/bytes.h"
#include "base/err.h"

#define WISH_RANKS_MAX 64

enum wish_kind {
	WISH_STACKS,
	WISH_COLLECTIVES,
	WISH_WORKERS, /* all that is known of these ranks */
	WISH_STOP,
	WISH_RESTART,
	WISH_CHECKPOINT,
	WISH_KIND_COUNT,
};

struct wish {
	enum wish_kind kind;
	uint8_t rank_count; /* 0: all */
	uint32_t ranks[WISH_RANKS_MAX];
};

/* -EINVAL: it is not such a text, and why. */
int wish_parse(struct bytes text, struct wish *ret_wish, struct err *err);

const char *wish_name(enum wish_kind kind);

#endif
