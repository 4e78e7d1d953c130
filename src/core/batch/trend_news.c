#include "core/batch/trend_news.h"

static const struct change *last_news(const struct change_points *changes,
				      const struct trend_rule *rule)
{
	if (changes->count == 0)
		return NULL;
	const struct change *last = &changes->items[changes->count - 1];
	return last->at >= rule->first ? last : NULL;
}

double trend_p(const struct change_points *changes, const struct trend_rule *rule)
{
	const struct change *change = last_news(changes, rule);
	return change ? change->p : 1;
}

struct trend_news trend_judge(const struct change_points *changes, size_t n,
			      const struct trend_rule *rule, double q)
{
	const struct change *change = last_news(changes, rule);
	if (n < TREND_MIN_VERSIONS)
		return (struct trend_news){ .verdict = VERDICT_UNDECIDED };
	if (!change)
		return (struct trend_news){ .verdict = VERDICT_SAME };
	if (!(q <= rule->alpha))
		return (struct trend_news){ .verdict = VERDICT_UNDECIDED, .change = change };
	bool worse = (change->ratio.value > 1) != rule->more_is_better;
	return (struct trend_news){ .verdict = worse ? VERDICT_SLOWER : VERDICT_FASTER,
				    .change = change };
}
