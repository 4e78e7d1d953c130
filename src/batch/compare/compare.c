#include "batch/compare/compare.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/batch/stats.h"
#include "core/batch/stats_rank.h"

#define BLOCK_RUNS_MAX 8 /* of one side in one block; muster batch makes one */
/* values needed in each half of a sample to learn noise from their difference */
#define HALF_MIN 3

void compare_options_init(struct compare_options *options)
{
	*options = (struct compare_options){ .alpha = COMPARE_ALPHA,
					     .noise = COMPARE_NOISE,
					     .tolerance = COMPARE_TOLERANCE };
	for (int i = 0; i < METRIC_COUNT; i++)
		options->limits[i] = NAN;
}

/* ---- one pair ---- */

static size_t take_values(const struct compare_options *options, const struct compare_side *side,
			  const struct sample_order *order, enum metric metric, double **ret_values,
			  int32_t *blocks, size_t *left_out)
{
	/* A busy host changes times, not counts. */
	bool suspects = options->suspects || metric_table[metric].counted;
	struct sample_filter filter = { .variant = side->variant, .suspects = suspects };
	*ret_values = NEW_ARRAY(double, order->run_count + 1);
	size_t n = samples_values(order, metric, &filter, *ret_values, blocks);
	for (size_t i = 0; i < order->run_count && !suspects; i++) {
		const struct sample_run *run = &order->runs[i];
		*left_out += run->suspect && !isnan(run->values[metric]) &&
			     (!side->variant || run->variant == side->variant);
	}
	return n;
}

/* The median over the runs of one block; false if it has none. */
static bool block_value(const double *values, const int32_t *blocks, size_t n, int32_t block,
			double *ret_value)
{
	double found[BLOCK_RUNS_MAX];
	size_t count = 0;
	for (size_t i = 0; i < n && count < ARRAY_LEN(found); i++)
		if (blocks[i] == block)
			found[count++] = values[i];
	if (count == 0)
		return false;
	stats_sort(found, count);
	*ret_value = stats_median(found, count);
	return true;
}

/* Replaces the values with one pair per block that both sides have; returns how many. */
static size_t pair_blocks(const struct compare_row *row, const int32_t *a_blocks,
			  const int32_t *b_blocks, double *ret_a, double *ret_b)
{
	size_t pairs = 0;
	for (size_t i = 0; i < row->m; i++) {
		int32_t block = a_blocks[i];
		bool seen = false;
		for (size_t j = 0; j < i && !seen; j++)
			seen = a_blocks[j] == block;
		if (block < 0 || seen)
			continue;
		if (block_value(row->a, a_blocks, row->m, block, &ret_a[pairs]) &&
		    block_value(row->b, b_blocks, row->n, block, &ret_b[pairs]))
			pairs++;
	}
	return pairs;
}

static void test_pairs(struct compare_row *row, double confidence, const double *a, const double *b)
{
	AUTO_FREE double *logs = NEW_ARRAY(double, row->blocks);
	for (size_t i = 0; i < row->blocks; i++)
		logs[i] = log(b[i] / a[i]);
	row->ratio = stats_paired_ratio(a, b, row->blocks, confidence);
	row->p = stats_signed_rank(logs, row->blocks).p;
}

static void test_samples(struct compare_row *row, double confidence)
{
	row->ratio = stats_unpaired_ratio(row->a, row->m, row->b, row->n, confidence);
	row->p = stats_rank_sum(row->a, row->m, row->b, row->n).p;
}

static void judge_counts(struct compare_row *row, double tolerance)
{
	const struct sample_counts *a = &row->a_order->counts, *b = &row->b_order->counts;
	row->ratio = verdict_count_ratio(row->a, row->m, row->b, row->n);
	if (!str_eq(a->source, b->source) || str_eq(a->source, "mixed"))
		row->reason = "counts come from different sources";
	else if (a->env_hash != b->env_hash || a->env_mixed || b->env_mixed)
		row->reason = "counted in different environments";
	if (row->reason)
		return;
	row->verdict = verdict_of_counts(tolerance, &row->ratio);
	if (row->verdict == VERDICT_UNDECIDED)
		row->reason = "the counts of one side vary";
}

