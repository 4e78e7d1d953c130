/* The coordinator's list of agents: which are linked, which have workers, and the counts that
 * decide whether a round may form, updated with every change so that reading them costs nothing.
 *
 * An entry lives while the agent is linked, and as ABSENT while one of the two rounds that the
 * quorum counts had it as a member. */
#ifndef CORE_ROUNDS_ROSTER_H
#define CORE_ROUNDS_ROSTER_H

#include "base/heap.h"
#include "base/map.h"
#include "core/checks/pairs.h"
#include "core/rounds/msg.h"

enum member_status {
	MEMBER_ABSENT,	 /* no link */
	MEMBER_READY,	 /* has joined: no workers */
	MEMBER_ACTIVE,	 /* FORMED was sent: has or will have workers */
	MEMBER_DONE,	 /* active, all its workers have succeeded */
	MEMBER_STOPPING, /* has workers that end; JOIN is expected */
	MEMBER_LEAVING,	 /* has workers that end; will not come back */
	MEMBER_STATUS_COUNT,
};

/* Why a member is not linked. */
enum member_loss {
	LOSS_NONE,
	LOSS_CLOSED, /* its connection was closed or reset */
	LOSS_UNREACHABLE,
	LOSS_SILENT,
	LOSS_LEFT, /* + enum leave_why */
};

struct member {
	struct agent_id id;
	uint64_t link;	  /* 0: none */
	uint32_t attempt; /* the number of that link */
	enum member_status status;
	bool left;	  /* while ABSENT: it sent LEAVE and will not join another coordinator */
	bool elsewhere;	  /* while LEAVING: its process lives on and may join another coordinator */
	uint8_t loss;	  /* enum member_loss */
	uint8_t signal;	  /* of LEAVE_SIGNAL */
	uint64_t lost_ns; /* when it was heard last */
	bool acked;	  /* has shown that it knows the round */
	bool in_round;	  /* member of the coordinator's own last round */
	bool last_resort; /* its host was lost too often: used only when there are too few others */
	bool bad;	  /* it is not fit: likewise. rule: fitness */
	char *why;	  /* it is not fit; NULL: it is */
	bool excluded;	  /* it never gets workers. rule: excluded */
	struct memory memory; /* from its JOIN, and as FORMED will have changed it */
	uint64_t arrival;     /* order of first JOIN */
	uint64_t heard_ns;    /* when its last message came, however long that was under way */
	/* it has answered a message that we sent then, so it was with us later than that.
	 * rule: fresh */
	uint64_t fresh_ns;
	struct heap_node silence;
	size_t pos; /* in roster.members */
	/* From its node_info. */
	uint32_t nproc;
	int32_t node_rank;
	uint32_t max_restarts;
	bool by_progress;
	uint64_t backoff_ns, backoff_max_ns;
	uint64_t death_ns; /* see node_death_ns() */
	uint64_t lost_timeout_ns;
	uint16_t store_port;
	uint32_t can;
	struct msg_vote vote;	 /* its last one; serial 0: none */
	struct hang_signs signs; /* its last ones, counted in the coordinator's tally */
	uint32_t fences;	 /* of the round, that it has put its pairs for */
	/* of the host's wall clock, from its last PING: known from its second one on */
	struct wall_offset wall;
	uint32_t strikes; /* see struct node_info */
	uint64_t cool_down_ns;
	struct check_digest *checks; /* with the figures of its wire; NULL: none are known */
	uint16_t pair_port, pair_ms; /* see struct node_info */
	bool clock_seen, clock_told; /* its wall clock was compared; it is wrong and was named */
	bool pair_due;	     /* its wire was not measured since it came, or since a failure */
	uint32_t pair_index; /* while wires are measured */
	struct pair_figures wire;
	const char *role; /* interned in the roster */
	char *store_host;
	char *name;
	uint8_t addr_count;
	struct msg_addr *addrs;
	/* In the last round that this coordinator formed. */
	uint32_t group_rank, rank_base, role_rank_base, role_world_size;
};

/* After this much silence a member is considered dead, and answers older than this are ignored. 0:
 * an in-process link, which cannot fall silent. One period more than the agent's own lease: its
 * workers are dead before we count it as dead. rule: lease */
uint64_t node_death_ns(const struct node_info *node);

/* The counts that decide on a quorum: members of the two rounds, and all agents. */
struct presence {
	uint32_t in_heard, in_base, all;
};

