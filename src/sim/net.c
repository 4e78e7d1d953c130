/* The network: ordered links that hold what they carry until it can arrive, like TCP, and never
 * report a cut path. Each direction can be cut on its own. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "sim/world.h"

#define RETRY_NS (300 * NS_PER_MS)	/* at first; doubled each time, up to the world's maximum */
#define NOT_LINKED_NS (200 * NS_PER_MS) /* until a connection attempt fails */
#define SPACING_NS (4800 * NS_PER_MS)	/* of mail that comes in late, one by one */

static bool reaches(const struct world *world, uint32_t from, uint32_t to)
{
	return from == to || !world->cut || !world->cut[from * world->count + to];
}

uint64_t net_latency_ns(struct world *world, const struct host *to)
{
	uint64_t base = rng_range(&world->rng, 50 * NS_PER_US, 3 * NS_PER_MS);
	if (world->options.faults && rng_chance(&world->rng, 2))
		base += rng_range(&world->rng, 0, 200 * NS_PER_MS);
	return base + (to->slow_ns ? rng_range(&world->rng, 0, to->slow_ns) : 0);
}

struct link *net_link(const struct world *world, uint64_t id)
{
	return id && id <= world->link_count ? world->links[id - 1] : NULL;
}

/* What a probe of an endpoint finds, and when. */
void net_probe(struct world *world, struct host *host, uint32_t index, uint32_t probe)
{
	struct host *peer = &world->hosts[index];
	bool answers = peer->up && !world_frozen(world, peer) &&
		       reaches(world, host->index, index) && reaches(world, index, host->index);
	uint64_t delay_ns = answers ? 2 * net_latency_ns(world, peer) : FINDER_PROBE_NS;
	if (answers && delay_ns >= FINDER_PROBE_NS)
		answers = false;
	struct happening_event *event =
		world_at(world, world->now_ns + delay_ns, HAPPEN_ANSWER, host->index);
	event->index = index;
	event->probe = probe;
	if (!answers)
		event->answer = FINDER_SILENT;
	else if (!peer->process)
		event->answer = FINDER_REFUSED;
	else
		event->answer = node_coordinates(&peer->node) ? FINDER_COORDINATES : FINDER_STANDBY;
	if (event->answer == FINDER_COORDINATES)
		event->ballot = node_ballot(&peer->node);
}

void net_connect(struct world *world, struct host *host, uint32_t index)
{
	uint64_t delay_ns = 2 * net_latency_ns(world, &world->hosts[index]);
	struct happening_event *event =
		world_at(world, world->now_ns + delay_ns, HAPPEN_CONNECTED, host->index);
	event->index = index;
	event->link = host->connection;
}

static struct link *new_link(struct world *world, struct host *agent, struct host *coordinator)
{
	struct link *link = NEW(struct link);
	ARRAY_RESERVE(world->links, world->link_count, world->link_cap);
	world->links[world->link_count++] = link;
	link->id = world->link_count;
	link->host[TO_COORDINATOR] = coordinator->index;
	link->host[TO_AGENT] = agent->index;
	link->generation[TO_COORDINATOR] = coordinator->generation;
	link->generation[TO_AGENT] = agent->generation;
	link->greeted_ns = world_local_ns(world, coordinator);
	link->open[TO_COORDINATOR] = link->open[TO_AGENT] = true;
	for (int dir = 0; dir < 2; dir++)
		link->pump[dir] = (struct happening_event){
			.what = HAPPEN_PUMP, .embedded = true, .link = link->id, .dir = dir
		};
	return link;
}

void net_connected(struct world *world, struct host *host, uint32_t index)
{
	struct host *peer = &world->hosts[index];
	if (!peer->process || !node_coordinates(&peer->node) || world_frozen(world, peer) ||
	    !reaches(world, host->index, index) || !reaches(world, index, host->index)) {
		world_at(world, world->now_ns + NOT_LINKED_NS, HAPPEN_NOT_LINKED, host->index)
			->link = host->connection;
		return;
	}
	host_step(world, host,
		  &(struct node_event){ .type = NODE_EV_LINK_UP,
					.link = new_link(world, host, peer)->id,
					.can = peer->old ? 0 : CAN_ALL });
}

static void own_bytes(struct packet *packet)
{
	struct bytes *bytes = msg_borrowed(packet->msg);
	if (!bytes || bytes->len == 0)
		return;
	packet->bytes = mem_alloc(bytes->len);
	memcpy(packet->bytes, bytes->data, bytes->len);
	bytes->data = packet->bytes;
}

static void enqueue(struct world *world, struct link *link, int dir, const struct msg *msg)
{
	struct host *to = &world->hosts[link->host[dir]];
	struct packet *packet = NEW(struct packet);
	packet->end = !msg;
	packet->arrives_ns = world->now_ns + net_latency_ns(world, to);
	if (world->now_ns < link->lag_until_ns)
		packet->arrives_ns += link->lag_ns[dir];
	if (link->last[dir])
		packet->arrives_ns = MAX(packet->arrives_ns, link->last[dir]->arrives_ns);
	if (link->spacing_ns && dir == TO_COORDINATOR)
		packet->arrives_ns = link->arrived_ns += link->spacing_ns;
	if (link->spacing_ns)
		link->spacing_ns = SPACING_NS;
	if (msg) {
		packet->msg = mem_alloc(msg_size(msg->type));
		memcpy(packet->msg, msg, msg_size(msg->type));
		if (msg->type == MSG_JOIN) {
			packet->node = NEW(struct node_info);
			*packet->node = *msg->join.node;
			packet->node->can = world->hosts[link->host[!dir]].old ? 0 : CAN_ALL;
			packet->msg->join.node = packet->node;
		}
		own_bytes(packet);
	}
	if (link->last[dir])
		link->last[dir]->next = packet;
	else
		link->first[dir] = packet;
	link->last[dir] = packet;
	if (!heap_node_queued(&link->pump[dir].node))
		world_arm(world, &link->pump[dir], packet->arrives_ns);
}

