/* Nodes that check themselves: healthy ones, lame ones, checkers that fail or hang; and whether the
 * coordinators name and leave out the right ones. */
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "sim/world.h"

#define CHECK_NS (2 * NS_PER_S)
#define PAIR_PORT 1000 /* and above: the port of a host tells which one it is */
#define PAIR_MS 100
#define PAIR_MS_QUICK 200	     /* of --preflight=quick; */
#define QUICK_LEAST_NS NS_PER_S	     /* so long its checks take on a host alone, */
#define QUICK_MOST_NS (2 * NS_PER_S) /* or so long */
#define PORTS (UINT16_MAX - PAIR_PORT + 1)

enum lameness {
	SOUND,
	SLOW,	   /* a figure is far below that of the others */
	OTHER,	   /* a fact differs */
	CONFESSES, /* it says so itself */
	THIN,	   /* its wire is slow */
};

/* From numbers of their own, so that all other worlds stay as they are. */
void checks_choose(struct world *world)
{
	uint64_t seed = world->options.seed;
	world->check_rng.state = seed * 0x9e3779b97f4a7c15u + 3;
	if (world->options.checks) {
		world->checking = world->pairing = true;
		return;
	}
	world->checking = seed % 3 == 1;
	world->striking = seed % 6 == 1;
	for (uint32_t i = 0; world->checking && i < world->count; i++) {
		bool lame = rng_chance(&world->check_rng, 25);
		world->hosts[i].lame = !lame				   ? SOUND
				       : rng_chance(&world->check_rng, 50) ? SLOW
									   : CONFESSES;
	}
	if (world->checking && rng_chance(&world->check_rng, 30))
		world->hosts[rng_range(&world->check_rng, 0, world->count - 1)].lame = OTHER;
	world->pairing = world->checking && rng_chance(&world->check_rng, 50);
	for (uint32_t i = 0; world->pairing && i < world->count; i++)
		if (world->hosts[i].lame == SLOW && rng_chance(&world->check_rng, 50))
			world->hosts[i].lame = THIN;
	bool spare = world->count > world->max_nodes && !world->misfit;
	for (uint32_t i = 0; i < world->count; i++)
		spare &= world->hosts[i].node_rank < 0;
	if (world->checking && spare && rng_chance(&world->check_rng, 30))
		world->hosts[rng_range(&world->check_rng, 0, world->count - 1)].excluded = true;
}

/* What starts a host later. */
uint64_t checks_before_join_ns(struct world *world)
{
	return world->options.checks ? rng_range(&world->check_rng, QUICK_LEAST_NS, QUICK_MOST_NS)
				     : 0;
}

static void measure(struct world *world, const struct host *host, struct check_digest *ret_digest)
{
	struct check_list list = CHECK_LIST_INIT;
	struct check_result result = { .name = "all" };
	double speed = (double)rng_range(&world->check_rng, 90, 110);
	check_measure(&result, "cpu_speed", host->lame == SLOW ? 20 : speed, "");
	check_measure(&result, "own_figure", speed, "");
	check_state_fact(&result, "torch", host->lame == OTHER ? "2.12.0" : "2.13.0");
	if (host->lame == CONFESSES)
		check_find(&result, CHECK_BAD, "mend it", "7 of 8");
	check_list_add(&list, &result);
	check_digest_make(&list, ret_digest);
	check_list_done(&list);
}

void checks_configure(struct world *world, const struct host *host, struct agent_config *config)
{
	if (!world->checking)
		return;
	config->check_timeout_ns = CHECK_NS;
	config->node.excluded = host->excluded;
	bool all = world->options.checks;
	if (world->pairing && (all || host->index % 8 != 7)) { /* others know of no pairs */
		config->node.pair_port = (uint16_t)(PAIR_PORT + host->index % PORTS);
		config->node.pair_ms = all ? PAIR_MS_QUICK : PAIR_MS;
	}
	if (world->striking) {
		config->node.strikes = 2;
		config->node.cool_down_ns = 60 * NS_PER_S;
	}
	if (all || !rng_chance(&world->check_rng, 10)) /* otherwise the checker failed */
		measure(world, host, &config->node.checks);
}

/* Some checkers hang: no answer comes. Others come late. */
void checks_begin(struct world *world, struct host *host)
{
	if (rng_chance(&world->check_rng, 10))
		return;
	world_at(world, world->now_ns + rng_range(&world->check_rng, 1, 3 * CHECK_NS / 2),
		 HAPPEN_CHECKED, host->index);
}

void checks_end(struct world *world, struct host *host)
{
	struct check_digest digest;
	bool failed = rng_chance(&world->check_rng, 10);
	measure(world, host, &digest);
	host_tell(world, host,
		  &(struct agent_event){ .type = AGENT_CHECKED,
					 .digest = failed ? NULL : &digest });
}

