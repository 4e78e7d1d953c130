#include "core/batch/bisect.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "core/batch/stats.h"
#include "core/batch/student.h"

#define SPREAD_FLOOR 1e-6 /* relative: what a clock does not resolve */
#define KNOWN_ERROR 0.15  /* standard error of an effect that is known, in effects */
#define SURE_ERRORS 2	  /* the effect of the bad commit is at least this many errors less */
#define TRIM 0.25	  /* share of pairs at each end that a hiccup may have spoiled */
/* What the test asks for beyond Wald's bound, which knows the noise: ours comes from the pairs, and
 * pairs on a busy host resemble their neighbours. From simulation. */
#define CAUTION 1.5

static const char *const state_names[] = {
	[BISECT_UNKNOWN] = "unknown", [BISECT_BUILT] = "built",
	[BISECT_GOOD] = "good",	      [BISECT_BAD] = "bad",
	[BISECT_SKIPPED] = "skipped", [BISECT_UNDECIDED] = "undecided",
};
static_assert(ARRAY_LEN(state_names) == BISECT_STATE_COUNT, "every state has a name");

const char *bisect_state_name(enum bisect_state state)
{
	return state_names[state];
}

void bisect_init(struct bisect *bisect, size_t count, const struct bisect_rule *rule)
{
	assert(count >= 2);
	*bisect = (struct bisect){ .rule = *rule, .count = count, .first_bad = count - 1 };
	bisect->commits = mem_alloc(count * sizeof(*bisect->commits));
	if (!bisect->rule.max_pairs)
		bisect->rule.max_pairs = BISECT_MAX_PAIRS;
}

void bisect_done(struct bisect *bisect)
{
	for (size_t i = 0; i < bisect->count; i++)
		free(bisect->commits[i].logs);
	free(bisect->commits);
	bisect->commits = NULL;
	bisect->count = 0;
}

/* ------------------------------------------------------------------- what next */

static bool left_out(const struct bisect_commit *commit)
{
	return commit->state == BISECT_SKIPPED || commit->state == BISECT_UNDECIDED;
}

/* The commit nearest to the middle between `good` and `bad` that is not left out; `bad` itself if
 * there is none. */
static size_t nearest_middle(const struct bisect *bisect, size_t good, size_t bad)
{
	size_t middle = good + (bad - good) / 2;
	for (size_t distance = 0; distance < bad - good; distance++) {
		if (middle + distance < bad && middle + distance > good &&
		    !left_out(&bisect->commits[middle + distance]))
			return middle + distance;
		if (middle >= good + 1 + distance && middle - distance < bad &&
		    !left_out(&bisect->commits[middle - distance]))
			return middle - distance;
	}
	return bad;
}

static struct bisect_step finished(enum bisect_result result)
{
	return (struct bisect_step){ .type = BISECT_DONE, .result = result };
}

static struct bisect_step work_on(const struct bisect *bisect, size_t commit)
{
	bool built = bisect->commits[commit].state != BISECT_UNKNOWN;
	return (struct bisect_step){ .type = built ? BISECT_MEASURE : BISECT_BUILD,
				     .commit = commit };
}

void bisect_next(const struct bisect *bisect, struct bisect_step *ret_step)
{
	const struct bisect_commit *good = &bisect->commits[0];
	const struct bisect_commit *bad = &bisect->commits[bisect->count - 1];
	if (good->state == BISECT_UNKNOWN) {
		*ret_step = work_on(bisect, 0);
	} else if (good->state == BISECT_SKIPPED || bad->state == BISECT_SKIPPED) {
		*ret_step = finished(BISECT_BROKEN);
	} else if (bad->state == BISECT_GOOD || bad->state == BISECT_UNDECIDED) {
		*ret_step = finished(BISECT_NO_CHANGE);
	} else if (bad->state != BISECT_BAD) {
		*ret_step = work_on(bisect, bisect->count - 1);
	} else {
		size_t next = nearest_middle(bisect, bisect->last_good, bisect->first_bad);
		bool neighbours = bisect->first_bad == bisect->last_good + 1;
		*ret_step = next != bisect->first_bad
				    ? work_on(bisect, next)
				    : finished(neighbours ? BISECT_FOUND : BISECT_RANGE);
	}
}

size_t bisect_ahead(const struct bisect *bisect, size_t *ret_commits, size_t max)
{
	size_t n = 0, good = bisect->last_good, bad = bisect->first_bad;
	size_t middle = nearest_middle(bisect, good, bad);
	const size_t wanted[] = { 0, bisect->count - 1, middle,
				  middle < bad ? nearest_middle(bisect, good, middle) : bad,
				  middle < bad ? nearest_middle(bisect, middle, bad) : bad };
	for (size_t i = 0; i < ARRAY_LEN(wanted) && n < max; i++) {
		bool known = bisect->commits[wanted[i]].state != BISECT_UNKNOWN;
		for (size_t k = 0; k < n; k++)
			known |= ret_commits[k] == wanted[i];
		if (!known)
			ret_commits[n++] = wanted[i];
	}
	return n;
}

/* ------------------------------------------------------------------- what came */

static void set_state(struct bisect *bisect, size_t at, enum bisect_state state)
{
	bisect->commits[at].state = state;
	if (state == BISECT_GOOD)
		bisect->last_good = MAX(bisect->last_good, at);
	if (state == BISECT_BAD)
		bisect->first_bad = MIN(bisect->first_bad, at);
}

