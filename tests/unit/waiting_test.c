/* What an agent that waits tells its user. */
#include "unit.h"

#include "nodes/waiting.h"

static struct agent agent;
static struct waiting waiting;
static struct buf text;

static void begin(enum agent_state state)
{
	agent = (struct agent){ .state = state, .join_deadline_ns = 610 * NS_PER_S };
	agent.config.node.min_nodes = 2;
	agent.config.node.max_nodes = 4;
	agent.config.join_timeout_ns = 600 * NS_PER_S;
	waiting = WAITING_INIT;
	waiting_update(&waiting, &agent, 10 * NS_PER_S);
}

static const char *said_at(uint64_t now_s)
{
	buf_clear(&text);
	return waiting_say(&waiting, &agent, "node1:29400 is silent", NULL, now_s * NS_PER_S, &text)
		       ? buf_str(&text)
		       : "";
}

TEST(a_seeking_agent_says_every_ten_seconds_what_it_tried)
{
	begin(AGENT_SEEKING);
	ck_assert_str_eq(said_at(19), "");
	ck_assert_str_eq(
		said_at(20),
		"no coordinator for 10.0 s: node1:29400 is silent; check that muster runs there "
		"(it ends with the job) and that the port can be reached; giving up in 9 min 50 s");
	ck_assert_str_eq(said_at(21), "");
	ck_assert_str_ne(said_at(30), "");
}

TEST(a_joined_agent_says_how_many_nodes_are_here)
{
	begin(AGENT_JOINED);
	agent.present = 1;
	ck_assert_str_eq(said_at(20),
			 "waiting for 10.0 s: 1 of 2 to 4 nodes is here; giving up in 9 min 50 s");
	buf_clear(&text);
	ck_assert(waiting_say(&waiting, &agent, "", "127.0.0.1", 40 * NS_PER_S, &text));
	ck_assert_str_eq(
		buf_str(&text),
		"waiting for 30.0 s: 1 of 2 to 4 nodes is here, and only this host can reach "
		"127.0.0.1; giving up in 9 min 30 s");
}

TEST(a_spare_says_so_once)
{
	begin(AGENT_JOINED);
	agent.memory.heard = (struct round_ref){ { 7, 1 }, 4 };
	ck_assert_str_eq(said_at(20), "a round of 4 nodes runs; this node waits for a place in it");
	ck_assert_str_eq(said_at(30), "");
}

TEST(the_clock_starts_again_after_a_round)
{
	begin(AGENT_SEEKING);
	agent.state = AGENT_RUNNING;
	waiting_update(&waiting, &agent, 15 * NS_PER_S);
	ck_assert_uint_eq(waiting.next_ns, NS_NEVER);
	agent.state = AGENT_SEEKING;
	waiting_update(&waiting, &agent, 100 * NS_PER_S);
	ck_assert_uint_eq(waiting.next_ns, 110 * NS_PER_S);
}

TEST(waiting_in_vain_tells_what_was_missing)
{
	begin(AGENT_ENDED);
	agent.present = 1;
	buf_clear(&text);
	waiting_in_vain(&agent, true, "", &text);
	ck_assert_str_eq(buf_str(&text),
			 "no round within 10 min 0 s (join_timeout): 1 of 2 to 4 nodes came; run "
			 "the same command on the others, or 'muster doctor' where it does "
			 "not get here");
	buf_clear(&text);
	waiting_in_vain(&agent, false, "node1:29400 refuses", &text);
	ck_assert_str_eq(buf_str(&text),
			 "no round within 10 min 0 s (join_timeout): node1:29400 refuses; 'muster "
			 "doctor' checks the names, ports and interfaces of a host");
}

TEST(who_waits_for_a_majority_says_how_many_are_missing_and_the_remedy)
{
	begin(AGENT_JOINED);
	agent.config.node.min_nodes = 1;
	agent.config.node.max_nodes = 2;
	agent.present = agent.missing = 1;
	ck_assert_str_eq(
		said_at(20),
		"waiting for 10.0 s: 1 of 1 to 2 nodes is here; a majority needs 1 more: "
		"start it, or give all nodes --rdzv-conf=quorum=any; giving up in 9 min 50 s");
	buf_clear(&text);
	waiting_in_vain(&agent, true, "", &text);
	ck_assert_str_eq(buf_str(&text),
			 "no round within 10 min 0 s (join_timeout): 1 of 1 to 2 nodes came; a "
			 "majority needs 1 more: start it, or give all nodes "
			 "--rdzv-conf=quorum=any");
	agent.memory.heard = (struct round_ref){ { 7, 1 }, 3 };
	agent.memory.member_of[0] = agent.memory.heard.ballot;
	buf_clear(&text);
	waiting_in_vain(&agent, true, "", &text);
	ck_assert_str_eq(buf_str(&text),
			 "no round within 10 min 0 s (join_timeout): 1 of 1 to 2 nodes came; a "
			 "majority of the last round needs 1 more of its nodes "
			 "(--rdzv-conf=quorum=any goes on without)");
}
