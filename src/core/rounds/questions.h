/* The coordinator's part in questions to the whole job: it asks the hosts of its roster, passes the
 * pieces of their answers on to the asker, and names the hosts that do not answer.
 *
 * It holds no answers. A question asks so many hosts at a time and lets each send so many pieces
 * that the asker has not taken (a table by kind); a host makes room for the next one when its whole
 * answer is taken. So a slow asker, or a host that prints without end, costs the coordinator a
 * fixed number of bytes, whatever the size of the job, and delays no message about rounds by more
 * than these. Messages per host are constant: QUESTION, and for each piece ANSWER, REPLY, TAKEN and
 * perhaps GRANT. Nothing is sent, and no timer is armed, while no question is under way.
 *
 * A question ends when every host has answered or is named, and at its deadline in any case. A host
 * that does not begin to answer within half of the time is named and makes room for another; one
 * whose link ends is named at once. The end of the asker's link ends its questions.
 *
 * A pure machine. The caller carries the actions out in order; `link` says to whom. Links within
 * the process have ids of NODE_LOCAL_LINK and above. */
#ifndef CORE_ROUNDS_QUESTIONS_H
#define CORE_ROUNDS_QUESTIONS_H

#include "base/actions.h"
#include "core/rounds/roster.h"

#define NODE_LOCAL_LINK ((uint64_t)1 << 63) /* ids of links within the process begin here */

#define QUESTIONS_MAX 8		  /* under way at the same time; the next asker is told "busy" */
#define QUESTIONS_PER_ASKER 4	  /* and of those from one link: a host passes on for its users */
#define QUESTIONS_MIN_NS NS_PER_S /* a shorter time is made this long */

#define ASK_THIS_HOST 0 /* instead of a link: for this host's shell, as in core/rounds/asking.h */

struct ask_action {
	uint64_t link;
	struct msg msg;
};

ACTIONS_OF(ask);
/* Appends a message, whose fields the caller fills in. */
struct msg *ask_send(struct ask_actions *actions, uint64_t link, enum msg_type type);

/* How much is under way for one question. */
struct question_window {
	uint16_t hosts; /* are asked at a time */
	uint8_t pieces; /* each may be ahead of the asker */
	/* Such questions may be under way. All hosts notice a hang at the same time, and each has a
	 * question then that stops the workers of all others for a moment. */
	uint8_t questions;
	bool endless; /* answers end with the question: no host makes room for another */
	uint32_t can; /* what a host must understand */
};

struct question_window questions_window(enum ask_kind kind);

struct question_host;
struct question_slot;

/* Fields are private; read them in tests only. */
struct question {
	uint32_t number;    /* 0: there is none here */
	uint64_t asker;	    /* its link */
	uint32_t id;	    /* the asker's */
	struct inquiry ask; /* its args are our copy */
	unsigned char args[ASK_ARGS_MAX];
	uint64_t deadline_ns, patience_ns;
	uint64_t wake_ns; /* no host's patience ends before */
	struct question_host *hosts;
	size_t host_count, next; /* those before `next` had their turn */
	size_t held;		 /* hosts from here on are told when all others have answered */
	struct question_slot *slots;
	uint16_t *free_slots;
	size_t slot_count, free_count;
	uint32_t answered;
};

struct questions {
	struct question items[QUESTIONS_MAX];
	uint32_t last_number;
};

struct questions *questions_new(void);
void questions_free(struct questions *questions); /* NULL is fine */

/* ASK, TAKEN or ANSWER came in on `link`. */
void questions_take(struct questions *questions, const struct roster *roster, uint64_t link,
		    const struct msg *msg, uint64_t now_ns, struct ask_actions *actions);

/* A link has ended, of an agent or an asker. */
void questions_link_down(struct questions *questions, const struct roster *roster, uint64_t link,
			 uint64_t now_ns, struct ask_actions *actions);

/* The coordinator ends: the askers are told so. */
void questions_give_up(struct questions *questions, struct ask_actions *actions);

/* At the deadline or later. */
void questions_timer(struct questions *questions, const struct roster *roster, uint64_t now_ns,
		     struct ask_actions *actions);
uint64_t questions_deadline_ns(const struct questions *questions);

#endif
