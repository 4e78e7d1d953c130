/* One host's part in a job: its agent, the search for a coordinator, the coordinator itself while
 * it is on this host, and the link between the two when both are here.
 *
 * A pure machine that joins three others (agent.h, coordinator.h, and search.h for how a
 * coordinator is found). `muster run`, `muster
 * coordinator` and the simulator are shells around it: they turn sockets, timers, signals and ends
 * of workers into events and carry the actions out in order.
 *
 *     node_step(&node, &(struct node_event){ .type = NODE_EV_START }, now_ns, &actions);
 *
 * How a coordinator is found depends on the kind:
 *
 *     ALONE      it is here from the start; no other host can reach it
 *     ENDPOINTS  the finder probes a list of endpoints and may take over
 *     ARBITER    a program (or etcd) names a leader and an epoch: NODE_EV_TERM
 *     APART      this node is the coordinator and has no agent: `muster coordinator`
 *
 * What the shell promises:
 * - START comes first. Links have ids: not 0, below NODE_LOCAL_LINK, never used again.
 * - LISTEN is answered by LISTENING with the endpoint that this process now listens on, or -1.
 *   Later a LISTENING comes only for an endpoint. With an arbiter TERM comes instead.
 * - Each PROBE is answered as finder.h says. CONNECT ends in LINK_UP or in NOT_LINKED, unless
 *   HANG_UP with link 0 cancels it.
 * - PLACE_STORE is answered by STORE, or by AGENT_BARRED if no store can be offered there.
 * - LINK_DOWN reports the end of a link, whether the agent's or one to an agent elsewhere; not
 * after HANG_UP or HANG_UP_ALL. A link to an agent elsewhere needs no event when it comes up, but
 * is let in only while node_coordinates().
 * - HOST carries what agent.h asks of its caller: events of the group and of the user. STORE
 *   comes before AGENT_GROUP_GONE, with the address for the next round.
 * - Links of askers (`muster status` and the like) are links like those of agents elsewhere, but
 *   are let in at any time if they come from this host.
 * - ASKED is answered, piece by piece, by PIECE: see core/rounds/asking.h and node_room().
 * - TIMER at node_deadline_ns() or soon after; late is safe.
 *
 * What it promises in turn: GROUP_START and the like as agent.h has it, and exactly one EXIT. The
 * EXIT of a process that coordinates is held back until all others know that the job is over, but
 * not after a stop request. The shell may end the process then.
 */
#ifndef CORE_NODE_NODE_H
#define CORE_NODE_NODE_H

#include "core/node/search.h"
#include "core/rounds/agent.h"
#include "core/rounds/asking.h"
#include "core/rounds/coordinator.h"

#define NODE_TELL_STAY_NS (2 * NS_PER_S) /* before a process that is stopped says why it stays */

enum node_kind {
	NODE_ALONE,
	NODE_ENDPOINTS,
	NODE_ARBITER,
	NODE_APART,
	NODE_KIND_COUNT,
};

struct node_config {
	enum node_kind kind;
	struct agent_config agent;   /* not for APART; ALONE needs no period and no time-out */
	struct finder_config finder; /* for ENDPOINTS; LISTENING sets `own` */
	/* For each coordinator that begins here. `id` and `salt`, both random, belong to the first
	 * one; later ones count up. `epoch`, `after_ns`, `index` and `local` are filled in. */
	struct coordinator_config coordinator;
};

enum node_event_type {
	NODE_EV_START,
	NODE_EV_LISTENING,  /* index */
	NODE_EV_TERM,	    /* term; the same one again renews its lease */
	NODE_EV_RECORDED,   /* term.epoch: the arbiter has recorded the end that RECORD named */
	NODE_EV_ANSWER,	    /* index, probe, answer, ballot */
	NODE_EV_LINK_UP,    /* link, can: made as CONNECT said */
	NODE_EV_NOT_LINKED, /* it could not be made */
	NODE_EV_LINK_DOWN,  /* link, dead, why */
	NODE_EV_MSG,	    /* link, msg, greeted_ns */
	NODE_EV_STORE,	    /* host, port */
	/* agent: GROUP_*, CHECKED, STOP_ or RESTART_REQUESTED, NOTICE, POSITIONS, PACE or BARRED */
	NODE_EV_HOST,
	NODE_EV_PIECE, /* msg: an ANSWER */
	NODE_EV_TIMER,
	NODE_EVENT_COUNT,
};

