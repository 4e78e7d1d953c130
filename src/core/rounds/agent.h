/* The agent of one host: takes part in rounds and says when the local worker group starts and
 * stops.
 *
 * A pure machine. The caller (the node, a test) gives it events with the time and carries out the
 * actions in order:
 *
 *     agent_step(&agent, &(struct agent_event){ .type = AGENT_LINK_UP }, now_ns, &actions);
 *
 * The caller finds the coordinator (discovery), keeps at most one link to it, and owns the local
 * group. What it promises:
 * - AGENT_START comes first; AGENT_LINK_UP and AGENT_LINK_DOWN alternate, and after the action
 *   AGENT_HANG_UP the link counts as down without an event.
 * - After AGENT_GROUP_START the group reports, each at most once: FAILED (the first worker that
 *   failed on its own, at once), DONE (all workers ended with 0, none on request), and at last
 *   GONE (no process of the group is left), or STUCK if that cannot be reached. An end because of
 *   GROUP_STOP or GROUP_KILL is not a failure. GONE also comes when nothing could be started.
 *   After FAILED and DONE the group ends its other processes itself.
 * - The store's address in the node info is set for the next round before the steps of START and
 *   GONE (agent_set_store).
 * - A timer: AGENT_TIMER at agent_deadline_ns() or soon after; late is safe.
 *
 * What it promises in turn: GROUP_START only after GONE of the previous group; exactly one
 * AGENT_EXIT, as its last action; no local process is alive then (except those of STUCK).
 */
#ifndef CORE_ROUNDS_AGENT_H
#define CORE_ROUNDS_AGENT_H

#include "base/actions.h"
#include "core/worker/exit_set.h"
#include "core/rounds/msg.h"

struct agent_config {
	struct node_info node;
	struct exit_set no_restart_on; /* ends that are not worth a restart */
	/* time without a round, from START or from the end of the last one */
	uint64_t join_timeout_ns;
	/* the same once it has been in a round; 0: the same time. rule: lost-host */
	uint64_t seek_timeout_ns;
	/* how long this node may check itself between a failed attempt and the next; 0: it does
	 * not. rule: checking */
	uint64_t check_timeout_ns;
};

enum agent_state {
	AGENT_NEW,	/* before START */
	AGENT_SEEKING,	/* no link, no workers */
	AGENT_DROPPING, /* no link, workers being killed */
	AGENT_JOINED,	/* JOIN sent, no workers: waits for FORMED */
	AGENT_RUNNING,	/* workers run */
	AGENT_STOPPING, /* link, workers being stopped; JOIN follows */
	AGENT_CHECKING, /* link, no workers: this node checks itself; JOIN follows */
	AGENT_WAITING,	/* our workers are done; waits for the others */
	AGENT_LEAVING,	/* the user stops us; workers being stopped */
	AGENT_ENDING,	/* the job is closed; workers being stopped */
	AGENT_ENDED,
	AGENT_STATE_COUNT,
};

enum agent_event_type {
	AGENT_START,
	AGENT_LINK_UP,
	AGENT_LINK_DOWN,
	AGENT_MSG,
	AGENT_TIMER,
	AGENT_GROUP_FAILED,
	AGENT_GROUP_DONE,
	AGENT_GROUP_GONE,
	AGENT_GROUP_STUCK,
	AGENT_CHECKED,	      /* digest: the answer to CHECK, however late */
	AGENT_MEASURED,	      /* paired: what came of MEASURE; none if another followed */
	AGENT_STOP_REQUESTED, /* passed on to the group each time */
	/* asks for a new round: ends only a running one, and charges no budget */
	AGENT_RESTART_REQUESTED,
	/* kind, signal, left_ns: all workers of the job are to leave or to save together. To leave:
	 * where no round runs, and again, the same as STOP_REQUESTED */
	AGENT_NOTICE,
	/* positions, of: what the workers do about the plan; after each PLAN, then whenever it has
	 * changed, while there is a plan */
	AGENT_POSITIONS,
	/* marks, mark_count: steps that all workers here have told, on the clock of this host; or,
	 * with group, size and error_ns, collectives that those of a group have come to */
	AGENT_PACE,
	AGENT_SIGNS,	  /* signs: what the workers here no longer do, when it changes */
	AGENT_FOUND,	  /* found: by a look; the rank is of another host */
	AGENT_PUT,	  /* put: what the ranks here have for a fence; EXCHANGED answers */
	AGENT_WANT,	  /* want: likewise */
	AGENT_BARRED,	  /* this node can never take part: `text` says why */
	AGENT_SUPERSEDED, /* discovery knows a newer coordinator: never stops a running round */
};

