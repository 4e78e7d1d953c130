/* What agents and the coordinator tell each other.
 *
 *     agent -> coordinator                          coordinator -> agent
 *     JOIN    I have no workers; this is me         FORMED  the round is formed: start these ranks
 *     FAILED  a worker of this round failed         STOP    stop your workers, then JOIN again
 *     DONE    all my workers ended well             CLOSED  the job is over
 *     LEAVE   I go (or: I have gone elsewhere)      REFUSED you may not take part, and why
 *     PING    I am here                             PONG    answer to a PING
 *                                                   PEERS   who may use your store; FORMED follows
 *     NOTICE  have all leave, or save, together     PLAN    the step after which they do so
 *     VOTE    what my workers do about the plan     (core/rounds/accord.h)
 *     PAIRED  what I found                          PAIR    measure the wire to that node
 *                                                   (core/rounds/pairing.h)
 *     SIGNS   what my workers do not do any more    LOOK    find out why all hang, or end
 *     FOUND   that rank of another host is to               that worker
 *             blame                                 (core/rounds/silence.h)
 *     PUT     what ranks here have for all          UNION   what ranks of all hosts have put
 *     WANT    more of it, or one of the pairs       VALUE   answer to a WANT
 *                                                   (core/pmi/want.h)
 *
 * and questions of users to all hosts: core/rounds/ask_msg.h.
 *
 * JOIN is the one report of state: it is sent on a new link and after every STOP, always after the
 * last local process is gone, and carries what must outlive a coordinator (struct memory).
 *
 * Messages own nothing. Everything is inline but JOIN's `node`, which is borrowed: from the agent
 * on the way out (valid as long as the agent), from the decoder on the way in (valid for the step);
 * and the bytes of questions and answers, which are borrowed for the step.
 * Times are lengths ("age", "period"), never points in time: clocks of two hosts are not compared.
 */
#ifndef CORE_ROUNDS_MSG_H
#define CORE_ROUNDS_MSG_H

#include "core/checks/digest.h"
#include "core/pace/clock_offset.h"
#include "core/pace/straggler.h"
#include "core/pmi/want.h"
#include "core/rounds/ask_msg.h"
#include "core/rounds/ballot.h"
#include "core/rounds/kept.h"
#include "core/worker/group.h"
#include "core/worker/hang.h"
#include "core/worker/stop_plan.h"

#define MSG_HOST_MAX 256 /* with the NUL, as all of these */
#define MSG_ROLE_MAX 64
#define MSG_NAME_MAX 65
#define MSG_TEXT_MAX 160
#define MSG_BLAME_MAX 256
#define MSG_WORDS_MAX 192
#define MSG_PLACE_MAX 192
#define MSG_ADDRS_MAX 16
#define MSG_NODES_MAX 1000000
#define MSG_NPROC_MAX 1000000

/* 128 random bits, drawn once per agent process, kept over reconnects. */
struct agent_id {
	uint64_t hi, lo;
};

static inline bool agent_id_eq(struct agent_id a, struct agent_id b)
{
	return a.hi == b.hi && a.lo == b.lo;
}

struct msg_addr {
	uint8_t family;	   /* 4 or 6 */
	uint8_t bytes[16]; /* network order; the first 4 for IPv4 */
};

/* What the version of a process lets it understand. Not sent: the receiver has it from the version
 * of the peer, see frame_can(). */
enum {
	CAN_ASK = 1 << 0,      /* questions and answers */
	CAN_PLAN = 1 << 1,     /* NOTICE, VOTE and PLAN */
	CAN_STREAM = 1 << 2,   /* the question for the job's one log */
	CAN_PACE = 1 << 3,     /* PACE and LATE */
	CAN_ARRIVE = 1 << 4,   /* and those about collectives */
	CAN_SIGNS = 1 << 5,    /* SIGNS, LOOK and FOUND */
	CAN_EXCHANGE = 1 << 6, /* PUT, UNION, WANT and VALUE */
	CAN_ALL = (1 << 7) - 1,
};

