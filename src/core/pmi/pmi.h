/* The process manager's side of PMI, by which MPI libraries find the other ranks, for the ranks of
 * one host in one attempt.
 *
 * Pure. The shell hands over what each rank sends, and carries out the actions: bytes for a rank
 * lie in its buffer `out`, and what all hosts have to know goes through one fence. A fence takes
 * the pairs of this host up and brings those of all hosts down; the first one, at the start of the
 * attempt, tells how many ranks are on each host, later ones end barriers. Names that programs
 * publish are with the coordinator, and so are keys of which there are too many to be sent to all
 * hosts. Where the job is on one host nothing leaves it.
 *
 * A rank is hostile input: what it sends is bounded, and the worst it can do is to end its job. */
#ifndef CORE_PMI_PMI_H
#define CORE_PMI_PMI_H

#include "base/actions.h"
#include "base/buf.h"
#include "base/bytes.h"
#include "core/pmi/want.h"
#include "core/pmi/keyvals.h"

#define PMI_NAME_MAX 256 /* with the NUL, as all of these */
#define PMI_KEY_MAX 64
#define PMI_VALUE_MAX 1024
#define PMI_LINE_MAX 4096
#define PMI_TEXT_MAX 200
#define PMI_OUT_MAX ((size_t)64 << 10) /* unread answers, beyond which a rank is not read */

struct pmi_config {
	uint32_t rank_base, count; /* the ranks of this host */
	uint32_t world_size;
	uint32_t nodes, group_rank;
	uint32_t appnum;     /* unless ranks have others */
	const char *kvsname; /* the name of this attempt's world; borrowed */
	const char *host;    /* borrowed */
};

enum pmi_state {
	PMI_SILENT,    /* it has never said init: an ordinary program, as far as we know */
	PMI_TALKS,     /* it may not end now */
	PMI_FINALIZED, /* it may, or begin again */
	PMI_BANNED,    /* it was reported: nothing more is heard of it */
};

/* What the answer to a rank's last request waits for. */
enum pmi_wait {
	PMI_WAITS_NOT,
	PMI_WAITS_BARRIER,
	PMI_WAITS_MAPPING, /* the first fence */
	/* the coordinator's answer to get, publish, unpublish and lookup */
	PMI_WAITS_GET,
	PMI_WAITS_PUBLISH,
	PMI_WAITS_UNPUBLISH,
	PMI_WAITS_LOOKUP,
};

struct pmi_rank {
	enum pmi_state state;
	enum pmi_wait waits;
	bool in_spawn; /* between mcmd=spawn and endcmd */
	uint32_t spawns, spawns_so_far;
	struct buf in, out;
	struct buf wanted; /* the pair that the coordinator was asked about */
};

enum pmi_action_type {
	PMI_DO_WRITE, /* rank: there is something in its `out` */
	PMI_DO_PUT,   /* seq, pairs: the fence's, of this host; pmi_union() answers */
	PMI_DO_WANT,  /* want: pmi_union() or pmi_value() answers */
	PMI_DO_ABORT, /* rank, code, text: it wants the job to end */
	PMI_DO_BLAME, /* rank, text: it sent what no MPI library sends */
};

struct pmi_action {
	enum pmi_action_type type;
	size_t rank;	    /* on this host */
	uint32_t seq;	    /* 0, 1, ... */
	struct bytes pairs; /* valid until the answer */
	struct want want;   /* likewise */
	int code;
	char text[PMI_TEXT_MAX]; /* printable */
};

ACTIONS_OF(pmi);

/* Fields are private; read them in tests and for display only. */
struct pmi {
	struct pmi_config config;
	struct pmi_rank *ranks;
	struct keyvals keyvals; /* that all ranks may read */
	struct buf fresh;	/* put since the last barrier */
	struct buf sent;	/* those of the fence that is under way */
	struct buf received;	/* the part of its union that has arrived */
	size_t requested;	/* up to where the union was asked for */
	uint32_t seq;		/* of the fence that is under way, or of the next one */
	bool fencing;		/* between PUT and the end of its union */
	bool withheld;		/* a union was too long: unknown keys are asked for */
	bool mapped;		/* the first fence is over */
	uint32_t waiting;	/* ranks in the barrier */
	struct buf mapping;	/* "": it is not known */
};

/* Of a new attempt; the first fence follows where there are several hosts. */
void pmi_begin(struct pmi *pmi, const struct pmi_config *config, struct pmi_actions *actions);
void pmi_done(struct pmi *pmi); /* also one that is all 0 */

/* What a rank has sent. */
void pmi_take(struct pmi *pmi, size_t rank, struct bytes data, struct pmi_actions *actions);

/* The piece of the union of fence `seq` that begins at `at`; it has `size` bytes in all. */
void pmi_union(struct pmi *pmi, uint32_t seq, uint32_t size, uint32_t at, struct bytes piece,
	       struct pmi_actions *actions);

/* The answer to the WANT with this serial number. */
void pmi_value(struct pmi *pmi, uint32_t serial, bool found, struct bytes value,
	       struct pmi_actions *actions);

/* Whether it has begun with MPI and not ended it: then its end, also with 0, is a failure. */
static inline bool pmi_is_unfinished(const struct pmi *pmi, size_t rank)
{
	return pmi->ranks[rank].state == PMI_TALKS;
}

/* Ranks of this host that others wait for in a barrier, as a list for people; "": there is none. */
void pmi_missing(const struct pmi *pmi, struct buf *ret_ranks);

#endif
