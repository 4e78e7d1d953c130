/* A node that coordinates, and agents that call on it over loopback: real links, real machines. */
#include "nodes/callers.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "loop.h"
#include "unit.h"

#define AGENTS_MAX 8

struct world;

/* An agent whose workers end as soon as they are told to, or when the test says so. The first one
 * is the node's own, the others are elsewhere. */
struct host {
	struct world *world;
	struct agent agent;
	struct link *link;
	bool linked;
	bool running;
	int rounds;
	bool exited;
	struct outcome outcome;
};

struct world {
	struct event_base *base;
	struct node node;
	struct routes routes;
	struct callers *callers;
	struct link_self self;
	struct addr addr;
	struct host hosts[AGENTS_MAX];
	size_t count;
	int notes[NOTE_KIND_COUNT];
};

static void tell(struct host *host, const struct agent_event *event);
static void step_node(struct world *w, const struct node_event *event);

/* ---- carrying out ---- */

static void act(struct host *host, const struct agent_action *action)
{
	switch (action->type) {
	case AGENT_SEND:
		link_send(host->link, &action->msg);
		break;
	case AGENT_GROUP_START:
		host->running = true;
		host->rounds++;
		break;
	case AGENT_GROUP_STOP:
	case AGENT_GROUP_KILL:
		host->running = false;
		tell(host, &(struct agent_event){ .type = AGENT_GROUP_GONE });
		break;
	case AGENT_HANG_UP:
		link_hang_up(host->link);
		host->link = NULL;
		host->linked = false;
		break;
	case AGENT_EXIT:
		host->exited = true;
		host->outcome = action->outcome;
		break;
	case AGENT_PEERS:
	case AGENT_CHECK:
	case AGENT_MEASURE:
	case AGENT_PLAN:
	case AGENT_LATE:
	case AGENT_LOOK:
	case AGENT_EXCHANGED:
	case AGENT_NO_EXCHANGE:
		break;
	}
}

static void act_node(struct world *w, const struct node_action *action)
{
	if (routes_act(&w->routes, action))
		return;
	switch (action->type) {
	case NODE_DO_PLACE_STORE:
		step_node(w, &(struct node_event){ .type = NODE_EV_STORE, .host = "127.0.0.1" });
		break;
	case NODE_DO_HANG_UP_ALL:
		callers_hang_up_all(w->callers);
		break;
	case NODE_DO_HOST:
		act(&w->hosts[0], &action->agent);
		break;
	case NODE_DO_NOTE:
		w->notes[action->note.kind]++;
		break;
	case NODE_DO_LISTEN:
	case NODE_DO_PROBE:
	case NODE_DO_SEND:
	case NODE_DO_HANG_UP:
	case NODE_DO_CONNECT: /* to a leader that is not there */
	case NODE_DO_ASKED:
	case NODE_DO_RECORD:
	case NODE_ACTION_COUNT:
		break;
	}
}

static void step_node(struct world *w, const struct node_event *event)
{
	struct node_actions actions = NODE_ACTIONS_INIT;
	node_step(&w->node, event, clock_now_ns(), &actions);
	for (size_t i = 0; i < actions.count; i++)
		act_node(w, &actions.items[i]);
	node_actions_done(&actions);
	event_base_loopbreak(w->base);
}

static void tell(struct host *host, const struct agent_event *event)
{
	struct world *w = host->world;
	if (host == w->hosts) {
		step_node(w, &(struct node_event){ .type = NODE_EV_HOST, .agent = *event });
		return;
	}
	struct agent_actions actions = { .items = NULL };
	agent_step(&host->agent, event, clock_now_ns(), &actions);
	for (size_t i = 0; i < actions.count; i++)
		act(host, &actions.items[i]);
	agent_actions_done(&actions);
	event_base_loopbreak(w->base);
}

/* ---- links ---- */

static void on_up(void *arg, struct link *link UNUSED)
{
	struct host *host = arg;
	host->linked = true;
	tell(host, &(struct agent_event){ .type = AGENT_LINK_UP });
}

