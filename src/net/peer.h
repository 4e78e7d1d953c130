/* Who we are to a peer at the start of a connection, and how a connection ends. */
#ifndef NET_PEER_H
#define NET_PEER_H

#include "net/token.h"

/* What this process says of itself on its links. Borrowed for as long as they live. */
struct link_self {
	const char *run_id;	   /* shorter than FRAME_RUN_ID_MAX */
	const struct token *token; /* NULL: none */
};

enum link_end_kind {
	LINK_CLOSED,	  /* closed or reset by the peer */
	LINK_UNREACHABLE, /* no connection or no greeting in time, no route, the system gave up */
	LINK_NOBODY,	  /* nobody listens there (ECONNREFUSED) */
	/* a muster of this job, but it does not coordinate (yet): worth another try */
	LINK_STANDBY,
	LINK_BUSY, /* it has no room for another connection: worth another try */
	/* token, run id or version do not match, or it is not muster: it will not change */
	LINK_REFUSED,
	LINK_BROKEN, /* the peer sent what cannot be understood, or left too much unread */
	LINK_END_COUNT,
};

#endif
