/* Compares two sets of measurements, order by order and metric by metric. The reports
 * (compare_report.h) print the result. */
#ifndef BATCH_COMPARE_H
#define BATCH_COMPARE_H

#include "batch/samples.h"
#include "core/batch/serial.h"
#include "core/batch/verdict.h"

/* One side: a file, or one variant of an A/B file. */
struct compare_side {
	const struct samples *samples; /* borrowed */
	char variant;
	const char *label; /* its name in reports; borrowed */
};

enum compare_sort_by {
	COMPARE_BY_RATIO, /* the largest first */
	COMPARE_BY_LIST,
	COMPARE_BY_NAME,
	COMPARE_BY_LABEL,
};

struct compare_sort {
	enum compare_sort_by by;
	const char *label; /* borrowed */
};

struct compare_groups {
	bool given; /* false: by all labels of the orders */
	struct strv labels;
};

struct compare_options {
	/* which; all false: wall, and instructions where both sides have them */
	bool metrics[METRIC_COUNT];
	double alpha;
	double noise; /* relative change that does not count */
	/* raise the bar for a change by the difference between the halves of the runs */
	bool learn_noise;
	const struct samples *const *aa; /* further results of the base, to learn noise from */
	size_t aa_count;
	double tolerance; /* of counts, relative */
	/* largest allowed growth, relative; NaN: none for this metric */
	double limits[METRIC_COUNT];
	bool suspects; /* count suspect runs too */
	bool strict;   /* undecided counts as a regression */
	struct compare_groups groups;
	struct compare_sort sort;
};

#define COMPARE_ALPHA 0.05
#define COMPARE_NOISE 0.01
#define COMPARE_TOLERANCE 0.001

/* Defaults; no limits. */
void compare_options_init(struct compare_options *options);

struct compare_row {
	const struct sample_order *a_order, *b_order; /* borrowed from the samples */
	enum metric metric;
	double *a, *b; /* sorted values; owned by the comparison */
	size_t m, n;
	size_t left_out; /* suspect runs that did not count, both sides */
	size_t blocks;	 /* pairs, when the runs came in A/B blocks; 0: unpaired */
	struct ratio ratio;
	double p, q; /* NaN: no test (counts, or too few values) */
	enum verdict verdict;
	size_t more_runs;   /* undecided: how many more would help; 0: unknown */
	const char *reason; /* why undecided apart from the numbers; NULL: none. Static text */
	bool regression;    /* over a limit, or slower where there are no limits */
	/* the groups it stands in, from the outermost, and its name among them (borrowed);
	 * compare_arrange() fills them in */
	struct strv groups;
	const char *name;
};

/* One per metric that was compared. */
struct compare_summary {
	bool present;
	size_t verdicts[VERDICT_COUNT];
	double geomean; /* of the ratios */
	double noise;	/* the bar for a change: given or learned */
	bool learned;
	size_t learned_from; /* comparisons of equal programs */
	/* correlation of neighbouring runs where it can deceive (unpaired times); 0: none */
	double drift_a, drift_b;
};

struct comparison {
	struct compare_side a, b;
	struct compare_options options;
	struct compare_row *rows; /* in the order of the list, until compare_arrange() */
	size_t row_count, row_cap;
	struct compare_summary summaries[METRIC_COUNT];
	struct serial_evidence drifts[METRIC_COUNT][2]; /* of A and B */
	const struct sample_order **only_a, **only_b;	/* orders that only one side has */
	size_t only_a_count, only_b_count;
	const struct sample_order **broken; /* ran in A, and in B every attempt failed */
	size_t broken_count;
	size_t regressions; /* rows, and broken orders */
};

/* Pairs orders by what they run (hash), then by id; within an A/B file by id and block. */
void compare(struct comparison *result, const struct compare_side *a, const struct compare_side *b,
	     const struct compare_options *options);
void comparison_done(struct comparison *comparison);

/* The name of an order in reports: its id, or its command if the id is only its hash. */
const char *compare_order_name(const struct sample_order *order);

/* ---- compare_arrange.c: the order of the rows ---- */

/* Fills in the groups and the name of every row and sorts the rows. A group comes where the first
 * of its orders was listed. Without --group-by, orders with labels form a tree of all their labels,
 * whose last one names the row. */
void compare_arrange(struct comparison *comparison);

/* Parses a list of labels, or "none". */
int compare_parse_groups(const char *text, struct compare_groups *ret_groups, struct err *err);

/* Parses "ratio", "listed", "name" or a label. */
int compare_parse_sort(const char *text, struct compare_sort *ret_sort, struct err *err);

/* How many leading groups a row shares with the row before it in a report; 0 without one. */
size_t compare_shared_groups(const struct compare_row *row, const struct compare_row *before);

#endif
