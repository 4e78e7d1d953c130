#include "core/batch/noise.h"

#include <math.h>

#include "base/mem.h"
#include "core/batch/serial.h"
#include "core/batch/stats.h"
#include "core/batch/stats_rank.h"

#define FAR 5 /* spreads from which a run is an outlier */
#define Z95 1.959963984540054
#define GOOD_SPREAD 0.01
#define FAIR_SPREAD 0.05
#define ADVISE_SHARE 0.1 /* of the runs that must have met a disturbance */
#define DRIFT_ALPHA 0.01
#define STEADIER 0.5 /* of the other spread: worth another metric */
#define PAIRS 10

static const struct {
	const char *name, *advice;
} sources[] = {
	[NOISE_LOAD] = { "load", "stop other programs, or measure on CPUs that they do not use "
				 "(--allowed-cores)" },
	[NOISE_STEAL] = { "steal", "other machines share this processor: rent a dedicated one, or "
				   "count instructions (--count=cachegrind)" },
	[NOISE_FREQUENCY] = { "frequency", "fix the clock: cpupower frequency-set -g performance, "
					   "and switch turbo off" },
	[NOISE_SMT] = { "smt", "leave the sibling threads idle (--smt=avoid), or switch them off: "
			       "echo off > /sys/devices/system/cpu/smt/control" },
	[NOISE_ASLR] = { "aslr", "addresses differ in every run: setarch -R, or many runs, or "
				 "count instructions" },
	[NOISE_GOVERNOR] = { "governor", "the clock follows the load: cpupower frequency-set -g "
					 "performance" },
};
static_assert(ARRAY_LEN(sources) == NOISE_SOURCE_COUNT, "every source has a row");

static const char *const grades[] = {
	[NOISE_GOOD] = "good", [NOISE_FAIR] = "fair", [NOISE_POOR] = "poor"
};
static_assert(ARRAY_LEN(grades) == NOISE_GRADE_COUNT, "every grade has a name");

const char *noise_grade_name(enum noise_grade grade)
{
	return grades[grade];
}

const char *noise_source_name(enum noise_source source)
{
	return sources[source].name;
}

const char *noise_advice(enum noise_source source)
{
	return sources[source].advice;
}

/* The second half of the runs against the first. */
static void judge_drift(const struct noise_facts *facts, struct noise_report *report)
{
	size_t half = facts->n / 2;
	AUTO_FREE double *first = NEW_ARRAY(double, half);
	AUTO_FREE double *second = NEW_ARRAY(double, half);
	for (size_t i = 0; i < half; i++) {
		first[i] = facts->values[i];
		second[i] = facts->values[facts->n - half + i];
	}
	stats_sort(first, half);
	stats_sort(second, half);
	report->drift = stats_median(second, half) / stats_median(first, half) - 1;
	report->drift_p = stats_rank_sum(first, half, second, half).p;
	report->drifts = report->drift_p < DRIFT_ALPHA && fabs(report->drift) > report->spread;
	struct serial_evidence evidence = { 0 };
	serial_gather(&evidence, facts->values, facts->n);
	report->waves = serial_drift(&evidence);
}

static double spread_of(const double *sorted, size_t n)
{
	double median = stats_median(sorted, n);
	return median > 0 ? stats_mad(sorted, n) / STATS_NORMAL_MAD / median : 0;
}

static void judge_cpu(const struct noise_facts *facts, struct noise_report *report)
{
	if (!facts->cpu)
		return;
	AUTO_FREE double *sorted = NEW_ARRAY(double, facts->n);
	for (size_t i = 0; i < facts->n; i++)
		sorted[i] = facts->cpu[i];
	stats_sort(sorted, facts->n);
	report->cpu_spread = spread_of(sorted, facts->n);
	report->cpu_steadier = report->cpu_spread > 0 && report->spread > GOOD_SPREAD &&
			       report->cpu_spread < STEADIER * report->spread;
}

void noise_judge(const struct noise_facts *facts, struct noise_report *ret_report)
{
	assert(facts->n >= NOISE_MIN_RUNS);
	struct noise_report report = { 0 };
	AUTO_FREE double *sorted = NEW_ARRAY(double, facts->n);
	for (size_t i = 0; i < facts->n; i++)
		sorted[i] = facts->values[i];
	stats_sort(sorted, facts->n);
	double median = stats_median(sorted, facts->n);
	report.spread = spread_of(sorted, facts->n);
	for (size_t i = 0; i < facts->n; i++)
		report.outliers += fabs(sorted[i] / median - 1) > FAR * report.spread;
	judge_drift(facts, &report);
	judge_cpu(facts, &report);
	/* Both runs of a pair are noisy, and a pair that met an outlier is lost. */
	double pair = M_SQRT2 * report.spread;
	double lost = 1 - 2 * (double)report.outliers / (double)facts->n;
	double kept = MAX(lost, 0.1);
	report.smallest = Z95 * pair / sqrt(PAIRS * kept);
	report.runs_for_1 = (size_t)ceil(pow(Z95 * pair / 0.01, 2) / kept);
	double share = (double)report.outliers / (double)facts->n;
	report.many_outliers = share > ADVISE_SHARE;
	bool fair = report.spread > GOOD_SPREAD || report.many_outliers || report.drifts ||
		    report.waves > 0;
	report.grade = report.spread > FAIR_SPREAD || share > 0.25 ? NOISE_POOR
		       : fair					   ? NOISE_FAIR
								   : NOISE_GOOD;
	for (int i = 0; i < NOISE_SOURCE_COUNT; i++)
		report.advise[i] = report.grade != NOISE_GOOD &&
				   (double)facts->disturbed[i] >= ADVISE_SHARE * (double)facts->n &&
				   facts->disturbed[i] > 0;
	*ret_report = report;
}