struct agent_event {
	enum agent_event_type type;
	union {
		const struct msg *msg; /* MSG: borrowed */
		struct {
			/* GROUP_FAILED, GROUP_STUCK: reason, status, local rank, pid, no_restart
			 * and what is for people; the rest is filled in */
			struct cause cause;
			uint64_t died_ns; /* monotonic time of the death */
			/* GROUP_FAILED: new workers on this host would fail, too. rule: stuck */
			bool leaves;
		};
		struct {
			int signal; /* STOP_REQUESTED, NOTICE */
			enum plan_kind kind;
			uint64_t left_ns; /* NOTICE: workers that are there after it are stopped */
		};
		struct {
			struct plan_positions positions;
			struct stop_plan of;
		};
		struct {
			const struct step_mark *marks; /* borrowed */
			size_t mark_count;
			uint64_t group;	   /* 0: steps */
			uint32_t size;	   /* of the group: ranks on all hosts */
			uint64_t error_ns; /* by which the times may be wrong on this clock */
		};
		struct {
			/* GROUP_DONE, GROUP_GONE: workers left as agreed, and all that were here
			 * have saved or ended well */
			bool left;
			/* GROUP_GONE: 1 + the highest step of its workers; 0: none */
			uint64_t reached;
			/* GROUP_GONE: what all of them have committed */
			struct kept_state kept[KEPT_STATES];
			/* GROUP_GONE after FAILED: status, words and report of that worker, as
			 * they are known now; borrowed; NULL: no more than then */
			const struct cause *ended;
		};
		struct msg_signs signs;
		struct msg_found found;
		/* PUT and WANT: borrowed until the round ends here */
		struct {
			uint32_t seq;
			struct bytes pairs;
		} put;
		struct want want;
		uint64_t epoch; /* SUPERSEDED: of the newer one */
		struct {
			const char *text; /* BARRED: borrowed */
			bool by_peer;	  /* BARRED: which may be anybody */
		};
		/* CHECKED: borrowed; NULL: the checker failed, which says nothing */
		const struct check_digest *digest;
		struct msg_paired paired; /* MEASURED */
		bool dead; /* LINK_DOWN: closed or reset by the peer; false: unreachable */
		struct {
			/* LINK_UP: from the finder, 0 where there is none */
			uint64_t dead_indexes;
			uint32_t can; /* the coordinator, as in core/rounds/msg.h */
		};
	};
};

enum group_stop_why {
	GROUP_STOP_ROUND,  /* the round ends: a failure elsewhere or a change of members */
	GROUP_STOP_SIGNAL, /* the user's signal, for the workers */
	GROUP_STOP_CLOSED, /* the job is over */
};

enum outcome_kind {
	OUTCOME_DONE,
	OUTCOME_FAILED,	   /* cause is the first one on all nodes */
	OUTCOME_SIGNAL,	   /* ended by `signal` */
	OUTCOME_TIMED_OUT, /* no round within join_timeout; the cause, if any, is from this host */
	OUTCOME_REFUSED,   /* text says why */
	OUTCOME_UNKNOWN,   /* our workers are done; the job's end is unknown */
	OUTCOME_KIND_COUNT,
};

#define OUTCOME_TEXT_MAX 512

struct outcome {
	enum outcome_kind kind;
	bool has_cause;
	struct cause cause;
	int signal;
	uint32_t restarts;
	bool stalled; /* attempts failed one after the other without progress */
	/* DONE and UNKNOWN: workers left as agreed, after saving; the job is not complete.
	 * SIGNAL: so did those of this host, before the signal reached them. */
	bool left;
	bool stuck; /* this host has a process that cannot be killed */
	char text[OUTCOME_TEXT_MAX];
};

