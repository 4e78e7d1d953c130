#include "core/checks/peers.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "core/batch/stats.h"

#define LEAST_SHARE 1e-6 /* of the median: 0 has no logarithm */

static double on_scale(double value, double median, const struct peers_rule *rule)
{
	return rule->by_factor ? log(MAX(value, median * LEAST_SHARE)) : value;
}

static bool stands_out(double value, const struct peers_rule *rule,
		       const struct peers_verdict *verdict)
{
	double median = verdict->median;
	double worse = rule->less ? value - median : median - value;
	double distance = fabs(on_scale(value, median, rule) - on_scale(median, median, rule));
	bool far = rule->less ? value * rule->share > median : value < median * rule->share;
	return far && distance > PEERS_SPREADS * verdict->spread && worse >= rule->floor;
}

/* Of sorted values; they stay sorted. */
static double spread_of(double *known, size_t n, double median, const struct peers_rule *rule)
{
	for (size_t i = 0; i < n; i++)
		known[i] = on_scale(known[i], median, rule);
	return stats_mad(known, n) / STATS_NORMAL_MAD;
}

struct peers_verdict peers_judge(const double *values, size_t count, const struct peers_rule *rule,
				 bool *ret_bad)
{
	struct peers_verdict verdict = { .median = NAN, .spread = NAN };
	AUTO_FREE double *known = NEW_ARRAY(double, count + 1);
	size_t n = 0;
	for (size_t i = 0; i < count; i++) {
		ret_bad[i] = false;
		if (isfinite(values[i]))
			known[n++] = values[i];
	}
	if (n == 0)
		return verdict;
	stats_sort(known, n);
	verdict.median = stats_median(known, n);
	if (n < PEERS_LEAST || (rule->by_factor && verdict.median <= 0))
		return verdict;
	verdict.spread = spread_of(known, n, verdict.median, rule);
	for (size_t i = 0; i < count; i++) {
		ret_bad[i] = isfinite(values[i]) && stands_out(values[i], rule, &verdict);
		verdict.bad += ret_bad[i];
	}
	return verdict;
}