static void packet_free(struct packet *packet)
{
	free(packet->node);
	free(packet->bytes);
	free(packet->msg);
	free(packet);
}

static struct packet *dequeue(struct link *link, int dir)
{
	struct packet *packet = link->first[dir];
	link->first[dir] = packet->next;
	if (!packet->next)
		link->last[dir] = NULL;
	return packet;
}

/* The direction in which this end of the link sends. */
static int away(const struct link *link, const struct host *from)
{
	return link->host[TO_AGENT] == from->index ? TO_COORDINATOR : TO_AGENT;
}

void net_send(struct world *world, const struct host *from, uint64_t id, const struct msg *msg)
{
	struct link *link = net_link(world, id);
	int dir = away(link, from);
	if (link->open[!dir])
		enqueue(world, link, dir, msg);
}

void net_close(struct world *world, const struct host *from, uint64_t id, bool silently)
{
	struct link *link = net_link(world, id);
	int dir = away(link, from);
	if (!link->open[!dir])
		return;
	link->open[!dir] = false;
	if (!silently)
		enqueue(world, link, dir, NULL);
}

void net_close_all(struct world *world, const struct host *host, bool silently)
{
	for (size_t i = 0; i < world->link_count; i++)
		if (world->links[i]->host[TO_COORDINATOR] == host->index &&
		    world->links[i]->generation[TO_COORDINATOR] == host->generation)
			net_close(world, host, world->links[i]->id, silently);
}

/* The end at host[dir] learns that the link is gone. */
static void tell_down(struct world *world, struct link *link, int dir, bool dead)
{
	struct host *host = &world->hosts[link->host[dir]];
	if (!link->open[dir])
		return;
	link->open[dir] = false;
	if (host->process && host->generation == link->generation[dir])
		host_step(world, host,
			  &(struct node_event){
				  .type = NODE_EV_LINK_DOWN, .link = link->id, .dead = dead });
}

static void deliver(struct world *world, struct link *link, int dir, const struct packet *packet)
{
	struct host *host = &world->hosts[link->host[dir]];
	bool there = host->process && host->generation == link->generation[dir] && link->open[dir];
	if (!there) {
		/* The receiver does not have this connection: tell the sender. */
		if (!packet->end && link->open[!dir])
			enqueue(world, link, !dir, NULL);
		return;
	}
	if (packet->end)
		tell_down(world, link, dir, true);
	else
		host_step(world, host,
			  &(struct node_event){ .type = NODE_EV_MSG,
						.link = link->id,
						.msg = packet->msg,
						.greeted_ns = link->greeted_ns });
}

void net_pump(struct world *world, struct link *link, int dir)
{
	struct host *host = &world->hosts[link->host[dir]];
	uint32_t from = link->host[!dir];
	bool passes =
		reaches(world, from, host->index) || (link->spacing_ns && dir == TO_COORDINATOR);
	if (!passes || !host->up) {
		link->retry_ns[dir] =
			MIN(MAX(2 * link->retry_ns[dir], RETRY_NS), world->retry_max_ns);
		world_arm(world, &link->pump[dir], world->now_ns + link->retry_ns[dir]);
		return;
	}
	link->retry_ns[dir] = 0;
	if (world_frozen(world, host)) {
		world_arm(world, &link->pump[dir], host->frozen_until_ns);
		return;
	}
	struct packet *packet = dequeue(link, dir);
	deliver(world, link, dir, packet);
	packet_free(packet);
	if (link->first[dir] && !heap_node_queued(&link->pump[dir].node))
		world_arm(world, &link->pump[dir],
			  MAX(link->first[dir]->arrives_ns, world->now_ns));
}

/* A device on the path resets the connection, and both ends see it. */
void net_reset(struct world *world, struct link *link)
{
	world->hosts[link->host[TO_AGENT]].reset_ns = world->now_ns;
	world->hosts[link->host[TO_COORDINATOR]].reset_ns = world->now_ns;
	tell_down(world, link, TO_AGENT, true);
	tell_down(world, link, TO_COORDINATOR, true);
}

void net_break(struct world *world, struct link *link, int dir)
{
	tell_down(world, link, dir, true);
}

/* One end's kernel gives up the connection; the other sees it only when it writes. */
void net_half_open(struct world *world, struct link *link, int dir)
{
	if (dir == TO_AGENT)
		world->hosts[link->host[TO_AGENT]].reset_ns = world->now_ns;
	tell_down(world, link, dir, false);
}

/* Both ends have it, and messages arrive. */
bool net_live(const struct world *world, const struct host *agent)
{
	const struct link *link = net_link(world, agent->node.link);
	if (agent->node.link >= NODE_LOCAL_LINK)
		return !world_frozen(world, agent);
	if (!link || !link->open[0] || !link->open[1])
		return false;
	const struct host *coordinator = &world->hosts[link->host[TO_COORDINATOR]];
	return reaches(world, agent->index, coordinator->index) &&
	       reaches(world, coordinator->index, agent->index) && !world_frozen(world, agent) &&
	       !world_frozen(world, coordinator);
}

void net_done(struct world *world)
{
	for (size_t i = 0; i < world->link_count; i++) {
		struct link *link = world->links[i];
		for (int dir = 0; dir < 2; dir++)
			while (link->first[dir])
				packet_free(dequeue(link, dir));
		free(link);
	}
	free(world->links);
}