enum agent_action_type {
	AGENT_SEND,
	AGENT_PEERS,	   /* msg: hosts that may use the store that we offered */
	AGENT_GROUP_START, /* formed, ballot */
	/* with the stop signal; at most once per group, never after FAILED or DONE */
	AGENT_GROUP_STOP,
	AGENT_GROUP_KILL, /* at once */
	AGENT_CHECK,	  /* have this node check itself; a check that is under way counts, too */
	/* msg: measure the wire to another node, and end what an earlier one began */
	AGENT_MEASURE,
	AGENT_PLAN, /* plan: show it to the workers; POSITIONS answers */
	AGENT_LATE, /* late: a worker here holds the others up, or no longer does */
	AGENT_LOOK, /* look: find out why the job hangs, or end the worker here that is to blame */
	AGENT_EXCHANGED,   /* msg: UNION or VALUE */
	AGENT_NO_EXCHANGE, /* the coordinator is too old for PUT and WANT */
	/* after everything sent so far is written, as far as the peer takes it */
	AGENT_HANG_UP,
	AGENT_EXIT,
};

struct agent_action {
	enum agent_action_type type;
	union {
		struct msg msg;
		struct {
			struct msg_formed formed;
			struct ballot ballot;
		};
		struct {
			enum group_stop_why why;
			int signal; /* 0: the usual stop signal */
			/* a failure on some node ends the round, or the loss of a host; what is
			 * known of it */
			bool has_cause;
			struct cause cause;
		};
		struct outcome outcome;
		struct stop_plan plan;
		struct straggler_news late;
		struct msg_look look;
	};
};

ACTIONS_OF(agent);

/* Fields are private; read them in tests and for display only. */
struct agent {
	struct agent_config config;
	enum agent_state state;
	struct memory memory;
	struct msg_formed formed; /* the round of the group, while there is one */
	bool linked;
	bool joined;	    /* JOIN was sent on this link */
	uint32_t can;	    /* the coordinator of this link, as in core/rounds/msg.h */
	uint32_t attempt;   /* number of this link */
	bool superseded;    /* the coordinator of this link is; leave it when no round runs */
	bool formed_here;   /* the coordinator at the other end formed memory.heard */
	bool alive;	    /* the group may have processes */
	int signal;	    /* of the first stop request, or of the notice */
	struct cause cause; /* as in struct msg_join */
	uint64_t died_ns;   /* of `cause`; 0: there is none */
	uint32_t present;   /* agents at the coordinator, from its last PONG */
	uint32_t missing;   /* for a majority, likewise */
	bool held;	    /* likewise: the coordinator says that the wait ends without us */
	uint64_t next_ping_ns;
	uint64_t stamp;		   /* of the last PONG on this link */
	struct clock_offset clock; /* of the coordinator of this link */
	int64_t wall_shift_ns;	   /* of this host; 0: not known */
	uint64_t answered_ns;	   /* when we sent the last PING that was answered */
	uint64_t join_deadline_ns; /* NS_NEVER while a round runs */
	bool leaves;		   /* the job, once the workers are gone. rule: stuck */
	bool failed;		   /* a failure ended the last round: check before JOIN */
	uint64_t check_deadline_ns;
	uint32_t pair_serial;	/* of the PAIR that is under way; 0: none */
	struct outcome outcome; /* for ENDING */
	/* The plan that the workers see, and whether we have voted on it as it is. */
	struct stop_plan plan;
	bool voted;
	/* A notice to leave: this agent takes part in no further round. */
	bool noticed;
	uint64_t notice_ns; /* its deadline */
	/* The last workers here left as agreed, and all have saved: true whatever is heard of later
	 * rounds, which memory.left is not. */
	bool workers_left;
};

void agent_init(struct agent *agent, const struct agent_config *config);

/* The address at which this host would serve the workers' store of the next round. */
void agent_set_store(struct agent *agent, const char *host, uint16_t port);

/* Appends to `actions`, which the caller empties. */
void agent_step(struct agent *agent, const struct agent_event *event, uint64_t now_ns,
		struct agent_actions *actions);

uint64_t agent_deadline_ns(const struct agent *agent);

/* The coordinator's wall clock minus that of this host, once a PONG has come. */
static inline struct wall_offset agent_wall_offset(const struct agent *agent, uint64_t now_ns)
{
	return clock_offset_wall(&agent->clock, agent->wall_shift_ns, now_ns);
}

/* The coordinator's clock now; 0: it is not known yet. */
static inline uint64_t agent_there_ns(const struct agent *agent, uint64_t now_ns)
{
	if (agent->config.node.period_ns == 0) /* it is in this process */
		return now_ns;
	return agent->clock.known ? clock_offset_there(&agent->clock, now_ns) : 0;
}

const char *agent_state_name(enum agent_state state);

#endif