/* An agent's identity and options; the same in every JOIN except for the store's address. */
struct node_info {
	struct agent_id id;
	uint32_t min_nodes, max_nodes; /* must be the same everywhere */
	uint32_t nproc;
	int32_t node_rank; /* -1: any */
	uint32_t max_restarts;
	bool by_progress; /* only attempts in a row without a new step use the restarts up */
	uint64_t backoff_ns, backoff_max_ns; /* before restart n: backoff * 2^(n-1), at most max */
	uint64_t period_ns;		     /* between two PINGs; 0: the link cannot fall silent */
	/* the agent kills its workers after this many periods without an answer */
	uint32_t lease_periods;
	char role[MSG_ROLE_MAX];
	char name[MSG_NAME_MAX]; /* host name, for display */
	char store_host[MSG_HOST_MAX];
	uint16_t store_port;
	uint8_t addr_count;
	struct msg_addr addrs[MSG_ADDRS_MAX];
	struct check_digest checks; /* the last ones of this node. rule: fitness */
	uint32_t strikes;	    /* so many make its host one of last resort; 0: none do */
	uint64_t cool_down_ns;	    /* they are forgotten after that. rule: strikes */
	bool excluded;		    /* it never gets workers. rule: excluded */
	uint16_t pair_port;	    /* where others measure the wire to it; 0: it takes no part */
	uint16_t pair_ms;	    /* how long it measures in each direction */
	/* a lost host that the job needs is waited for so long; 0: not told. rule: lost-host */
	uint64_t lost_timeout_ns;
	uint32_t can; /* CAN_ASK and so on; not sent */
};

/* Puts an address first in the node's list. A full list loses its last one. */
void node_add_addr(struct node_info *node, const struct msg_addr *addr);

/* A round by its ballot and size. nodes is 0 exactly when the ballot is none. */
struct round_ref {
	struct ballot ballot;
	uint32_t nodes;
};

/* What the flight records of all ranks say about a failure (core/collectives/join.h). All 0:
 * nothing. */
struct blame {
	bool named; /* `rank` holds the others up */
	uint32_t rank;
	bool exclude;		  /* leave its host out of later rounds. rule: culprit */
	char text[MSG_BLAME_MAX]; /* for people; "": none */
};

/* Why a worker, and so a round, failed. What is known later, such as the words, comes with the JOIN
 * of its agent: see cause_is_same(). */
struct cause {
	enum failure_reason reason;
	struct exit_status status;
	int32_t spawn_errno; /* of FAILURE_SPAWN */
	int32_t local_rank;
	int32_t rank;	    /* global; filled in by the agent core */
	int32_t group_rank; /* of its host; filled in by the agent core */
	int32_t pid;
	bool no_restart; /* the agent's policy says: final */
	uint64_t age_ns; /* since the death, when the message was made */
	char name[MSG_NAME_MAX];
	/* For people, the same on all hosts. rule: one-cause */
	uint32_t world_size; /* of the round; filled in by the agent core */
	uint64_t lived_ns;   /* from its start to its death; 0: it was not started */
	uint64_t wall_ns;    /* when it died, by the wall clock of its host; 0: not known */
	struct blame blame;
	char words[MSG_WORDS_MAX];  /* its exception, else the last line that it printed */
	char report[MSG_PLACE_MAX]; /* the file on its host that has more; "": there is none */
};

/* Both are about the death of the same worker, told at different times. */
bool cause_is_same(const struct cause *a, const struct cause *b);

/* How far failed attempts got. */
struct stall {
	uint64_t reached;  /* 1 + the highest step of any attempt that is over; 0: none told one */
	uint32_t attempts; /* that failed one after the other without a new step */
};

/* How the workers of the last round ended here. */
enum work_state {
	WORK_IDLE, /* none, or stopped on request */
	WORK_DONE,
	WORK_FAILED,
	WORK_STATE_COUNT,
};

/* The decision how the job ended; all agents learn it before any acts on it. */
enum ruling {
	RULING_NONE,
	RULING_DONE,
	RULING_FAILED,
	RULING_COUNT,
};

/* The last end of the job that an arbiter has on record. */
struct recorded_end {
	uint64_t epoch; /* of the coordinator that closed the job; 0: none */
	enum ruling ruling;
};

