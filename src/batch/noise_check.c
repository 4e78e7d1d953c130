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
#include "core/batch/noise.h"
#include "core/worker/exit_code.h"
#include "proto/result.h"

#define PAIRS 20
#define LOOP "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done"
#define FACT_MAX 4096

struct gathered {
	double *values;
	size_t n, cap;
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
	ARRAY_RESERVE(gathered->values, gathered->n, gathered->cap);
	gathered->values[gathered->n++] = (double)result->value[RESULT_WALL_NS];
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
	printf("  drift        %+.2f %% from the first half to the second (p %.2g)\n",
	       100 * report->drift, report->drift_p);
	printf("  outliers     %zu of %zu runs\n", report->outliers, gathered->n);
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

static int judge(const char *path, struct err *err)
{
	struct gathered gathered = { .n = 0 };
	int r = results_read(path, on_result, &gathered, NULL, NULL, err);
	if (r >= 0 && gathered.n < NOISE_MIN_RUNS)
		r = err_set(err, ENODATA, "only %zu runs ended well: at least %d are needed",
			    gathered.n, NOISE_MIN_RUNS);
	if (r >= 0) {
		add_settings(&gathered);
		struct noise_facts facts = { .values = gathered.values, .n = gathered.n };
		memcpy(facts.disturbed, gathered.disturbed, sizeof(facts.disturbed));
		struct noise_report report;
		noise_judge(&facts, &report);
		print_report(&gathered, &report);
	}
	free(gathered.values);
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
	if (code == EXIT_CODE_OK && judge(path, &err) < 0) {
		log_error("%s", err.msg);
		code = EXIT_CODE_SYSTEM;
	}
	unlink(path);
	return code;
}