static void on_msg(void *arg, struct link *link UNUSED, const struct msg *msg)
{
	tell(arg, &(struct agent_event){ .type = AGENT_MSG, .msg = msg });
}

static void on_down(void *arg, struct link *link UNUSED, const struct link_end *end)
{
	struct host *host = arg;
	bool was_linked = host->linked;
	host->linked = false;
	host->link = NULL;
	if (was_linked)
		tell(host, &(struct agent_event){ .type = AGENT_LINK_DOWN, .dead = end->dead });
	event_base_loopbreak(host->world->base);
}

static const struct link_handler link_handler = { on_up, on_msg, on_down };

static void on_event(void *arg, const struct node_event *event)
{
	step_node(arg, event);
}

static void on_turned_away(void *arg UNUSED, const char *name UNUSED, const char *why UNUSED)
{
}

static void standing(void *arg, struct frame_standing *ret_standing)
{
	const struct world *w = arg;
	callers_node_standing(&w->node, ret_standing);
}

static const struct callers_handler handler = { .standing = standing,
						.on_event = on_event,
						.on_turned_away = on_turned_away };

/* ---- the world ---- */

static struct agent_config config_of(size_t index, uint32_t nodes)
{
	struct agent_config config = {
		.node = { .id = { 1, index + 1 },
			  .min_nodes = nodes,
			  .max_nodes = nodes,
			  .nproc = 2,
			  .node_rank = -1,
			  .max_restarts = 3,
			  .period_ns = 3600 * NS_PER_S,
			  .lease_periods = 4,
			  .role = "default",
			  .store_host = "127.0.0.1" },
		.join_timeout_ns = 600 * NS_PER_S,
	};
	snprintf(config.node.name, sizeof(config.node.name), "host%zu", index);
	return config;
}

static void world_init(struct world *w, uint32_t nodes)
{
	memset(w, 0, sizeof(*w));
	w->base = event_base_new();
	w->self.run_id = "job";
	addr_from_ip("127.0.0.1", 0, &w->addr);
	int fd = addr_listen(&w->addr, NULL);
	ck_assert_int_ge(fd, 0);
	addr_of_socket(fd, &w->addr, NULL);
	struct node_config config = { .kind = NODE_ARBITER,
				      .agent = config_of(0, nodes),
				      .coordinator = COORDINATOR_CONFIG_INIT };
	config.coordinator.id = 1;
	node_init(&w->node, &config);
	w->hosts[w->count++] = (struct host){ .world = w };
	w->callers = callers_new(w->base, CALLERS_ELSEWHERE, fd, &w->self, &w->routes, &handler, w);
}

static void coordinate(struct world *w)
{
	step_node(w, &(struct node_event){ .type = NODE_EV_START });
	step_node(w, &(struct node_event){ .type = NODE_EV_TERM, .term = { 1, true } });
}

static void world_done(struct world *w)
{
	for (size_t i = 0; i < w->count; i++)
		if (w->hosts[i].link)
			link_drop(w->hosts[i].link);
	callers_free(w->callers);
	routes_done(&w->routes);
	node_done(&w->node);
	link_drop_lingering(w->base);
	event_base_free(w->base);
}

static void join(struct host *host)
{
	struct world *w = host->world;
	const struct link_target target = { &w->addr, 1, "coordinator" };
	host->link = link_connect(w->base, &w->self, &target, &link_handler, host);
}

static struct host *add_host(struct world *w, uint32_t nodes)
{
	struct host *host = &w->hosts[w->count];
	struct agent_config config = config_of(w->count++, nodes);
	*host = (struct host){ .world = w };
	agent_init(&host->agent, &config);
	tell(host, &(struct agent_event){ .type = AGENT_START });
	return host;
}

static bool all_run(const struct world *w, int rounds)
{
	for (size_t i = 0; i < w->count; i++)
		if (!w->hosts[i].running || w->hosts[i].rounds != rounds)
			return false;
	return true;
}

