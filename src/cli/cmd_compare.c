/* muster compare: two results, or the two variants of one, and a verdict for every order. */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "batch/compare/compare_report.h"
#include "batch/export.h"
#include "cli/command.h"
#include "cli/share.h"
#include "core/worker/exit_code.h"

enum colour_when { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER };
static const char *const colour_choices[] = { "auto", "always", "never", NULL };

struct compare_cli {
	struct compare_options compare;
	struct strv aa;
	bool all, json, markdown;
	int colour;
	const char *html;
	struct export_paths exports;
};

/* ---- option values ---- */

static int opt_noise(const char *text, void *field, struct err *err)
{
	struct compare_options *options = field;
	if (str_eq(text, "learn")) {
		options->learn_noise = true;
		return 0;
	}
	return share_parse(text, &options->noise, err);
}

static int find_metric(const char *name, size_t len, struct err *err)
{
	int metric = metric_find(name, len);
	if (metric >= 0)
		return metric;
	AUTO(buf_done) struct buf known = BUF_INIT;
	for (int i = 0; i < METRIC_COUNT; i++)
		buf_printf(&known, "%s%s", i ? ", " : "", metric_table[i].name);
	return err_set(err, EINVAL, "unknown metric '%.*s' (there are %s)", (int)len, name,
		       buf_str(&known));
}

static int opt_metrics(const char *text, void *field, struct err *err)
{
	bool *metrics = field;
	size_t len;
	for (const char *piece; (piece = str_split(&text, ',', &len));) {
		int metric = find_metric(piece, len, err);
		if (metric < 0)
			return metric;
		metrics[metric] = true;
	}
	return 0;
}

static int opt_limits(const char *text, void *field, struct err *err)
{
	double *limits = field;
	size_t len;
	for (const char *piece; (piece = str_split(&text, ',', &len));) {
		const char *equals = memchr(piece, '=', len);
		if (!equals)
			return err_set(err, EINVAL, "'%.*s' is not METRIC=SHARE", (int)len, piece);
		int metric = find_metric(piece, (size_t)(equals - piece), err);
		if (metric < 0)
			return metric;
		size_t value_len = len - (size_t)(equals + 1 - piece);
		int r = share_parse_len(equals + 1, value_len, &limits[metric], err);
		if (r < 0)
			return r;
	}
	return 0;
}

static const struct opt opts[] = {
	OPT_GROUP("What is compared"),
	OPT_CALL("metric", NULL, struct compare_cli, compare.metrics, opt_metrics, "LIST",
		 "wall, user, sys, cpu, maxrss, instructions (default: wall and instructions, as "
		 "measured)"),
	OPT_FLAG("include-suspect", NULL, struct compare_cli, compare.suspects,
		 "count runs during which the host was not quiet, too"),
	OPT_GROUP("Verdicts"),
	OPT_CALL("alpha", NULL, struct compare_cli, compare.alpha, share_parse_part, "P",
		 "share of false discoveries to accept; intervals have 1 - P (default 0.05)"),
	OPT_CALL("noise", NULL, struct compare_cli, compare, opt_noise, "SHARE|learn",
		 "ignore changes up to this (default 1%); 'learn' raises the bar by the difference "
		 "between the halves of the runs"),
	OPT_LIST("aa", struct compare_cli, aa, "FILE",
		 "learn the noise from FILE, another result of what A ran; may be repeated"),
	OPT_CALL("tolerance", NULL, struct compare_cli, compare.tolerance, share_parse, "SHARE",
		 "ignore differences of counts up to this (default 0.1%)"),
	OPT_CALL("limits", NULL, struct compare_cli, compare.limits, opt_limits, "METRIC=SHARE,…",
		 "only a growth beyond its limit is a regression, e.g. instructions=0.5%,wall=5%"),
	OPT_FLAG("strict", NULL, struct compare_cli, compare.strict,
		 "what cannot be decided is a regression too"),
	OPT_GROUP("Output"),
	OPT_FLAG("all", NULL, struct compare_cli, all,
		 "show orders that did not change in long lists too"),
	OPT_FLAG("json", NULL, struct compare_cli, json, "print JSON instead of tables"),
	OPT_FLAG("markdown", NULL, struct compare_cli, markdown,
		 "print Markdown instead of tables"),
	OPT_STR("html", NULL, struct compare_cli, html, "FILE",
		"write one self-contained page with every order's distributions"),
	OPT_CHOICE("color", NULL, struct compare_cli, colour, colour_choices, "colours"),
	OPT_GROUP("Exports"),
	OPT_STR("export-json", NULL, struct compare_cli, exports.json, "FILE",
		"all runs in hyperfine's JSON"),
	OPT_STR("export-csv", NULL, struct compare_cli, exports.csv, "FILE",
		"a line per order as CSV"),
	OPT_STR("export-markdown", NULL, struct compare_cli, exports.markdown, "FILE",
		"a line per order as a Markdown table"),
	OPT_STR("export-junit", NULL, struct compare_cli, exports.junit, "FILE",
		"JUnit XML; a regression is a failure"),
	OPT_END,
};

