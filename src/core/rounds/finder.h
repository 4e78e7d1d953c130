/* Finds the coordinator in a list of endpoints: joins a live one, takes over where that is safe,
 * gives way to a better claim. docs/RENDEZVOUS.md has the rules.
 *
 * A pure machine in every agent process. The caller probes endpoints (connect, ask, close), links
 * the agent to one, and runs the coordinator; the owner of an endpoint listens on it from the start
 * and answers probes even while it does not coordinate.
 *
 * What the caller promises: every FINDER_PROBE is answered by one FINDER_ANSWER, as silent after
 * FINDER_PROBE_NS at the latest; every FINDER_CONNECT ends in a link, or in FINDER_LOST if that
 * fails or when the link ends; FINDER_LOST also when our own coordinator stepped down. The agent's
 * next LINK_UP gets the `dead_indexes` of the action that led to it. */
#ifndef CORE_ROUNDS_FINDER_H
#define CORE_ROUNDS_FINDER_H

#include "base/clock.h"
#include "core/rounds/ballot.h"

#define FINDER_ENDPOINTS_MAX 64
#define FINDER_PROBE_NS NS_PER_S	      /* how long a probe waits */
#define FINDER_INTERVAL_NS (3 * NS_PER_S / 2) /* from one to the next */
#define FINDER_PACE_NS (NS_PER_S / 4) /* the same when all have answered and none coordinates, */
#define FINDER_PACE_FIRST_NS (NS_PER_S / 100) /* at first, then twice as long each time */

/* A link that lasts less than this is brief. After so many of them in a row the next one waits. */
#define FINDER_BRIEF_NS NS_PER_S
#define FINDER_BRIEFS_MAX 3

enum finder_answer {
	FINDER_UNASKED,
	FINDER_COORDINATES, /* with the ballot of the round it formed, if any */
	FINDER_STANDBY,	    /* alive, does not coordinate */
	FINDER_REFUSED,	    /* host alive, no process listens: it is dead or never ran */
	FINDER_SILENT,
};

struct finder_config {
	uint32_t count; /* endpoints */
	int32_t own;	/* the one that this process listens on, -1: none */
	/* an earlier endpoint must be silent this long before a takeover, and two coordinators
	 * meet for this long before the one with the better claim gives way */
	uint64_t failover_after_ns;
	/* the pace is never below this: ten thousand agents may probe at once */
	uint64_t pace_ns;
};

enum finder_state {
	FINDER_NEW,
	FINDER_LOOKING,
	FINDER_LINKED,	     /* to a coordinator elsewhere */
	FINDER_COORDINATING, /* here */
	FINDER_STATE_COUNT,
};

enum finder_event_type {
	FINDER_START,
	FINDER_ANSWER, /* index, probe, answer, ballot */
	FINDER_LOST,
	FINDER_OWN, /* index: this process, which owned none, listens there now */
	FINDER_TIMER,
};

struct finder_event {
	enum finder_event_type type;
	uint32_t index;
	uint32_t probe; /* the number of the probe: answers to older ones do not count */
	enum finder_answer answer;
	struct ballot ballot;
	bool linked; /* LOST: the agent had a link */
	/* TIMER and ANSWER, while coordinating: the state of our own coordinator. */
	bool settled;
	struct ballot own_ballot;
};

enum finder_action_type {
	FINDER_PROBE,	   /* index, probe */
	FINDER_CONNECT,	   /* index, dead_indexes: link the agent to the coordinator there */
	FINDER_COORDINATE, /* dead_indexes: start a coordinator here, link the agent to it */
	FINDER_STEP_DOWN,  /* tell our coordinator that it is superseded */
};

struct finder_action {
	enum finder_action_type type;
	uint32_t index;
	uint32_t probe;
	/* Bit i: endpoint i has refused every probe since the agent's last link ended. */
	uint64_t dead_indexes;
};

struct finder_actions {
	struct finder_action items[FINDER_ENDPOINTS_MAX + 2];
	size_t count;
};

struct finder {
	struct finder_config config;
	enum finder_state state;
	struct {
		enum finder_answer answer;
		uint64_t silent_ns; /* since when, while SILENT */
		uint64_t rival_ns;  /* since when it coordinates beside us; 0: it does not */
		bool asked;	    /* and has not answered yet */
		/* gave an answer other than REFUSED, or none, since the last link */
		bool was_there;
	} endpoints[FINDER_ENDPOINTS_MAX];
	uint64_t next_probe_ns;
	uint64_t pace_ns; /* of the search under way */
	uint32_t probe;
	bool bereft;		/* the agent has lost a coordinator */
	uint32_t briefs;	/* links that ended as soon as they stood, in a row */
	uint64_t linked_ns;	/* when the last one was made */
	uint64_t link_after_ns; /* none before this */
};

void finder_init(struct finder *finder, const struct finder_config *config);
void finder_step(struct finder *finder, const struct finder_event *event, uint64_t now_ns,
		 struct finder_actions *actions);
uint64_t finder_deadline_ns(const struct finder *finder);

#endif