void bisect_built(struct bisect *bisect, size_t commit, bool well)
{
	if (bisect->commits[commit].state == BISECT_UNKNOWN)
		set_state(bisect, commit, well ? BISECT_BUILT : BISECT_SKIPPED);
	if (well && commit == 0)
		set_state(bisect, 0, BISECT_GOOD);
}

void bisect_failed(struct bisect *bisect, size_t commit)
{
	set_state(bisect, commit, BISECT_SKIPPED);
}

/* The chance of a wrong verdict on one commit: a search of n commits has about log2(n) + 1 of
 * them. */
static double share_of_error(const struct bisect *bisect)
{
	return (1 - bisect->rule.confidence) / (ceil(log2((double)bisect->count)) + 1);
}

/* The mean of the pairs without the ends, and its error (Tukey and McLaughlin): a pair that another
 * program disturbed does not decide. Returns its degrees of freedom. */
static double trimmed_mean(const struct bisect_commit *commit, double *ret_mean, double *ret_error)
{
	size_t n = commit->pairs, cut = (size_t)(TRIM * (double)n), kept = n - 2 * cut;
	AUTO_FREE double *sorted = NEW_ARRAY(double, n);
	for (size_t i = 0; i < n; i++)
		sorted[i] = commit->logs[i];
	stats_sort(sorted, n);
	*ret_mean = stats_mean(sorted + cut, kept);
	for (size_t i = 0; i < cut; i++) {
		sorted[i] = sorted[cut];
		sorted[n - 1 - i] = sorted[n - 1 - cut];
	}
	double spread = MAX(stats_stddev(sorted, n), SPREAD_FLOOR);
	*ret_error = spread / ((1 - 2.0 * (double)cut / (double)n) * sqrt((double)n));
	return (double)kept - 1;
}

/* A few pairs do not know their own error well: it grows by what Student's quantiles are beyond
 * normal ones. */
static void estimate(const struct bisect *bisect, struct bisect_commit *commit)
{
	double error, df = trimmed_mean(commit, &commit->mean, &error);
	double share = share_of_error(bisect), left = 1 - bisect->rule.confidence;
	commit->error = error * student_quantile(share, df) / stats_normal_quantile(1 - share / 2);
	double reach = error * student_quantile(left, df);
	commit->ratio = (struct ratio){ exp(commit->mean), exp(commit->mean - reach),
					exp(commit->mean + reach) };
}

static void estimate_exact(struct bisect_commit *commit)
{
	commit->mean = commit->logs[commit->pairs - 1];
	commit->error = 0;
	double ratio = exp(commit->mean);
	commit->ratio = (struct ratio){ ratio, ratio, ratio };
}

/* Does the bad commit differ from the good one, and is it known by how much? The direction is its
 * own: an improvement can be searched for, too. The bar moves out with the number of looks. */
static enum bisect_state judge_bad(const struct bisect *bisect, const struct bisect_commit *bad)
{
	double bar = log1p(bisect->rule.min_change), size = fabs(bad->mean), reach = 0;
	if (!bisect->rule.exact) {
		double looks = 1 + log2((double)bad->pairs / BISECT_MIN_PAIRS);
		double share = share_of_error(bisect) / (looks * looks);
		reach = bad->error * stats_normal_quantile(1 - share / 2);
	}
	bool known = bad->error <= KNOWN_ERROR * size || bad->pairs >= bisect->rule.max_pairs;
	if (known && size - reach > bar)
		return BISECT_BAD;
	return size + reach < bar ? BISECT_GOOD : BISECT_BUILT;
}

/* Twice the least that the bad commit's effect may be tells good from bad: a commit without any
 * effect passes as bad, and one with the whole effect as good, only with their share of error. */
static enum bisect_state judge(const struct bisect *bisect, const struct bisect_commit *commit)
{
	const struct bisect_commit *bad = &bisect->commits[bisect->count - 1];
	double effect = fabs(bad->mean) - SURE_ERRORS * bad->error;
	double beyond = (bad->mean > 0 ? commit->mean : -commit->mean) - effect / 2;
	if (bisect->rule.exact)
		return beyond > 0 ? BISECT_BAD : BISECT_GOOD;
	/* The logarithm of how much likelier the effect is than none. */
	double evidence = effect * beyond / (commit->error * commit->error);
	double enough = CAUTION * -log(share_of_error(bisect));
	return evidence > enough ? BISECT_BAD : evidence < -enough ? BISECT_GOOD : BISECT_BUILT;
}

static void decide(struct bisect *bisect, size_t at)
{
	struct bisect_commit *commit = &bisect->commits[at];
	if (bisect->rule.exact)
		estimate_exact(commit);
	else if (commit->pairs >= BISECT_MIN_PAIRS)
		estimate(bisect, commit);
	else
		return;
	enum bisect_state state =
		at == bisect->count - 1 ? judge_bad(bisect, commit) : judge(bisect, commit);
	if (state == BISECT_BUILT && commit->pairs >= bisect->rule.max_pairs)
		state = BISECT_UNDECIDED;
	set_state(bisect, at, state);
}

void bisect_measured(struct bisect *bisect, size_t at, double good, double candidate)
{
	struct bisect_commit *commit = &bisect->commits[at];
	ARRAY_RESERVE(commit->logs, commit->pairs, commit->cap);
	commit->logs[commit->pairs++] = log(candidate / good);
	if (commit->state == BISECT_BUILT)
		decide(bisect, at);
}