/* False when one side did not measure it. */
static bool row_fill(struct compare_row *row, struct comparison *c)
{
	AUTO_FREE int32_t *a_blocks = NEW_ARRAY(int32_t, row->a_order->run_count + 1);
	AUTO_FREE int32_t *b_blocks = NEW_ARRAY(int32_t, row->b_order->run_count + 1);
	row->m = take_values(&c->options, &c->a, row->a_order, row->metric, &row->a, a_blocks,
			     &row->left_out);
	row->n = take_values(&c->options, &c->b, row->b_order, row->metric, &row->b, b_blocks,
			     &row->left_out);
	if (row->m == 0 || row->n == 0) {
		free(row->a);
		free(row->b);
		return false;
	}
	AUTO_FREE double *a_pairs = NEW_ARRAY(double, row->m);
	AUTO_FREE double *b_pairs = NEW_ARRAY(double, row->m);
	bool same_file = c->a.samples == c->b.samples;
	row->blocks = same_file ? pair_blocks(row, a_blocks, b_blocks, a_pairs, b_pairs) : 0;
	/* What drifts hits both runs of a block alike, and counts do not drift. */
	if (!row->blocks && !metric_table[row->metric].counted) {
		serial_gather(&c->drifts[row->metric][0], row->a, row->m);
		serial_gather(&c->drifts[row->metric][1], row->b, row->n);
	}
	stats_sort(row->a, row->m);
	stats_sort(row->b, row->n);
	row->p = row->q = NAN;
	if (row->a[0] <= 0 || row->b[0] <= 0) {
		row->ratio = (struct ratio){ .value = NAN, .low = 0, .high = INFINITY };
		row->reason = "some values are zero";
	} else if (metric_table[row->metric].counted) {
		judge_counts(row, c->options.tolerance);
	} else if (row->blocks) {
		test_pairs(row, 1 - c->options.alpha, a_pairs, b_pairs);
	} else {
		test_samples(row, 1 - c->options.alpha);
	}
	return true;
}

/* ---- pairing ---- */

static const struct sample_order *find_partner(const struct comparison *c,
					       const struct sample_order *order,
					       const struct samples *in)
{
	if (c->a.samples == c->b.samples)
		return order;
	const struct sample_order *found = NULL;
	if (order->hash[0])
		found = map_get(&in->by_hash, order->hash, strlen(order->hash));
	return found ? found : map_get(&in->by_id, order->id, strlen(order->id));
}

static bool has_runs(const struct sample_order *order, char variant)
{
	for (size_t i = 0; i < order->run_count; i++)
		if (!variant || order->runs[i].variant == variant)
			return true;
	return false;
}

static bool wanted(const struct compare_options *options, enum metric metric)
{
	bool any = false;
	for (int i = 0; i < METRIC_COUNT; i++)
		any |= options->metrics[i];
	return any ? options->metrics[metric]
		   : metric == METRIC_WALL || metric == METRIC_INSTRUCTIONS;
}

static void compare_pair(struct comparison *c, const struct sample_order *a,
			 const struct sample_order *b)
{
	for (enum metric metric = 0; metric < METRIC_COUNT; metric++) {
		struct compare_row row = { .a_order = a, .b_order = b, .metric = metric };
		if (!wanted(&c->options, metric) || !row_fill(&row, c))
			continue;
		ARRAY_RESERVE(c->rows, c->row_count, c->row_cap);
		c->rows[c->row_count++] = row;
	}
}

