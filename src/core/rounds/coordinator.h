/* The coordinator: decides which agents are in which round, when to restart, and when the job is
 * over. docs/RENDEZVOUS.md has the rules and the reasons.
 *
 * A pure machine like the agent. The caller owns the links and gives each an id (never 0, never
 * used again); it reports messages on them and their ends, and carries out the actions in order. A
 * link needs no event when it comes up: an agent begins to exist with its JOIN. After HANG_UP a
 * link counts as down without an event.
 *
 * STEP_DOWN means that it has learned of a higher ballot: all links are closed, the machine is
 * inert, and discovery must search again. FINISHED comes once, when the job is closed and all
 * agents know, or had time to: a process that coordinates stays until then. */
#ifndef CORE_ROUNDS_COORDINATOR_H
#define CORE_ROUNDS_COORDINATOR_H

#include "core/rounds/note.h"
#include "core/rounds/policy.h"
#include "core/rounds/roster.h"

enum quorum_rule {
	QUORUM_ANY, /* no other process can coordinate, or the user chose it */
	/* more than half of the previous round; half for the coordinator that formed it */
	QUORUM_MAJORITY,
};

struct coordinator_config {
	enum quorum_rule quorum;
	uint64_t epoch;	       /* from an arbiter (etcd, exec); 0: one above the highest heard */
	uint64_t id;	       /* random, not 0 or all ones: identifies the coordinator */
	uint32_t salt;	       /* random, for the second case: see core/rounds/ballot.h */
	int32_t index;	       /* our endpoint's index, -1: none */
	struct agent_id local; /* the agent of this process, all 0: none. Prefers rank 0 for it */
	uint64_t last_call_ns; /* first round: wait for more than MIN nodes */
	uint64_t scale_up_delay_ns;
	uint64_t close_timeout_ns;
	struct pace membership; /* limits the rounds caused by changes of members */
};

#define COORDINATOR_CONFIG_INIT \
	((struct coordinator_config){ \
		.quorum = QUORUM_ANY, \
		.index = -1, \
		.last_call_ns = 30 * NS_PER_S, \
		.scale_up_delay_ns = 5 * NS_PER_S, \
		.close_timeout_ns = 30 * NS_PER_S, \
		.membership = { .interval_ns = 60 * NS_PER_S, .burst = 10 }, \
	})

enum coordinator_state {
	COORDINATOR_GATHERING, /* no workers anywhere; waits for enough agents */
	COORDINATOR_RUNNING,
	COORDINATOR_STOPPING, /* all members got STOP */
	COORDINATOR_CLOSING,  /* the ruling is made and being made known */
	COORDINATOR_CLOSED,
	COORDINATOR_DEPOSED,
	COORDINATOR_STATE_COUNT,
};

enum coordinator_event_type {
	COORDINATOR_MSG,	/* link, msg */
	COORDINATOR_LINK_DOWN,	/* link, dead */
	COORDINATOR_TIMER,	/* at coordinator_deadline_ns() or soon after; late is safe */
	COORDINATOR_SUPERSEDED, /* discovery knows a higher epoch */
};

struct coordinator_event {
	enum coordinator_event_type type;
	uint64_t link;
	const struct msg *msg; /* borrowed */
	/* MSG: when we greeted the peer on this link, before which it could send nothing: its JOIN
	 * is no older. Now, for a link within the process. */
	uint64_t greeted_ns;
	/* LINK_DOWN: closed or reset by the peer; false: unreachable */
	bool dead;
	const char *why; /* LINK_DOWN: the reason for display, borrowed; may be NULL */
};

enum coordinator_action_type {
	COORDINATOR_SEND, /* link, msg */
	COORDINATOR_HANG_UP,
	COORDINATOR_STEP_DOWN,
	COORDINATOR_FINISHED,
	COORDINATOR_NOTE, /* note: for display, changes nothing */
};

struct coordinator_action {
	enum coordinator_action_type type;
	uint64_t link;
	union {
		struct msg msg;
		struct note note;
	};
};

struct coordinator_actions {
	struct coordinator_action *items;
	size_t count, cap;
};

#define COORDINATOR_ACTIONS_INIT ((struct coordinator_actions){ .items = NULL })
void coordinator_actions_done(struct coordinator_actions *actions);

/* Fields are private; read them in tests and for display only. */
struct coordinator {
	struct coordinator_config config;
	enum coordinator_state state;
	struct roster roster; /* has the rounds that the quorum counts: heard and base */
	bool has_job;	      /* min and max are known */
	uint32_t min_nodes, max_nodes;
	uint64_t epoch;
	bool own;		   /* `heard` was formed here */
	bool coordinator_in_heard; /* as agents remember it */
	int32_t coordinator_index;
	/* The round. */
	uint32_t world_size, max_restarts;
	uint32_t done_count;
	uint32_t acked_base; /* members of `base` that know `heard` */
	/* a round whose coordinator all agents saw die, when its successor formed */
	struct ballot bereft;
	struct ballot voided; /* the last round that was void when its successor formed */
	char master_host[MSG_HOST_MAX];
	uint16_t master_port;
	/* Its failure. */
	bool failed; /* a worker's failure ended it, not a change of members */
	bool has_cause;
	struct cause cause; /* the earliest death */
	uint64_t died_ns;
	uint32_t restarts;
	enum ruling ruling;
	bool settled; /* the end of the last round has been charged */
	/* Deadlines, one per thing we wait for. Those at or before timer_ns have already been
	 * handled. */
	uint64_t last_call_ns, scale_up_ns, close_ns; /* NS_NEVER when not running */
	uint64_t regather_ns; /* for the other members of a round that another coordinator formed */
	uint64_t moved_ns;    /* for another coordinator to notice that an agent has left it */
	uint64_t not_before_ns;
	uint64_t tie_ns;   /* the member lost last could be back by then */
	uint64_t timer_ns; /* of the last COORDINATOR_TIMER */
};

void coordinator_init(struct coordinator *coordinator, const struct coordinator_config *config);
void coordinator_done(struct coordinator *coordinator);

void coordinator_step(struct coordinator *coordinator, const struct coordinator_event *event,
		      uint64_t now_ns, struct coordinator_actions *actions);

uint64_t coordinator_deadline_ns(const struct coordinator *coordinator);

/* True while a round runs or the job is closed. Otherwise discovery should keep looking for a
 * coordinator with a better claim. */
bool coordinator_settled(const struct coordinator *coordinator);

/* When two coordinators meet, the higher ballot has the better claim, then the lower endpoint. */
struct ballot coordinator_ballot(const struct coordinator *coordinator);

const char *coordinator_state_name(enum coordinator_state state);

#endif
