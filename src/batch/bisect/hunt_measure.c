/* Pairs of the good commit and another, measured as muster batch --ab does. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "base/str.h"
#include "batch/bisect/hunt.h"
#include "batch/config.h"
#include "batch/samples.h"
#include "core/worker/exit_code.h"

#define PAIRS_FIRST BISECT_MIN_PAIRS /* a look at fewer decides nothing */
#define PAIRS_MORE 4		     /* between two looks at what is not decided */

static char *command_of(const struct hunt *hunt, size_t commit)
{
	/* The directory is ours and has no quote in its last part; quote what is before it. */
	struct buf text = BUF_INIT;
	buf_append_str(&text, "cd '");
	for (const char *c = hunt->dir; *c; c++) {
		if (*c == '\'')
			buf_append_str(&text, "'\\''");
		else
			buf_append_char(&text, *c);
	}
	buf_printf(&text, "/%s' && %s", hunt->commits[commit].hash, hunt->options->bench);
	return buf_take_str(&text);
}

struct batch_config hunt_batch_config(const char *output, const char *results)
{
	struct batch_config config = {
		.cores = 1,
		.jobs = 1,
		.reserve = -1,
		.seed = 1,
		.confidence = REPEAT_CONFIDENCE,
		.shell = "/bin/sh",
		.retry_on = retry_rule_any(),
		.retry_delay_ns = NS_PER_S,
		.output = output,
		.results = results,
		.quiet = true,
		.progress = BATCH_PROGRESS_NONE,
		.allow_duplicates = true,
	};
	ladder_parse("TERM,5000,KILL", &config.ladder, NULL);
	return config;
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
	if (!good_runs)
		return err_set(err, ENOEXEC,
			       "the benchmark fails on the good commit, or did not measure %s: %s",
			       metric_table[hunt->options->metric].title, hunt->options->bench);
	return hunt_state_failed(hunt, commit, err);
}

int hunt_measure(struct hunt *hunt, size_t commit, struct err *err)
{
	const struct bisect_commit *state = &hunt->bisect.commits[commit];
	size_t pairs = metric_table[hunt->options->metric].counted ? 1
		       : state->pairs < PAIRS_FIRST		   ? PAIRS_FIRST - state->pairs
								   : PAIRS_MORE;
	AUTO_FREE char *output = mem_printf("%s/pairs.jsonl", hunt->dir);
	AUTO_FREE char *results = mem_printf("%s/output", hunt->dir);
	AUTO_FREE char *good = command_of(hunt, 0), *candidate = command_of(hunt, commit);
	AUTO_FREE char *a = mem_printf("A=%s", good), *b = mem_printf("B=%s", candidate);
	struct batch_config config = hunt_batch_config(output, results);
	config.ab = true;
	config.runs = (int64_t)pairs;
	config.measure = hunt->options->measure;
	char *words[] = { a, b, NULL };
	unlink(output);
	int code = batch_run(&config, 2, words);
	if (code != EXIT_CODE_OK && code != EXIT_CODE_FAILED) {
		hunt->code = code;
		return err_set(err, EINTR, "stopped; --resume goes on");
	}
	struct samples samples = SAMPLES_INIT;
	int r = samples_load(&samples, output, err);
	if (r >= 0)
		r = take_pairs(hunt, commit, &samples, pairs, err);
	samples_done(&samples);
	return r;
}
