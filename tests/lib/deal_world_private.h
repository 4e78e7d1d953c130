/* What the parts of deal_world share: the world itself, its network and events (deal_world.c), its
 * hosts (deal_hosts.c), the coordinator (deal_head.c) and faults (deal_faults.c). */
#ifndef SIM_DEAL_WORLD_PRIVATE_H
#define SIM_DEAL_WORLD_PRIVATE_H

#include "base/heap.h"
#include "core/deal/hand.h"
#include "deal_world.h"
#include "sim/rng.h"

#define MS ((uint64_t)1000000)
#define PERIOD_NS (100 * MS)
#define LEASE_NS (4 * PERIOD_NS)
#define LOST_NS (5 * PERIOD_NS)
#define FAULTS_END_NS (6000 * MS)
#define GIVE_UP_NS (600000 * MS)
#define GIVE_UP_STEPS 300000 /* a world takes some thousands */
#define HOSTS_MAX 6
#define ORDERS_MAX 48
#define KINDS 6
#define WIDTH_MAX 3
#define CORES_MAX 6
#define MEMORY_MAX 100
#define HELD_MAX 256
#define LEASES_MAX 4096

enum what {
	AT_COORDINATOR, /* a message, or the end of a link */
	AT_HOST,
	AT_TIMER, /* of the coordinator */
	AT_HOST_TIMER,
	AT_ORDER_END,
	AT_RETRY, /* what has waited for it may start */
	AT_CONNECT,
	AT_FAULT,
	AT_THAW,
	AT_HEAL,
	AT_REBORN,
	AT_SUCCEED, /* the next coordinator */
	AT_STOP,
};

enum kind {
	M_HELLO,
	M_STARTED,
	M_RESULT,
	M_RETURNED,
	M_RECALLED,
	M_BEAT,
	M_DOWN, /* the link has ended: dead */
	M_FETCH,
	M_WELCOME,
	M_GIVE,
	M_ACK,
	M_DROP,
	M_RECALL,
	M_STOP,
	M_ANSWERED,
	M_PIECE,
};

struct message {
	enum kind kind;
	uint64_t link, term, cookie;
	uint32_t order, lease, number, count;
	bool final, ok, unrun, dead, files;
	enum worklist_halt stop;
	struct agent_id id;
	uint32_t held[HELD_MAX];
	size_t held_count;
};

struct event {
	struct heap_node node;
	enum what what;
	int host;
	uint64_t stamp; /* valid only for this life, link or run */
	struct message *message;
};

/* What orders need, and what a host has, beyond what the two sides of core/deal tell each other. */
enum feature {
	FEATURE_SSD = 1,
	FEATURE_GPU = 2,
	FEATURE_ALL = 3,
};

struct needed {
	int32_t width;
	uint64_t memory;
	unsigned features;
	bool named; /* one of the first two hosts */
	bool files;
};

struct task {
	uint32_t order, lease, failures;
	bool runs;
	uint64_t not_before_ns; /* of its next attempt */
	uint64_t stamp;
	int slot;    /* of the coordinator's host */
	bool killed; /* there */
};

struct host {
	struct hand hand;
	bool alive, frozen, cut, local;
	uint64_t life; /* counts processes */
	uint64_t link; /* the present one; 0: none */
	uint64_t thaw_ns;
	uint64_t timer_ns; /* when its next AT_HOST_TIMER comes */
	struct host_facts facts;
	unsigned features;
	char name[8];
	struct task tasks[HELD_MAX];
	uint64_t here[LEASES_MAX]; /* the term under which the files of a lease came */
	size_t task_count;
	uint64_t quiet_to, quiet_from; /* messages each way arrive in order: not before these */
	uint32_t number;	       /* as the coordinator has it */
	uint64_t recalled_ns;	       /* when it was last asked to return orders */
	uint32_t first;		       /* of the orders in line that it can take */
	uint32_t overtaken;	       /* orders that it was given before that one */
	struct message *waiting[4096]; /* while frozen or cut */
	size_t waiting_count;
};

struct world {
	struct rng rng;
	const struct world_rules *rules;
	struct world_outcome *outcome;
	struct heap events;
	uint64_t now_ns, stamps;
	struct host hosts[HOSTS_MAX];
	int host_count;
	size_t order_count;
	struct needed needs[KINDS];
	uint64_t times[ORDERS_MAX];
	uint32_t kind_of[ORDERS_MAX];
	uint32_t failures[ORDERS_MAX]; /* attempts that fail and are followed by another */
	bool fails[ORDERS_MAX];	       /* the last attempt, too */
	uint32_t pieces[ORDERS_MAX];   /* of its files; 0: it has none */
	/* the result file */
	int finals[ORDERS_MAX];
	uint32_t written[ORDERS_MAX];
	uint64_t ok, failed; /* final results under this coordinator */
	/* the coordinator */
	bool alive, frozen, over, stopped;
	bool apart; /* none of the hosts is in its process: it runs nothing */
	uint64_t term;
	uint64_t timer_ns;
	struct worklist list;
	struct deal deal;
	struct corepool pool; /* its slots */
	struct batch own;
	uint64_t seen; /* worklist.changes that both know of */
	struct batch_order orders[ORDERS_MAX];
	uint32_t index[ORDERS_MAX]; /* of its orders in the list */
	struct order_kind kinds[KINDS];
	struct message *at_hand;
	struct message *waiting[8192];
	int waiting_host[8192];
	size_t waiting_count;
	uint64_t host_of_link[65536];
	uint64_t links;
};

static inline const struct needed *deal_needed(const struct world *w, uint32_t order)
{
	return &w->needs[w->kind_of[order]];
}

/* deal_world.c */
void deal_wrong(struct world *w, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
struct event *deal_later(struct world *w, uint64_t at_ns, enum what what, int host);
void deal_to_coordinator(struct world *w, int number, const struct message *message);
void deal_to_host(struct world *w, int number, const struct message *message);

/* deal_hosts.c */
void deal_host_step(struct world *w, int number, const struct hand_event *event);
void deal_host_take(struct world *w, int number, struct message *m); /* frees it */
void deal_host_born(struct world *w, int number);
void deal_host_connect(struct world *w, int number);
void deal_host_reconnect(struct world *w, int number);
void deal_host_drop_link(struct world *w, int number, bool tell_coordinator, bool dead);
void deal_host_start(struct world *w, int number); /* what has room now */
bool deal_host_has_room(struct world *w, const struct host *host, uint32_t order);
void deal_host_check_alone(struct world *w, int number, uint32_t order); /* it starts there */
void deal_host_end(struct world *w, int number, uint64_t stamp);	 /* of an order */

/* deal_own.c: the slots of the coordinator's host */
int deal_own_number(const struct world *w);
void deal_own_begin(struct world *w);
void deal_own_done(struct world *w);
void deal_own_step(struct world *w, const struct batch_event *event);
void deal_own_end(struct world *w, uint64_t stamp); /* of an order */

/* deal_head.c */
void deal_head_check_start(struct world *w, struct host *host, uint32_t order);
void deal_head_arm(struct world *w);
void deal_head_step(struct world *w, const struct deal_event *event);
void deal_head_begin(struct world *w, bool again);
void deal_head_take(struct world *w, int number, struct message *m); /* frees it */

/* deal_faults.c */
void deal_fault(struct world *w);

#endif
