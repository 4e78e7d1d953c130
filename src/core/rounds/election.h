/* Chooses the coordinator through a service with leases: the rules of one candidate for a key of
 * etcd.
 *
 * The candidate that creates the key leads until the key is gone, which happens when its lease
 * expires or is revoked. The epoch is the revision at which the key was created: the service counts
 * every write of its whole store, so no epoch comes twice and later ones are higher.
 *
 * A pure machine. The caller sends requests to the service, one at a time, and watches the key:
 * - Every ELECTION_ASK is answered by one event: KEY, GRANTED, WON, KEPT, REVOKED or FAILED. One
 *   that comes while another request is under way replaces it.
 * - ELECTION_WATCH starts a watch on the key and ends the previous one; each change of the key is
 *   an ELECTION_CHANGED, the end of the watch one ELECTION_WATCH_DOWN.
 * - A timer: ELECTION_TIMER at election_deadline_ns() or soon after.
 *
 * The lease fences the leader (config.fences): each announcement of our own leadership says until
 * when no other candidate can lead, counted from before the request that etcd answered. The end of
 * the job is written beside the key, by the leader only, and the next leader reads it. And a leader
 * that resigns before that keeps its lease to the end: workers may live that long.
 *
 * Failed requests go to the next endpoint, and pause when all have failed. Whatever fails, the last
 * announcement stays valid: an unreachable service says nothing about the leader. A process that
 * replaces a dead one with the same id finds its key and keeps it. */
#ifndef CORE_ROUNDS_ELECTION_H
#define CORE_ROUNDS_ELECTION_H

#include "base/clock.h"
#include "core/rounds/msg.h"

#define ELECTION_TEXT_MAX 320
#define ELECTION_RETRY_NS NS_PER_S	     /* the pause when no endpoint has answered */
#define ELECTION_COMPLAIN_NS (10 * NS_PER_S) /* between two ELECTION_COMPLAINs */

struct election_config {
	/* the key's value when we lead; borrowed. Different for every candidate */
	const char *own;
	uint64_t ttl_ns; /* of the lease */
	uint32_t endpoints;
	bool fences;
};

enum election_request {
	ELECTION_NOTHING,
	ELECTION_READ,	     /* the key: KEY */
	ELECTION_GRANT,	     /* a lease: GRANTED */
	ELECTION_CAMPAIGN,   /* create the key with `lease`: WON, or KEY if it is there */
	ELECTION_KEEP,	     /* `lease`: KEPT */
	ELECTION_REVOKE,     /* `lease`: REVOKED */
	ELECTION_READ_PAST,  /* the record of the job's last end: PAST */
	ELECTION_GRANT_PAST, /* a long lease, for the record: GRANTED */
	ELECTION_RECORD,     /* ruling, epoch, with `lease`: RECORDED */
	ELECTION_REQUEST_COUNT,
};

enum election_event_type {
	ELECTION_START,
	ELECTION_KEY,	  /* present, value, epoch, lease, revision */
	ELECTION_GRANTED, /* lease, ttl_ns: it may be longer than asked for */
	ELECTION_WON,	  /* epoch */
	ELECTION_PAST,	  /* past */
	ELECTION_KEPT,	  /* alive */
	ELECTION_REVOKED,
	ELECTION_RECORDED, /* alive: the key was ours */
	ELECTION_FAILED,   /* no answer, or one that is an error */
	ELECTION_CHANGED,
	ELECTION_WATCH_DOWN,
	ELECTION_TIMER,
	ELECTION_END,	 /* ruling: record the end of the job */
	ELECTION_RESIGN, /* give up the lease, then ELECTION_EXIT */
	ELECTION_EVENT_COUNT,
};

struct election_event {
	enum election_event_type type;
	bool present, alive;
	const char *value; /* borrowed */
	int64_t lease;
	uint64_t ttl_ns;
	uint64_t epoch;	   /* the revision at which the key was created */
	uint64_t revision; /* of the store, when it was read */
	struct recorded_end past;
	enum ruling ruling;
};

enum election_action_type {
	ELECTION_ASK,	   /* request, endpoint, lease */
	ELECTION_WATCH,	   /* endpoint, from: the first revision that matters */
	ELECTION_ANNOUNCE, /* text is the key's value, epoch; until_ns and past if we lead */
	ELECTION_COMPLAIN, /* no endpoint has answered for `since_ns` */
	ELECTION_ANSWERS,  /* after a COMPLAIN: the service answers again */
	ELECTION_EXIT,
};

struct election_action {
	enum election_action_type type;
	enum election_request request;
	uint32_t endpoint;
	int64_t lease;
	uint64_t from;
	uint64_t epoch;
	uint64_t since_ns;
	uint64_t until_ns;
	struct recorded_end past;
	enum ruling ruling;
	char text[ELECTION_TEXT_MAX];
};

/* No step has more. */
#define ELECTION_ACTIONS_MAX 4

struct election_actions {
	struct election_action items[ELECTION_ACTIONS_MAX];
	size_t count;
};

enum election_state {
	ELECTION_NEW,
	ELECTION_LOOKING,     /* the leader is unknown */
	ELECTION_FOLLOWING,   /* another candidate has the key */
	ELECTION_STANDING,    /* there is no key: asks for a lease */
	ELECTION_CAMPAIGNING, /* has a lease, tries to create the key */
	ELECTION_LEADING,
	ELECTION_RESIGNING,
	ELECTION_ENDED,
	ELECTION_STATE_COUNT,
};

/* Fields are private; read them in tests only. */
struct election {
	struct election_config config;
	enum election_state state;
	enum election_request asked; /* under way */
	uint32_t endpoint;
	uint32_t failures;   /* since the last answer */
	uint64_t failing_ns; /* since when */
	/* the next COMPLAIN; NS_NEVER: none since the last answer */
	uint64_t complain_ns;
	uint64_t pause_ns; /* no request before */
	uint64_t read_ns;  /* when to look at the key again */
	uint64_t keep_ns;  /* when to keep the lease alive */
	uint64_t ttl_ns;
	uint64_t asked_ns; /* when the request under way was sent */
	uint64_t until_ns; /* we lead until then at least; 0: unknown */
	int64_t lease, past_lease;
	struct recorded_end past;
	uint64_t past_epoch; /* `past` was read in this term of ours */
	enum ruling ruling;  /* to be recorded */
	uint64_t epoch;	     /* of the key, as last read */
	uint64_t revision;
	bool changed; /* after the last read was asked for */
	bool watching;
	uint64_t watch_ns; /* when the watch was begun */
	char announced[ELECTION_TEXT_MAX];
	uint64_t announced_epoch;
};

void election_init(struct election *election, const struct election_config *config);

/* Writes the actions into `ret_actions`. */
void election_step(struct election *election, const struct election_event *event, uint64_t now_ns,
		   struct election_actions *ret_actions);

uint64_t election_deadline_ns(const struct election *election);

#endif
