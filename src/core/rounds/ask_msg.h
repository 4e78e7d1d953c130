/* Questions about the whole job: the messages between an asker, the coordinator and the agents.
 *
 *     asker -> coordinator                          coordinator -> asker
 *     ASK     a question to all hosts, or to some   REPLY   a piece of one host's answer
 *     TAKEN   I have taken this many pieces; or:    MISSED  this host does not answer, and why
 *             I want no more                        ENDED   that was all
 *
 *     agent -> coordinator                          coordinator -> agent
 *     ANSWER  a piece of my answer                  QUESTION answer this, with so many
 *                                                           pieces for now
 *                                                   GRANT   so many pieces more; or: no more
 *
 * An asker is a command of a user, or the agent of another host that passes on what such a command
 * asks. core/rounds/questions.h has the coordinator's part, core/rounds/asking.h that of a node.
 *
 * Arguments and pieces are bytes that these machines do not look into. They are borrowed: valid for
 * the step. */
#ifndef CORE_ROUNDS_ASK_MSG_H
#define CORE_ROUNDS_ASK_MSG_H

#include "base/bytes.h"

#define ASK_NAME_MAX 65 /* of a host, with the NUL */
#define ASK_ARGS_MAX 512
#define ASK_PIECE_MAX 1900 /* with its names it fits into a frame */
#define ASK_RANKS_MAX 64
#define ASK_SLOTS_MAX 4096 /* hosts that one question asks at a time */
#define ASK_PIECES_MAX 64  /* of one answer that the asker has not taken */
#define ASK_TIMEOUT_MAX_NS (3600 * NS_PER_S)

enum ask_kind {
	ASK_STATE,
	ASK_LOGS,
	ASK_FOLLOW, /* logs, and what is added, until the asker has enough */
	ASK_STACKS,
	ASK_STOP,
	ASK_RESTART, /* asks one host of the round, which has all start again */
	ASK_COLLECTIVES,
	ASK_LEAVE, /* as RESTART; it gives notice to all (core/rounds/accord.h) */
	ASK_SAVE,
	ASK_JOB_LOG, /* as FOLLOW, for the job's one log: whole lines, none twice */
	ASK_KIND_COUNT,
};

/* One host of the round is asked, which tells the others. */
static inline bool ask_is_for_one(enum ask_kind kind)
{
	return kind == ASK_RESTART || kind == ASK_LEAVE || kind == ASK_SAVE;
}

/* Arguments that hosts know; others are ignored. */
#define ASK_STATE_DETAIL "detail" /* command, environment and CPUs of the ranks asked for */
#define ASK_LOGS_TAIL "tail"	  /* of log files the last ASK_LOGS_TAIL_BYTES only */
#define ASK_LOGS_TAIL_BYTES ((uint64_t)64 << 10)

/* What is asked. */
struct inquiry {
	enum ask_kind kind;
	uint64_t timeout_ns; /* for all answers together */
	uint8_t rank_count;  /* 0: all */
	uint32_t ranks[ASK_RANKS_MAX];
	struct bytes args;
};

/* Whether it is about the worker with this rank. */
static inline bool inquiry_means(const struct inquiry *ask, uint64_t rank)
{
	for (size_t i = 0; i < ask->rank_count; i++)
		if (ask->ranks[i] == rank)
			return true;
	return ask->rank_count == 0;
}

struct msg_ask {
	uint32_t id;		 /* the asker's; not used on this link before */
	char host[ASK_NAME_MAX]; /* only this one; "": all */
	struct inquiry ask;
};

struct msg_taken {
	uint32_t id;
	uint16_t slot;
	uint8_t pieces; /* 0: the asker wants nothing more of this question */
};

struct msg_answer {
	uint32_t question;
	uint16_t slot;
	bool last;
	bool failed; /* the host cannot answer: the text of the answer says why */
	struct bytes piece;
};

struct msg_question {
	uint32_t question; /* the coordinator's number */
	uint16_t slot;	   /* tells the answers apart */
	uint8_t pieces;	   /* may be sent at once; 0: do it, but do not answer */
	struct inquiry ask;
};

struct msg_grant {
	uint32_t question;
	uint16_t slot;
	uint8_t pieces; /* 0: stop */
};

struct msg_reply {
	uint32_t id;
	uint16_t slot; /* pieces with the same one belong together, up to the last */
	bool last, failed;
	int32_t group_rank; /* -1: the host is not in the round */
	char name[ASK_NAME_MAX];
	struct bytes piece;
};

enum ask_missed {
	ASK_MISSED_LOST,    /* its connection is gone */
	ASK_MISSED_LATE,    /* it was asked and did not answer in time */
	ASK_MISSED_UNASKED, /* its turn did not come in time */
	ASK_MISSED_OLD,	    /* its version does not know questions */
	ASK_MISSED_COUNT,
};

struct msg_missed {
	uint32_t id;
	enum ask_missed why;
	int32_t group_rank;
	char name[ASK_NAME_MAX];
};

enum ask_end {
	ASK_ENDED_ALL,	  /* every host has answered or is named */
	ASK_ENDED_LATE,	  /* the same, but the time was over first */
	ASK_ENDED_BUSY,	  /* too many questions are under way */
	ASK_ENDED_NO_ONE, /* no host of the job is meant */
	/* By a node that passes questions on: */
	ASK_ENDED_APART, /* it has no coordinator just now */
	ASK_ENDED_LOST,	 /* it lost the coordinator meanwhile */
	ASK_ENDED_OLD,	 /* the coordinator's version does not know questions */
	ASK_END_COUNT,
};

struct msg_ended {
	uint32_t id;
	enum ask_end why;
	uint32_t hosts, answered;
};

#endif
