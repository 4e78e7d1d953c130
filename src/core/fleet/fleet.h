/* The hosts that one terminal starts a job on: who reaches whom, when the job starts, how it ends.
 *
 * A pure machine. The hosts are a list. The starter reaches the first `fanout` of them itself; each
 * host that is up reaches the next ones of its own, so that many hosts need few connections each.
 * Where the tree fails (its inner hosts may have no key for the others), the starter tries itself.
 * The job starts when every host has answered or was given up, if enough have answered; the others
 * are named. After that a host may be lost: the agents go on without it, if they can.
 *
 * The caller carries out the actions in order, and tells UP, DOWN and ENDED of hosts as it learns
 * of them, the same one more than once if it likes. */
#ifndef CORE_FLEET_FLEET_H
#define CORE_FLEET_FLEET_H

#include "base/actions.h"
#include "core/worker/exit_status.h"

#define FLEET_SELF (-1) /* the starter, among hosts */
#define FLEET_FANOUT_DEFAULT 64
/* After too few hosts are left, until the others are stopped: time for them to end by themselves.
 */
#define FLEET_GRACE_NS ((uint64_t)5 * 1000000000)

struct fleet_config {
	uint32_t hosts;
	uint32_t min_nodes; /* the job starts with this many */
	uint32_t max_nodes; /* more are spares */
	uint32_t fanout;
	uint64_t timeout_ns; /* from the attempt to reach a host to its answer */
	uint64_t run_ns;     /* for agents to end, from the start on; 0: any time */
};

enum fleet_state {
	FLEET_WAITS,	/* for the host that is to reach it, or for a free place */
	FLEET_REACHING, /* an attempt is under way */
	FLEET_UP,	/* has answered */
	FLEET_FAILED,	/* given up before the start */
	FLEET_RUNS,	/* has an agent */
	FLEET_ENDED,	/* its agent has ended */
	FLEET_LOST,	/* after the start */
	FLEET_STATE_COUNT,
};

/* For whom the exit code of an agent speaks. */
enum fleet_scope {
	FLEET_CODE_OWN,	   /* for its host: it could not take part, or was told to stop by us */
	FLEET_CODE_JOB,	   /* for the job, as the coordinator ruled */
	FLEET_CODE_UNSAID, /* one of the two */
};

struct fleet_host {
	enum fleet_state state;
	int32_t via;	      /* who reaches it: a host, or FLEET_SELF */
	bool tree;	      /* the starter has not tried itself yet */
	uint64_t deadline_ns; /* of the attempt, or of its agent */
	struct exit_status status;
	enum fleet_scope scope;
	uint32_t order; /* of its end among the others */
};

struct fleet {
	struct fleet_config config;
	struct fleet_host *hosts;
	uint32_t direct; /* attempts of the starter itself under way */
	uint32_t nodes;	 /* members that the job may have, from its start on */
	uint32_t ended;
	bool started, over;
	bool short_of_hosts;
	uint64_t grace_ns; /* when the others are stopped */
	int signal;	   /* the last one passed on; 0: none */
};

enum fleet_event_type {
	FLEET_EV_BEGIN,
	FLEET_EV_UP,	/* host: it has answered */
	FLEET_EV_DOWN,	/* host: it could not be reached, or the connection to it is gone */
	FLEET_EV_AGENT, /* host: its agent ended with `status`, and `scope` */
	FLEET_EV_SIGNAL,
	FLEET_EV_TIMER,
};

struct fleet_event {
	enum fleet_event_type type;
	uint32_t host;
	int signal;
	struct exit_status status;
	enum fleet_scope scope; /* of its code */
};

enum fleet_action_type {
	FLEET_DO_REACH,	  /* host, via */
	FLEET_DO_DROP,	  /* host, via: end the attempt, or the connection; no answer counts */
	FLEET_DO_TELL,	  /* host is given up, or `lost` after the start: say so */
	FLEET_DO_START,	  /* on all hosts that are FLEET_RUNS now */
	FLEET_DO_SIGNAL,  /* to all agents */
	FLEET_DO_TOO_FEW, /* say that the job cannot start, or go on, with the hosts there are */
	FLEET_DO_END,	  /* with exit code `code` */
};

struct fleet_action {
	enum fleet_action_type type;
	uint32_t host;
	int32_t via;
	int signal;
	int code;
	bool late; /* TELL: there was no answer, or no end, in time */
	bool lost;
};

ACTIONS_OF(fleet);
QUEUE_OF(fleet);

void fleet_init(struct fleet *fleet, const struct fleet_config *config);
void fleet_done(struct fleet *fleet);
/* Appends to the actions. */
void fleet_step(struct fleet *fleet, const struct fleet_event *event, uint64_t now_ns,
		struct fleet_actions *actions);

/* This host is where the starter is: no other can reach it under its name. Before BEGIN. */
void fleet_keep_near(struct fleet *fleet, uint32_t host);

/* Who can connect to a host. */
enum fleet_nearness {
	FLEET_NEAR_NONE, /* its address is not known */
	FLEET_NEAR_ONLY, /* processes on the same host: it was reached by its loopback address */
	FLEET_NEAR_ALL,
};

#define FLEET_ENDPOINTS_MAX 3

/* The hosts at which a coordinator may be, at the start: one, or if the job can go on without a
 * host several. Returns their number, 0 if there is none that all can reach. */
size_t fleet_endpoints(const struct fleet *fleet, const enum fleet_nearness *nearness,
		       uint32_t ret_hosts[FLEET_ENDPOINTS_MAX]);

/* When a TIMER is due; NS_NEVER. */
uint64_t fleet_deadline_ns(const struct fleet *fleet);

/* Hosts in a state. */
uint32_t fleet_count(const struct fleet *fleet, enum fleet_state state);

#endif