#define MEMORY_ROUNDS 8

/* What an agent remembers for a coordinator that does not know the job yet. */
struct memory {
	struct round_ref heard; /* the highest round heard of */
	/* the last round known to more than half of its predecessor's members */
	struct round_ref base;
	struct ballot member_of[MEMORY_ROUNDS]; /* rounds it was itself a member of, latest first */
	bool coordinator_in_heard;		/* the host that formed `heard` was a member */
	int32_t coordinator_index;		/* its endpoint's index, -1 if there is none */
	/* of the coordinator it joined last, if that may not know that it left */
	uint64_t joined_id;
	/* its link was closed or reset, and its endpoint has refused since */
	bool coordinator_died;
	int32_t group_rank;   /* in the last round it was a member of, -1 before */
	uint32_t restarts;    /* charges to the budget up to `heard` */
	struct stall stall;   /* likewise */
	uint64_t reached;     /* 1 + the highest step of the workers here in `heard`; 0: none */
	struct kept kept;     /* by the workers here, whatever round that was in */
	enum work_state work; /* in `heard`; idle if not a member */
	bool left;	      /* its workers, as agreed, after saving; or so the ruling says */
	enum ruling ruling;   /* on `heard` */
};

static inline bool memory_was_in(const struct memory *memory, struct ballot ballot)
{
	for (size_t i = 0; i < MEMORY_ROUNDS; i++)
		if (ballot_eq(memory->member_of[i], ballot))
			return !ballot_is_none(ballot);
	return false;
}

/* The agent hears of a higher round that it is not in: its work no longer counts. */
void memory_hear(struct memory *memory, const struct round_ref *heard);

/* The agent becomes a member of a new round: its work in the previous one is past. */
void memory_enter(struct memory *memory, const struct round_ref *heard,
		  const struct round_ref *base);

struct msg_formed;

/* Of what the workers here keep, only the state that the round names counts from now on. */
void memory_keep(struct memory *memory, const struct msg_formed *formed);

#define JOINED_NOBODY 0
#define JOINED_UNKNOWN UINT64_MAX /* one that never answered */

struct msg_join {
	const struct node_info *node; /* borrowed */
	/* counts the agent's links: messages of an older one may arrive later. rule: link-count */
	uint32_t attempt;
	struct memory memory;
	struct cause cause; /* of WORK_FAILED here, or of RULING_FAILED */
};

struct msg_formed {
	struct round_ref base; /* see struct memory */
	bool coordinator_in_round;
	int32_t coordinator_index;
	uint32_t nodes; /* group world size */
	uint32_t group_rank;
	uint32_t rank_base, world_size;
	uint32_t role_rank_base, role_world_size;
	uint32_t restarts, max_restarts;
	struct stall stall;
	struct kept_state kept; /* that all ranks of this round have; none: they load a file */
	bool hosts_store;	/* this agent serves the workers' store */
	uint16_t master_port;
	char master_host[MSG_HOST_MAX];
};

struct msg_failed {
	struct cause cause;
};

struct msg_done {
	bool left; /* a worker here left as agreed (core/worker/stop_plan.h) */
};

enum stop_why {
	STOP_FAILURE, /* a worker somewhere failed */
	STOP_MEMBERS, /* a node was lost, left or will be added */
	STOP_RULING,  /* the job is over; CLOSED follows */
	STOP_WHY_COUNT,
};

struct msg_stop {
	enum stop_why why;
	enum ruling ruling;
	struct cause cause; /* of STOP_FAILURE and RULING_FAILED; of STOP_MEMBERS: who was lost */
	bool left;	    /* RULING_DONE: workers left as agreed, after saving */
};

enum leave_why {
	LEAVE_SIGNAL,	  /* the user stopped this agent */
	LEAVE_TIMEOUT,	  /* join_timeout */
	LEAVE_CLOSED,	  /* answer to CLOSED or REFUSED */
	LEAVE_STUCK,	  /* this host has a worker that cannot be killed */
	LEAVE_LEASE,	  /* no answer to PINGs: the agent searches again */
	LEAVE_SUPERSEDED, /* the agent knows a higher ballot */
	LEAVE_WHY_COUNT,
};

