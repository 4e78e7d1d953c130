#include "batch/noise_check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "batch/results.h"
#include "batch/samples.h"
#include "core/batch/noise.h"
#include "core/worker/exit_code.h"
#include "proto/json_out.h"
#include "proto/result.h"

#define PAIRS 20
#define LOOP "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"
#define FACT_MAX 4096

struct gathered {
	double *values, *cpu;
	size_t n, cap, cpu_cap;
	bool no_cpu; /* a run has no CPU time */
	size_t disturbed[NOISE_SOURCE_COUNT];
};

/* What the quiet check calls it, and what it is for the verdict. */
static const struct {
	const char *suspect;
	enum noise_source source;
} suspects[] = { { "load", NOISE_LOAD },	   { "steal", NOISE_STEAL },
		 { "swap", NOISE_LOAD },	   { "throttle", NOISE_FREQUENCY },
		 { "frequency", NOISE_FREQUENCY }, { "smt-shared", NOISE_SMT } };

static int on_result(void *arg, struct result *result, struct err *err UNUSED)
{
	struct gathered *gathered = arg;
	bool met[NOISE_SOURCE_COUNT] = { false };
	if (result->warmup || result->reason != REASON_OK || !result->has[RESULT_WALL_NS] ||
	    result->value[RESULT_WALL_NS] <= 0)
		return 0;
	double metrics[METRIC_COUNT];
	samples_metrics(result, metrics);
	ARRAY_RESERVE(gathered->values, gathered->n, gathered->cap);
	ARRAY_RESERVE(gathered->cpu, gathered->n, gathered->cpu_cap);
	gathered->no_cpu |= !(metrics[METRIC_CPU] > 0);
	gathered->cpu[gathered->n] = metrics[METRIC_CPU];
	gathered->values[gathered->n++] = metrics[METRIC_WALL];
	for (size_t i = 0; i < result->suspect.count; i++)
		for (size_t k = 0; k < ARRAY_LEN(suspects); k++)
			met[suspects[k].source] |=
				str_eq(suspects[k].suspect, result->suspect.items[i]);
	for (size_t i = 0; i < NOISE_SOURCE_COUNT; i++)
		gathered->disturbed[i] += met[i];
	return 0;
}

/* The first line of a file of the kernel is not `quiet`; what is not there disturbs nothing. */
static bool setting_is_not(const char *path, const char *quiet)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	if (file_read(path, FACT_MAX, &text, NULL) < 0)
		return false;
	AUTO_FREE char *line = buf_take_str(&text);
	line[strcspn(line, "\n")] = '\0';
	return !str_eq(line, quiet);
}

/* Settings of the host disturb all runs alike. */
static void add_settings(struct gathered *gathered)
{
	static const struct {
		const char *path, *quiet;
		enum noise_source source;
	} settings[] = {
		{ "/proc/sys/kernel/randomize_va_space", "0", NOISE_ASLR },
		{ "/sys/devices/system/cpu/smt/active", "0", NOISE_SMT },
		{ "/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance",
		  NOISE_GOVERNOR },
	};
	for (size_t i = 0; i < ARRAY_LEN(settings); i++)
		if (setting_is_not(settings[i].path, settings[i].quiet))
			gathered->disturbed[settings[i].source] = gathered->n;
}

static void print_report(const struct gathered *gathered, const struct noise_report *report)
{
	printf("This host is %s for measuring times: %zu runs of one program.\n",
	       noise_grade_name(report->grade), gathered->n);
	printf("  spread       %.2f %% (robust standard deviation)\n", 100 * report->spread);
	if (report->cpu_spread > 0)
		printf("  CPU time     spread %.2f %%%s\n", 100 * report->cpu_spread,
		       report->cpu_steadier ? ": steadier here, compare it instead (--metric=cpu)"
					    : "");
	printf("  drift        %+.2f %% from the first half to the second (p %.2g)%s\n",
	       100 * report->drift, report->drift_p,
	       report->drifts ? ": warm the host up (--warmup), and measure in blocks (--ab)" : "");
	if (report->waves > 0)
		printf("  waves        neighbouring runs are alike (correlation %.2f): measure in "
		       "blocks (--ab)\n",
		       report->waves);
	printf("  outliers     %zu of %zu runs%s\n", report->outliers, gathered->n,
	       report->many_outliers ? ": make more runs, and look for what wakes up now and then "
				       "(timers, services)"
				     : "");
	printf("  resolution   10 pairs show a change of %.2f %%; 1 %% takes %zu pairs\n",
	       100 * report->smallest, report->runs_for_1);
	for (int i = 0; i < NOISE_SOURCE_COUNT; i++) {
		if (gathered->disturbed[i])
			printf("  %-12s %zu of %zu runs%s%s\n",
			       noise_source_name((enum noise_source)i), gathered->disturbed[i],
			       gathered->n, report->advise[i] ? ": " : "",
			       report->advise[i] ? noise_advice((enum noise_source)i) : "");
	}
	if (report->grade == NOISE_POOR)
		printf("Count instructions here (--count=cachegrind): they do not depend on what "
		       "else runs.\n");
}

