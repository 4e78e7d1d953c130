#include "core/batch/bisect.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "core/batch/stats.h"
#include "core/batch/student.h"

#define SPREAD_FLOOR 1e-6 /* relative: what a clock does not resolve */
#define KNOWN_REACH 0.7	  /* length of the interval of an effect that is known, in effects */
#define TRIM 0.2	  /* share of pairs at each end that a hiccup may have spoiled */

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

/* The mean of the pairs without the ends, and its interval (Tukey and McLaughlin): a pair that
 * another program disturbed does not decide. */
static struct ratio trimmed(const struct bisect_commit *commit, double alpha)
{
	size_t n = commit->pairs, cut = (size_t)(TRIM * (double)n), kept = n - 2 * cut;
	AUTO_FREE double *sorted = NEW_ARRAY(double, n);
	for (size_t i = 0; i < n; i++)
		sorted[i] = commit->logs[i];
	stats_sort(sorted, n);
	double mean = stats_mean(sorted + cut, kept);
	for (size_t i = 0; i < cut; i++) {
		sorted[i] = sorted[cut];
		sorted[n - 1 - i] = sorted[n - 1 - cut];
	}
	double spread = MAX(stats_stddev(sorted, n), SPREAD_FLOOR);
	double error = spread / ((1 - 2.0 * (double)cut / (double)n) * sqrt((double)n));
	double reach = student_quantile(alpha, (double)kept - 1) * error;
	return (struct ratio){ exp(mean), exp(mean - reach), exp(mean + reach) };
}

/* The chance of a wrong verdict that one look at one commit may have. A search of n commits has
 * about log2(n) + 1 verdicts, and each is looked at after every pair: those looks depend on each
 * other so much that a share that falls with their number is enough. */
static double share_of_error(const struct bisect *bisect, size_t pairs)
{
	double verdicts = ceil(log2((double)bisect->count)) + 1;
	double looks = 1 + log2((double)pairs / BISECT_MIN_PAIRS);
	return (1 - bisect->rule.confidence) / verdicts / (looks * looks);
}

static struct ratio exact_ratio(const struct bisect_commit *commit)
{
	double ratio = exp(commit->logs[commit->pairs - 1]);
	return (struct ratio){ ratio, ratio, ratio };
}

/* A candidate is compared with the middle between good and bad; the bad commit itself with the
 * smallest change that counts. */
static void decide(struct bisect *bisect, size_t at)
{
	struct bisect_commit *commit = &bisect->commits[at];
	const struct bisect_commit *bad = &bisect->commits[bisect->count - 1];
	bool exact = bisect->rule.exact;
	if (!exact && commit->pairs < BISECT_MIN_PAIRS)
		return;
	commit->ratio = exact ? exact_ratio(commit)
			      : trimmed(commit, share_of_error(bisect, commit->pairs));
	double low = log(commit->ratio.low), high = log(commit->ratio.high), bar;
	if (at == bisect->count - 1) {
		/* The direction is the bad commit's own: an improvement can be searched for,
		 * too. */
		bar = log1p(bisect->rule.min_change);
		/* The others are judged by half of its effect, which must be known well for
		 * that. */
		bool known = high - low <= KNOWN_REACH * fabs(low + high) / 2 ||
			     commit->pairs >= bisect->rule.max_pairs;
		if (known && (low > bar || high < -bar))
			set_state(bisect, at, BISECT_BAD);
		else if (low > -bar && high < bar)
			set_state(bisect, at, BISECT_GOOD);
	} else {
		double whole = log(bad->ratio.value);
		bar = whole / 2;
		if (whole > 0 ? low > bar : high < bar)
			set_state(bisect, at, BISECT_BAD);
		else if (whole > 0 ? high < bar : low > bar)
			set_state(bisect, at, BISECT_GOOD);
	}
	if (commit->state == BISECT_BUILT && commit->pairs >= bisect->rule.max_pairs)
		set_state(bisect, at, BISECT_UNDECIDED);
}

void bisect_measured(struct bisect *bisect, size_t at, double good, double candidate)
{
	struct bisect_commit *commit = &bisect->commits[at];
	ARRAY_RESERVE(commit->logs, commit->pairs, commit->cap);
	commit->logs[commit->pairs++] = log(candidate / good);
	if (commit->state == BISECT_BUILT)
		decide(bisect, at);
}
