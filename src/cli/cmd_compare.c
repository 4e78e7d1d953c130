/* muster compare: two results or more, or the variants of one, and a verdict for every order. */
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
#include "cli/values.h"
#include "core/worker/exit_code.h"

enum colour_when { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER };
static const char *const colour_choices[] = { "auto", "always", "never", NULL };

struct compare_cli {
	struct compare_options compare;
	struct strv aa, filter;
	bool variants[REPEAT_SIDES_MAX]; /* all false: all of them */
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

static int opt_variants(const char *text, void *field, struct err *err)
{
	bool *variants = field;
	const char *list = text;
	size_t len;
	for (const char *piece; (piece = str_split(&list, ',', &len));) {
		if (len != 1 || *piece < 'A' || *piece >= 'A' + REPEAT_SIDES_MAX)
			return err_set(err, EINVAL, "'%s' is not a list of variants: A,B,…", text);
		variants[*piece - 'A'] = true;
	}
	return 0;
}

static int opt_filter(const char *text, void *field, struct err *err)
{
	return label_filter_add(field, text, err);
}

static int opt_groups(const char *text, void *field, struct err *err)
{
	return compare_parse_groups(text, field, err);
}

static int opt_sort(const char *text, void *field, struct err *err)
{
	return compare_parse_sort(text, field, err);
}

static const struct opt opts[] = {
	OPT_GROUP("What is compared"),
	OPT_CALL("metric", NULL, struct compare_cli, compare.metrics, opt_metrics, "LIST",
		 "wall, user, sys, cpu, maxrss, memory, instructions (default: wall and "
		 "instructions, as "
		 "measured)"),
	OPT_FLAG("include-suspect", NULL, struct compare_cli, compare.suspects,
		 "count runs during which the host was not quiet, too"),
	OPT_CALL("filter", NULL, struct compare_cli, filter, opt_filter, "LABEL=PATTERN",
		 "compare only orders with this label (LABEL!=PATTERN: without); may be repeated"),
	OPT_CALL("variants", NULL, struct compare_cli, variants, opt_variants, "LIST",
		 "of one result with variants, compare only these: A,C (default: all)"),
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
	OPT_CALL("group-by", NULL, struct compare_cli, compare.groups, opt_groups, "LABEL,…|none",
		 "group orders by these labels (default: a tree of all their labels)"),
	OPT_CALL("sort", NULL, struct compare_cli, compare.sort, opt_sort, "KEY",
		 "ratio (the default), listed, name, or a label: the order inside a group"),
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
	OPT_STR("export-google-benchmark", NULL, struct compare_cli, exports.google, "FILE",
		"all runs in Google Benchmark's JSON"),
	OPT_STR("export-pytest-benchmark", NULL, struct compare_cli, exports.pytest, "FILE",
		"all runs in pytest-benchmark's JSON"),
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
	const struct export_paths *exports = &cli->exports;
	const char *paths[] = { cli->html,	exports->json,	 exports->csv,	 exports->markdown,
				exports->junit, exports->google, exports->pytest };
	for (size_t i = 0; i < ARRAY_LEN(paths); i++)
		if (paths[i] && str_eq(paths[i], "-"))
			return true;
	return false;
}

/* Files of a comparison of two sides. */
static int write_files(const struct compare_cli *cli, const struct comparison *comparison,
		       struct err *err)
{
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
	return r;
}

static void put_comparison(const struct compare_cli *cli, const struct comparison *comparison,
			   struct buf *out)
{
	struct compare_style style = style_of(cli);
	if (cli->json)
		compare_json(comparison, out);
	else if (cli->markdown)
		compare_markdown(comparison, &style, out);
	else
		compare_table(comparison, &style, out);
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

#define SIDES_MAX 32

struct sides {
	struct compare_side items[SIDES_MAX];
	size_t count;
};

static size_t count_suspects(const struct compare_side *side)
{
	size_t count = 0;
	for (size_t i = 0; i < side->samples->order_count; i++) {
		const struct sample_order *order = side->samples->orders[i];
		for (size_t k = 0; k < order->run_count; k++)
			count += order->runs[k].suspect &&
				 (!side->variant || order->runs[k].variant == side->variant);
	}
	return count;
}

static int refuse_empty(size_t suspects, struct err *err)
{
	if (suspects == 0)
		return err_set(err, ENODATA, "no order was measured in both A and B");
	return err_set(err, ENODATA,
		       "no order has trusted runs in both A and B: %zu runs are suspect, because "
		       "the host was not quiet; the numbers above are theirs (--include-suspect "
		       "counts them)",
		       suspects);
}

static int export_sides(const struct compare_cli *cli, const struct sides *sides, struct err *err)
{
	struct export_part parts[SIDES_MAX];
	for (size_t i = 0; i < sides->count; i++) {
		const struct compare_side *side = &sides->items[i];
		parts[i] = (struct export_part){ side->samples, side->variant, side->label };
	}
	struct export_source source = { .parts = parts,
					.count = sides->count,
					.suspects = cli->compare.suspects };
	/* The JUnit file of a comparison is about the comparison, not about the runs. */
	struct export_paths runs_only = cli->exports;
	runs_only.junit = NULL;
	return export_write(&runs_only, &source, err);
}

/* Every other side against the first; as JSON, more than one are an array. 1 if there was anything
 * to compare. */
static int put_sides(const struct compare_cli *cli, const struct sides *sides,
		     size_t *ret_regressions, struct buf *out, struct err *err)
{
	bool many = sides->count > 2, any = false;
	int r = 0;
	for (size_t i = 1; i < sides->count && r == 0; i++) {
		struct comparison comparison;
		compare(&comparison, &sides->items[0], &sides->items[i], &cli->compare);
		compare_arrange(&comparison);
		r = write_files(cli, &comparison, err);
		if (many)
			buf_append_str(out, !cli->json ? i > 1 ? "\n" : "" : i > 1 ? "," : "[");
		put_comparison(cli, &comparison, out);
		any |= comparison.row_count || comparison.broken_count;
		*ret_regressions += comparison.regressions;
		comparison_done(&comparison);
	}
	if (many && cli->json)
		buf_append_str(out, "]\n");
	return r < 0 ? r : any;
}

/* Without a single trusted run there is no verdict, but numbers to look at, with that word. */
static int put_suspects(const struct compare_cli *cli, const struct sides *sides, struct buf *out,
			struct err *err)
{
	struct compare_cli all = *cli;
	size_t regressions = 0;
	all.compare.suspects = true;
	buf_clear(out);
	if (!cli->json)
		buf_append_str(out, "All runs are suspect: the host was not quiet.\n\n");
	return put_sides(&all, sides, &regressions, out, err);
}

static int compare_sides(const struct compare_cli *cli, const struct sides *sides,
			 size_t *ret_regressions, struct err *err)
{
	AUTO(buf_done) struct buf out = BUF_INIT;
	bool many = sides->count > 2;
	size_t suspects = 0;
	if (many && (cli->html || cli->exports.junit))
		return err_set(err, EINVAL,
			       "--html and --export-junit are about two sides: name two results, "
			       "or --variants=A,B");
	for (size_t i = 0; i < sides->count; i++)
		suspects += count_suspects(&sides->items[i]);
	int r = export_sides(cli, sides, err);
	if (r == 0)
		r = put_sides(cli, sides, ret_regressions, &out, err);
	bool any = r > 0;
	if (r == 0 && suspects > 0)
		r = put_suspects(cli, sides, &out, err);
	if (r >= 0 && !exports_to_stdout(cli))
		r = export_file("-", &out, err);
	return r >= 0 && !any ? refuse_empty(suspects, err) : r;
}

static void add_variants(const struct compare_cli *cli, const struct samples *samples,
			 struct sides *sides)
{
	static const char *const labels[] = { "variant A", "variant B", "variant C", "variant D",
					      "variant E", "variant F", "variant G", "variant H" };
	static_assert(ARRAY_LEN(labels) == REPEAT_SIDES_MAX, "every variant has a label");
	bool all = true;
	for (size_t i = 0; i < REPEAT_SIDES_MAX; i++)
		all &= !cli->variants[i];
	for (size_t i = 0; i < samples->variant_count; i++)
		if (all || cli->variants[i])
			sides->items[sides->count++] =
				(struct compare_side){ samples, (char)('A' + i), labels[i] };
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
	for (size_t i = 0; i < n + aa_count && cli->filter.count > 0; i++)
		samples_filter(&samples[i], &cli->filter);
	for (size_t i = 0; i < aa_count; i++)
		aa[i] = &samples[n + i];
	cli->compare.aa = aa;
	cli->compare.aa_count = aa_count;

