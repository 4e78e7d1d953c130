/* Exit codes of all commands, and what they mean to a scheduler that may start a job again. A
 * failed job ends with the first cause's own code, or 128 + signal; --exit-map changes that. */
#ifndef CORE_WORKER_EXIT_CODE_H
#define CORE_WORKER_EXIT_CODE_H

#include "base/err.h"

enum exit_code {
	EXIT_CODE_OK = 0,
	EXIT_CODE_FAILED = 1,	     /* something failed that has no code of its own */
	EXIT_CODE_USAGE = 2,	     /* the command line is wrong */
	EXIT_CODE_REGRESSION = 3,    /* `compare` found one */
	EXIT_CODE_BAD_NODE = 91,     /* this node is not fit for workers: start the job elsewhere */
	EXIT_CODE_BUDGET = 92,	     /* every restart was used up */
	EXIT_CODE_NO_PROGRESS = 93,  /* attempts fail without progress: do not start it again */
	EXIT_CODE_SAVED = 94,	     /* left on request after saving: start it again */
	EXIT_CODE_TIMEOUT = 124,     /* join or rendezvous time-out */
	EXIT_CODE_SYSTEM = 125,	     /* the launcher or the system failed, not the job */
	EXIT_CODE_NOT_EXEC = 126,    /* found, but cannot be executed */
	EXIT_CODE_NOT_FOUND = 127,   /* no such program or script */
	EXIT_CODE_SIGNAL_BASE = 128, /* + number of the signal that ended the job */
};

/* Why a job ended, for schedulers. */
enum exit_reason {
	EXIT_REASON_DONE,
	EXIT_REASON_CAUSE,
	EXIT_REASON_SIGNAL,
	EXIT_REASON_BAD_NODE,
	EXIT_REASON_BUDGET,
	EXIT_REASON_NO_PROGRESS,
	EXIT_REASON_SAVED,
	EXIT_REASON_NO_ROUND,
	EXIT_REASON_SYSTEM,
	EXIT_REASON_COUNT,
};

/* What a scheduler should do with a job that ended so. */
enum exit_advice {
	EXIT_ADVICE_NOTHING,
	EXIT_ADVICE_FAIL,  /* starting it again will not help */
	EXIT_ADVICE_RETRY, /* as the user's policy for failures says */
	EXIT_ADVICE_AGAIN, /* start it again, without counting a failure */
};

/* A row of the contract. */
struct exit_row {
	const char *name; /* in --exit-map */
	int code;	  /* its own; -1: that of the first cause, or 128 + signal */
	bool mapped;	  /* its code is used only if --exit-map names it; else the first cause's */
	enum exit_advice advice;
	const char *meaning;
};

extern const struct exit_row exit_rows[EXIT_REASON_COUNT];

#define EXIT_CODES 256
#define EXIT_MAP_NONE (-1)

/* --exit-map: codes for reasons, then codes for codes. */
struct exit_map {
	bool given; /* else nothing below counts */
	int16_t reasons[EXIT_REASON_COUNT];
	int16_t codes[EXIT_CODES];
};

/* The code of a job that ended for `reason`, where `code` is that of its first cause. */
int exit_reason_code(enum exit_reason reason, int code);

/* "NAME[=CODE],CODE=CODE,SIGNAL=CODE": a name alone is the row's own code. -EINVAL. */
int exit_map_parse(const char *text, struct exit_map *ret_map, struct err *err);

/* The code for a job that ended for `reason` and would end with `code` without a map. */
int exit_map_apply(const struct exit_map *map, enum exit_reason reason, int code);

#endif