static void pair_orders(struct comparison *c)
{
	const struct samples *a = c->a.samples, *b = c->b.samples;
	c->only_a = NEW_ARRAY(const struct sample_order *, a->order_count + 1);
	c->broken = NEW_ARRAY(const struct sample_order *, a->order_count + 1);
	c->only_b = NEW_ARRAY(const struct sample_order *, b->order_count + 1);
	for (size_t i = 0; i < a->order_count; i++) {
		const struct sample_order *order = a->orders[i],
					  *partner = find_partner(c, order, b);
		if (!has_runs(order, c->a.variant))
			continue;
		if (!partner)
			c->only_a[c->only_a_count++] = order;
		else if (has_runs(partner, c->b.variant))
			compare_pair(c, order, partner);
		else if (partner->failed)
			c->broken[c->broken_count++] = order;
		else
			c->only_a[c->only_a_count++] = order;
	}
	for (size_t i = 0; i < b->order_count; i++) {
		const struct sample_order *order = b->orders[i],
					  *partner = find_partner(c, order, a);
		if (has_runs(order, c->b.variant) && (!partner || !has_runs(partner, c->a.variant)))
			c->only_b[c->only_b_count++] = order;
	}
}

/* ---- noise ---- */

struct sizes {
	double *items;
	size_t count, cap;
};

static void add_change(struct sizes *sizes, double *a, size_t m, double *b, size_t n)
{
	if (m < HALF_MIN || n < HALF_MIN)
		return;
	stats_sort(a, m);
	stats_sort(b, n);
	double change = fabs(log(stats_median(b, n) / stats_median(a, m)));
	if (!isfinite(change))
		return;
	ARRAY_RESERVE(sizes->items, sizes->count, sizes->cap);
	sizes->items[sizes->count++] = change;
}

/* The first against the second half of the runs of each order: the same program at two times. Runs
 * that alternate between the halves would share each wave of a slow host, and hide it. */
static void learn_from_halves(const struct comparison *c, const struct compare_side *side,
			      enum metric metric, struct sizes *sizes)
{
	struct sample_filter filter = { .variant = side->variant, .suspects = c->options.suspects };
	for (size_t i = 0; i < side->samples->order_count; i++) {
		const struct sample_order *order = side->samples->orders[i];
		AUTO_FREE double *values = NEW_ARRAY(double, order->run_count + 1);
		size_t n = samples_values(order, metric, &filter, values, NULL);
		add_change(sizes, values, n / 2, values + n / 2, n - n / 2);
	}
}

/* The base against another result of the same program at another time. */
static void learn_from_result(const struct comparison *c, const struct samples *again,
			      enum metric metric, struct sizes *sizes)
{
	struct sample_filter filter = { .variant = c->a.variant, .suspects = c->options.suspects };
	for (size_t i = 0; i < c->a.samples->order_count; i++) {
		const struct sample_order *order = c->a.samples->orders[i];
		const struct sample_order *partner = find_partner(c, order, again);
		if (!partner)
			continue;
		AUTO_FREE double *a = NEW_ARRAY(double, order->run_count + 1);
		AUTO_FREE double *b = NEW_ARRAY(double, partner->run_count + 1);
		size_t m = samples_values(order, metric, &filter, a, NULL);
		size_t n = samples_values(partner, metric, &filter, b, NULL);
		add_change(sizes, a, m, b, n);
	}
}

static void set_noise(struct comparison *c, enum metric metric)
{
	struct compare_summary *summary = &c->summaries[metric];
	if (metric_table[metric].counted) {
		summary->noise = c->options.tolerance;
		return;
	}
	summary->noise = c->options.noise;
	struct sizes sizes = { 0 };
	for (size_t i = 0; i < c->options.aa_count; i++)
		learn_from_result(c, c->options.aa[i], metric, &sizes);
	if (c->options.aa_count == 0 && c->options.learn_noise) {
		learn_from_halves(c, &c->a, metric, &sizes);
		learn_from_halves(c, &c->b, metric, &sizes);
	}
	double learned;
	summary->learned_from = sizes.count;
	summary->learned = verdict_learn_noise(sizes.items, sizes.count, &learned);
	if (summary->learned)
		summary->noise = MAX(summary->noise, learned);
	free(sizes.items);
}