struct node_event {
	enum node_event_type type;
	uint64_t link;
	int32_t index;
	union {
		struct search_term term;
		struct {
			uint32_t probe;
			enum finder_answer answer;
			struct ballot ballot;
		};
		uint32_t can; /* the coordinator there, as in core/rounds/msg.h */
		struct {
			bool dead;	 /* as in core/rounds/coordinator.h */
			const char *why; /* for display, borrowed; may be NULL */
		};
		struct {
			const struct msg *msg; /* borrowed */
			uint64_t greeted_ns;   /* as in core/rounds/coordinator.h */
		};
		struct {
			const char *host; /* borrowed */
			uint16_t port;
		};
		struct agent_event agent;
	};
};

enum node_action_type {
	NODE_DO_LISTEN,	 /* find an endpoint of this host and listen there; see above */
	NODE_DO_PROBE,	 /* index, probe */
	NODE_DO_CONNECT, /* index: to that endpoint, -1: to the leader that was named */
	NODE_DO_SEND,	 /* link, msg */
	/* link, after everything sent on it is written; 0: cancel the connection under way */
	NODE_DO_HANG_UP,
	NODE_DO_HANG_UP_ALL, /* all agents elsewhere: this process no longer coordinates */
	/* link: give the address at which workers elsewhere reach our store, if they take the same
	 * route; 0: the coordinator is here, they come to where this process listens */
	NODE_DO_PLACE_STORE,
	NODE_DO_RECORD, /* end: have the arbiter record it, see core/rounds/coordinator.h */
	NODE_DO_HOST,	/* agent: PEERS, GROUP_START, GROUP_STOP, GROUP_KILL, CHECK, PLAN, LATE or
			   EXIT */
	NODE_DO_ASKED,	/* msg: QUESTION or GRANT */
	NODE_DO_NOTE,	/* note */
	NODE_ACTION_COUNT,
};

struct node_action {
	enum node_action_type type;
	uint64_t link;
	int32_t index;
	uint32_t probe;
	bool linked; /* HOST, EXIT: there was a link to a coordinator */
	union {
		struct msg msg;
		struct agent_action agent;
		struct note note;
		struct recorded_end end;
	};
};

struct node_actions {
	struct node_action *items;
	size_t count, cap;
	/* Within a step: actions of one machine for the other. */
	struct agent_actions from_agent;
	struct coordinator_actions from_coordinator;
	struct ask_actions asks;
	struct questions *left; /* of a coordinator that stepped down: actions have texts of them */
};

#define NODE_ACTIONS_INIT ((struct node_actions){ .items = NULL })
void node_actions_clear(struct node_actions *actions); /* frees the memory of a long list */
void node_actions_done(struct node_actions *actions);

QUEUE_OF(node);

/* The agent's link to a coordinator. */
enum node_link {
	NODE_UNLINKED,
	NODE_LINKING, /* CONNECT is under way */
	NODE_PLACING, /* it is up, and waits for STORE */
	NODE_LINKED,
	NODE_LINK_COUNT,
};

/* Fields are private; read them in tests and for display only. */
struct node {
	struct node_config config;
	struct agent agent;
	struct search search;
	struct coordinator *coordinator; /* here; NULL: not here */
	uint64_t coordinators;		 /* how many have begun here */
	uint64_t workers_until_ns;	 /* those of the last one's round may live until then */

	enum node_link link_state;
	uint64_t link;	       /* its id, NODE_LOCAL_LINK and above: within the process */
	uint32_t link_can;     /* the coordinator there */
	uint64_t next_local;   /* id of the next one within the process */
	uint64_t dead_indexes; /* for the agent's next LINK_UP */

	/* Questions to the whole job; NULL until there is one. */
	struct asking *asking;
	struct questions *questions; /* of the coordinator here */

	bool finished;	       /* the coordinator here: all know that the job is over */
	bool ending;	       /* `exit` is held back until then */
	uint64_t tell_stay_ns; /* when to say why it stays; NS_NEVER: not needed */
	struct node_action exit;
};

void node_init(struct node *node, const struct node_config *config);
void node_done(struct node *node);

/* Appends to `actions`, which the caller clears. */
void node_step(struct node *node, const struct node_event *event, uint64_t now_ns,
	       struct node_actions *actions);

uint64_t node_deadline_ns(const struct node *node);

/* Before a step: where the wall clock of this host is (core/pace/clock_offset.h). */
void node_set_wall(struct node *node, int64_t wall_shift_ns);

/* How many pieces of this answer may be sent now. */
static inline uint32_t node_room(const struct node *node, uint32_t question, uint16_t slot)
{
	return node->asking ? asking_room(node->asking, question, slot) : 0;
}

/* The answer to a probe: whether a coordinator is here, and the last round it formed. */
static inline bool node_coordinates(const struct node *node)
{
	return node->coordinator;
}

static inline struct ballot node_ballot(const struct node *node)
{
	return node->coordinator ? coordinator_ballot(node->coordinator) : BALLOT_NONE;
}

#endif