static void print_json(const struct gathered *gathered, const struct noise_report *report)
{
	AUTO(buf_done) struct buf out = BUF_INIT;
	struct json_out json = JSON_OUT(&out);
	json_out_open(&json, NULL, '{');
	json_out_text(&json, "muster", "noise");
	json_out_int(&json, "v", 1);
	json_out_text(&json, "grade", noise_grade_name(report->grade));
	json_out_int(&json, "runs", (int64_t)gathered->n);
	json_out_real(&json, "spread", report->spread);
	if (report->cpu_spread > 0)
		json_out_real(&json, "cpu_spread", report->cpu_spread);
	json_out_bool(&json, "cpu_is_steadier", report->cpu_steadier);
	json_out_bool(&json, "drifts", report->drifts);
	json_out_real(&json, "drift", report->drift);
	json_out_real(&json, "drift_p", report->drift_p);
	json_out_real(&json, "waves", report->waves);
	json_out_int(&json, "outliers", (int64_t)report->outliers);
	json_out_real(&json, "smallest_change_of_10_pairs", report->smallest);
	json_out_int(&json, "pairs_for_1_percent", (int64_t)report->runs_for_1);
	json_out_open(&json, "disturbed", '[');
	for (int i = 0; i < NOISE_SOURCE_COUNT; i++) {
		enum noise_source source = (enum noise_source)i;
		if (!gathered->disturbed[i])
			continue;
		json_out_open(&json, NULL, '{');
		json_out_text(&json, "source", noise_source_name(source));
		json_out_int(&json, "runs", (int64_t)gathered->disturbed[i]);
		json_out_text_if(&json, "advice", report->advise[i] ? noise_advice(source) : NULL);
		json_out_close(&json, '}');
	}
	json_out_close(&json, ']');
	json_out_close(&json, '}');
	puts(buf_str(&out));
}

static int judge(const char *path, bool json, struct err *err)
{
	struct gathered gathered = { .n = 0 };
	int r = results_read(path, on_result, &gathered, NULL, NULL, err);
	if (r >= 0 && gathered.n < NOISE_MIN_RUNS)
		r = err_set(err, ENODATA, "%zu runs are too few to tell: at least %d (--runs=%d)",
			    gathered.n, NOISE_MIN_RUNS, NOISE_MIN_RUNS / 2);
	if (r >= 0) {
		add_settings(&gathered);
		struct noise_facts facts = { .values = gathered.values,
					     .cpu = gathered.no_cpu ? NULL : gathered.cpu,
					     .n = gathered.n };
		memcpy(facts.disturbed, gathered.disturbed, sizeof(facts.disturbed));
		struct noise_report report;
		noise_judge(&facts, &report);
		(json ? print_json : print_report)(&gathered, &report);
	}
	free(gathered.values);
	free(gathered.cpu);
	return r;
}

int noise_check(const struct batch_config *config, const char *command)
{
	struct err err = ERR_INIT;
	char path[] = "/tmp/muster-noise-XXXXXX";
	AUTO(fd_close) int fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0) {
		log_error("%s: %s", path, strerror(errno));
		return EXIT_CODE_SYSTEM;
	}
	AUTO_FREE char *a = mem_printf("A=%s", command ? command : LOOP);
	AUTO_FREE char *b = mem_printf("B=%s", command ? command : LOOP);
	char *words[] = { a, b, NULL };
	struct batch_config again = *config;
	again.ab = true;
	again.jobs = 1;
	again.runs = config->runs > 1 ? config->runs : PAIRS;
	again.output = path;
	again.quiet = true;
	again.progress = BATCH_PROGRESS_NONE;
	again.allow_duplicates = true;
	/* The check marks the runs; what it says before them would be said twice. */
	again.measure.quiet = QUIET_CHECK_WARN;
	int code = batch_run(&again, 2, words);
	if (code == EXIT_CODE_FAILED)
		log_error("'%s' does not run well every time: nothing can be told from it",
			  command ? command : LOOP);
	if (code == EXIT_CODE_OK && judge(path, config->json, &err) < 0) {
		log_error("%s", err.msg);
		code = EXIT_CODE_SYSTEM;
	}
	unlink(path);
	return code;
}
