/* How often an order runs, and which variant runs next.
 *
 * The runs of an order follow each other on the same cores: first the warm-up runs, then the
 * measured ones, until there are enough. Variants run in blocks of one run each; their order within
 * a block alternates (A B, B A, …; more than two also take turns in who begins) or is random.
 * `muster compare` takes two of a block as a pair, so that a drift of the host hits both sides
 * alike. Pure: the caller asks for the next step and reports how it went. */
#ifndef CORE_BATCH_REPEAT_H
#define CORE_BATCH_REPEAT_H

#include "base/util.h"

enum repeat_interleave {
	REPEAT_ABBA,
	REPEAT_RANDOM,
};

struct repeat_rules {
	uint32_t runs;	   /* exactly this many per side; 0: as many as necessary */
	uint32_t warmup;   /* runs per side before the first that counts */
	uint32_t min_runs; /* minimum, when runs is 0 */
	uint32_t max_runs; /* maximum, when runs is 0; 0: REPEAT_MAX_RUNS */
	/* stop when the interval reaches no farther than this share of the median */
	double precision;
	double confidence;     /* of that interval */
	uint64_t min_total_ns; /* without a precision: measure at least this long in total */
	uint32_t variants;     /* A, B, …; 0: there is only one */
	enum repeat_interleave interleave;
	uint64_t seed;
};

#define REPEAT_SIDES_MAX 8
#define REPEAT_MIN_RUNS 10
#define REPEAT_MAX_RUNS 1000
#define REPEAT_MIN_TOTAL_NS 3000000000ull
#define REPEAT_CONFIDENCE 0.95

/* One run that counts, no warm-up. */
void repeat_rules_init(struct repeat_rules *rules);

struct repeat_step {
	uint32_t run;  /* 0, 1, … on its side; the warm-up counts separately */
	int32_t block; /* -1: no variants */
	char variant;  /* 'A', 'B', …, or 0 */
	bool warmup;
};

struct repeat {
	const struct repeat_rules *rules; /* borrowed */
	uint32_t taken[REPEAT_SIDES_MAX]; /* measured runs of A, B, … (or of the only side) */
	uint32_t warmed;		  /* warm-up runs done, all sides */
	uint32_t place;			  /* in the block */
	int32_t block;
	uint64_t total_ns;
	double *walls[REPEAT_SIDES_MAX]; /* of the runs that count; kept only for a precision */
	uint32_t wall_count[REPEAT_SIDES_MAX], wall_cap[REPEAT_SIDES_MAX];
};

void repeat_init(struct repeat *repeat, const struct repeat_rules *rules);
void repeat_done(struct repeat *repeat);

/* The next run; false when there are enough. Asking again gives the same answer until
 * repeat_record(). */
bool repeat_next(const struct repeat *repeat, struct repeat_step *ret_step);

/* Records the step just run. `good` false: it was a run but does not count towards the precision
 * (failed, suspect). */
void repeat_record(struct repeat *repeat, uint64_t wall_ns, bool good);

/* How far the interval reaches now, as a share of the median; infinite while there is no
 * interval. */
double repeat_reach(const struct repeat *repeat);

/* For an estimate of the work: runs to come, warm-up included; at least min_runs when the number
 * depends on the results. */
uint32_t repeat_left(const struct repeat *repeat);

#endif
