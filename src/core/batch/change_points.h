/* Change points: where a series of measurements, one a version, moved to another level.
 *
 * Two questions. Is there any change at all? A rank test over all stretches of the series decides
 * it (any_change.h), whatever the shape of the noise, and knows noise that comes in waves
 * (serial.h). Where? The series of logarithms is cut into levels in the best of all possible ways
 * (levels.h), and cuts are tested with Student's t, the weakest first, and taken back until each
 * that is left is significant and large enough to matter. Both must agree. Levels that explain a
 * series no better than waves of noise would do are waves.
 *
 * A level of one version between two others is an outlier, not a change. A few values at the end
 * that are farther out than any value ever was are a change, though ranks cannot show it.
 *
 * There is no chance in it: the same series gives the same answer. */
#ifndef CORE_BATCH_CHANGE_POINTS_H
#define CORE_BATCH_CHANGE_POINTS_H

#include "core/batch/any_change.h"
#include "core/batch/spread.h"
#include "core/batch/stats_interval.h"

#define CHANGE_POINTS_MAX_VALUES 4096 /* the newest that are looked at */
#define CHANGE_POINTS_MIN_VALUES 4    /* fewer have no change */
#define CHANGE_POINTS_OUTLIER_MAX 1   /* values of an outlier */

struct change_rule {
	double alpha;	   /* chance of any change point in a series that has none */
	double min_change; /* relative; ignore smaller changes */
};

struct change {
	size_t at;	      /* the first value of the new level */
	struct ratio ratio;   /* new level to old, with its interval at 1 - alpha */
	double p;	      /* the larger of the two questions', corrected for the search */
	double before, after; /* the levels, in the unit of the values */
};

struct change_points {
	struct change *items; /* ascending */
	size_t count;
	size_t *outliers; /* values far from the levels around them, ascending */
	size_t outlier_count;
	struct spreads spreads; /* where the noise changed; `at` among the values */
	double noise;		/* standard deviation within the levels, relative */
};

#define CHANGE_POINTS_INIT ((struct change_points){ .items = NULL })

/* The values must be positive and finite. A series of fewer than CHANGE_POINTS_MIN_VALUES has no
 * change. A table saves time when it is handed to the next series of the same length, too; NULL:
 * none. */
void change_points_find(const double *values, size_t n, const struct change_rule *rule,
			struct any_change_table *table, struct change_points *ret_changes);
void change_points_done(struct change_points *changes);

#endif
