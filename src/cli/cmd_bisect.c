/* muster bisect: the commit that made a benchmark slower. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "batch/bisect/bisect_run.h"
#include "batch/export.h"
#include "cli/command.h"
#include "cli/values.h"
#include "core/worker/exit_code.h"

#define CONFIDENCE 0.99
#define MIN_CHANGE 0.01
#define MIN_CHANGE_COUNT 0.001

struct bisect_cli {
	struct bisect_run_options run;
	bool json;
	const char *html;
};

static int opt_metric(const char *text, void *field, struct err *err)
{
	int metric = metric_find(text, strlen(text));
	if (metric < 0)
		return err_set(err, EINVAL, "unknown metric '%s'", text);
	*(int *)field = metric;
	return 0;
}

static const struct opt opts[] = {
	OPT_GROUP("What is searched"),
	OPT_STR("good", NULL, struct bisect_cli, run.good, "COMMIT", "a commit that is fast"),
	OPT_STR("bad", NULL, struct bisect_cli, run.bad, "COMMIT",
		"a later commit that is slow (default HEAD)"),
	OPT_STR("build", NULL, struct bisect_cli, run.build, "CMD",
		"build a commit with this line for the shell, in its worktree"),
	OPT_GROUP("Measurement"),
	OPT_CALL("metric", NULL, struct bisect_cli, run.metric, opt_metric, "NAME",
		 "wall (default), user, sys, cpu, maxrss; with --count: instructions"),
	OPT_CALL("count", NULL, struct bisect_cli, run.measure, count_opt_parse, "SOURCE",
		 "count instructions instead: perf, cachegrind, callgrind"),
	OPT_CALL("confidence", NULL, struct bisect_cli, run.confidence, share_parse_part, "SHARE",
		 "that the answer is right (default 99%)"),
	OPT_CALL("min-change", NULL, struct bisect_cli, run.min_change, share_parse_part, "SHARE",
		 "good and bad must differ by more than this (default 1%, of counts 0.1%)"),
	OPT_INT("max-pairs", NULL, struct bisect_cli, run.max_pairs, "N",
		"leave a commit out that is not decided after N pairs (default 1000)"),
	OPT_GROUP("Files"),
	OPT_STR("dir", NULL, struct bisect_cli, run.dir, "DIR",
		"worktrees and state (default: muster-bisect in git's own directory)"),
	OPT_FLAG("resume", NULL, struct bisect_cli, run.resume,
		 "go on with a search that was interrupted"),
	OPT_INT("jobs", NULL, struct bisect_cli, run.jobs, "N",
		"builds at a time (default: one per CPU)"),
	OPT_GROUP("Output"),
	OPT_FLAG("json", NULL, struct bisect_cli, json, "print JSON instead of text"),
	OPT_STR("html", NULL, struct bisect_cli, html, "FILE",
		"write one self-contained page with the evidence"),
	{ OPT_FIELD(OPT_TYPE_FLAG, "quiet", NULL, struct bisect_cli, run.quiet, NULL,
		    "do not tell every step"),
	  .short_name = 'q' },
	OPT_END,
};

/* What was not said follows from what was. */
static int settle(const struct command *self, struct bisect_cli *cli, const struct opt_seen *seen)
{
	struct bisect_run_options *run = &cli->run;
	bool counts = run->measure.count != COUNTER_NONE || run->measure.count_auto;
	if (!run->good)
		return command_usage_error(self, "--good is missing: a commit that is fast");
	if (run->jobs < 0 || run->max_pairs < 0 || run->max_pairs == 1)
		return command_usage_error(self, "--jobs and --max-pairs: at least 1 and 2");
	if (counts && opt_given(opts, seen, "metric") && run->metric != METRIC_INSTRUCTIONS)
		return command_usage_error(self, "--count measures instructions, not %s",
					   metric_table[run->metric].name);
	if (run->metric == METRIC_MEMORY)
		return command_usage_error(
			self, "--metric=memory does not work with bisect; take maxrss");
	if (!counts && run->metric == METRIC_INSTRUCTIONS)
		return command_usage_error(self, "--metric=instructions needs --count");
	if (counts) {
		run->metric = METRIC_INSTRUCTIONS;
		run->measure.env.clean = true;
	}
	if (!opt_given(opts, seen, "min-change"))
		run->min_change = counts ? MIN_CHANGE_COUNT : MIN_CHANGE;
	return 0;
}

static int write_reports(const struct bisect_cli *cli, const struct bisect_run *run,
			 struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	if (cli->html) {
		bisect_run_html(run, &text);
		int r = export_file(cli->html, &text, err);
		if (r < 0)
			return r;
		buf_clear(&text);
	}
	if (cli->json)
		bisect_run_json(run, &text);
	else
		bisect_run_text(run, &text);
	return export_file("-", &text, err);
}

static int run(const struct bisect_cli *cli)
{
	static const int codes[] = { [BISECT_FOUND] = EXIT_CODE_OK,
				     [BISECT_RANGE] = EXIT_CODE_FAILED,
				     [BISECT_NO_CHANGE] = EXIT_CODE_FAILED,
				     [BISECT_BROKEN] = EXIT_CODE_SYSTEM };
	struct bisect_run run;
	struct err err = ERR_INIT;
	int r = bisect_run_search(&run, &cli->run, &err), code;
	if (r >= 0)
		r = write_reports(cli, &run, &err);
	code = r < 0 ? (run.code ? run.code : EXIT_CODE_SYSTEM) : codes[run.result];
	if (r < 0)
		log_error("%s", err.msg);
	bisect_run_done(&run);
	return code;
}

static int bisect_main(const struct command *self, int argc, char **argv)
{
	struct bisect_cli cli = { .run = { .bad = "HEAD", .confidence = CONFIDENCE } };
	struct opt_seen seen;
	int first, status;
	if (!command_parse(self, &cli, argc, argv, &seen, &first, &status))
		return status;
	status = settle(self, &cli, &seen);
	if (status == 0 && first >= argc)
		status = command_usage_error(self, "the benchmark is missing: -- COMMAND");
	if (status)
		return status;
	AUTO(buf_done) struct buf bench = BUF_INIT;
	for (int i = first; i < argc; i++) {
		buf_append_str(&bench, i > first ? " " : "");
		buf_append_str(&bench, argv[i]);
	}
	cli.run.bench = buf_str(&bench);
	return run(&cli);
}

const struct command command_bisect = {
	.name = "bisect",
	.synopsis = "[OPTIONS] --good=A [--bad=B] [--build=CMD] -- BENCHMARK...",
	.summary = "find the commit that made a benchmark slower",
	.footer = "Examples:\n"
		  "  muster bisect --good=v1.4 --build='make -s' -- ./bench parse\n"
		  "  muster bisect --good=v1.4 --count=cachegrind --build='make -s' -- ./bench\n"
		  "  muster bisect --good=v1.4 --build='make -s' --resume -- ./bench parse\n",
	.opts = opts,
	.mode = OPT_STOP_AT_POSITIONAL,
	.main = bisect_main,
};
