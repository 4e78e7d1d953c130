/* Pairs of the good commit and another, measured as muster batch --ab does. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "batch/bisect/bisect_run.h"
#include "batch/config.h"
#include "batch/samples.h"
#include "core/worker/exit_code.h"

#define PAIRS_FIRST BISECT_MIN_PAIRS /* a look at fewer decides nothing */
#define PAIRS_MORE 4		     /* between two looks at what is not decided */

struct batch_config bisect_run_batch_config(const char *output, const char *results)
{
	struct batch_config config;
	batch_config_init(&config);
	config.jobs = 1;
	config.output = output;
	config.results = results;
	config.quiet = true;
	config.progress = BATCH_PROGRESS_NONE;
	config.allow_duplicates = true;
	return config;
}

int bisect_run_stopped(struct bisect_run *run, int code, struct err *err)
{
	if (code <= EXIT_CODE_SIGNAL_BASE)
		return err_set(err, EINVAL, "the search cannot go on: nothing was run");
	run->code = code;
	return err_set(err, EINTR, "stopped; --resume goes on");
}

/* The value of one variant in one block; NaN: it failed. */
static double value_of(const struct bisect_run *run, const struct sample_order *order, char variant,
		       int32_t block)
{
	for (size_t i = 0; i < order->run_count; i++)
		if (order->runs[i].variant == variant && order->runs[i].block == block)
			return order->runs[i].values[run->options->metric];
	return NAN;
}

static int good_fails(const struct bisect_run *run, struct err *err)
{
	return err_set(err, ENOEXEC,
		       "the benchmark fails on the good commit, or did not measure %s: %s",
		       metric_table[run->options->metric].title, run->options->bench);
}

static int take_pairs(struct bisect_run *run, size_t commit, const struct samples *samples,
		      size_t pairs, struct err *err)
{
	size_t taken = 0, good_runs = 0;
	for (size_t block = 0; samples->order_count && block < pairs; block++) {
		const struct sample_order *order = samples->orders[0];
		double good = value_of(run, order, 'A', (int32_t)block);
		double candidate = value_of(run, order, 'B', (int32_t)block);
		good_runs += good > 0;
		if (!(good > 0 && candidate > 0))
			continue;
		taken++;
		int r = bisect_run_state_pair(run, commit, good, candidate, err);
		if (r < 0)
			return r;
	}
	if (taken)
		return 0;
	return good_runs ? bisect_run_state_failed(run, commit, err) : good_fails(run, err);
}

/* Runs the measurements that `config` describes, and reads what came of them. */
static int run_batch(struct bisect_run *run, const struct batch_config *config, int argc,
		     char *const *words, struct samples *samples, struct err *err)
{
	unlink(config->output);
	int code = batch_run(config, argc, words);
	if (code != EXIT_CODE_OK && code != EXIT_CODE_FAILED)
		return bisect_run_stopped(run, code, err);
	return samples_load(samples, config->output, err);
}

static int measure_pairs(struct bisect_run *run, size_t commit, struct batch_config *config,
			 struct err *err)
{
	size_t measured = run->bisect.commits[commit].pairs;
	size_t pairs = measured < PAIRS_FIRST ? PAIRS_FIRST - measured : PAIRS_MORE;
	AUTO_FREE char *a = mem_printf("A=%s", run->options->bench);
	AUTO_FREE char *b = mem_printf("B=%s", run->options->bench);
	AUTO_FREE char *good = bisect_run_path(run, 0, ""),
		       *candidate = bisect_run_path(run, commit, "");
	const char *const dirs[] = { good, candidate };
	char *words[] = { a, b, NULL };
	struct samples samples = SAMPLES_INIT;
	config->ab = true;
	config->ab_dirs = dirs;
	config->runs = (int64_t)pairs;
	int r = run_batch(run, config, 2, words, &samples, err);
	if (r >= 0)
		r = take_pairs(run, commit, &samples, pairs, err);
	samples_done(&samples);
	return r;
}

/* ---------------------------------------------------------------------- counts */

static double count_of(const struct bisect_run *run, const struct samples *samples, size_t commit)
{
	const char *id = run->commits[commit].hash;
	const struct sample_order *order = map_get(&samples->by_id, id, strlen(id));
	return order && order->run_count ? order->runs[0].values[run->options->metric] : NAN;
}

/* Counts repeat exactly and do not mind neighbours: the good commit is counted once, beside the
 * first other one. */
static int count(struct bisect_run *run, size_t commit, struct batch_config *config,
		 struct err *err)
{
	const size_t commits[] = { commit, 0 };
	AUTO_FREE char *orders = mem_printf("%s/counts.jsonl", run->dir);
	char *words[] = { orders, NULL };
	struct samples samples = SAMPLES_INIT;
	size_t n = run->good_count > 0 ? 1 : 2;
	config->jobs = MIN((int64_t)n, (int64_t)sysconf(_SC_NPROCESSORS_ONLN));
	config->runs = 1;
	int r = bisect_run_write_orders(run, commits, n, run->options->bench, orders, err);
	if (r >= 0)
		r = run_batch(run, config, 1, words, &samples, err);
	if (r >= 0 && n > 1)
		run->good_count = count_of(run, &samples, 0);
	double candidate = r >= 0 ? count_of(run, &samples, commit) : NAN;
	samples_done(&samples);
	if (r < 0)
		return r;
	if (!(run->good_count > 0))
		return good_fails(run, err);
	return candidate > 0 ? bisect_run_state_pair(run, commit, run->good_count, candidate, err)
			     : bisect_run_state_failed(run, commit, err);
}

int bisect_run_measure(struct bisect_run *run, size_t commit, struct err *err)
{
	AUTO_FREE char *output = mem_printf("%s/pairs.jsonl", run->dir);
	AUTO_FREE char *results = mem_printf("%s/output", run->dir);
	struct batch_config config = bisect_run_batch_config(output, results);
	config.measure = run->options->measure;
	return (run->bisect.rule.exact ? count : measure_pairs)(run, commit, &config, err);
}
