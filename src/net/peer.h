/* How we introduce ourselves at the start of a connection, and how a connection ends. */
#ifndef NET_PEER_H
#define NET_PEER_H

#include "net/token.h"

struct munge_client;

/* What this process sends about itself. Borrowed for as long as its links live. */
struct link_self {
	const char *run_id;	    /* shorter than FRAME_RUN_ID_MAX */
	const struct token *token;  /* NULL: none */
	struct munge_client *munge; /* if there is no token: munge; NULL: no authentication */
};

enum link_end_kind {
	LINK_CLOSED,	  /* closed or reset by the peer */
	LINK_UNREACHABLE, /* no connection or greeting in time, no route, the kernel gave up */
	LINK_NOBODY,	  /* no process listens there (ECONNREFUSED) */
	/* a muster of this job that does not coordinate (yet): try again */
	LINK_STANDBY,
	LINK_BUSY, /* it has no room for another connection: try again */
	/* token, run id or version do not match, or it is not muster: so it says, unproved */
	LINK_REFUSED,
	LINK_BROKEN, /* the peer sent an invalid frame, or left too much unread */
	LINK_END_COUNT,
};

#endif
