/* The hosts elsewhere of a batch, as their coordinator has them: who was given what of its list,
 * what came back, what was lost. Pure: the shell (src/batch/many) has the links and writes the
 * results. The slots of the coordinator's own host take from the same list (struct batch).
 *
 *     deal_step(&deal, &event, now_ns, &actions);       // carry the actions out, in order
 *     arm_timer(deal_deadline_ns(&deal));
 *
 * Each time an order is given to a host, that is a lease with a number of its own. Only what comes
 * under the order's present lease counts, whatever arrives late, again or from a host that was
 * given up: so each order has one final result. A host that is silent for longer than
 * `lost_after_ns` has lost its orders; it stops them itself before that (core/deal/hand.h), so that
 * none runs in two places.
 *
 * A host is given as many orders as its cores take, and some ahead if it is fast (DEAL_AHEAD_NS),
 * so that no core waits for the network. Orders that wait at one host while another has nothing to
 * do are recalled.
 *
 * Orders that need more than any host here has wait for one that may come, and fail after a while;
 * at once when all hosts that there can be are here. */
#ifndef CORE_DEAL_DEAL_H
#define CORE_DEAL_DEAL_H

#include "base/actions.h"
#include "core/dispatch/batch.h"
#include "core/rounds/msg.h"

#define DEAL_AHEAD_NS ((uint64_t)100 * 1000000) /* of work, beyond what the cores take */
#define DEAL_AHEAD_MAX 256			/* orders */
#define DEAL_LOSSES_MAX 5 /* an order that was lost so often takes its hosts with it */
#define DEAL_HOSTS_MAX 65536
#define DEAL_NO_HOST UINT32_MAX

enum deal_host_state {
	DEAL_HERE,
	DEAL_AWAY, /* its link is gone, but it may come back */
	DEAL_LOST,
};

struct deal_host {
	struct agent_id id;
	enum deal_host_state state;
	uint64_t link;		 /* 0: none */
	bool spare;		 /* beyond max_hosts: is given nothing */
	bool twin;		 /* another had its name: one may be the other, started again */
	struct host_facts facts; /* its texts are owned */
	uint32_t *given;	 /* orders */
	size_t given_count, given_cap;
	size_t started_count; /* of them */
	int64_t given_width;
	uint64_t given_memory;
	uint64_t heard_ns;
	uint64_t pace_ns, last_ns; /* between its results; when the last one came */
	struct schedule_taker taker;
	bool recalling;
	uint64_t done; /* results that counted, for display */
};

struct deal_config {
	uint64_t lost_after_ns;	 /* of silence */
	uint64_t patience_ns;	 /* for a host that can take an order that no host here can */
	uint32_t min_hosts;	 /* so many will come, sooner or later; see deal_absent() */
	const struct batch *own; /* of this host, which is one of them; NULL: it runs nothing */
	uint32_t max_hosts;
	bool retry_lost; /* orders that were lost run again */
};

enum deal_event_type {
	DEAL_EV_START,	   /* once */
	DEAL_EV_LOOK,	   /* the slots of this host have changed the list */
	DEAL_EV_HELLO,	   /* link, id, facts, held: a host is there (again) */
	DEAL_EV_STARTED,   /* host, link, order, lease */
	DEAL_EV_RESULT,	   /* host, link, order, lease, number, final, ok */
	DEAL_EV_RETURNED,  /* host, link, order, lease: not started, here it is again */
	DEAL_EV_FETCH,	   /* host, link, order, lease: it asks for a piece of a file */
	DEAL_EV_RECALLED,  /* host, link: that was all of the answer to RECALL */
	DEAL_EV_BEAT,	   /* host, link */
	DEAL_EV_LINK_DOWN, /* host, link, dead */
	DEAL_EV_STOP,	   /* stop, why */
	DEAL_EV_TIMER,
};

struct deal_event {
	enum deal_event_type type;
	uint32_t host;
	uint64_t link;
	uint32_t order, lease;
	union {
		struct {
			uint32_t number; /* counts the results of a lease, from 0 */
			bool final, ok;
			bool unrun; /* final: it was stopped, so it counts as not run */
		};
		struct {
			struct agent_id id;
			struct host_facts facts;
			/* the leases that it has under this coordinator; borrowed */
			const uint32_t *held;
			size_t held_count;
		};
		bool dead; /* the process at the other end is gone, and so are its orders */
		struct {
			enum worklist_halt stop;
			enum batch_stop why;
		};
	};
};

enum deal_action_type {
	DEAL_DO_WELCOME,   /* link, host */
	DEAL_DO_GIVE,	   /* link, host, order, lease */
	DEAL_DO_FEED,	   /* link, host, order, lease: send what the request at hand asks for */
	DEAL_DO_RECALL,	   /* link, host, count: return so many that have not started */
	DEAL_DO_DROP,	   /* link, host, lease: it is another's now */
	DEAL_DO_STOP,	   /* link, host, stop */
	DEAL_DO_COUNT,	   /* order, host: the result at hand counts: write it */
	DEAL_DO_ACK,	   /* link, host, lease, number: and only then say so */
	DEAL_DO_NOTE,	   /* order, host: the result at hand came too late */
	DEAL_DO_LOSE,	   /* order, host, final: an attempt was lost with its host */
	DEAL_DO_UNFIT,	   /* order: no host can take it; it has failed */
	DEAL_DO_AWAIT,	   /* order: no host here can take it, but one may come; for people */
	DEAL_DO_HOST_LOST, /* host, count: of its orders, for people */
	DEAL_DO_HANG_UP,   /* link */
	DEAL_DO_END,	   /* nothing runs and nothing will run */
	DEAL_DO_BYE,	   /* link: it comes when all is over */
};

struct deal_action {
	enum deal_action_type type;
	uint64_t link;
	uint32_t host, order, lease, number, count;
	enum worklist_halt stop;
	bool final;
};

ACTIONS_OF(deal);

struct deal {
	struct deal_config config;
	struct worklist *list; /* borrowed */
	struct deal_host *hosts;
	size_t host_count, host_cap;
	uint32_t last_lease;
	uint64_t seen; /* worklist.added, up to the last step */
	size_t given;  /* orders */
	size_t jobs;   /* that the hosts can run at a time */
	/* Since when all hosts that there can be are here; 0: they are not, or it has been told
	 * which orders fit nowhere. */
	uint64_t complete_ns;
	uint64_t idle_ns; /* since when orders wait that no host here can take; 0: none does */
	enum worklist_halt told; /* to the hosts */
	bool ended;
	size_t late;	 /* hosts that came after that */
	uint64_t passed; /* results and orders of hosts that another has by now */
};

/* `list` is borrowed for the life of the deal; orders that have a result already are not in it. */
void deal_init(struct deal *deal, const struct deal_config *config, struct worklist *list);
void deal_done(struct deal *deal);

/* Appends to `actions`. */
void deal_step(struct deal *deal, const struct deal_event *event, uint64_t now_ns,
	       struct deal_actions *actions);

uint64_t deal_deadline_ns(const struct deal *deal);

/* How many hosts are still to come of those that were promised: at the end they are told BYE. */
uint32_t deal_absent(const struct deal *deal);

/* Time until everything is done; NS_NEVER while there is no estimate. */
uint64_t deal_eta(const struct deal *deal, uint64_t now_ns);

/* How many hosts are here, this one included. */
size_t deal_hosts_here(const struct deal *deal);

/* How many have taken part. */
size_t deal_hosts_ever(const struct deal *deal);

/* How many orders run, or wait at a host for their turn. */
size_t deal_running(const struct deal *deal);

#endif
