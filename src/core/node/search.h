/* How a process finds the coordinator, or becomes it: the finder (core/rounds/finder.h) where there
 * are endpoints, the word of an arbiter where there is one. Nodes of a job and hosts of a batch
 * share it; each says what a link and a coordinator are to it.
 *
 *     search_step(&search, &event, now_ns, &actions);
 *
 * What the caller promises:
 * - LISTEN is answered by LISTENING with the endpoint that this process now listens on, or -1, and
 *   once more when one is had later. With an arbiter TERM comes instead.
 * - Each PROBE is answered as core/rounds/finder.h says.
 * - At search->seek_ns or soon after comes SEEK, unless there is a link, one is being made, or the
 *   coordinator is here. search_seek_at() sets that time when a link, or a try of one, has ended.
 * - search_linked() is called for every link that stands.
 * - TIMER comes at search_deadline_ns() or soon after. */
#ifndef CORE_NODE_SEARCH_H
#define CORE_NODE_SEARCH_H

#include "core/rounds/coordinator.h"
#include "core/rounds/finder.h"

#define SEARCH_RETRY_NS (300 * NS_PER_MS)     /* pause after a failed link */
#define SEARCH_LISTEN_AFTER_NS (3 * NS_PER_S) /* an endpoint here may be free by then */

enum search_by {
	SEARCH_HERE,	  /* the coordinator is always in this process */
	SEARCH_ENDPOINTS, /* the finder probes a list of endpoints and may take over */
	SEARCH_ARBITER,	  /* a program (or etcd) names a leader and an epoch */
	SEARCH_BY_COUNT,
};

enum search_event_type {
	SEARCH_EV_LISTENING, /* index; -1: on none */
	SEARCH_EV_ANSWER,    /* index, probe, answer, ballot */
	SEARCH_EV_TERM,	     /* term; epochs below the last are ignored */
	SEARCH_EV_SEEK,
	SEARCH_EV_TIMER,
};

/* What an arbiter says. */
struct search_term {
	uint64_t epoch; /* 0: nothing yet */
	bool here;	/* the leader is this process */
	/* as in core/rounds/coordinator.h, if it is here; 0: the arbiter gives no lease */
	uint64_t until_ns;
	struct recorded_end past;
};

struct search_event {
	enum search_event_type type;
	int32_t index;
	uint32_t probe;
	enum finder_answer answer;
	struct ballot ballot;
	const struct search_term *term;
	/* Of the coordinator here: whether it stays whoever else leads, and its last round. */
	bool settled;
	struct ballot own_ballot;
};

enum search_action_type {
	SEARCH_LISTEN,	/* find an endpoint of this host and listen there */
	SEARCH_PROBE,	/* index, probe */
	SEARCH_CONNECT, /* index, dead_indexes; -1: to the leader that was named */
	/* epoch, index, dead_indexes: here, from now on, unless it is here already */
	SEARCH_COORDINATE,
	/* epoch: a newer one began, and a link or coordinator of an earlier one is worth nothing;
	 * here: in this process. 0, from endpoints: another has the better claim. */
	SEARCH_SUPERSEDED,
	SEARCH_RENEWED, /* the lease of the coordinator here, as search->term has it */
};

struct search_action {
	enum search_action_type type;
	int32_t index;
	uint32_t probe;
	uint64_t epoch;
	bool here;
	uint64_t dead_indexes; /* as in core/rounds/finder.h */
};

struct search_actions {
	struct search_action items[FINDER_ENDPOINTS_MAX + 3];
	size_t count;
};

/* Read only, but through the functions. */
struct search {
	enum search_by by;
	struct finder finder;
	struct search_term term;
	bool term_used;	   /* a coordinator began here with it */
	bool was_linked;   /* since the last SEEK */
	bool has_linked;   /* ever */
	bool barred;	   /* a peer has said so */
	uint64_t since_ns; /* of this search */
	uint64_t seek_ns;  /* NS_NEVER: not needed */
};

void search_init(struct search *search, enum search_by by, const struct finder_config *finder);
void search_step(struct search *search, const struct search_event *event, uint64_t now_ns,
		 struct search_actions *actions);

/* Of the finder; seek_ns is apart. */
uint64_t search_deadline_ns(const struct search *search);

static inline void search_seek_at(struct search *search, uint64_t ns)
{
	search->seek_ns = ns;
}

static inline void search_linked(struct search *search)
{
	search->was_linked = true;
	search->has_linked = true;
}

/* Whether this process is to end because a peer says that it does not belong there. Anybody can
 * say so, and one flipped bit does: that ends nobody who has been linked, and nobody before it is
 * said again. */
static inline bool search_barred(struct search *search)
{
	bool ends = search->barred && !search->has_linked;
	search->barred = true;
	return ends;
}

/* The coordinator that began here has given up, but not because of a newer term: it may begin
 * again. */
static inline void search_again(struct search *search)
{
	search->term_used = false;
}

#endif