struct tally {
	uint32_t count[MEMBER_STATUS_COUNT];
	uint32_t ready_heard, ready_base; /* READY members of the two rounds */
	uint32_t left_heard, left_base;	  /* members that left for good */
	/* members of `base` that will never start `heard`: they left, or are READY and never got
	 * its FORMED */
	uint32_t outside_heard;
	uint32_t linked_heard, linked_base; /* linked members, with workers or without */
	uint32_t ready_witness; /* READY members of `heard` that saw its coordinator die */
	uint32_t ready_done;	/* READY members of `heard` that were done in it */
	/* READY agents that have heard of `heard`, by the ruling on it that they know */
	struct presence ready_ruled[RULING_COUNT];
	uint32_t ready_willing; /* READY and not of last resort */
	uint32_t ready_usable;	/* READY and not excluded */
	/* READY agents that were not told to start `heard`: members of the coordinator's own last
	 * round, and those that have heard of no round at all */
	uint32_t outside_own, unaware;
};

struct roster {
	struct member **members;
	size_t count, cap;
	struct map by_id, by_link, by_rank, roles, losses;
	struct heap silences; /* lazily: keys may be too early */
	uint64_t next_arrival;
	bool unjudged;		      /* a JOIN has told of checks since they were judged */
	struct round_ref heard, base; /* the rounds that the tally is about */
	struct tally tally;
};

#define ROSTER_LOSSES_MAX 3 /* a host lost this often is of last resort */

void roster_init(struct roster *roster);
void roster_done(struct roster *roster);

struct member *roster_by_link(const struct roster *roster, uint64_t link);
struct member *roster_by_id(const struct roster *roster, struct agent_id id);
struct member *roster_by_rank(const struct roster *roster,
			      int32_t node_rank); /* linked, and given it */

/* The entry for a JOIN on `link`, made or updated; it is READY afterwards. Forgets another link of
 * the same agent. On a new link the agent is as fresh as our greeting. */
struct member *roster_join(struct roster *roster, uint64_t link, const struct msg_join *join,
			   uint64_t greeted_ns, uint64_t now_ns);

void roster_set_status(struct roster *roster, struct member *member, enum member_status status);

/* The link is gone or unusable, but workers may live on: LEAVING until it has been silent long
 * enough, and it may join another coordinator unless it sent LEAVE. */
void roster_doubt(struct roster *roster, struct member *member);

/* The link is gone: ABSENT, or removed if no round needs it. Returns false in the second case. */
bool roster_part(struct roster *roster, struct member *member, bool left);

/* Makes `heard` and `base` the rounds that count, and removes ABSENT members of neither. */
void roster_set_rounds(struct roster *roster, const struct round_ref *heard,
		       const struct round_ref *base);

/* The member has shown that it has heard of `heard`. */
void roster_hears(struct roster *roster, struct member *member);

/* The member is now in `heard`, which this coordinator has formed. */
void roster_enter_round(struct roster *roster, struct member *member);

/* Counts one more loss of this member's host. */
void roster_count_loss(struct roster *roster, const struct member *member);

/* Makes this member's host one of last resort, from its next JOIN on. */
void roster_shun(struct roster *roster, const struct member *member);

/* The member is not fit, and why; NULL: it is. */
void roster_set_bad(struct roster *roster, struct member *member, const char *why);

/* What was found of the wire to this member. */
void roster_set_wire(struct roster *roster, struct member *member, const struct pair_figures *wire);

/* Used only when there are too few others. */
static inline bool roster_last_resort(const struct member *member)
{
	return member->last_resort || member->bad;
}

bool roster_in_heard(const struct roster *roster, const struct member *member);
bool roster_in_base(const struct roster *roster, const struct member *member);

/* Agents that have, or may have, workers. */
static inline uint32_t roster_busy(const struct roster *roster)
{
	const uint32_t *count = roster->tally.count;
	return count[MEMBER_ACTIVE] + count[MEMBER_DONE] + count[MEMBER_STOPPING] +
	       count[MEMBER_LEAVING];
}

static inline uint32_t roster_ready(const struct roster *roster)
{
	return roster->tally.count[MEMBER_READY];
}

/* READY agents that may get workers. */
static inline uint32_t roster_usable(const struct roster *roster)
{
	return roster->tally.ready_usable;
}

static inline uint32_t roster_linked(const struct roster *roster)
{
	return roster_busy(roster) + roster_ready(roster);
}

/* The next member that is no longer fresh at `now_ns`; of LEAVING members, whose workers live on
 * our answers, one that has been silent long enough. NULL if there is none. */
struct member *roster_next_silent(struct roster *roster, uint64_t now_ns);

/* When to ask again. */
uint64_t roster_deadline_ns(const struct roster *roster);

#endif
