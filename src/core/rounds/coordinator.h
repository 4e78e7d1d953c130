/* The coordinator: decides who is in which round, when to restart, and when the job is over.
 * docs/RENDEZVOUS.md has the rules and the reasons.
 *
 * A pure machine like the agent. The caller owns the links and gives each an id (never 0, never
 * used again); it tells what arrives on them and that they end, and carries out the actions in
 * order. A link needs no event when it comes up: an agent begins to exist with its JOIN. After
 * HANG_UP a link counts as down without an event.
 *
 * It says STEP_DOWN when it has learned of a higher ballot: all links have been hung up, the
 * machine is inert, discovery must look again. It says FINISHED once when the job is closed and
 * everybody knows, or had the time to: a process that coordinates stays until then.
 */
#ifndef CORE_ROUNDS_COORDINATOR_H
#define CORE_ROUNDS_COORDINATOR_H

#include "core/rounds/note.h"
#include "core/rounds/policy.h"
#include "core/rounds/roster.h"

enum quorum_rule {
	QUORUM_ANY,	 /* nobody else can coordinate, or the user said so */
	QUORUM_MAJORITY, /* more than half of the round before; half for the one who formed it */
};

struct coordinator_config {
	enum quorum_rule quorum;
	uint64_t epoch;	       /* from an arbiter (etcd, exec); 0: one above the highest heard of */
	uint64_t id;	       /* random, not 0 or all ones: tells coordinators apart */
	uint32_t salt;	       /* random, for the second case: see core/rounds/ballot.h */
	int32_t index;	       /* our endpoint's index, -1: none */
	struct agent_id local; /* the agent of this process, all 0: none. Prefers rank 0 for it */
	uint64_t last_call_ns; /* first round: for more than MIN nodes */
	uint64_t scale_up_delay_ns;
	uint64_t close_timeout_ns;
	struct pace membership; /* limit on rounds for changes of members */
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
	COORDINATOR_STOPPING, /* everyone was told to stop */
	COORDINATOR_CLOSING,  /* the job's end is decided and being made known */
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
	/* MSG: when we greeted the peer on this link, without which it could send nothing: so much
	 * older than now its JOIN can be. Now, for a link within the process. */
	uint64_t greeted_ns;
	/* LINK_DOWN: closed or reset by the peer, whose process has ended; not: unreachable */
	bool dead;
	const char *why; /* LINK_DOWN: the same for people, borrowed; may be NULL */
};

enum coordinator_action_type {
	COORDINATOR_SEND, /* link, msg */
	COORDINATOR_HANG_UP,
	COORDINATOR_STEP_DOWN,
	COORDINATOR_FINISHED,
	COORDINATOR_NOTE, /* note: for people, changes nothing */
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
	struct roster roster; /* has the rounds that count: heard and base */
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
	/* the round that all saw lose its coordinator when its successor was formed */
	struct ballot bereft;
	char master_host[MSG_HOST_MAX];
	uint16_t master_port;
	/* Its failure. */
	bool failed; /* a worker's failure ended it, not a change of members */
	bool has_cause;
	struct cause cause; /* the earliest death */
	uint64_t died_ns;
	uint32_t restarts;
	enum ruling ruling;
	bool settled; /* what the failure costs has been decided */
	/* What is waited for, each until a time; those up to the last timer have been seen to. */
	uint64_t last_call_ns, scale_up_ns, close_ns; /* NS_NEVER when not running */
	uint64_t regather_ns; /* for the rest of a round that another coordinator formed */
	uint64_t moved_ns;    /* for another coordinator to notice who has left it */
	uint64_t not_before_ns;
	uint64_t tie_ns;   /* whoever was lost last could be back by then */
	uint64_t timer_ns; /* of the last COORDINATOR_TIMER */
};

void coordinator_init(struct coordinator *coordinator, const struct coordinator_config *config);
void coordinator_done(struct coordinator *coordinator);

void coordinator_step(struct coordinator *coordinator, const struct coordinator_event *event,
		      uint64_t now_ns, struct coordinator_actions *actions);

uint64_t coordinator_deadline_ns(const struct coordinator *coordinator);

/* True while a round runs or the job is closed. Otherwise discovery should keep looking for a
 * coordinator with a better claim, if there can be one. */
bool coordinator_settled(const struct coordinator *coordinator);

/* The best claim of two coordinators that met: the higher ballot, then the lower endpoint. */
struct ballot coordinator_ballot(const struct coordinator *coordinator);

const char *coordinator_state_name(enum coordinator_state state);

#endif
