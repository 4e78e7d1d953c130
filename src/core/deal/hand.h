/* The orders of a batch on many hosts, as one of the hosts has them: what it was given, what runs,
 * and which results the coordinator has not confirmed. Pure; core/deal/deal.h is the other end.
 *
 * A result is kept until the coordinator has written it, and sent again on the next link. What the
 * host has it keeps over a lost link, for as long as its lease: that begins when a beat is sent
 * that is answered. When the lease is over, the coordinator may give its orders to others, so they
 * are discarded: unqueued, or killed. The same happens with all that an earlier coordinator gave.
 *
 * What the shell promises: RUN and DISCARD are carried out at once; a lease that was discarded may
 * still end, which does nothing. */
#ifndef CORE_DEAL_HAND_H
#define CORE_DEAL_HAND_H

#include "base/actions.h"
#include "core/deal/deal.h"

enum hand_state {
	HAND_FETCHING, /* the files that it needs are not all here */
	HAND_QUEUED,
	HAND_STARTED,
	HAND_ENDED, /* its results are not all confirmed */
};

struct hand_lease {
	uint32_t order, lease;
	enum hand_state state;
	uint32_t results, confirmed;
};

struct hand_config {
	uint64_t period_ns; /* between beats */
	uint64_t lease_ns;  /* from a beat that is answered; NS_NEVER: the coordinator is here */
};

enum hand_event_type {
	HAND_EV_LINK_UP,
	HAND_EV_LINK_DOWN,
	HAND_EV_WELCOME,     /* term: of the coordinator */
	HAND_EV_COORDINATES, /* the coordinator is here from now on: what another gave is void */
	HAND_EV_GIVEN,	     /* order, lease, files: they must be fetched first */
	HAND_EV_FILES,	     /* lease: its files are here */
	HAND_EV_ACK,	     /* lease, number */
	HAND_EV_DROP,	     /* lease: it is another's */
	HAND_EV_RECALL,	     /* count */
	HAND_EV_STOP,	     /* stop */
	HAND_EV_ANSWERED,    /* cookie of a beat */
	HAND_EV_STARTED,     /* lease: it runs */
	HAND_EV_RESULT,	     /* lease, final */
	HAND_EV_TIMER,
};

struct hand_event {
	enum hand_event_type type;
	uint32_t order, lease, number, count;
	uint64_t term, cookie;
	enum worklist_halt stop;
	bool final, files;
};

enum hand_action_type {
	HAND_DO_HELLO,	  /* say who this is, with hand_held() */
	HAND_DO_BEAT,	  /* cookie */
	HAND_DO_STARTED,  /* order, lease: say that it runs */
	HAND_DO_RESULT,	  /* order, lease, number: send this one */
	HAND_DO_RETURNED, /* order, lease: say that it did not start */
	HAND_DO_RECALLED, /* say that this was all */
	HAND_DO_FETCH,	  /* order, lease: ask for its files, from the beginning */
	HAND_DO_RUN,	  /* order, lease */
	HAND_DO_UNQUEUE,  /* lease: it has not started and must not */
	HAND_DO_DISCARD,  /* lease: the same, or kill it; forget its results */
	HAND_DO_FORGET,	  /* lease, number: this result is confirmed */
	HAND_DO_STOP,	  /* stop: what runs */
	HAND_DO_HANG_UP,  /* the coordinator does not answer: search again */
};

struct hand_action {
	enum hand_action_type type;
	uint32_t order, lease, number;
	uint64_t cookie;
	enum worklist_halt stop;
};

ACTIONS_OF(hand);

struct hand {
	struct hand_config config;
	uint64_t term; /* 0: none */
	bool linked, welcome;
	uint64_t hello_ns;    /* when HELLO was sent on this link */
	uint64_t answered_ns; /* the sending of the last beat that was answered */
	uint64_t beat_ns;     /* when the next one is due */
	enum worklist_halt stop;
	struct hand_lease *leases;
	size_t count, cap;
};

void hand_init(struct hand *hand, const struct hand_config *config);
void hand_done(struct hand *hand);

/* Appends to `actions`. */
void hand_step(struct hand *hand, const struct hand_event *event, uint64_t now_ns,
	       struct hand_actions *actions);

uint64_t hand_deadline_ns(const struct hand *hand);

/* No order of the coordinator is here, and it knows all results. */
static inline bool hand_is_empty(const struct hand *hand)
{
	return hand->count == 0;
}

#endif
