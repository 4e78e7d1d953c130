#include "stats_question.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "core/batch/any_change.h"
#include "core/batch/noise.h"
#include "core/batch/serial.h"
#include "core/batch/stats.h"
#include "core/batch/stats_interval.h"
#include "core/batch/stats_rank.h"
#include "core/batch/student.h"

static bool parse_values(char **text, size_t n, double *ret_values)
{
	for (size_t i = 0; i < n; i++) {
		char *end;
		ret_values[i] = strtod(*text, &end);
		if (end == *text)
			return false;
		*text = end;
	}
	return true;
}

bool stats_question_parse(const char *line, struct stats_question *ret_question,
			  const char **ret_rest)
{
	struct stats_question *q = ret_question;
	size_t len = strcspn(line, " ");
	char *at = (char *)line + len;
	if (len >= sizeof(q->op))
		return false;
	memcpy(q->op, line, len);
	q->op[len] = '\0';
	q->x = strtod(at, &at);
	q->m = strtoul(at, &at, 10);
	q->n = strtoul(at, &at, 10);
	*ret_rest = at;
	if (q->m > STATS_VALUES_MAX || q->n > STATS_VALUES_MAX || !parse_values(&at, q->m, q->a) ||
	    !parse_values(&at, q->n, q->b))
		return false;
	*ret_rest = at;
	return true;
}

static size_t describe(const struct stats_question *q, double *answer)
{
	answer[0] = stats_mean(q->a, q->m);
	answer[1] = stats_median(q->a, q->m);
	answer[2] = stats_quantile(q->a, q->m, q->x);
	answer[3] = stats_mad(q->a, q->m);
	answer[4] = stats_stddev(q->a, q->m);
	return 5;
}

static size_t normal(const struct stats_question *q, double *answer)
{
	answer[0] = stats_normal_quantile(q->x);
	answer[1] = stats_normal_tail(q->a[0]);
	return 2;
}

static size_t student(const struct stats_question *q, double *answer)
{
	answer[0] = student_quantile(q->x, q->a[0]);
	answer[1] = student_two_sided(q->a[1], q->a[0]);
	return 2;
}

static size_t median_interval(const struct stats_question *q, double *answer)
{
	answer[0] = answer[1] = NAN;
	stats_median_interval(q->a, q->m, q->x, &answer[0], &answer[1]);
	return 2;
}

static size_t ratio(struct ratio ratio, double *answer)
{
	answer[0] = ratio.value;
	answer[1] = ratio.low;
	answer[2] = ratio.high;
	return 3;
}

static size_t test(struct rank_test test, double *answer)
{
	answer[0] = test.statistic;
	answer[1] = test.p;
	answer[2] = test.exact;
	return 3;
}

/* Of samples of M values, or of M and N: where the tests begin to reject, and the least they say.
 */
static size_t limits(const struct stats_question *q, double *answer)
{
	answer[0] = (double)stats_signed_rank_reject((size_t)q->a[0], q->x);
	answer[1] = stats_signed_rank_min_p((size_t)q->a[0]);
	answer[2] = (double)stats_rank_sum_reject((size_t)q->a[0], (size_t)q->a[1], q->x);
	answer[3] = stats_rank_sum_min_p((size_t)q->a[0], (size_t)q->a[1]);
	return 4;
}

/* The normal scores of the ranks, the chance of a change and that of a split, given X. */
static size_t change(const struct stats_question *q, double *answer)
{
	AUTO(any_change_table_done) struct any_change_table table = ANY_CHANGE_TABLE_INIT;
	double sorted[STATS_VALUES_MAX];
	any_change_scores(q->a, q->m, &table, answer, sorted);
	for (size_t i = 1; i < q->m; i++)
		if (sorted[i] < sorted[i - 1])
			return 0;
	answer[q->m] = any_change_p(answer, q->m, q->x);
	answer[q->m + 1] = any_change_split_p(answer, q->m, q->x);
	return q->m + 2;
}

/* Of neighbours, and what it does to the mean of X of them. */
static size_t serial(const struct stats_question *q, double *answer)
{
	struct serial_evidence evidence = { .values = 0 };
	answer[0] = serial_correlation(q->a, q->m, &answer[1]);
	serial_gather(&evidence, q->a, q->m);
	answer[2] = serial_drift(&evidence);
	answer[3] = evidence.products;
	answer[4] = serial_inflation(answer[0], q->x);
	return 5;
}

/* The second sample, if any, is CPU time; X runs met a load. */
static size_t noise(const struct stats_question *q, double *answer)
{
	struct noise_facts facts = { .values = q->a, .cpu = q->n ? q->b : NULL, .n = q->m };
	struct noise_report report;
	facts.disturbed[NOISE_LOAD] = (size_t)q->x;
	noise_judge(&facts, &report);
	const double all[] = { report.spread,
			       report.cpu_spread,
			       report.cpu_steadier,
			       report.drift,
			       report.drift_p,
			       report.drifts,
			       report.waves,
			       (double)report.outliers,
			       report.many_outliers,
			       (double)report.runs_for_1,
			       report.smallest,
			       report.grade,
			       report.advise[NOISE_LOAD],
			       report.advise[NOISE_GOVERNOR] };
	memcpy(answer, all, sizeof(all));
	return ARRAY_LEN(all);
}

size_t stats_question_answer(struct stats_question *q, double answer[STATS_ANSWER_MAX])
{
	if (!strcmp(q->op, "bh")) {
		stats_benjamini_hochberg(q->a, q->m, answer);
		return q->m;
	}
	if (!strcmp(q->op, "signed"))
		return test(stats_signed_rank(q->a, q->m), answer);
	if (!strcmp(q->op, "paired"))
		return ratio(stats_paired_ratio(q->a, q->b, q->m, q->x), answer);
	if (!strcmp(q->op, "student"))
		return student(q, answer);
	if (!strcmp(q->op, "limits"))
		return limits(q, answer);
	if (!strcmp(q->op, "change"))
		return change(q, answer);
	if (!strcmp(q->op, "serial"))
		return serial(q, answer);
	if (!strcmp(q->op, "noise"))
		return noise(q, answer);
	stats_sort(q->a, q->m);
	stats_sort(q->b, q->n);
	if (!strcmp(q->op, "describe"))
		return describe(q, answer);
	if (!strcmp(q->op, "normal"))
		return normal(q, answer);
	if (!strcmp(q->op, "interval"))
		return median_interval(q, answer);
	if (!strcmp(q->op, "ratio"))
		return ratio(stats_unpaired_ratio(q->a, q->m, q->b, q->n, q->x), answer);
	if (!strcmp(q->op, "ranksum"))
		return test(stats_rank_sum(q->a, q->m, q->b, q->n), answer);
	return 0;
}
