#include "core/batch/verdict.h"

#include <math.h>

#include "core/batch/stats.h"
#include "core/batch/stats_rank.h"

static const char *const names[] = {
	[VERDICT_UNDECIDED] = "undecided",
	[VERDICT_SAME] = "same",
	[VERDICT_FASTER] = "faster",
	[VERDICT_SLOWER] = "slower",
};
static_assert(ARRAY_LEN(names) == VERDICT_COUNT, "every verdict needs a name");

const char *verdict_name(enum verdict verdict)
{
	return names[verdict];
}

enum verdict verdict_of(const struct verdict_rule *rule, const struct ratio *ratio, double q)
{
	double same = 1 + rule->same_within, change = 1 + rule->change_beyond;
	if (ratio->low >= 1 / same && ratio->high <= same)
		return VERDICT_SAME;
	if (!(q <= rule->alpha)) /* NaN too: without a test there is no claim */
		return VERDICT_UNDECIDED;
	if (ratio->low > change)
		return VERDICT_SLOWER;
	if (ratio->high < 1 / change)
		return VERDICT_FASTER;
	return VERDICT_UNDECIDED;
}

struct ratio verdict_count_ratio(const double *a, size_t m, const double *b, size_t n)
{
	return (struct ratio){ .value = stats_median(b, n) / stats_median(a, m),
			       .low = b[0] / a[m - 1],
			       .high = b[n - 1] / a[0] };
}

enum verdict verdict_of_counts(double tolerance, const struct ratio *ratio)
{
	struct verdict_rule rule = { .alpha = 1,
				     .same_within = tolerance,
				     .change_beyond = tolerance };
	return verdict_of(&rule, ratio, 0);
}

/* Runs until the interval clears the threshold that it now covers; 0 if it already does. */
static double runs_for_interval(const struct verdict_rule *rule, const struct verdict_evidence *e)
{
	double effect = fabs(log(e->ratio.value));
	double reach = log(e->ratio.high / e->ratio.low) / 2;
	double same = log1p(rule->same_within), change = log1p(rule->change_beyond);
	double room = effect > change ? effect - change : same - effect;
	if (reach == 0)
		return 0;
	return room > 0 ? (double)e->runs * (reach / room) * (reach / room) : INFINITY;
}

/* Runs until the test is sure enough, with today's correction for many orders. */
static double runs_for_test(const struct verdict_rule *rule, const struct verdict_evidence *e)
{
	if (fabs(log(e->ratio.value)) <= log1p(rule->same_within) || e->q <= rule->alpha)
		return 0; /* "same" needs no test */
	double needed_p = rule->alpha * e->p / e->q;
	double z = stats_normal_quantile(1 - MIN(e->p, 0.999) / 2);
	double needed_z = stats_normal_quantile(1 - needed_p / 2);
	return (double)e->runs * (needed_z / z) * (needed_z / z);
}

static bool test_can_decide(const struct verdict_rule *rule, size_t runs, bool paired)
{
	double p = paired ? stats_signed_rank_min_p(runs) : stats_rank_sum_min_p(runs, runs);
	return p <= rule->alpha;
}

size_t verdict_runs_needed(const struct verdict_rule *rule, const struct verdict_evidence *e)
{
	size_t least = e->runs + 1;
	while (!test_can_decide(rule, least, e->paired))
		least++;
	if (!isfinite(e->ratio.high) || isnan(e->p) || isnan(e->ratio.value))
		return least - e->runs;
	double wanted = MAX(runs_for_interval(rule, e), runs_for_test(rule, e));
	if (!(wanted < VERDICT_RUNS_MANY))
		return VERDICT_RUNS_MANY;
	return MAX(least, (size_t)ceil(wanted)) - e->runs;
}

bool verdict_learn_noise(double *sizes, size_t n, double *ret_noise)
{
	if (n < VERDICT_LEARN_MIN)
		return false;
	stats_sort(sizes, n);
	double q1 = stats_quantile(sizes, n, 0.25), q3 = stats_quantile(sizes, n, 0.75);
	*ret_noise = expm1(q3 + 3 * (q3 - q1));
	return true;
}
