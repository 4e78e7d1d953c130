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

#include "base/actions.h"
#include "core/checks/clocks.h"
#include "core/pace/waits.h"
#include "core/pmi/keyvals.h"
#include "core/rounds/note.h"
#include "core/rounds/policy.h"
#include "core/rounds/roster.h"
#include "core/rounds/strikes.h"

enum quorum_rule {
	QUORUM_ANY, /* no other process can coordinate, or the user chose it */
	/* more than half of the previous round; half for the coordinator that formed it */
	QUORUM_MAJORITY,
	/* the arbiter's lease: while it lasts, no other process coordinates. As QUORUM_MAJORITY
	 * for a coordinator that never got one. rule: fence */
	QUORUM_LEASE,
};

struct coordinator_config {
	enum quorum_rule quorum;
	uint64_t epoch;	   /* from an arbiter (etcd, exec); 0: one above the highest heard */
	uint64_t until_ns; /* the end of the arbiter's lease; 0: none. LEASE renews it */
	uint64_t fence_ns; /* how long workers may live without our answers, by our own settings */
	uint64_t after_ns; /* workers of this process's last coordinator may live until then */
	struct recorded_end past; /* as the arbiter had it when this coordinator was chosen */
	uint64_t id;		  /* random, not 0 or all ones: identifies the coordinator */
	uint32_t salt;		  /* random, for the second case: see core/rounds/ballot.h */
	int32_t index;		  /* our endpoint's index, -1: none */
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
	COORDINATOR_LEASE,	/* until_ns */
	COORDINATOR_RECORDED,	/* the arbiter has recorded the end that RECORD named */
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
	const char *why;   /* LINK_DOWN: the reason for display, borrowed; may be NULL */
	uint64_t until_ns; /* LEASE: no other process is chosen before that, on our clock */
};

enum coordinator_action_type {
	COORDINATOR_SEND, /* link, msg */
	COORDINATOR_HANG_UP,
	COORDINATOR_STEP_DOWN, /* down */
	/* end: have the arbiter record it, for as long as it has not chosen another coordinator.
	 * RECORDED answers; without an answer it comes again */
	COORDINATOR_RECORD,
	COORDINATOR_FINISHED,
	COORDINATOR_NOTE, /* note: for display, changes nothing */
};

/* What the next coordinator of this process must know. */
struct stepped_down {
	uint64_t workers_until_ns; /* those of our members may live until then */
	/* No other process is known to coordinate: where an arbiter has chosen us, the next one
	 * here begins with the same epoch. */
	bool again;
};

struct coordinator_action {
	enum coordinator_action_type type;
	uint64_t link;
	union {
		struct stepped_down down;
		struct msg msg;
		struct note note;
		struct recorded_end end;
	};
};

ACTIONS_OF(coordinator);

/* The middle of the nodes' wall clocks (core/rounds/inspection.h). */
struct clock_middle {
	struct host_clock clock;
	size_t count; /* of them all; 0: not known */
	size_t due;   /* it is found again after so many PINGs that tell of a clock */
};

/* How members agree to leave or to save together (core/rounds/accord.h), while a round runs. */
struct accord {
	struct stop_plan plan; /* as all members were told */
	uint64_t deadline_ns;  /* of the notice */
	uint64_t margin;       /* of the next proposal: this far beyond where workers were */
	bool leave_wanted;     /* after the save that is under way */
	uint64_t leave_deadline_ns;
	uint32_t voted;	 /* active members that voted on the plan as it is now */
	uint32_t cannot; /* active members that do not know of plans */
};

/* How the wires between nodes are measured (core/rounds/pairing.h), before a round. */
struct pairing {
	bool active;
	uint32_t serial; /* of the last PAIRs */
	uint16_t ms;
	uint32_t waiting; /* nodes that call and have not told what they found */
	uint64_t deadline_ns;
	struct pairs pairs;
	struct agent_id *ids; /* of the nodes of `pairs` */
};

/* Who holds the others up (core/rounds/pacing.h), while a round runs. */
struct pacing {
	struct step_marks marks;
	struct stragglers steps;   /* how long they take */
	uint64_t in_step_ns;	   /* when all ranks were last seen in the same step */
	struct wait_groups groups; /* who comes last to their collectives, or alone does not wait */
};

/* Whether the job hangs (core/rounds/silence.h), while a round runs. */
struct silence {
	struct hang_tally tally; /* of active members */
	enum hang_kind looked;	 /* a host was told to look into that; NONE: there is no reason */
};

#define EXCHANGE_SIZE_MAX ((size_t)48 << 20) /* of one union; more is left out, and not found */

/* What ranks put for those of other hosts (core/rounds/exchange.h), while a round runs. */
struct exchange {
	uint32_t seq;		/* of the fence that is being gathered */
	uint32_t entered;	/* members that have put all they have for it */
	struct buf gathered;	/* by them so far */
	struct buf whole;	/* the union of the fence before */
	struct keyvals keyvals; /* of all fences, and names that programs have published */
};

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
	struct kept_state kept; /* that all its ranks have */
	uint32_t done_count;
	bool left; /* workers of those left as agreed, after saving */
	struct accord accord;
	struct pacing pacing;
	struct silence silence;
	struct exchange exchange;
	uint32_t acked_base; /* members of `base` that know `heard` */
	/* a round whose coordinator all agents saw die, when its successor formed */
	struct ballot bereft;
	/* the last round that was void when its successor formed or its ruling was made known */
	struct ballot voided;
	char master_host[MSG_HOST_MAX];
	uint16_t master_port;
	/* Its failure. */
	bool failed; /* a worker's failure ended it, not a change of members */
	bool has_cause;
	bool cause_is_ruled; /* an earlier coordinator has made it known */
	struct cause cause;  /* the earliest death; its blame is the first that a report had */
	uint64_t died_ns;
	uint32_t restarts;
	struct stall stall;
	bool stalled; /* the ruling: attempts without progress used the budget up */
	enum ruling ruling;
	bool settled; /* the end of the last round has been charged */
	/* Who is fit. */
	struct strikes strikes;
	struct clock_middle clocks;
	struct pairing pairing;
	char difference[MSG_TEXT_MAX]; /* the last one that was noted */
	/* The arbiter's lease. */
	uint64_t until_ns; /* 0: there never was one */
	uint64_t lease_ns; /* the longest that was left of it */
	uint64_t fence_ns; /* how long workers of members may live without our answers */
	bool holds_lease;  /* in this step: it lasts longer than that */
	bool lease_noted;  /* that it holds a round back */
	bool recording;	   /* RECORD is under way */
	bool recorded;	   /* the arbiter knows the ruling */
	/* Deadlines, one per thing we wait for. Those at or before timer_ns have already been
	 * handled. */
	uint64_t last_call_ns, scale_up_ns, close_ns; /* NS_NEVER when not running */
	uint64_t regather_ns; /* for the other members of a round that another coordinator formed */
	uint64_t moved_ns;    /* for another coordinator to notice that an agent has left it */
	uint64_t not_before_ns;
	uint64_t lost_since_ns; /* since when there are too few, while lost_ns counts */
	uint64_t lost_ns;	/* lost hosts are waited for until then; NS_NEVER: nobody waits */
	uint64_t tie_ns;	/* the member lost last could be back by then */
	uint64_t timer_ns;	/* of the last COORDINATOR_TIMER */
	int64_t wall_shift_ns;	/* core/pace/clock_offset.h, for agents; 0: not known */
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
