/* A coordinator with a few agents that say what the test wants. Its names are short, because the
 * tests of the coordinator (tests/unit/coordinator_*_test.c) use them in every line. */
#ifndef COORDINATOR_RIG_H
#define COORDINATOR_RIG_H

#include "base/clock.h"
#include "core/rounds/coordinator.h"

extern struct coordinator c;
extern struct coordinator_actions actions; /* of the last step, but for its notes */
extern struct note notes[32];
extern size_t note_count;
extern uint64_t now_ns;
extern uint64_t under_way_ns; /* how long a message may have been */
extern uint32_t min_nodes, max_nodes, max_restarts;
extern bool by_progress;
extern uint64_t lost_timeout_ns;

enum stimulus {
	NEW_JOINS,
	MEMBER_JOINS,
	FAILED,
	DONE,
	LEAVES,
	LEAVES_SLOWLY,
	PING,
	RESET,
	UNREACHABLE,
	SILENCE,
	SUPERSEDED,
	HIGHER_BALLOT,
	STIMULUS_COUNT,
};

/* One event, a millisecond after the one before. */
void step(const struct coordinator_event *event);
void receive(uint64_t link, const struct msg *msg);

/* A coordinator of its own for each test; `min` and `max` are those of all nodes. */
void begin(const struct coordinator_config *config, uint32_t min, uint32_t max);
void begin_plain(uint32_t min, uint32_t max);
struct node_info node_of(uint64_t link);

/* The memory of an agent as this coordinator has made it, or of a new one. */
struct memory memory_of(uint64_t link);
void join_with(uint64_t link, const struct memory *memory);
void join(uint64_t link);
void join_up_to(uint64_t last);
void report(uint64_t link, enum msg_type type);

/* In answer to a PONG of the time `stamp_ns`. */
void ping(uint64_t link, uint64_t stamp_ns);
void leave(uint64_t link, enum leave_why why, bool empty);
void link_down(uint64_t link, bool dead);
void timer(void);

/* Lets time pass as it does: pings every second, timers when they are due. */
void wait_until(uint64_t until_ns, uint64_t links);

/* Of the last step: how many messages of a type, whether it did something, what it noted. */
uint32_t sent(enum msg_type type);
bool did(enum coordinator_action_type type);

/* Of two nodes, one of which suffices. */
void enter(enum coordinator_state state);

/* From or about node 1, but NEW_JOINS. */
void apply(enum stimulus stimulus);

/* One that may have taken over: a round needs a majority. */
void begin_takeover(uint32_t nodes);

/* An agent of a round of so many nodes under another coordinator. */
struct memory remembering(struct ballot ballot, uint32_t nodes);

/* What the last step noted of this kind; NULL: nothing. */
const struct note *noted(enum note_kind kind);

#endif
