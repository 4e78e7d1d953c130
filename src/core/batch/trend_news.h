/* What the change points of a series say about its newest version. */
#ifndef CORE_BATCH_TREND_NEWS_H
#define CORE_BATCH_TREND_NEWS_H

#include "core/batch/change_points.h"
#include "core/batch/verdict.h"

#define TREND_MIN_VERSIONS 5 /* fewer say nothing about the noise */

struct trend_rule {
	double alpha;
	size_t first;	     /* changes at this value or later are news */
	bool more_is_better; /* of this series */
};

struct trend_news {
	enum verdict verdict;	     /* SLOWER: worse, FASTER: better */
	const struct change *change; /* what it rests on; NULL: nothing changed */
};

/* The last change that is news decides. `q` is its p-value after correction for all series looked
 * at (stats_benjamini_hochberg). */
struct trend_news trend_judge(const struct change_points *changes, size_t n,
			      const struct trend_rule *rule, double q);

/* The p-value of the last change that is news; 1: none. */
double trend_p(const struct change_points *changes, const struct trend_rule *rule);

#endif
