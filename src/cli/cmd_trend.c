/* muster trend: the change points of a archive, and a verdict for the newest version. */
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "batch/export.h"
#include "batch/trend/trend.h"
#include "cli/command.h"
#include "cli/values.h"
#include "core/worker/exit_code.h"

struct trend_cli {
	struct trend_options trend;
	struct archive_options history;
	struct strv imports;
	int64_t recent;
	bool all, json, markdown;
	const char *html, *link, *github;
};

static int opt_metrics(const char *text, void *field, struct err *err)
{
	bool *metrics = field;
	size_t len;
	for (const char *piece; (piece = str_split(&text, ',', &len));) {
		int metric = len == strlen("value") && memcmp(piece, "value", len) == 0
				     ? ARCHIVE_VALUE
				     : metric_find(piece, len);
		if (metric < 0)
			return err_set(err, EINVAL, "unknown metric '%.*s'", (int)len, piece);
		metrics[metric] = true;
	}
	return 0;
}

static const struct opt opts[] = {
	OPT_GROUP("What is looked at"),
	OPT_CALL("metric", NULL, struct trend_cli, trend.metrics, opt_metrics, "LIST",
		 "wall, user, sys, cpu, maxrss, memory, instructions, value (default: wall, "
		 "instructions, "
		 "value)"),
	OPT_STR("host-class", NULL, struct trend_cli, history.host_class, "NAME",
		"only results of this class of hosts"),
	OPT_STR("configuration", NULL, struct trend_cli, history.configuration, "NAME",
		"only results of this configuration"),
	OPT_GROUP("Verdicts"),
	OPT_CALL("alpha", NULL, struct trend_cli, trend.alpha, share_parse_part, "P",
		 "chance of a false change in a series without one (default 0.05)"),
	OPT_CALL("min-change", NULL, struct trend_cli, trend.min_change, share_parse, "SHARE",
		 "ignore smaller changes of a time (default 1%)"),
	OPT_CALL("tolerance", NULL, struct trend_cli, trend.tolerance, share_parse, "SHARE",
		 "ignore smaller changes of a count (default 0.1%)"),
	OPT_INT("recent", NULL, struct trend_cli, recent, "N",
		"a change in the newest N versions is news (default 10)"),
	OPT_STR("since", NULL, struct trend_cli, trend.since, "VERSION",
		"a change after this version is news"),
	OPT_GROUP("Output"),
	OPT_FLAG("all", NULL, struct trend_cli, all, "show series without news, too"),
	OPT_FLAG("json", NULL, struct trend_cli, json, "print JSON instead of text"),
	OPT_FLAG("markdown", NULL, struct trend_cli, markdown,
		 "print Markdown, for a comment on a pull request"),
	OPT_STR("html", NULL, struct trend_cli, html, "FILE",
		"write one self-contained page with a chart of every series"),
	OPT_STR("link", NULL, struct trend_cli, link, "URL",
		"address of a version for the page and Markdown; {} is its name"),
	OPT_STR("export-github", NULL, struct trend_cli, github, "FILE",
		"write the data file of github-action-benchmark"),
	OPT_GROUP("Imports"),
	OPT_LIST("import", struct trend_cli, imports, "FILE",
		 "first file a result of hyperfine, Google Benchmark, pytest-benchmark, asv or "
		 "github-action-benchmark; may be repeated"),
	OPT_STR("version-label", NULL, struct trend_cli, history.version, "NAME",
		"the version that is imported (default: what the file says, or the commit here)"),
	OPT_END,
};

static int write_reports(const struct trend_cli *cli, const struct trend *trend, struct err *err)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	int r = 0;
	if (cli->html) {
		trend_html(trend, cli->link, &text);
		r = export_file(cli->html, &text, err);
	}
	if (r == 0 && cli->github) {
		buf_clear(&text);
		trend_github(trend, &text);
		r = export_file(cli->github, &text, err);
	}
	if (r < 0)
		return r;
	buf_clear(&text);
	if (cli->json)
		trend_json(trend, &text);
	else if (cli->markdown)
		trend_markdown(trend, cli->link, &text);
	else
		trend_text(trend, cli->all, &text);
	return export_file("-", &text, err);
}

static int import_all(const struct trend_cli *cli, struct err *err)
{
	for (size_t i = 0; i < cli->imports.count; i++) {
		int r = archive_import(&cli->history, cli->imports.items[i], err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int run_trend(struct trend_cli *cli, size_t *ret_regressions, struct err *err)
{
	struct archive archive = ARCHIVE_INIT;
	struct trend trend = TREND_INIT;
	cli->trend.host_class = cli->imports.count ? NULL : cli->history.host_class;
	cli->trend.configuration = cli->imports.count ? NULL : cli->history.configuration;
	int r = import_all(cli, err);
	if (r >= 0)
		r = archive_load(&archive, cli->history.dir, err);
	if (r >= 0)
		r = trend_make(&trend, &archive, &cli->trend, err);
	if (r >= 0)
		r = write_reports(cli, &trend, err);
	*ret_regressions = trend.verdicts[VERDICT_SLOWER];
	trend_done(&trend);
	archive_done(&archive);
	return r;
}

static int trend_main(const struct command *self, int argc, char **argv)
{
	struct trend_cli cli = { .recent = TREND_RECENT };
	trend_options_init(&cli.trend);
	int first, status;
	bool parsed = command_parse(self, &cli, argc, argv, NULL, &first, &status);
	if (parsed && argc - first != 1)
		status = command_usage_error(self, "name the directory of a history, as 'muster "
						   "batch --history-dir=DIR' writes it");
	else if (parsed && cli.recent < 1)
		status = command_usage_error(self, "option '--recent': at least 1");
	else if (parsed && cli.json && cli.markdown)
		status = command_usage_error(self, "--json and --markdown exclude each other");
	else if (parsed) {
		struct err err = ERR_INIT;
		size_t regressions = 0;
		cli.trend.recent = (size_t)cli.recent;
		cli.history.dir = argv[first];
		status = EXIT_CODE_OK;
		if (run_trend(&cli, &regressions, &err) < 0) {
			log_error("%s", err.msg);
			status = EXIT_CODE_SYSTEM;
		} else if (regressions) {
			status = EXIT_CODE_REGRESSION;
		}
	}
	strv_done(&cli.imports);
	return status;
}

const struct command command_trend = {
	.name = "trend",
	.synopsis = "[OPTIONS] DIR",
	.summary = "find where a history of benchmark results changed",
	.footer = "Examples:\n"
		  "  muster batch --history-dir=perf --runs=10 bench.txt\n"
		  "  muster trend perf --html=trend.html --link=https://example.org/commit/{}\n"
		  "  muster trend perf --import=hyperfine.json --version-label=v1.2\n",
	.opts = opts,
	.mode = OPT_PERMUTE,
	.main = trend_main,
};
