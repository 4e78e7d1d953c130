/* A world with a listener and one connecting side, over real sockets on loopback, both in one loop.
 * Its names are short, because the tests of links (tests/unit/link_*_test.c) use them in every
 * line.
 */
#ifndef LINK_RIG_H
#define LINK_RIG_H

#include "net/link.h"

struct world {
	struct event_base *base;
	struct link_listener *listener;
	struct addr addr;
	char name[ADDR_TEXT_MAX];
	struct link_self server_self, client_self;
	bool standby;
	struct ballot ballot;
	/* What happened. */
	struct link *client, *server;
	int ups, agents;
	int client_msgs, server_msgs;
	struct msg last;
	struct node_info last_node;
	bool client_down, server_down;
	struct link_end client_end, server_end;
	char turned_away[LINK_TEXT_MAX];
	int standings;
	struct link_standing standing;
	bool hang_up_on_msg;
};

extern const struct link_handler client_handler;
extern const struct msg ping_msg, pong_msg; /* what an agent says, and what a coordinator says */

void world_init(struct world *w, const char *ip);
void world_done(struct world *w);

/* Another listener, which nobody attends to. */
int listen_somewhere(const char *ip, struct addr *ret_addr);

void connect_client(struct world *w);
void connect_up(struct world *w); /* and waits until both sides know it */

/* A JOIN and a PING one way, a PONG the other. */
void exchange(struct world *w);

/* Until there is an answer, which is in `standing`. */
void probe(struct world *w);
void on_standing(void *arg, const struct link_standing *standing);

struct token make_token(const char *text);

#endif
