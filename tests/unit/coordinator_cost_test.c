/* The coordinator: what an event costs in a job of 1,000, 10,000 and 100,000 nodes. The parts of
 * the program that it is made of call us at the start of each basic block (see the Makefile), so
 * this counts what they do and does not depend on the machine. */
#include "unit.h"

#include <stdio.h>
#include <string.h>

#include "coordinator_rig.h"

#define MIN_NODES 1000
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define MAX_NODES 10000
#else
#define MAX_NODES 100000
#endif
#define HOUR_NS (3600 * (int64_t)NS_PER_S)

void __sanitizer_cov_trace_pc(void);

static uint64_t blocks;

void __sanitizer_cov_trace_pc(void)
{
	blocks++;
}

/* All events of a kind and their cost, by the size of the job. */
static struct {
	const char *name;
	double each[3];
} costs[64];
static size_t cost_count, size_index;
static uint64_t nodes;

static void count(const char *name, uint64_t events)
{
	size_t i = 0;
	while (i < cost_count && strcmp(costs[i].name, name) != 0)
		i++;
	cost_count = MAX(cost_count, i + 1);
	ck_assert_uint_le(cost_count, ARRAY_LEN(costs));
	costs[i].name = name;
	costs[i].each[size_index] = (double)blocks / (double)events;
	blocks = 0;
}

/* An event of each node, and a name for what it costs. */
static void each(const char *name, void one(uint64_t link))
{
	blocks = 0;
	for (uint64_t link = 1; link <= nodes; link++)
		one(link);
	count(name, nodes);
}

static void event(enum coordinator_event_type type, uint64_t until_ns)
{
	step(&(struct coordinator_event){ .type = type, .until_ns = until_ns });
}

static void arrive(uint64_t link)
{
	struct node_info node = node_of(link);
	struct memory memory = memory_of(link);
	node.period_ns = 10000 * NS_PER_S;
	node.can = CAN_ALL;
	node.pair_port = 1;
	node.pair_ms = 1;
	check_digest_put(&node.checks, "cpu.speed", 100 + (double)(link % 7));
	if (c.state == COORDINATOR_CLOSING)
		memory.ruling = c.ruling;
	receive(link, &(struct msg){ .type = MSG_JOIN,
				     .ballot = memory.heard.ballot,
				     .join = { .node = &node, .memory = memory } });
}

static void ping_far(uint64_t link)
{
	receive(link, &(struct msg){ .type = MSG_PING,
				     .ballot = c.roster.heard.ballot,
				     .ping = { .stamp = now_ns,
					       .wall = { .offset_ns = HOUR_NS + (int64_t)link,
							 .error_ns = 1000 } } });
}

static void notice_save(uint64_t link)
{
	receive(link, &(struct msg){ .type = MSG_NOTICE,
				     .ballot = c.roster.heard.ballot,
				     .notice = { PLAN_SAVE, 1000 * NS_PER_S } });
}

static void vote(uint64_t link)
{
	const struct stop_plan *plan = &c.accord.plan;
	receive(link, &(struct msg){ .type = MSG_VOTE,
				     .ballot = c.roster.heard.ballot,
				     .vote = { plan->serial, plan->phase, plan->step, 5 } });
}

static void put_pair(uint64_t link)
{
	AUTO(buf_done) struct buf run = BUF_INIT;
	keyval_put(&run, bytes_of(&link, sizeof(link)), bytes_str("v"));
	receive(link, &(struct msg){ .type = MSG_PUT,
				     .ballot = c.roster.heard.ballot,
				     .put = { .seq = c.exchange.seq,
					      .last = true,
					      .pairs = { buf_data(&run), buf_len(&run) } } });
}

static void want_pair(uint64_t link)
{
	AUTO(buf_done) struct buf run = BUF_INIT;
	keyval_put(&run, bytes_of(&link, sizeof(link)), bytes_str(""));
	receive(link, &(struct msg){ .type = MSG_WANT,
				     .ballot = c.roster.heard.ballot,
				     .want = { .kind = WANT_KEY,
					       .pair = { buf_data(&run), buf_len(&run) } } });
}

static void pace(uint64_t link)
{
	struct msg msg = { .type = MSG_PACE, .ballot = c.roster.heard.ballot };
	msg.pace.count = 1;
	msg.pace.marks[0] = (struct step_mark){ .step = 1,
						.ranks = 2,
						.rank = (uint32_t)(2 * link),
						.last_ns = now_ns,
						.mean_ns = now_ns };
	receive(link, &msg);
}

