/* Who takes what this process sends on a link, by the id of the link. Agents elsewhere, commands
 * that ask, questions of this process and the link to the coordinator elsewhere all get their ids
 * here, so no two share one and none is used again. */
#ifndef NODES_ROUTES_H
#define NODES_ROUTES_H

#include "base/map.h"
#include "core/node/node.h"

struct routes {
	struct map by_id;
	uint64_t last_id;
};

#define ROUTES_INIT ((struct routes){ .by_id = MAP_INIT })

/* Part of the one who takes. */
struct route {
	void (*send)(void *arg, const struct msg *msg);
	void (*hang_up)(void *arg); /* the route is closed already; NULL: there is no peer */
	void *arg;
	/* Bytes of a batch; NULL: the link carries messages alone. */
	void (*send_work)(void *arg, const void *data, size_t len);
	uint64_t id;
};

/* Gives it an id. Borrowed until it is closed. */
void routes_open(struct routes *routes, struct route *route);
void routes_close(struct routes *routes, const struct route *route); /* again is fine */
void routes_done(struct routes *routes);

/* SEND, and HANG_UP of a link; false: it is another action. Where the link has ended meanwhile
 * nothing happens. */
bool routes_act(struct routes *routes, const struct node_action *action);

/* The same without a node. */
void routes_hang_up(struct routes *routes, uint64_t link);
void routes_send_work(struct routes *routes, uint64_t link, const void *data, size_t len);

#endif
