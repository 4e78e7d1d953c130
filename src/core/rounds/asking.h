/* A node's part in questions to the whole job: it answers those of its coordinator, and passes on
 * to the coordinator what users ask here.
 *
 * What is asked at a node that coordinates goes to its own core/rounds/questions.h instead, and so
 * do the node's answers.
 *
 * A pure machine. An action with the link ASK_THIS_HOST is for this host: QUESTION, answer it;
 * GRANT, more pieces of that answer are welcome, or (0 pieces) none at all. The answer comes back
 * piece by piece through asking_answer(), never more than asking_room() at once. When the link to
 * the coordinator ends, or at the deadline, all ends by itself: the host gets GRANT with 0 pieces,
 * askers get ENDED. */
#ifndef CORE_ROUNDS_ASKING_H
#define CORE_ROUNDS_ASKING_H

#include "core/rounds/questions.h"

#define ASKING_RELAYS 8 /* of users on this host; the coordinator takes fewer of one link */
#define ASKING_GRACE_NS (2 * NS_PER_S) /* for the coordinator's own end of a question to arrive */

/* A question that was passed on. */
struct asking_relay {
	uint32_t id;	   /* ours, to the coordinator; 0: free */
	uint64_t asker;	   /* the link */
	uint32_t asked_as; /* the asker's id for it */
	uint64_t deadline_ns;
};

/* An answer of this host. */
struct asking_answer {
	uint32_t question; /* 0: free */
	uint16_t slot;
	uint32_t room; /* pieces that may be sent */
	uint64_t deadline_ns;
};

/* Fields are private; read them in tests only. All 0 is the beginning. */
struct asking {
	struct asking_relay relays[ASKING_RELAYS];
	struct asking_answer answers[QUESTIONS_MAX];
	uint32_t last_id;
};

/* The link to the coordinator. */
struct asking_up {
	uint64_t link; /* 0: there is none */
	bool answers;  /* the coordinator knows questions */
};

/* ASK or TAKEN came in on the link of an asker. */
void asking_ask(struct asking *asking, struct asking_up up, uint64_t asker, const struct msg *msg,
		uint64_t now_ns, struct ask_actions *actions);

/* Whether this question of an asker was passed on, and has not ended. */
bool asking_passes(const struct asking *asking, uint64_t asker, uint32_t asked_as);

/* QUESTION, GRANT, REPLY, MISSED or ENDED came from the coordinator. */
void asking_take(struct asking *asking, const struct msg *msg, uint64_t now_ns,
		 struct ask_actions *actions);

/* This host's next piece: an ANSWER. One that is not wanted any more is dropped. */
void asking_answer(struct asking *asking, struct asking_up up, const struct msg *msg,
		   struct ask_actions *actions);

/* How many pieces of this answer may be sent now; 0 if it is not wanted (any more). */
uint32_t asking_room(const struct asking *asking, uint32_t question, uint16_t slot);

/* The link to the coordinator has ended. */
void asking_up_down(struct asking *asking, struct ask_actions *actions);

/* The link of an asker has ended. */
void asking_asker_down(struct asking *asking, struct asking_up up, uint64_t asker,
		       struct ask_actions *actions);

void asking_timer(struct asking *asking, struct asking_up up, uint64_t now_ns,
		  struct ask_actions *actions);
uint64_t asking_deadline_ns(const struct asking *asking);

#endif
