/* The search for the first bad commit, as a pure machine: commits in a row, the first of them good,
 * the last bad. A step says what to build or measure next; what came of it goes back in.
 *
 *     while (bisect_next(&bisect, &step), step.type != BISECT_DONE)
 *         ... build step.commit, or measure one more pair of it against the good commit ...
 *         bisect_built() or bisect_measured()
 *
 * Where the bad commit itself lies is measured first, until its effect is known well: without a
 * difference there is nothing to search. Every other commit is either like the good one or like the
 * bad one, and is measured in pairs with the good one until one of the two is so much more likely
 * than the other that the verdict is wrong with no more than its share of what the confidence
 * leaves (Wald's sequential test: it takes a quarter of the pairs that an interval away from the
 * middle would take, and may look after every pair). */
#ifndef CORE_BATCH_BISECT_H
#define CORE_BATCH_BISECT_H

#include "base/err.h"
#include "core/batch/stats_interval.h"

#define BISECT_MIN_PAIRS 8
#define BISECT_MAX_PAIRS 1000 /* of one commit; then it is undecided and left out */

enum bisect_state {
	BISECT_UNKNOWN, /* nothing is known yet */
	BISECT_BUILT,
	BISECT_GOOD,
	BISECT_BAD,
	BISECT_SKIPPED,	  /* it does not build, or does not run */
	BISECT_UNDECIDED, /* too close to the middle, or too noisy */
	BISECT_STATE_COUNT,
};

const char *bisect_state_name(enum bisect_state state);

struct bisect_commit {
	enum bisect_state state;
	double *logs; /* of bad to good, one a pair */
	size_t pairs, cap;
	double mean, error; /* of the logarithm, without disturbed pairs, and its standard error */
	struct ratio ratio; /* with its interval at the confidence; value 0: not measured */
};

struct bisect_rule {
	double confidence; /* of the answer, e.g. 0.99 */
	double min_change; /* relative; good and bad must differ by more */
	bool exact;	   /* counts: one pair decides */
	size_t max_pairs;  /* 0: BISECT_MAX_PAIRS */
};

enum bisect_step_type {
	BISECT_BUILD, /* the commit, and those that may be asked for next */
	BISECT_MEASURE,
	BISECT_DONE,
};

enum bisect_result {
	BISECT_FOUND,	  /* first_bad, and its neighbour last_good */
	BISECT_RANGE,	  /* one of last_good + 1 ... first_bad: those between were left out */
	BISECT_NO_CHANGE, /* good and bad do not differ */
	BISECT_BROKEN,	  /* good or bad does not build or run */
};

struct bisect_step {
	enum bisect_step_type type;
	size_t commit;
	enum bisect_result result; /* BISECT_DONE */
};

struct bisect {
	struct bisect_rule rule;
	struct bisect_commit *commits;
	size_t count;
	size_t last_good, first_bad;
};

/* `count` >= 2. */
void bisect_init(struct bisect *bisect, size_t count, const struct bisect_rule *rule);
void bisect_done(struct bisect *bisect);

void bisect_next(const struct bisect *bisect, struct bisect_step *ret_step);

/* The commits that could be asked for after this one, nearest first: to build ahead on spare cores.
 * Returns how many, at most `max`. */
size_t bisect_ahead(const struct bisect *bisect, size_t *ret_commits, size_t max);

void bisect_built(struct bisect *bisect, size_t commit, bool well);

/* One pair: what the good commit and this one took; both positive. */
void bisect_measured(struct bisect *bisect, size_t commit, double good, double candidate);
/* The commit cannot be measured: it is left out. */
void bisect_failed(struct bisect *bisect, size_t commit);

#endif