/* The agent is alive and may join another coordinator. */
static inline bool leave_is_elsewhere(enum leave_why why)
{
	return why == LEAVE_LEASE || why == LEAVE_SUPERSEDED;
}

struct msg_leave {
	enum leave_why why;
	bool empty;	/* no worker is alive here any more */
	uint8_t signal; /* LEAVE_SIGNAL; 0: not known */
};

struct msg_closed {
	enum ruling ruling; /* RULING_DONE or RULING_FAILED */
	uint32_t restarts;
	bool stalled; /* failed: the attempts made no progress */
	bool left;    /* done: workers left as agreed, after saving; the job is not complete */
	struct cause cause;
};

enum refusal {
	REFUSED_NODES,	   /* MIN:MAX differs, or the lease does not cover its keep-alive */
	REFUSED_NODE_RANK, /* another live agent holds this node rank, or it is not below MAX */
	REFUSED_REASON_COUNT,
};

struct msg_refused {
	enum refusal reason;
	char text[MSG_TEXT_MAX]; /* for the user, with both values */
};

struct msg_ping {
	uint64_t cookie;	 /* the agent's clock; comes back in the PONG */
	uint64_t stamp;		 /* of the last PONG on this link, 0 before the first */
	struct wall_offset wall; /* the coordinator's wall clock, as the agent knows it */
};

struct msg_pong {
	uint64_t coordinator_id; /* see struct memory */
	uint64_t cookie;
	uint64_t stamp; /* the coordinator's clock; comes back in the next PING. rule: fresh */
	struct round_ref heard, base;
	/* a round runs, or a pause before one: agents outside it wait without a time-out */
	bool wait;
	uint32_t present;      /* agents linked to the coordinator, for display */
	uint32_t missing;      /* how many more a majority needs, for display; 0: it has one */
	int64_t wall_shift_ns; /* core/pace/clock_offset.h; 0: not known */
};

#define MSG_PAIR_ADDRS_MAX 4
#define MSG_PAIR_MS_MAX 2000

/* Measure the wire to another node: call it, or wait for its call. rule: pairs */
struct msg_pair {
	uint32_t serial; /* comes back in PAIRED */
	uint64_t secret; /* that both know, and no others where links are encrypted */
	bool calls;
	uint16_t port; /* of the other node, in a call */
	uint8_t addr_count;
	struct msg_addr addrs[MSG_PAIR_ADDRS_MAX];
	uint16_t ms; /* to measure in each direction */
};

/* What the node that called has found. */
struct msg_paired {
	uint32_t serial;
	bool known;	     /* false: the measurement itself failed, which says nothing */
	uint64_t bandwidth;  /* bytes a second, of the slower direction; 0: no way through */
	uint64_t latency_ns; /* there and back; 0: unknown */
};

#define MSG_PEERS_MAX 32

/* Addresses of the members' hosts, in as many messages as necessary, before FORMED and only to the
 * agent that will serve the workers' store of a round of several nodes. */
struct msg_peers {
	bool first; /* replaces an earlier list */
	uint8_t count;
	struct msg_addr addrs[MSG_PEERS_MAX];
};

/* A user, or whoever ends this host, wants all workers to leave or to save together. */
struct msg_notice {
	enum plan_kind kind;
	uint64_t left_ns; /* for it */
};

/* All 0 in the plan: a notice is refused. NONE with a serial number: that plan is over. */
struct msg_plan {
	struct stop_plan plan;
	uint64_t left_ns; /* LEAVE: workers that are still there then are stopped */
};

/* What the workers of a host do about a plan: about ASKED once all have told where they are, about
 * PROPOSED at once, about a committed SAVE once all have saved. */
struct msg_vote {
	uint32_t serial;
	enum plan_phase phase;
	uint64_t step; /* of the plan */
	uint64_t at;   /* 1 + the highest step that a worker here has gone on after; 0: none asks */
};

#define MSG_MARKS_MAX 16

/* When the workers of a host told their last steps, all of them together; or when those of a group
 * came to collectives. */