	if (n == 1 && !samples[0].variant_count)
		return export_alone(cli, &samples[0], err);
	struct sides sides = { .count = 0 };
	if (n == 1)
		add_variants(cli, &samples[0], &sides);
	for (size_t i = 0; i < n && n > 1; i++)
		sides.items[sides.count++] = (struct compare_side){ &samples[i], 0, paths[i] };
	if (sides.count < 2)
		return err_set(err, ENODATA, "%s does not have two of these variants", paths[0]);
	return compare_sides(cli, &sides, ret_regressions, err);
}

static void cli_done(struct compare_cli *cli)
{
	strv_done(&cli->aa);
	strv_done(&cli->filter);
	strv_done(&cli->compare.groups.labels);
}

static int compare_main(const struct command *self, int argc, char **argv)
{
	struct compare_cli cli = { .colour = COLOUR_AUTO };
	compare_options_init(&cli.compare);
	int first, status;
	if (!command_parse(self, &cli, argc, argv, NULL, &first, &status)) {
		cli_done(&cli);
		return status;
	}
	size_t n = (size_t)(argc - first), total = n + cli.aa.count;
	if (n < 1 || n > SIDES_MAX || (cli.json && cli.markdown)) {
		cli_done(&cli);
		return command_usage_error(
			self,
			n < 1 ? "name one or more results, as 'muster batch -o FILE' writes them"
			: cli.json && cli.markdown ? "--json and --markdown exclude each other"
						   : "takes at most 32 results");
	}
	struct err err = ERR_INIT;
	size_t regressions = 0;
	struct samples *samples = mem_alloc(total * sizeof(*samples));
	int r = run_compare(&cli, argv + first, n, samples, &regressions, &err);
	for (size_t i = 0; i < total; i++)
		samples_done(&samples[i]);
	free(samples);
	cli_done(&cli);
	if (r < 0) {
		log_error("%s", err.msg);
		return r == -ENOENT ? EXIT_CODE_USAGE : EXIT_CODE_SYSTEM;
	}
	return regressions ? EXIT_CODE_REGRESSION : EXIT_CODE_OK;
}

const struct command command_compare = {
	.name = "compare",
	.synopsis = "[OPTIONS] A.jsonl B.jsonl | AB.jsonl",
	.summary = "compare results of `muster batch`, or the variants of one",
	.footer = "Examples:\n"
		  "  muster compare base.jsonl new.jsonl --limits instructions=0.5%,wall=5%\n"
		  "  muster compare ab.jsonl --html report.html\n"
		  "  muster compare run.jsonl --export-json hyperfine.json\n",
	.opts = opts,
	.mode = OPT_PERMUTE,
	.main = compare_main,
};