/* ---- output ---- */

static bool terminal_is_utf8(void)
{
	static const char *const names[] = { "LC_ALL", "LC_CTYPE", "LANG" };
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		const char *value = getenv(names[i]);
		if (value && *value)
			return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
	}
	return false;
}

static struct compare_style style_of(const struct compare_cli *cli)
{
	const char *no_colour = getenv("NO_COLOR");
	bool terminal = isatty(STDOUT_FILENO) && !(no_colour && *no_colour);
	return (struct compare_style){
		.colour = cli->colour == COLOUR_ALWAYS || (cli->colour == COLOUR_AUTO && terminal),
		.utf8 = terminal_is_utf8(),
		.all = cli->all,
		.width = command_width(),
	};
}

/* Does a file of the user's choice go to standard output? Then nothing else does. */
static bool exports_to_stdout(const struct compare_cli *cli)
{
	const char *paths[] = { cli->html, cli->exports.json, cli->exports.csv,
				cli->exports.markdown, cli->exports.junit };
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		if (paths[i] && str_eq(paths[i], "-"))
			return true;
	return false;
}

static int write_comparison(const struct compare_cli *cli, const struct comparison *comparison,
			    struct err *err)
{
	struct compare_style style = style_of(cli);
	AUTO(buf_done) struct buf text = BUF_INIT;
	int r = 0;
	if (cli->html) {
		compare_html(comparison, &text);
		r = export_file(cli->html, &text, err);
	}
	if (r == 0 && cli->exports.junit) {
		buf_clear(&text);
		compare_junit(comparison, &text);
		r = export_file(cli->exports.junit, &text, err);
	}
	if (r < 0 || exports_to_stdout(cli))
		return r;
	buf_clear(&text);
	if (cli->json)
		compare_json(comparison, &text);
	else if (cli->markdown)
		compare_markdown(comparison, &style, &text);
	else
		compare_table(comparison, &style, &text);
	return export_file("-", &text, err);
}

/* ---- commands ---- */

/* One file without variants: nothing to compare, but it can be exported. */
static int export_alone(const struct compare_cli *cli, const struct samples *samples,
			struct err *err)
{
	if (!export_wanted(&cli->exports))
		return err_set(err, ENODATA,
			       "%s has no variants A and B: name a second result to compare with",
			       samples->path);
	struct export_part part = { .samples = samples };
	struct export_source source = { .parts = &part,
					.count = 1,
					.suspects = cli->compare.suspects };
	return export_write(&cli->exports, &source, err);
}

static int compare_sides(const struct compare_cli *cli, const struct compare_side *a,
			 const struct compare_side *b, size_t *ret_regressions, struct err *err)
{
	struct comparison comparison;
	compare(&comparison, a, b, &cli->compare);
	struct export_part parts[] = { { a->samples, a->variant, a->label },
				       { b->samples, b->variant, b->label } };
	struct export_source source = { .parts = parts,
					.count = 2,
					.suspects = cli->compare.suspects };
	/* The JUnit file of a comparison is about the comparison, not about the runs. */
	struct export_paths runs_only = cli->exports;
	runs_only.junit = NULL;
	int r = export_write(&runs_only, &source, err);
	if (r == 0)
		r = write_comparison(cli, &comparison, err);
	if (r == 0 && comparison.row_count == 0 && comparison.broken_count == 0)
		r = err_set(err, ENODATA, "no order was measured in both A and B");
	*ret_regressions = comparison.regressions;
	comparison_done(&comparison);
	return r;
}

