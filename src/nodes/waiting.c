#include "nodes/waiting.h"

static bool waits(const struct agent *agent)
{
	return agent->state == AGENT_SEEKING || agent->state == AGENT_JOINED;
}

void waiting_update(struct waiting *waiting, const struct agent *agent, uint64_t now_ns)
{
	if (!waits(agent))
		*waiting = WAITING_INIT;
	else if (waiting->since_ns == NS_NEVER)
		*waiting = (struct waiting){ .since_ns = now_ns,
					     .next_ns = ns_add(now_ns, WAITING_PERIOD_NS) };
}

static void say_nodes(const struct agent *agent, struct buf *out)
{
	const struct node_info *node = &agent->config.node;
	buf_printf(out, "%u of %u", agent->present, node->min_nodes);
	if (node->max_nodes > node->min_nodes)
		buf_printf(out, " to %u", node->max_nodes);
	buf_append_str(out, node->max_nodes > 1 ? " nodes" : " node");
}

/* There are MIN nodes, and still no round. A node that starts again has forgotten its rounds, and
 * counts only before the first one. */
static void say_missing(const struct agent *agent, struct buf *out)
{
	uint32_t missing = agent->missing;
	if (!missing || agent->present < agent->config.node.min_nodes)
		return;
	if (ballot_is_none(agent->memory.heard.ballot))
		buf_printf(out,
			   "; a majority needs %u more: start %s, or give all nodes "
			   "--rdzv-conf=quorum=any",
			   missing, missing == 1 ? "it" : "them");
	else
		buf_printf(out,
			   "; a majority of the last round needs %u more of its nodes "
			   "(--rdzv-conf=quorum=any goes on without)",
			   missing);
}

static bool is_spare(const struct agent *agent)
{
	return agent->state == AGENT_JOINED && !ballot_is_none(agent->memory.heard.ballot) &&
	       !memory_was_in(&agent->memory, agent->memory.heard.ballot);
}

bool waiting_say(struct waiting *waiting, const struct agent *agent, const char *tried,
		 const char *reach, uint64_t now_ns, struct buf *out)
{
	char since[CLOCK_HUMAN_MAX], left[CLOCK_HUMAN_MAX];
	if (now_ns < waiting->next_ns)
		return false;
	waiting->next_ns = ns_add(now_ns, WAITING_PERIOD_NS);
	if (is_spare(agent)) {
		bool first = !waiting->as_spare;
		waiting->as_spare = true;
		buf_printf(out, "a round of %u nodes runs; this node waits for a place in it",
			   agent->memory.heard.nodes);
		return first;
	}
	clock_human(now_ns - waiting->since_ns, since);
	clock_human(agent->join_deadline_ns - MIN(now_ns, agent->join_deadline_ns), left);
	if (agent->state == AGENT_JOINED) {
		buf_printf(out, "waiting for %s: ", since);
		say_nodes(agent, out);
		buf_append_str(out, agent->present == 1 ? " is here" : " are here");
		if (reach)
			buf_printf(out, ", and only this host can reach %s", reach);
		say_missing(agent, out);
	} else {
		buf_printf(
			out,
			"no coordinator for %s: %s; check that muster runs there (it ends with the "
			"job) and that the port can be reached",
			since, tried);
	}
	if (agent->join_deadline_ns != NS_NEVER && !agent->held)
		buf_printf(out, "; giving up in %s", left);
	return true;
}

void waiting_in_vain(const struct agent *agent, bool linked, const char *tried, struct buf *out)
{
	char timeout[CLOCK_HUMAN_MAX];
	const struct agent_config *config = &agent->config;
	bool was_in = !ballot_is_none(agent->memory.member_of[0]) && config->seek_timeout_ns;
	uint64_t timeout_ns = was_in ? config->seek_timeout_ns : config->join_timeout_ns;
	clock_human(timeout_ns, timeout);
	buf_printf(out, "no round within %s (%s): ", timeout,
		   timeout_ns == config->join_timeout_ns ? "join_timeout" : "--lost-host-timeout");
	if (linked)
		say_nodes(agent, out);
	else
		buf_printf(out,
			   "%s; 'muster doctor' checks the names, ports and interfaces of a host",
			   tried);
	if (linked) {
		buf_append_str(out, " came");
		say_missing(agent, out);
		if (agent->present < agent->config.node.min_nodes)
			buf_append_str(out, "; run the same command on the others, or 'muster "
					    "doctor' where it does not get here");
	}
}
