#include "core/checks/peers.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"
#include "core/batch/stats.h"

static bool stands_out(double value, const struct peers_rule *rule,
		       const struct peers_verdict *verdict)
{
	double median = verdict->median;
	double worse = rule->less ? value - median : median - value;
	bool far = rule->less ? value * rule->share > median : value < median * rule->share;
	return far && worse > PEERS_SPREADS * verdict->spread && worse >= rule->floor;
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
	verdict.spread = stats_mad(known, n) / STATS_NORMAL_MAD;
	if (n < PEERS_LEAST)
		return verdict;
	for (size_t i = 0; i < count; i++) {
		ret_bad[i] = isfinite(values[i]) && stands_out(values[i], rule, &verdict);
		verdict.bad += ret_bad[i];
	}
	return verdict;
}