/* ---- verdicts ---- */

static bool has_limits(const struct compare_options *options)
{
	for (int i = 0; i < METRIC_COUNT; i++)
		if (!isnan(options->limits[i]))
			return true;
	return false;
}

static bool is_regression(const struct compare_options *options, const struct compare_row *row)
{
	double limit = options->limits[row->metric];
	if (has_limits(options) && isnan(limit))
		return false;
	double bar = isnan(limit) ? 1 : 1 + limit;
	if (row->verdict == VERDICT_UNDECIDED)
		return options->strict && !(row->ratio.high <= bar);
	return row->verdict == VERDICT_SLOWER && row->ratio.value > bar;
}

static void judge(struct comparison *c, struct compare_row *row)
{
	if (metric_table[row->metric].counted || row->reason)
		return;
	struct verdict_rule rule = { .alpha = c->options.alpha,
				     .same_within = c->options.noise,
				     .change_beyond = c->summaries[row->metric].noise };
	row->verdict = verdict_of(&rule, &row->ratio, row->q);
	if (row->verdict != VERDICT_UNDECIDED)
		return;
	struct verdict_evidence evidence = { .ratio = row->ratio,
					     .p = row->p,
					     .q = row->q,
					     .runs = row->blocks ? row->blocks
								 : MIN(row->m, row->n),
					     .paired = row->blocks > 0 };
	row->more_runs = verdict_runs_needed(&rule, &evidence);
}

static void judge_all(struct comparison *c)
{
	AUTO_FREE double *q = NEW_ARRAY(double, c->row_count + 1);
	for (size_t i = 0; i < c->row_count; i++)
		q[i] = c->rows[i].p;
	stats_benjamini_hochberg(q, c->row_count, q);
	for (size_t i = 0; i < c->row_count; i++) {
		struct compare_row *row = &c->rows[i];
		struct compare_summary *summary = &c->summaries[row->metric];
		if (!summary->present) {
			summary->present = true;
			set_noise(c, row->metric);
			summary->drift_a = serial_drift(&c->drifts[row->metric][0]);
			summary->drift_b = serial_drift(&c->drifts[row->metric][1]);
		}
		row->q = q[i];
		judge(c, row);
		row->regression = is_regression(&c->options, row);
		c->regressions += row->regression;
		summary->verdicts[row->verdict]++;
	}
	c->regressions += c->broken_count;
}

static void average(struct comparison *c)
{
	double sums[METRIC_COUNT] = { 0 };
	size_t counts[METRIC_COUNT] = { 0 };
	for (size_t i = 0; i < c->row_count; i++) {
		double change = log(c->rows[i].ratio.value);
		if (isfinite(change)) {
			sums[c->rows[i].metric] += change;
			counts[c->rows[i].metric]++;
		}
	}
	for (int i = 0; i < METRIC_COUNT; i++)
		c->summaries[i].geomean = counts[i] ? exp(sums[i] / (double)counts[i]) : NAN;
}

void compare(struct comparison *result, const struct compare_side *a, const struct compare_side *b,
	     const struct compare_options *options)
{
	*result = (struct comparison){ .a = *a, .b = *b, .options = *options };
	pair_orders(result);
	judge_all(result);
	average(result);
}

void comparison_done(struct comparison *comparison)
{
	for (size_t i = 0; i < comparison->row_count; i++) {
		free(comparison->rows[i].a);
		free(comparison->rows[i].b);
		strv_done(&comparison->rows[i].groups);
	}
	free(comparison->rows);
	free(comparison->only_a);
	free(comparison->only_b);
	free(comparison->broken);
	*comparison = (struct comparison){ 0 };
}

const char *compare_order_name(const struct sample_order *order)
{
	bool named = !str_starts(order->hash, order->id);
	const char *command = samples_command(order, 'A');
	return named || !*command ? order->id : command;
}
