/* Pairs of the good commit and another, measured as muster batch --ab does. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "batch/bisect/hunt.h"
#include "batch/config.h"
#include "batch/samples.h"
#include "core/worker/exit_code.h"

#define PAIRS_FIRST BISECT_MIN_PAIRS /* a look at fewer decides nothing */
#define PAIRS_MORE 4		     /* between two looks at what is not decided */

struct batch_config hunt_batch_config(const char *output, const char *results)
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

int hunt_stopped(struct hunt *hunt, int code, struct err *err)
{
	if (code <= EXIT_CODE_SIGNAL_BASE)
		return err_set(err, EINVAL, "the search cannot go on: nothing was run");
	hunt->code = code;
	return err_set(err, EINTR, "stopped; --resume goes on");
}

/* The value of one variant in one block; NaN: it failed. */
static double value_of(const struct hunt *hunt, const struct sample_order *order, char variant,
		       int32_t block)
{
	for (size_t i = 0; i < order->run_count; i++)
		if (order->runs[i].variant == variant && order->runs[i].block == block)
			return order->runs[i].values[hunt->options->metric];
	return NAN;
}

static int good_fails(const struct hunt *hunt, struct err *err)
{
	return err_set(err, ENOEXEC,
		       "the benchmark fails on the good commit, or did not measure %s: %s",
		       metric_table[hunt->options->metric].title, hunt->options->bench);
}

static int take_pairs(struct hunt *hunt, size_t commit, const struct samples *samples, size_t pairs,
		      struct err *err)
{
	size_t taken = 0, good_runs = 0;
	for (size_t block = 0; samples->order_count && block < pairs; block++) {
		const struct sample_order *order = samples->orders[0];
		double good = value_of(hunt, order, 'A', (int32_t)block);
		double candidate = value_of(hunt, order, 'B', (int32_t)block);
		good_runs += good > 0;
		if (!(good > 0 && candidate > 0))
			continue;
		taken++;
		int r = hunt_state_pair(hunt, commit, good, candidate, err);
		if (r < 0)
			return r;
	}
	if (taken)
		return 0;
	return good_runs ? hunt_state_failed(hunt, commit, err) : good_fails(hunt, err);
}

/* Runs the measurements that `config` describes, and reads what came of them. */
static int run(struct hunt *hunt, const struct batch_config *config, int argc, char *const *words,
	       struct samples *samples, struct err *err)
{
	unlink(config->output);
	int code = batch_run(config, argc, words);
	if (code != EXIT_CODE_OK && code != EXIT_CODE_FAILED)
		return hunt_stopped(hunt, code, err);
	return samples_load(samples, config->output, err);
}

static int measure_pairs(struct hunt *hunt, size_t commit, struct batch_config *config,
			 struct err *err)
{
	size_t measured = hunt->bisect.commits[commit].pairs;
	size_t pairs = measured < PAIRS_FIRST ? PAIRS_FIRST - measured : PAIRS_MORE;
	AUTO_FREE char *a = mem_printf("A=%s", hunt->options->bench);
	AUTO_FREE char *b = mem_printf("B=%s", hunt->options->bench);
	AUTO_FREE char *good = hunt_path(hunt, 0, ""), *candidate = hunt_path(hunt, commit, "");
	const char *const dirs[] = { good, candidate };
	char *words[] = { a, b, NULL };
	struct samples samples = SAMPLES_INIT;
	config->ab = true;
	config->ab_dirs = dirs;
	config->runs = (int64_t)pairs;
	int r = run(hunt, config, 2, words, &samples, err);
	if (r >= 0)
		r = take_pairs(hunt, commit, &samples, pairs, err);
	samples_done(&samples);
	return r;
}

/* ---------------------------------------------------------------------- counts */

static double count_of(const struct hunt *hunt, const struct samples *samples, size_t commit)
{
	const char *id = hunt->commits[commit].hash;
	const struct sample_order *order = map_get(&samples->by_id, id, strlen(id));
	return order && order->run_count ? order->runs[0].values[hunt->options->metric] : NAN;
}

/* Counts repeat exactly and do not mind neighbours: the good commit is counted once, beside the
 * first other one. */
static int count(struct hunt *hunt, size_t commit, struct batch_config *config, struct err *err)
{
	const size_t commits[] = { commit, 0 };
	AUTO_FREE char *orders = mem_printf("%s/counts.jsonl", hunt->dir);
	char *words[] = { orders, NULL };
	struct samples samples = SAMPLES_INIT;
	size_t n = hunt->good_count > 0 ? 1 : 2;
	config->jobs = MIN((int64_t)n, (int64_t)sysconf(_SC_NPROCESSORS_ONLN));
	config->runs = 1;
	int r = hunt_write_orders(hunt, commits, n, hunt->options->bench, orders, err);
	if (r >= 0)
		r = run(hunt, config, 1, words, &samples, err);
	if (r >= 0 && n > 1)
		hunt->good_count = count_of(hunt, &samples, 0);
	double candidate = r >= 0 ? count_of(hunt, &samples, commit) : NAN;
	samples_done(&samples);
	if (r < 0)
		return r;
	if (!(hunt->good_count > 0))
		return good_fails(hunt, err);
	return candidate > 0 ? hunt_state_pair(hunt, commit, hunt->good_count, candidate, err)
			     : hunt_state_failed(hunt, commit, err);
}

int hunt_measure(struct hunt *hunt, size_t commit, struct err *err)
{
	AUTO_FREE char *output = mem_printf("%s/pairs.jsonl", hunt->dir);
	AUTO_FREE char *results = mem_printf("%s/output", hunt->dir);
	struct batch_config config = hunt_batch_config(output, results);
	config.measure = hunt->options->measure;
	return (hunt->bisect.rule.exact ? count : measure_pairs)(hunt, commit, &config, err);
}
