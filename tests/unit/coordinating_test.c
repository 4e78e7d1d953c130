/* A coordinator at work with real agents: one within its process, others over loopback. */
#include "nodes/coordinating.h"

#include <event2/event.h>
#include <stdlib.h>
#include <string.h>

#include "core/rounds/agent.h"
#include "loop.h"
#include "unit.h"

#define AGENTS_MAX 8

struct world;

/* An agent core whose workers end as soon as they are told to, or when the test says so. */
struct host {
	struct world *world;
	struct agent agent;
	struct link *link;
	bool local, linked;
	bool running;
	int rounds;
	bool exited;
	struct outcome outcome;
};

struct world {
	struct event_base *base;
	struct coordinating *coordinating;
	struct link_self self;
	struct addr addr;
	struct host hosts[AGENTS_MAX];
	size_t count;
	int stepped_down, finished;
	int notes[TOLD_COUNT];
	char last_note[512];
};

static void step(struct host *host, const struct agent_event *event);

static void turned(struct world *w)
{
	event_base_loopbreak(w->base);
}

/* ---- carrying out ---- */

static void send_out(struct host *host, const struct msg *msg)
{
	if (host->local)
		coordinating_local_send(host->world->coordinating, msg);
	else if (host->link)
		link_send(host->link, msg);
}

static void hang_up(struct host *host)
{
	if (host->local)
		coordinating_local_hang_up(host->world->coordinating);
	else
		link_hang_up(host->link);
	host->link = NULL;
	host->linked = false;
}

static void act(struct host *host, const struct agent_action *action)
{
	switch (action->type) {
	case AGENT_SEND:
		send_out(host, &action->msg);
		break;
	case AGENT_GROUP_START:
		host->running = true;
		host->rounds++;
		break;
	case AGENT_GROUP_STOP:
	case AGENT_GROUP_KILL:
		host->running = false;
		step(host, &(struct agent_event){ .type = AGENT_GROUP_GONE });
		break;
	case AGENT_HANG_UP:
		hang_up(host);
		break;
	case AGENT_EXIT:
		host->exited = true;
		host->outcome = action->outcome;
		break;
	case AGENT_PEERS:
		break;
	}
}

static void step(struct host *host, const struct agent_event *event)
{
	struct agent_actions actions = AGENT_ACTIONS_INIT;
	agent_step(&host->agent, event, clock_now_ns(), &actions);
	for (size_t i = 0; i < actions.count; i++)
		act(host, &actions.items[i]);
	agent_actions_done(&actions);
	turned(host->world);
}

static void link_is_up(struct host *host)
{
	host->linked = true;
	step(host, &(struct agent_event){ .type = AGENT_LINK_UP });
}

static void link_is_down(struct host *host, bool dead)
{
	host->linked = false;
	host->link = NULL;
	step(host, &(struct agent_event){ .type = AGENT_LINK_DOWN, .dead = dead });
}

/* ---- links ---- */

static void on_up(void *arg, struct link *link UNUSED)
{
	link_is_up(arg);
}

static void on_msg(void *arg, struct link *link UNUSED, const struct msg *msg)
{
	step(arg, &(struct agent_event){ .type = AGENT_MSG, .msg = msg });
}

static void on_down(void *arg, struct link *link UNUSED, const struct link_end *end)
{
	struct host *host = arg;
	if (host->linked)
		link_is_down(host, end->dead);
	host->link = NULL;
	turned(host->world);
}

static const struct link_handler link_handler = { on_up, on_msg, on_down };

/* ---- the coordinator ---- */

static struct host *local_host(struct world *w)
{
	for (size_t i = 0; i < w->count; i++)
		if (w->hosts[i].local)
			return &w->hosts[i];
	return NULL;
}

static void on_step_down(void *arg)
{
	struct world *w = arg;
	w->stepped_down++;
	turned(w);
}

static void on_finished(void *arg)
{
	struct world *w = arg;
	w->finished++;
	turned(w);
}

static void on_local_msg(void *arg, const struct msg *msg)
{
	step(local_host(arg), &(struct agent_event){ .type = AGENT_MSG, .msg = msg });
}

static void on_local_down(void *arg)
{
	link_is_down(local_host(arg), true);
}

static void on_note(void *arg, enum coordinating_note note, const char *name UNUSED,
		    const char *text)
{
	struct world *w = arg;
	w->notes[note]++;
	strcpy(w->last_note, text);
}

static const struct coordinating_handler handler = { on_step_down, on_finished, on_local_msg,
						     on_local_down, on_note };

static void world_init(struct world *w)
{
	memset(w, 0, sizeof(*w));
	w->base = event_base_new();
	w->self.run_id = "job";
	addr_from_ip("127.0.0.1", 0, &w->addr);
	int fd = addr_listen(&w->addr, NULL);
	ck_assert_int_ge(fd, 0);
	addr_of_socket(fd, &w->addr, NULL);
	w->coordinating = coordinating_new(w->base, fd, &w->self, &handler, w);
}

static void world_done(struct world *w)
{
	for (size_t i = 0; i < w->count; i++)
		if (w->hosts[i].link)
			link_drop(w->hosts[i].link);
	coordinating_free(w->coordinating);
	link_drop_lingering(w->base);
	event_base_free(w->base);
}

static void coordinate(struct world *w)
{
	coordinating_start(w->coordinating, &COORDINATOR_CONFIG_INIT);
}