static bool all_exited(const struct world *w, enum outcome_kind kind)
{
	for (size_t i = 0; i < w->count; i++)
		if (!w->hosts[i].exited || w->hosts[i].outcome.kind != kind)
			return false;
	return true;
}

static struct world *start_three(void)
{
	static struct world w;
	world_init(&w, 3);
	coordinate(&w);
	join(add_host(&w, 3));
	join(add_host(&w, 3));
	WAIT_FOR(&w, all_run(&w, 1));
	return &w;
}

/* ---- promises ---- */

TEST(local_and_distant_agents_form_a_round_and_end_together)
{
	struct world *w = start_three();
	ck_assert_int_eq(w->notes[NOTE_JOINED], 3);
	ck_assert(!ballot_is_none(node_ballot(&w->node)));
	for (size_t i = 0; i < w->count; i++) {
		tell(&w->hosts[i], &(struct agent_event){ .type = AGENT_GROUP_DONE });
		w->hosts[i].running = false;
		tell(&w->hosts[i], &(struct agent_event){ .type = AGENT_GROUP_GONE });
	}
	WAIT_FOR(w, all_exited(w, OUTCOME_DONE));
	ck_assert_int_eq(w->notes[NOTE_CLOSED], 1);
	ck_assert_int_eq(w->notes[NOTE_LOST], 0);
	world_done(w);
}

TEST(a_failure_restarts_all_agents)
{
	struct world *w = start_three();
	struct host *host = &w->hosts[1];
	host->running = false;
	tell(host, &(struct agent_event){ .type = AGENT_GROUP_FAILED,
					  .cause = { .status = { EXIT_CODE, 3, false } },
					  .died_ns = clock_now_ns() });
	tell(host, &(struct agent_event){ .type = AGENT_GROUP_GONE });
	WAIT_FOR(w, all_run(w, 2));
	ck_assert_int_eq(w->notes[NOTE_STOPPED], 1);
	ck_assert_int_eq(w->notes[NOTE_FORMED], 2);
	world_done(w);
}

TEST(a_host_that_dies_ends_the_round_at_once)
{
	struct world *w = start_three();
	link_drop(w->hosts[2].link);
	w->hosts[2].link = NULL;
	WAIT_FOR(w, !w->hosts[0].running && !w->hosts[1].running);
	ck_assert_int_eq(w->notes[NOTE_LOST], 1);
	world_done(w);
}

TEST(superseding_disconnects_all_agents_and_leaves_a_standby)
{
	struct world *w = start_three();
	step_node(w, &(struct node_event){ .type = NODE_EV_TERM, .term = { 2, false } });
	ck_assert(!node_coordinates(&w->node));
	WAIT_FOR(w, !w->hosts[1].linked && !w->hosts[2].linked);
	ck_assert(!w->hosts[0].running && !w->hosts[1].running && !w->hosts[2].running);
	ck_assert_int_eq(w->notes[NOTE_SUPERSEDED], 1);
	/* And anew: all know a round, so there is no hurry; they are let in. */
	step_node(w, &(struct node_event){ .type = NODE_EV_TERM, .term = { 3, true } });
	join(&w->hosts[1]);
	WAIT_FOR(w, w->hosts[1].linked);
	world_done(w);
}

TEST(an_agent_is_not_let_in_by_a_standby)
{
	struct world w;
	world_init(&w, 1);
	struct host *host = add_host(&w, 1);
	join(host);
	WAIT_FOR(&w, !host->link);
	ck_assert(!host->linked);
	world_done(&w);
}

TEST(an_agent_that_hangs_up_and_comes_back_is_let_in_again)
{
	struct world *w = start_three();
	struct host *host = &w->hosts[1];
	link_hang_up(host->link);
	host->link = NULL;
	host->linked = false;
	tell(host, &(struct agent_event){ .type = AGENT_LINK_DOWN, .dead = true });
	join(host);
	WAIT_FOR(w, all_run(w, 2));
	world_done(w);
}
