/* Change points: where a series of measurements, one a version, moved to another level.
 *
 * First the series of logarithms is cut into levels in the best of all possible ways: the squared
 * deviations from the levels, in units of the noise that neighbours show, plus a price for every
 * cut, are as small as can be (exact dynamic programming that drops starts which can never win).
 * Then cuts are tested with Student's t, the weakest first, and taken back until each that is left
 * is significant after correction for all places and lengths it could have had, and large enough to
 * matter. A level of one version between two others is an outlier, not a change.
 *
 * There is no chance in it: the same series gives the same answer. */
#ifndef CORE_BATCH_CHANGES_H
#define CORE_BATCH_CHANGES_H

#include "core/batch/stats_interval.h"

#define CHANGES_MAX_VALUES 4096 /* the newest that are looked at */
#define CHANGES_MIN_VALUES 3	/* fewer have no change */
#define CHANGES_OUTLIER_MAX 1	/* values of an outlier */

struct change_rule {
	double alpha;	   /* chance of any change point in a series that has none */
	double min_change; /* relative; ignore smaller changes */
};

struct change {
	size_t at;	      /* the first value of the new level */
	struct ratio ratio;   /* new level to old, with its interval at 1 - alpha */
	double p;	      /* corrected for the search */
	double before, after; /* the levels, in the unit of the values */
};

struct changes {
	struct change *items; /* ascending */
	size_t count;
	size_t *outliers; /* values far from the levels around them, ascending */
	size_t outlier_count;
	double noise; /* standard deviation within the levels, relative */
};

#define CHANGES_INIT ((struct changes){ .items = NULL })

/* The values must be positive and finite. A series of fewer than
 * CHANGES_MIN_VALUES has no change. */
void changes_find(const double *values, size_t n, const struct change_rule *rule,
		  struct changes *ret_changes);
void changes_done(struct changes *changes);

#endif
