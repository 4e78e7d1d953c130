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

static struct route *find(const struct routes *routes, uint64_t link)
{
	return map_get(&routes->by_id, &link, sizeof(link));
}

void routes_hang_up(struct routes *routes, uint64_t link)
{
	struct route *route = find(routes, link);
	if (!route)
		return;
	routes_close(routes, route);
	if (route->hang_up)
		route->hang_up(route->arg);
}

void routes_send_work(struct routes *routes, uint64_t link, const void *data, size_t len)
{
	struct route *route = find(routes, link);
	if (route && route->send_work)
		route->send_work(route->arg, data, len);
}

bool routes_act(struct routes *routes, const struct node_action *action)
{
	bool hangs_up = action->type == NODE_DO_HANG_UP && action->link;
	if (action->type != NODE_DO_SEND && !hangs_up)
		return false;
	struct route *route = find(routes, action->link);
	if (hangs_up)
		routes_hang_up(routes, action->link);
	else if (route)
		route->send(route->arg, &action->msg);
	return true;
}
