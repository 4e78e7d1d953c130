/* How one host of a batch finds the coordinator, or becomes it: the search that nodes of a job use
 * too (core/node/search.h), and the link to the coordinator elsewhere. Pure; nodes/peer_links.h
 * carries it out.
 *
 *     party_step(&party, &event, now_ns, &actions);
 *
 * What the shell promises: LISTENING answers LISTEN; TERM comes with an arbiter. Each PROBE is
 * answered as core/rounds/finder.h says. CONNECT leads to LINK_UP, which ends in LINK_DOWN, or to
 * LINK_DOWN alone; none comes of what was hung up. TIMER comes at party_deadline_ns() or soon
 * after. */
#ifndef CORE_DISPATCH_PARTY_H
#define CORE_DISPATCH_PARTY_H

#include "core/node/search.h"

enum party_event_type {
	PARTY_EV_START,
	PARTY_EV_LISTENING, /* index; -1: on none */
	PARTY_EV_ANSWER,    /* index, probe, answer, ballot */
	PARTY_EV_TERM,	    /* term */
	PARTY_EV_LINK_UP,
	PARTY_EV_LINK_DOWN, /* also where it could not be made, or was hung up by the user of it */
	PARTY_EV_BARRED,    /* by_peer, why: as in core/rounds/agent.h */
	PARTY_EV_WITHDRAW,  /* after COORDINATE: another has the result file, so search again */
	PARTY_EV_TIMER,
	PARTY_EVENT_COUNT,
};

struct party_event {
	enum party_event_type type;
	int32_t index;
	uint32_t probe;
	enum finder_answer answer;
	struct ballot ballot;
	const struct search_term *term; /* borrowed */
	bool by_peer;
	const char *why; /* borrowed */
};

enum party_action_type {
	PARTY_DO_LISTEN,
	PARTY_DO_PROBE,	     /* index, probe */
	PARTY_DO_CONNECT,    /* index; -1: to whom the arbiter named */
	PARTY_DO_HANG_UP,    /* the link, or the one that is being made */
	PARTY_DO_COORDINATE, /* here, from now on; comes once, or again after WITHDRAW */
	PARTY_DO_SUPERSEDED, /* another coordinates: it is over for this one */
	PARTY_DO_END,	     /* why: it can never work */
};

struct party_action {
	enum party_action_type type;
	int32_t index;
	uint32_t probe;
	const char *why;
};

struct party_actions {
	struct party_action items[2 * (FINDER_ENDPOINTS_MAX + 3)];
	size_t count;
};

enum party_link {
	PARTY_UNLINKED,
	PARTY_LINKING,
	PARTY_LINKED,
};

/* Fields are private. */
struct party {
	struct search search;
	enum party_link link; /* to the coordinator elsewhere */
	bool coordinates;     /* here */
};

void party_init(struct party *party, enum search_by by, const struct finder_config *finder);
void party_step(struct party *party, const struct party_event *event, uint64_t now_ns,
		struct party_actions *actions);
uint64_t party_deadline_ns(const struct party *party);

/* The answer to a probe, and whether hosts that call are let in. */
static inline bool party_coordinates(const struct party *party)
{
	return party->coordinates;
}

#endif