static struct host *add_host(struct world *w, bool local, uint32_t min, uint32_t max)
{
	struct host *host = &w->hosts[w->count++];
	struct agent_config config = {
		.node = { .id = { 1, w->count },
			  .min_nodes = min,
			  .max_nodes = max,
			  .nproc = 2,
			  .node_rank = -1,
			  .max_restarts = 3,
			  .period_ns = local ? 0 : 3600 * NS_PER_S,
			  .lease_periods = 4,
			  .role = "default",
			  .store_host = "127.0.0.1" },
		.join_timeout_ns = 600 * NS_PER_S,
	};
	snprintf(config.node.name, sizeof(config.node.name), "host%zu", w->count);
	*host = (struct host){ .world = w, .local = local };
	agent_init(&host->agent, &config);
	step(host, &(struct agent_event){ .type = AGENT_START });
	return host;
}

static void join(struct host *host)
{
	struct world *w = host->world;
	if (host->local) {
		coordinating_local_attach(w->coordinating);
		link_is_up(host);
		return;
	}
	const struct link_target target = { &w->addr, 1, "coordinator" };
	host->link = link_connect(w->base, &w->self, &target, &link_handler, host);
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

static void finish_workers(struct world *w)
{
	for (size_t i = 0; i < w->count; i++) {
		step(&w->hosts[i], &(struct agent_event){ .type = AGENT_GROUP_DONE });
		w->hosts[i].running = false;
		step(&w->hosts[i], &(struct agent_event){ .type = AGENT_GROUP_GONE });
	}
}

/* ---- promises ---- */

TEST(a_local_agent_runs_a_job_without_a_socket)
{
	struct world w;
	world_init(&w);
	coordinate(&w);
	struct host *host = add_host(&w, true, 1, 1);
	join(host);
	ck_assert_int_eq(host->rounds, 0); /* nothing comes back before the loop turns */
	WAIT_FOR(&w, all_run(&w, 1));
	finish_workers(&w);
	WAIT_FOR(&w, w.finished == 1);
	ck_assert(all_exited(&w, OUTCOME_DONE));
	ck_assert_int_eq(w.notes[TOLD_FORMED], 1);
	ck_assert_int_eq(w.notes[TOLD_CLOSED], 1);
	world_done(&w);
}

static struct world *start_three(void)
{
	static struct world w;
	world_init(&w);
	coordinate(&w);
	for (int i = 0; i < 3; i++)
		join(add_host(&w, i == 0, 3, 3));
	WAIT_FOR(&w, all_run(&w, 1));
	return &w;
}

TEST(local_and_distant_agents_form_a_round_and_end_together)
{
	struct world *w = start_three();
	ck_assert_int_eq(w->notes[TOLD_JOINED], 3);
	ck_assert(coordinating_settled(w->coordinating));
	ck_assert(!ballot_is_none(coordinating_ballot(w->coordinating)));
	finish_workers(w);
	WAIT_FOR(w, w->finished == 1 && all_exited(w, OUTCOME_DONE));
	ck_assert_int_eq(w->notes[TOLD_LOST], 0);
	world_done(w);
}

TEST(a_failure_restarts_all_agents)
{
	struct world *w = start_three();
	struct host *host = &w->hosts[1];
	host->running = false;
	step(host, &(struct agent_event){ .type = AGENT_GROUP_FAILED,
					  .cause = { .status = { EXIT_CODE, 3, false } },
					  .died_ns = clock_now_ns() });
	step(host, &(struct agent_event){ .type = AGENT_GROUP_GONE });
	WAIT_FOR(w, all_run(w, 2));
	ck_assert_int_eq(w->notes[TOLD_STOPPED], 1);
	ck_assert_int_eq(w->notes[TOLD_FORMED], 2);
	world_done(w);
}

TEST(a_host_that_dies_ends_the_round_at_once)
{
	struct world *w = start_three();
	link_drop(w->hosts[2].link);
	w->hosts[2].link = NULL;
	WAIT_FOR(w, !w->hosts[0].running && !w->hosts[1].running);
	ck_assert_int_eq(w->notes[TOLD_LOST], 1);
	world_done(w);
}

TEST(superseding_disconnects_all_agents_and_leaves_a_standby)
{
	struct world *w = start_three();
	coordinating_supersede(w->coordinating);
	ck_assert(!coordinating_active(w->coordinating));
	ck_assert_int_eq(w->stepped_down, 0); /* not from inside the call */
	WAIT_FOR(w, w->stepped_down == 1 && !w->hosts[0].linked && !w->hosts[1].linked &&
			    !w->hosts[2].linked);
	ck_assert(!w->hosts[0].running && !w->hosts[1].running && !w->hosts[2].running);
	/* And anew: all know a round, so nobody is in a hurry; they are let in. */
	coordinate(w);
	join(&w->hosts[1]);
	WAIT_FOR(w, w->hosts[1].linked);
	world_done(w);
}

TEST(an_agent_is_not_let_in_by_a_standby)
{
	struct world w;
	world_init(&w);
	struct host *host = add_host(&w, false, 1, 1);
	join(host);
	WAIT_FOR(&w, !host->link);
	ck_assert(!host->linked);
	world_done(&w);
}

TEST(an_agent_that_hangs_up_and_comes_back_is_let_in_again)
{
	struct world *w = start_three();
	hang_up(&w->hosts[0]); /* the local one */
	step(&w->hosts[0], &(struct agent_event){ .type = AGENT_LINK_DOWN, .dead = true });
	join(&w->hosts[0]);
	WAIT_FOR(w, all_run(w, 2));
	world_done(w);
}

TEST(stopping_is_silent_and_immediate)
{
	struct world *w = start_three();
	coordinating_stop(w->coordinating);
	ck_assert(!coordinating_active(w->coordinating));
	WAIT_FOR(w, !w->hosts[1].linked && !w->hosts[2].linked);
	ck_assert_int_eq(w->stepped_down, 0);
	ck_assert(w->hosts[0].linked); /* who stops it tells its own agent */
	world_done(w);
}
