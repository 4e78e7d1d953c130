/* The rules that the command line sets for a batch: which signals end an order, what to retry, when
 * everything stops. */
#ifndef CORE_BATCH_BATCH_RULES_H
#define CORE_BATCH_BATCH_RULES_H

#include "base/err.h"
#include "core/worker/exit_status.h"
#include "core/batch/reason.h"

/* "TERM,5000,KILL": signals to the whole tree with milliseconds between them. Ends in KILL. */
#define LADDER_MAX 8

struct ladder {
	struct {
		int sig;
		uint64_t wait_ns; /* before the next step */
	} steps[LADDER_MAX];
	size_t count;
};

int ladder_parse(const char *text, struct ladder *ret_ladder, struct err *err);

/* "timeout,oom,signal,exit=75,exit": reasons, or single exit codes. */
#define RETRY_CODES_MAX 32

struct retry_rule {
	bool reasons[REASON_COUNT];
	int codes[RETRY_CODES_MAX];
	size_t code_count;
};

int retry_rule_parse(const char *text, struct retry_rule *ret_rule, struct err *err);
struct retry_rule retry_rule_any(void); /* every way to fail */
bool retry_rule_matches(const struct retry_rule *rule, enum reason reason,
			const struct exit_status *status);

/* "never", "soon,fail=1", "now,success=3", "soon,done=10%": as in GNU parallel, with its old
 * numbers. */
struct halt_rule {
	enum { HALT_NEVER, HALT_SOON, HALT_NOW } when;
	enum { HALT_FAIL, HALT_SUCCESS, HALT_DONE } what;
	uint64_t count;	  /* orders */
	unsigned percent; /* or part of all orders; 0: count decides */
};

int halt_rule_parse(const char *text, struct halt_rule *ret_rule, struct err *err);
bool halt_rule_met(const struct halt_rule *rule, uint64_t failed, uint64_t succeeded,
		   uint64_t total);

#endif