static void paired(uint64_t link)
{
	receive(link, &(struct msg){ .type = MSG_PAIRED,
				     .paired = { .serial = c.pairing.serial,
						 .known = true,
						 .bandwidth = 1000000000,
						 .latency_ns = 1000 } });
}

static void arrive_as_spare(uint64_t link)
{
	arrive(nodes + link);
}

static void cut_spare(uint64_t link)
{
	link_down(nodes + link, false);
}

static void blame_next(uint64_t link)
{
	struct msg msg = { .type = MSG_FAILED, .ballot = c.roster.heard.ballot };
	msg.failed.cause.blame =
		(struct blame){ .named = true, .exclude = true, .rank = (uint32_t)(nodes - link) };
	receive(link, &msg);
}

static void timer_event(UNUSED uint64_t link)
{
	event(COORDINATOR_TIMER, 0);
}

static void lease_event(UNUSED uint64_t link)
{
	event(COORDINATOR_LEASE, now_ns + 100000 * NS_PER_S);
}

static void give_up(uint64_t link)
{
	report(link, MSG_FAILED);
}

static void finish(uint64_t link)
{
	report(link, MSG_DONE);
}

static void cut(uint64_t link)
{
	link_down(link, false);
}

static void reset(uint64_t link)
{
	link_down(link, true);
}

static void leave_busy(uint64_t link)
{
	leave(link, LEAVE_SIGNAL, false);
}

static void start(enum quorum_rule quorum)
{
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	coordinator_done(&c);
	config.quorum = quorum;
	config.epoch = 7;
	config.last_call_ns = 100000 * NS_PER_S;
	config.until_ns = quorum == QUORUM_LEASE ? 1000000 * NS_PER_S : 0;
	max_restarts = 3;
	begin(&config, 1, (uint32_t)nodes);
}

static void measure_pairs(void)
{
	for (int rounds = 0; c.pairing.active && rounds < 10; rounds++)
		each("PAIRED", paired);
}

static void form(const char *name)
{
	each(name, arrive);
	measure_pairs();
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	ck_assert_uint_eq(c.roster.heard.nodes, nodes);
}

static void one_life(void)
{
	start(QUORUM_LEASE);
	form("JOIN");
	each("PING, clocks far", ping_far);
	each("PING, again", ping_far);
	each("PACE", pace);
	each("PUT", put_pair);
	ck_assert_uint_eq(c.exchange.seq, 1);
	each("WANT", want_pair);
	each("NOTICE", notice_save);
	ck_assert_int_eq(c.accord.plan.phase, PLAN_ASKED);
	each("VOTE", vote);
	ck_assert_int_eq(c.accord.plan.phase, PLAN_PROPOSED);
	each("VOTE", vote);
	ck_assert_int_eq(c.accord.plan.phase, PLAN_COMMITTED);
	each("VOTE", vote);
	ck_assert_int_eq(c.accord.plan.phase, PLAN_NONE);
	each("TIMER", timer_event);
	each("LEASE", lease_event);
	each("FAILED", give_up);
	ck_assert_int_eq(c.state, COORDINATOR_STOPPING);
	form("JOIN, again");
	each("DONE", finish);
	ck_assert_int_eq(c.state, COORDINATOR_CLOSING);
	each("JOIN, at the end", arrive);
	blocks = 0;
	event(COORDINATOR_RECORDED, 0);
	count("RECORDED, for each node", nodes);
	ck_assert_int_eq(c.state, COORDINATOR_CLOSED);
	each("PING, closed", ping_far);
	each("LEAVE", leave_busy);
}

static void losses_of(void one(uint64_t link), const char *name)
{
	start(QUORUM_ANY);
	form("JOIN");
	each(name, one);
	blocks = 0;
	event(COORDINATOR_SUPERSEDED, 0);
	count("SUPERSEDED, for each node", nodes);
}