struct msg_pace {
	uint64_t group;	   /* 0: steps */
	uint32_t size;	   /* of the group: ranks on all hosts */
	uint64_t error_ns; /* of all the times, which are on the coordinator's clock */
	uint8_t count;
	struct step_mark marks[MSG_MARKS_MAX];
};

/* A worker of this host holds the others up, or no longer does. */
struct msg_late {
	struct straggler_news news;
};

/* What shows, or does not show, that the workers of a host go on: told when it changes. */
struct msg_signs {
	struct hang_signs signs;
	bool looked; /* the last LOOK found nothing: there may be another */
};

/* To a host: the job hangs. `named`: its worker holds the others up, end it; otherwise find out
 * who does. */
struct msg_look {
	enum hang_kind kind;
	bool long_since; /* work is no excuse any more */
	struct blame blame;
};

/* A LOOK of this kind has found that a worker of another host is to blame. */
struct msg_found {
	enum hang_kind kind;
	struct blame blame;
};

/* Pairs that ranks here have put for a fence. */
struct msg_put {
	uint32_t seq;
	bool last;
	struct bytes pairs; /* a part of a run (core/pmi/pairs.h); borrowed, as those below */
};

/* Pairs that all ranks have put: a part of the run, which has `size` bytes. */
struct msg_union {
	uint32_t seq, size, at;
	struct bytes piece;
};

struct msg_value {
	uint32_t serial; /* of the WANT */
	bool found;
	struct bytes value;
};

enum msg_type {
	MSG_JOIN,
	MSG_FAILED,
	MSG_DONE,
	MSG_LEAVE,
	MSG_PING,
	MSG_FORMED,
	MSG_STOP,
	MSG_CLOSED,
	MSG_REFUSED,
	MSG_PONG,
	MSG_PEERS,
	MSG_NOTICE,
	MSG_VOTE,
	MSG_PLAN,
	MSG_PAIR,
	MSG_PAIRED,
	MSG_PACE,
	MSG_LATE,
	MSG_SIGNS,
	MSG_LOOK,
	MSG_FOUND,
	MSG_PUT,
	MSG_UNION,
	MSG_WANT,
	MSG_VALUE,
	MSG_ASK,
	MSG_TAKEN,
	MSG_ANSWER,
	MSG_QUESTION,
	MSG_GRANT,
	MSG_REPLY,
	MSG_MISSED,
	MSG_ENDED,
	MSG_TYPE_COUNT,
};

struct msg {
	enum msg_type type;
	/* FORMED, PEERS, STOP, FAILED, DONE, NOTICE, VOTE, PLAN, PACE, LATE, SIGNS, LOOK, FOUND,
	 * PUT, UNION, WANT, VALUE: the round it is about.
	 * Otherwise the highest that the sender has heard of. */
	struct ballot ballot;
	union {
		struct msg_join join;
		struct msg_failed failed;
		struct msg_done done;
		struct msg_leave leave;
		struct msg_ping ping;
		struct msg_formed formed;
		struct msg_stop stop;
		struct msg_closed closed;
		struct msg_refused refused;
		struct msg_pong pong;
		struct msg_peers peers;
		struct msg_notice notice;
		struct msg_vote vote;
		struct msg_plan plan;
		struct msg_pair pair;
		struct msg_paired paired;
		struct msg_pace pace;
		struct msg_late late;
		struct msg_signs signs;
		struct msg_look look;
		struct msg_found found;
		struct msg_put put;
		struct msg_union all;
		struct want want;
		struct msg_value value;
		struct msg_ask ask;
		struct msg_taken taken;
		struct msg_answer answer;
		struct msg_question question;
		struct msg_grant grant;
		struct msg_reply reply;
		struct msg_missed missed;
		struct msg_ended ended;
	};
};

const char *msg_type_name(enum msg_type type);
bool msg_from_agent(enum msg_type type);
struct bytes *msg_borrowed(struct msg *msg); /* the bytes that it borrows; NULL: none */
size_t msg_size(enum msg_type type); /* bytes of struct msg that a message of this type uses */

/* It belongs to a question, not to a round. */
static inline bool msg_is_asking(enum msg_type type)
{
	return type >= MSG_ASK;
}

#endif
