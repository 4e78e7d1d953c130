#include "nodes/routes.h"

void routes_open(struct routes *routes, struct route *route)
{
	route->id = ++routes->last_id;
	map_put(&routes->by_id, &route->id, sizeof(route->id), route);
}

void routes_close(struct routes *routes, const struct route *route)
{
	map_remove(&routes->by_id, &route->id, sizeof(route->id));
}

void routes_done(struct routes *routes)
{
	map_done(&routes->by_id);
}

bool routes_act(struct routes *routes, const struct node_action *action)
{
	bool hangs_up = action->type == NODE_DO_HANG_UP && action->link;
	if (action->type != NODE_DO_SEND && !hangs_up)
		return false;
	struct route *route = map_get(&routes->by_id, &action->link, sizeof(action->link));
	if (!route)
		return true;
	if (hangs_up)
		routes_close(routes, route);
	if (!hangs_up)
		route->send(route->arg, &action->msg);
	else if (route->hang_up)
		route->hang_up(route->arg);
	return true;
}