/* ---- pairs ---- */

/* Measurements may hang, too, or fail. The other side of a wire may be gone by now. */
void checks_measure(struct world *world, struct host *host, const struct msg_pair *pair)
{
	bool all = world->options.checks;
	if (!pair->calls || (!all && rng_chance(&world->check_rng, 5)))
		return;
	uint64_t takes_ns = all ? 2 * PAIR_MS_QUICK * NS_PER_MS /* there and back */
				: rng_range(&world->check_rng, 1, 3 * NS_PER_S);
	struct happening_event *event =
		world_at(world, world->now_ns + takes_ns, HAPPEN_MEASURED, host->index);
	event->index = pair->serial;
	event->probe = MIN((uint32_t)(pair->port - PAIR_PORT), world->count - 1);
}

void checks_measured(struct world *world, struct host *host, const struct happening_event *event)
{
	const struct host *other = &world->hosts[event->probe];
	bool thin = host->lame == THIN || other->lame == THIN;
	uint64_t bandwidth = rng_range(&world->check_rng, 900, 1100) * 1000000;
	bool known = world->options.checks || !rng_chance(&world->check_rng, 10);
	struct msg_paired paired = { .serial = event->index,
				     .known = known && other->process,
				     .bandwidth = thin ? bandwidth / 50 : bandwidth,
				     .latency_ns = rng_range(&world->check_rng, 40000, 90000) };
	if ((host->lame == THIN && host->index % 3 == 0) ||
	    (other->lame == THIN && other->index % 3 == 0))
		paired.bandwidth = 0; /* nothing gets through */
	world_trace(world, "h%u measures h%u: %lu%s", host->index, other->index, paired.bandwidth,
		    paired.known ? "" : ", unknown");
	host_tell(world, host, &(struct agent_event){ .type = AGENT_MEASURED, .paired = paired });
}

/* ---- what the coordinators make of it ---- */

static struct host *host_of(struct world *world, const char *name)
{
	uint64_t index = 0;
	str_to_u64(name + 1, &index); /* "h7" */
	return &world->hosts[MIN(index, (uint64_t)world->count - 1)];
}

static bool has_named(const struct host *coordinator, const struct host *named)
{
	for (size_t i = 0; i < ARRAY_LEN(named->named_by); i++)
		if (named->named_by[i] == coordinator->term)
			return true;
	return false;
}

/* The roster is that of the end of the step: a node that was heard of now may have joined after the
 * round was formed, and one that is named later in this step turned out to be bad after that. */
static void look_at_members(struct world *world, struct host *host)
{
	const struct coordinator *c = host->node.coordinator;
	uint64_t now_ns = world_local_ns(world, host);
	host->has_formed = true;
	host->fit_outside = 0;
	for (size_t i = 0; i < c->roster.count; i++) {
		const struct member *member = c->roster.members[i];
		host_of(world, member->name)->bad_inside =
			member->in_round && roster_last_resort(member);
		if (member->in_round && member->excluded)
			check_broken(world, "%s is excluded and in a round", member->name);
		host->fit_outside += !member->in_round && member->status == MEMBER_READY &&
				     !roster_last_resort(member) && !member->excluded &&
				     member->heard_ns < now_ns;
	}
}

/* At the end of the step. */
void checks_settled(struct world *world, struct host *host)
{
	const struct coordinator *c = host->node.coordinator;
	uint32_t bad = 0;
	for (size_t i = 0; host->has_formed && c && i < c->roster.count; i++) {
		const struct member *member = c->roster.members[i];
		struct host *named = host_of(world, member->name);
		bad += named->bad_inside;
		named->bad_inside = false;
		if (member->bad && member->link && !has_named(host, named))
			check_broken(world, "c%u leaves %s out and does not say so", host->index,
				     member->name);
	}
	host->has_formed = false;
	if (bad && (host->fit_outside || c->roster.heard.nodes > c->min_nodes))
		check_broken(world, "c%u takes %u bad nodes, %u fit ones wait, %u nodes in all",
			     host->index, bad, host->fit_outside, c->roster.heard.nodes);
}

void checks_noted(struct world *world, struct host *host, const struct note *note)
{
	if (note->kind == NOTE_UNFIT) {
		struct host *named = host_of(world, note->name);
		named->named_by[named->named_count++ % ARRAY_LEN(named->named_by)] = host->term;
		named->bad_inside = false;
		world_trace(world, "c%u names h%u: %s", host->index, named->index, note->refused);
		if (named->lame == SOUND && !world->striking)
			check_broken(world, "c%u names h%u, which is sound: %s", host->index,
				     named->index, note->refused);
		world->result->named++;
	} else if (note->kind == NOTE_FORMED && host->node.coordinator) {
		look_at_members(world, host);
	}
}