struct load {
	pthread_t thread;
	const char *path;
	struct samples *samples;
	struct err err;
	int result;
};

static void *load_one(void *arg)
{
	struct load *load = arg;
	load->result = samples_load(load->samples, load->path, &load->err);
	return NULL;
}

/* Reading is most of the work and files are independent: a thread each. */
static int load_all(const char *const *paths, size_t n, struct samples *samples, struct err *err)
{
	AUTO_FREE struct load *loads = mem_alloc(n * sizeof(*loads));
	int r = 0;
	for (size_t i = 0; i < n; i++) {
		loads[i] = (struct load){ .path = paths[i], .samples = &samples[i] };
		int failed = pthread_create(&loads[i].thread, NULL, load_one, &loads[i]);
		if (failed) {
			load_one(&loads[i]);
			loads[i].path = NULL;
		}
	}
	for (size_t i = 0; i < n; i++) {
		if (loads[i].path)
			pthread_join(loads[i].thread, NULL);
		if (r == 0 && loads[i].result < 0)
			r = err_set(err, loads[i].err.code, "%s", loads[i].err.msg);
	}
	return r;
}

static int run_compare(struct compare_cli *cli, char **paths, size_t n, struct samples *samples,
		       size_t *ret_regressions, struct err *err)
{
	size_t aa_count = cli->aa.count;
	AUTO_FREE const struct samples **aa = NEW_ARRAY(const struct samples *, aa_count + 1);
	AUTO_FREE const char **files = NEW_ARRAY(const char *, n + aa_count);
	for (size_t i = 0; i < n + aa_count; i++)
		files[i] = i < n ? paths[i] : cli->aa.items[i - n];
	int r = load_all(files, n + aa_count, samples, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < aa_count; i++)
		aa[i] = &samples[n + i];
	cli->compare.aa = aa;
	cli->compare.aa_count = aa_count;

	if (n == 1 && !samples[0].has_variants)
		return export_alone(cli, &samples[0], err);
	if (n == 1) {
		struct compare_side a = { &samples[0], 'A', "variant A" },
				    b = { &samples[0], 'B', "variant B" };
		return compare_sides(cli, &a, &b, ret_regressions, err);
	}
	struct compare_side a = { &samples[0], 0, paths[0] }, b = { &samples[1], 0, paths[1] };
	return compare_sides(cli, &a, &b, ret_regressions, err);
}

static int compare_main(const struct command *self, int argc, char **argv)
{
	struct compare_cli cli = { .colour = COLOUR_AUTO };
	compare_options_init(&cli.compare);
	int first, status;
	if (!command_parse(self, &cli, argc, argv, NULL, &first, &status)) {
		strv_done(&cli.aa);
		return status;
	}
	size_t n = (size_t)(argc - first), total = n + cli.aa.count;
	if (n < 1 || n > 2 || (cli.json && cli.markdown)) {
		strv_done(&cli.aa);
		return command_usage_error(
			self, n < 1 || n > 2 ? "takes one or two results"
					     : "--json and --markdown exclude each other");
	}
	struct err err = ERR_INIT;
	size_t regressions = 0;
	struct samples *samples = mem_alloc(total * sizeof(*samples));
	int r = run_compare(&cli, argv + first, n, samples, &regressions, &err);
	for (size_t i = 0; i < total; i++)
		samples_done(&samples[i]);
	free(samples);
	strv_done(&cli.aa);
	if (r < 0) {
		log_error("%s", err.msg);
		return r == -ENOENT ? EXIT_CODE_USAGE : EXIT_CODE_SYSTEM;
	}
	return regressions ? EXIT_CODE_REGRESSION : EXIT_CODE_OK;
}

const struct command command_compare = {
	.name = "compare",
	.synopsis = "[OPTIONS] A.jsonl B.jsonl | AB.jsonl",
	.summary = "compare two results of `muster batch`, or the variants of one",
	.footer = "Examples:\n"
		  "  muster compare base.jsonl new.jsonl --limits instructions=0.5%,wall=5%\n"
		  "  muster compare ab.jsonl --html report.html\n"
		  "  muster compare run.jsonl --export-json hyperfine.json\n",
	.opts = opts,
	.mode = OPT_PERMUTE,
	.main = compare_main,
};