/* A member of another coordinator's round, and then nodes that are new: too few. */
static void come_back(uint64_t link)
{
	struct memory memory = remembering((struct ballot){ 6, 4 }, (uint32_t)(4 * nodes));
	memory.base = (struct round_ref){ { 6, 3 }, (uint32_t)(4 * nodes) };
	memory.member_of[1] = memory.base.ballot;
	struct node_info node = node_of(link);
	node.max_nodes = (uint32_t)(4 * nodes);
	node.period_ns = 10000 * NS_PER_S;
	if (link > 1)
		memory = (struct memory){ .group_rank = -1 };
	receive(link, &(struct msg){ .type = MSG_JOIN,
				     .ballot = memory.heard.ballot,
				     .join = { .node = &node, .memory = memory } });
	now_ns = MAX(now_ns, c.regather_ns); /* nobody else is waited for */
}

static void take_over(void)
{
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	coordinator_done(&c);
	config.quorum = QUORUM_MAJORITY;
	begin(&config, 1, (uint32_t)(4 * nodes));
	each("JOIN, after a takeover", come_back);
	ck_assert_int_eq(c.state, COORDINATOR_GATHERING);
}

/* Agents that come while it gathers, and then more than there are places; one of many failures
 * blames each of them. */
static void surplus(void)
{
	start(QUORUM_ANY);
	nodes--;
	each("JOIN", arrive);
	each("PING, gathering", ping_far);
	nodes++;
	arrive(nodes);
	measure_pairs();
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	each("JOIN, spare", arrive_as_spare);
	each("PING", ping_far);
	each("LINK_DOWN, spare", cut_spare);
	each("FAILED, with blame", blame_next);
	ck_assert_int_eq(c.state, COORDINATOR_STOPPING);
	each("JOIN, after blame", arrive);
	measure_pairs();
	ck_assert_uint_eq(c.roster.heard.nodes,
			  nodes - 1); /* without the one that was blamed first */
}

/* All fall silent at once; without a lease, too. */
static void silence(void)
{
	start(QUORUM_ANY);
	form("JOIN");
	now_ns += 100000 * NS_PER_S;
	blocks = 0;
	event(COORDINATOR_TIMER, 0);
	count("silence, for each node", nodes);
	ck_assert_int_eq(c.state, COORDINATOR_GATHERING);
	start(QUORUM_LEASE);
	form("JOIN");
	now_ns = c.until_ns;
	blocks = 0;
	event(COORDINATOR_TIMER, 0);
	count("end of the lease, for each node", nodes);
	ck_assert_int_eq(c.state, COORDINATOR_GATHERING);
}

static void cut_off(void)
{
	losses_of(cut, "LINK_DOWN");
}

static void reset_all(void)
{
	losses_of(reset, "LINK_DOWN, reset");
}

static void all_leave(void)
{
	losses_of(leave_busy, "LEAVE, running");
}

/* The logarithm of 100,000 is 1.67 times that of 1,000. */
static void cost_is_logarithmic(void life(void))
{
	for (nodes = MIN_NODES; nodes <= MAX_NODES; nodes *= 10, size_index++)
		life();
	bool good = true;
	for (size_t i = 0; i < cost_count; i++) {
		const double *cost = costs[i].each;
		bool fits = cost[1] <= 1.7 * cost[0] + 20 && cost[2] <= 2.2 * cost[0] + 20;
		if (!fits)
			fprintf(stderr, "%-28s %10.1f %10.1f %10.1f\n", costs[i].name, cost[0],
				cost[1], cost[2]);
		good &= fits;
	}
	ck_assert(good);
}

TEST(an_event_of_a_job_costs_at_most_the_logarithm_of_its_nodes)
{
	cost_is_logarithmic(one_life);
}

TEST(a_lost_connection_costs_at_most_the_logarithm_of_the_nodes)
{
	cost_is_logarithmic(cut_off);
}

TEST(a_reset_costs_at_most_the_logarithm_of_the_nodes)
{
	cost_is_logarithmic(reset_all);
}

TEST(a_leave_costs_at_most_the_logarithm_of_the_nodes)
{
	cost_is_logarithmic(all_leave);
}

TEST(a_join_after_a_takeover_costs_at_most_the_logarithm_of_the_nodes)
{
	cost_is_logarithmic(take_over);
}

TEST(an_agent_without_a_place_costs_at_most_the_logarithm_of_the_nodes)
{
	cost_is_logarithmic(surplus);
}

TEST(silence_of_all_costs_each_at_most_the_logarithm_of_the_nodes)
{
	cost_is_logarithmic(silence);
}
