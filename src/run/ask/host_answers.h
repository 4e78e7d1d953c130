/* The answers of all hosts to one question, put together from the pieces that arrive. */
#ifndef RUN_ASK_HOST_ANSWERS_H
#define RUN_ASK_HOST_ANSWERS_H

#include "base/buf.h"
#include "core/rounds/msg.h"

struct host_answer {
	char name[ASK_NAME_MAX];
	int32_t group_rank; /* -1: not in the round */
	uint16_t slot;	    /* until it is whole */
	bool whole, failed;
	struct buf text; /* if it failed: why */
};

struct host_answers {
	struct host_answer *items;
	size_t count, cap;
};

#define HOST_ANSWERS_INIT ((struct host_answers){ .items = NULL })
void host_answers_done(struct host_answers *answers);

/* Pieces of one host's answer arrive in order; several hosts answer at a time. */
void host_answers_take(struct host_answers *answers, const struct msg_reply *reply);

/* A host that does not answer has an answer that failed. */
void host_answers_miss(struct host_answers *answers, const struct msg_missed *missed);

/* In the order of their ranks, hosts that are not in the round last, and without those that are not
 * whole. Names become printable. */
void host_answers_sort(struct host_answers *answers);

/* Why a host did not answer, for people: "its connection is lost". */
const char *ask_missed_text(enum ask_missed why);

#endif
