#include "coordinator_rig.h"

#include <check.h>
#include <stdio.h>

struct coordinator c;
struct coordinator_actions actions;
struct note notes[32];
size_t note_count;
uint64_t now_ns, under_way_ns;
uint32_t min_nodes, max_nodes, max_restarts;
bool by_progress;
uint64_t lost_timeout_ns;

static void take_notes(void)
{
	size_t kept = 0;
	note_count = 0;
	for (size_t i = 0; i < actions.count; i++)
		if (actions.items[i].type != COORDINATOR_NOTE)
			actions.items[kept++] = actions.items[i];
		else if (note_count < ARRAY_LEN(notes))
			notes[note_count++] = actions.items[i].note;
	actions.count = kept;
}

void step(const struct coordinator_event *event)
{
	actions.count = 0;
	now_ns += NS_PER_MS;
	coordinator_step(&c, event, now_ns, &actions);
	take_notes();
}

void receive(uint64_t link, const struct msg *msg)
{
	step(&(struct coordinator_event){ .type = COORDINATOR_MSG,
					  .link = link,
					  .msg = msg,
					  .greeted_ns = now_ns - under_way_ns });
}

void begin(const struct coordinator_config *config, uint32_t min, uint32_t max)
{
	now_ns = 1000 * NS_PER_S;
	under_way_ns = 0;
	min_nodes = min;
	max_nodes = max;
	coordinator_done(&c); /* of the one before */
	coordinator_init(&c, config);
}

void begin_plain(uint32_t min, uint32_t max)
{
	const struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	begin(&config, min, max);
}

struct node_info node_of(uint64_t link)
{
	struct node_info node = { .id = { link, 0 },
				  .min_nodes = min_nodes,
				  .max_nodes = max_nodes,
				  .nproc = 2,
				  .node_rank = -1,
				  .max_restarts = max_restarts,
				  .by_progress = by_progress,
				  .lost_timeout_ns = lost_timeout_ns,
				  .period_ns = NS_PER_S,
				  .lease_periods = 4,
				  .store_port = (uint16_t)link };
	snprintf(node.name, sizeof(node.name), "h%u", (unsigned)link);
	snprintf(node.store_host, sizeof(node.store_host), "h%u", (unsigned)link);
	return node;
}

struct memory memory_of(uint64_t link)
{
	const struct member *member = roster_by_id(&c.roster, (struct agent_id){ link, 0 });
	return member ? member->memory : (struct memory){ .group_rank = -1 };
}

void join_with(uint64_t link, const struct memory *memory)
{
	struct node_info node = node_of(link);
	receive(link, &(struct msg){ .type = MSG_JOIN,
				     .ballot = memory->heard.ballot,
				     .join = { .node = &node, .memory = *memory } });
}

void join(uint64_t link)
{
	struct memory memory = memory_of(link);
	if (c.state == COORDINATOR_CLOSING)
		memory.ruling = c.ruling;
	join_with(link, &memory);
}

void join_up_to(uint64_t last)
{
	for (uint64_t link = 1; link <= last; link++)
		join(link);
}

void report(uint64_t link, enum msg_type type)
{
	receive(link, &(struct msg){ .type = type, .ballot = c.roster.heard.ballot });
}

void ping(uint64_t link, uint64_t stamp_ns)
{
	receive(link, &(struct msg){ .type = MSG_PING,
				     .ballot = c.roster.heard.ballot,
				     .ping = { .stamp = stamp_ns } });
}

void leave(uint64_t link, enum leave_why why, bool empty)
{
	receive(link, &(struct msg){ .type = MSG_LEAVE,
				     .ballot = c.roster.heard.ballot,
				     .leave = { why, empty } });
}

void link_down(uint64_t link, bool dead)
{
	step(&(struct coordinator_event){
		.type = COORDINATOR_LINK_DOWN, .link = link, .dead = dead });
}

void timer(void)
{
	step(&(struct coordinator_event){ .type = COORDINATOR_TIMER });
}

void wait_until(uint64_t until_ns, uint64_t links)
{
	while (now_ns < until_ns) {
		now_ns = MIN(now_ns + NS_PER_S, until_ns) - NS_PER_MS;
		for (uint64_t link = 1; link <= links; link++)
			ping(link, now_ns);
		timer();
	}
}

uint32_t sent(enum msg_type type)
{
	uint32_t count = 0;
	for (size_t i = 0; i < actions.count; i++)
		count += actions.items[i].type == COORDINATOR_SEND &&
			 actions.items[i].msg.type == type;
	return count;
}

bool did(enum coordinator_action_type type)
{
	for (size_t i = 0; i < actions.count; i++)
		if (actions.items[i].type == type)
			return true;
	return false;
}

void enter(enum coordinator_state state)
{
	max_restarts = 1;
	begin_plain(1, 2);
	join(1);
	if (state == COORDINATOR_GATHERING)
		return;
	join(2);
	if (state == COORDINATOR_STOPPING) {
		report(1, MSG_FAILED);
	} else if (state == COORDINATOR_CLOSING || state == COORDINATOR_CLOSED) {
		report(1, MSG_DONE);
		report(2, MSG_DONE);
		if (state == COORDINATOR_CLOSED) {
			join(1);
			join(2);
		}
	} else if (state == COORDINATOR_DEPOSED) {
		step(&(struct coordinator_event){ .type = COORDINATOR_SUPERSEDED });
	}
	ck_assert_int_eq(c.state, state);
}

void apply(enum stimulus stimulus)
{
	switch (stimulus) {
	case NEW_JOINS:
		join(7);
		break;
	case MEMBER_JOINS:
		join(1);
		break;
	case FAILED:
		report(1, MSG_FAILED);
		break;
	case DONE:
		report(1, MSG_DONE);
		break;
	case LEAVES:
		leave(1, LEAVE_SIGNAL, true);
		break;
	case LEAVES_SLOWLY:
		leave(1, LEAVE_SIGNAL, false);
		break;
	case PING:
		report(1, MSG_PING);
		break;
	case RESET:
		link_down(1, true);
		break;
	case UNREACHABLE:
		link_down(1, false);
		break;
	case SILENCE:
		now_ns += 5 * NS_PER_S;
		timer();
		break;
	case SUPERSEDED:
		step(&(struct coordinator_event){ .type = COORDINATOR_SUPERSEDED });
		break;
	case HIGHER_BALLOT:
		receive(1, &(struct msg){ .type = MSG_LEAVE,
					  .ballot = { UINT64_MAX, 1 },
					  .leave = { LEAVE_SUPERSEDED, true } });
		break;
	case STIMULUS_COUNT:
		break;
	}
}

void begin_takeover(uint32_t nodes)
{
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	config.quorum = QUORUM_MAJORITY;
	begin(&config, 1, nodes);
}

struct memory remembering(struct ballot ballot, uint32_t nodes)
{
	return (struct memory){ .heard = { ballot, nodes },
				.base = { ballot, nodes },
				.member_of = { ballot },
				.group_rank = -1,
				.coordinator_index = -1 };
}

const struct note *noted(enum note_kind kind)
{
	for (size_t i = 0; i < note_count; i++)
		if (notes[i].kind == kind)
			return &notes[i];
	return NULL;
}
