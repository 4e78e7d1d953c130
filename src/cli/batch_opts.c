#include "cli/batch_opts.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "batch/config.h"
#include "cli/values.h"
#include "core/batch/label.h"
#include "net/http.h"
#include "proto/args/blocks.h"
#include "proto/orders.h"
#include "sys/hwloc_topology.h"

#define JOBS_MAX 1024

static const char *const smt_names[] = { [COREPOOL_SMT_AVOID] = "avoid",
					 [COREPOOL_SMT_USE] = "use",
					 [COREPOOL_SMT_SHARE] = "share",
					 NULL };
static const char *const place_names[] = { [COREPOOL_COMPACT] = "compact",
					   [COREPOOL_SPREAD] = "spread",
					   [BATCH_PLACE_NONE] = "none",
					   NULL };
static const char *const order_names[] = { [SCHEDULE_LONGEST] = "longest",
					   [SCHEDULE_LISTED] = "listed",
					   [SCHEDULE_RANDOM] = "random",
					   NULL };
static const char *const progress_names[] = { [BATCH_PROGRESS_AUTO] = "auto",
					      [BATCH_PROGRESS_BAR] = "bar",
					      [BATCH_PROGRESS_PLAIN] = "plain",
					      [BATCH_PROGRESS_NONE] = "none",
					      NULL };

static const char *const exit_names[] = {
	[BATCH_EXIT_MUSTER] = "muster", [BATCH_EXIT_PARALLEL] = "parallel", NULL
};
static const char *const interleave_names[] = {
	[REPEAT_ABBA] = "abba", [REPEAT_RANDOM] = "random", NULL
};
static const char *const quiet_names[] = { [QUIET_CHECK_OFF] = "off",
					   [QUIET_CHECK_WARN] = "warn",
					   [QUIET_CHECK_WAIT] = "wait",
					   [QUIET_CHECK_FAIL] = "fail",
					   NULL };

static int parse_filter(const char *text, void *field, struct err *err)
{
	return label_filter_add(field, text, err);
}

static int parse_env(const char *text, void *field, struct err *err)
{
	return fixed_env_parse(text, field, err);
}

/* Letters that mean one thing to users of GNU parallel and another to users of hyperfine are told
 * apart by the word behind them. */
static bool is_number(const char *word)
{
	int64_t number;
	return str_to_i64(word, &number) == 0;
}

static bool is_not_number(const char *word)
{
	return !is_number(word);
}

static bool is_time_unit(const char *word)
{
	static const char *const units[] = { "second",	   "millisecond", "microsecond",
					     "nanosecond", "s",		  "ms",
					     "us",	   "µs",	  "ns" };
	for (size_t i = 0; i < ARRAY_LEN(units); i++)
		if (str_eq(word, units[i]))
			return true;
	return false;
}

static bool is_shell(const char *word)
{
	return strchr(word, '/') || str_ends(word, "sh") || str_eq(word, "none") ||
	       str_eq(word, "default");
}

/* Some options fill several fields: their parsers get the whole struct (offset 0). */
static int parse_jobs_offset(const char *text, int64_t *ret_jobs, struct err *err)
{
	struct cpuset affinity;
	int64_t offset;
	int r = topology_affinity(&affinity, err);
	if (r < 0)
		return r;
	if (str_to_i64(text, &offset) < 0 || offset > JOBS_MAX || offset < -JOBS_MAX)
		return err_set(err, EINVAL, "'%s' is not a number of jobs", text);
	int64_t jobs = cpuset_count(&affinity) + offset;
	*ret_jobs = MIN(MAX(jobs, (int64_t)1), (int64_t)JOBS_MAX);
	return 0;
}

static int parse_jobs(const char *text, void *field, struct err *err)
{
	struct batch_config *config = field;
	config->jobs = 0;
	config->jobs_percent = 0;
	if (str_eq(text, "auto"))
		return 0;
	if (str_eq(text, "0")) {
		config->jobs = JOBS_MAX;
		return 0;
	}
	if (*text == '+' || *text == '-')
		return parse_jobs_offset(text, &config->jobs, err);
	if (str_ends(text, "%")) {
		AUTO_FREE char *number = mem_strndup(text, strlen(text) - 1);
		if (str_to_double(number, &config->jobs_percent) == 0 && config->jobs_percent > 0 &&
		    config->jobs_percent <= 10000)
			return 0;
	} else if (str_to_i64(text, &config->jobs) == 0 && config->jobs >= 1 &&
		   config->jobs <= JOBS_MAX) {
		return 0;
	}
	return err_set(err, EINVAL,
		       "'%s' is not auto, a number from 0 to %d, +N, -N, or a percentage of the "
		       "cores",
		       text, JOBS_MAX);
}

static int parse_timeout(const char *text, void *field, struct err *err)
{
	struct batch_config *config = field;
	return order_parse_timeout(text, &config->timeout_ns, &config->timeout_percent, err);
}

static int parse_memory_limit(const char *text, void *field, struct err *err)
{
	struct batch_config *config = field;
	config->watch_memory = true;
	config->memory_limit = 0;
	if (str_eq(text, "max"))
		return 0;
	if (str_to_size(text, &config->memory_limit) < 0 || config->memory_limit == 0)
		return err_set(err, EINVAL, "'%s' is not max or a size such as 500M or 2G", text);
	return 0;
}

static int parse_ladder(const char *text, void *field, struct err *err)
{
	return ladder_parse(text, field, err);
}

static int parse_retry_on(const char *text, void *field, struct err *err)
{
	return retry_rule_parse(text, field, err);
}

static int parse_halt(const char *text, void *field, struct err *err)
{
	return halt_rule_parse(text, field, err);
}

static int parse_allowed(const char *text, void *field, struct err *err)
{
	struct batch_config *config = field;
	int r = cpuset_parse(text, &config->allowed, err);
	if (r == 0 && cpuset_empty(&config->allowed))
		r = err_set(err, EINVAL, "no CPU given");
	config->allowed_given = r == 0;
	return r;
}

/* As in GNU parallel, a small letter is a power of 1000. */
static int parse_block(const char *text, void *field, struct err *err)
{
	static const char letters[] = "kmg";
	uint64_t *size = field, factor = 1;
	size_t len = strlen(text);
	const char *letter = len > 1 ? strchr(letters, text[len - 1]) : NULL;
	for (const char *p = letters; letter && p <= letter; p++)
		factor *= 1000;
	AUTO_FREE char *number = mem_strndup(text, len - (letter != NULL));
	int r = letter ? str_to_u64(number, size) : str_to_size(number, size);
	if (r < 0 || *size == 0 || *size > BLOCK_SIZE_MAX / factor)
		return err_set(err, EINVAL, "'%s' is not a size from 1 to 2G, such as 10M", text);
	*size *= factor;
	return 0;
}

static int parse_http(const char *text, void *field, struct err *err)
{
	struct batch_config *config = field;
	config->http = true;
	return http_address_parse(text, &config->http_addr, err);
}

/* hyperfine's --output says what becomes of the output of the commands. */
static int parse_output(const char *text, void *field, struct err *err UNUSED)
{
	struct batch_config *config = field;
	if (str_eq(text, "inherit"))
		config->show_output = true;
	else if (str_eq(text, "null") || str_eq(text, "pipe"))
		config->show_output = false;
	else
		config->output = text;
	return 0;
}

static int parse_load(const char *text, void *field, struct err *err)
{
	struct cpuset affinity;
	double *load = field;
	size_t len = strlen(text);
	bool percent = len > 0 && text[len - 1] == '%';
	AUTO_FREE char *number = mem_strndup(text, len - percent);
	if (str_to_double(number, load) < 0 || !(*load > 0 && *load < 1e6))
		return err_set(err, EINVAL, "'%s' is not a load such as 4 or 80%%", text);
	int r = percent ? topology_affinity(&affinity, err) : 0;
	if (r >= 0 && percent)
		*load *= cpuset_count(&affinity) / 100.0;
	return r;
}

/* hyperfine's words: a line that needs no shell never gets one here. */
static int parse_shell(const char *text, void *field, struct err *err UNUSED)
{
	const char **shell = field;
	if (!str_eq(text, "default") && !str_eq(text, "none"))
		*shell = text;
	return 0;
}

static int parse_reserve(const char *text, void *field, struct err *err)
{
	int64_t *reserve = field;
	if (str_eq(text, "auto")) {
		*reserve = -1;
		return 0;
	}
	if (str_to_i64(text, reserve) < 0 || *reserve < 0 || *reserve > CPUSET_MAX)
		return err_set(err, EINVAL, "'%s' is not auto or a number of cores", text);
	return 0;
}

#define CALL_ALL(n, p, a, h) \
	{ \
		.type = OPT_TYPE_CALL, .name = (n), .arg = (a), .help = (h), .offset = 0, \
		.parse = (p) \
	}

/* GNU parallel's --cleanup, rather than hyperfine's. */
static bool moves_files(const void *config)
{
	return file_options_given(&((const struct batch_config *)config)->files);
}

static int parse_trc(const char *text, void *field, struct err *err UNUSED)
{
	struct file_options *files = field;
	strv_add(&files->returns, text);
	files->args = files->cleanup = true;
	return 0;
}

const struct opt batch_opts[] = {
	OPT_GROUP("Orders"),
	OPT_FLAG("allow-duplicates", NULL, struct batch_config, allow_duplicates,
		 "accept identical orders, and run each"),
	OPT_CALL("filter", NULL, struct batch_config, filter, parse_filter, "LABEL=PATTERN",
		 "run only orders with this label (LABEL!=PATTERN: without); may be repeated"),
	OPT_FLAG("resume", NULL, struct batch_config, resume,
		 "go on with the result file of -o: run what has no good result in it"),
	OPT_FLAG("retry-failed", NULL, struct batch_config, retry_failed,
		 "run again what failed last in the result file of -o; without ORDERS, as it "
		 "stands there"),
	{ OPT_FIELD(OPT_TYPE_CALL, "shell", NULL, struct batch_config, shell, "PROGRAM",
		    "shell for lines that need one (default /bin/sh)"),
	  .parse = parse_shell, .short_name = 'S', .fits = is_shell },
	{ .type = OPT_TYPE_STR,
	  .name = "sshlogin",
	  .short_name = 'S',
	  .arg = "HOSTS",
	  .help = "other hosts",
	  .later = "--hosts names the hosts on which orders run" },
	{ OPT_FIELD(OPT_TYPE_LIST, "command-name", NULL, struct batch_config, args.names, "NAME",
		    "the name of an order: the first name is the first one's, and so on; -n NUMBER "
		    "is --max-args"),
	  .short_name = 'n', .fits = is_not_number },

	OPT_GROUP("Arguments of a command"),
	{ OPT_FIELD(OPT_TYPE_LIST, "arg-file", NULL, struct batch_config, args.files, "FILE",
		    "arguments are the lines of this file; - is standard input"),
	  .short_name = 'a' },
	{ OPT_FIELD(OPT_TYPE_FLAG, "null", NULL, struct batch_config, args.null_ends, NULL,
		    "arguments end with a NUL byte, as find -print0 writes them"),
	  .short_name = '0' },
	{ OPT_FIELD(OPT_TYPE_STR, "delimiter", NULL, struct batch_config, args.delimiter, "C",
		    "arguments end with this character instead of a newline"),
	  .short_name = 'd' },
	{ OPT_FIELD(OPT_TYPE_STR, "eof", NULL, struct batch_config, args.eof, "TEXT",
		    "the argument that ends the input"),
	  .short_name = 'E' },
	{ OPT_FIELD(OPT_TYPE_STR, "colsep", NULL, struct batch_config, args.colsep, "REGEX",
		    "what separates the columns {1}, {2}, … of an argument"),
	  .short_name = 'C' },
	OPT_FLAG("csv", NULL, struct batch_config, args.csv,
		 "columns are separated and quoted as in a CSV file"),
	OPT_STR("header", NULL, struct batch_config, args.header, ":",
		"the first argument of every list names its columns: {name}; with --pipe, what "
		"comes first in every block: a line, N lines or a regular expression"),
	OPT_FLAG("link", NULL, struct batch_config, args.link,
		 "one argument of each list, not all combinations"),
	{ OPT_FIELD(OPT_TYPE_FLAG, "no-run-if-empty", NULL, struct batch_config, args.skip_empty,
		    NULL, "skip empty arguments; -r NUMBER is --runs"),
	  .short_name = 'r' },
	{ OPT_FIELD(OPT_TYPE_INT, "max-args", NULL, struct batch_config, args.max_args, "N",
		    "give N arguments to each command"),
	  .short_name = 'n', .fits = is_number },
	{ OPT_FIELD(OPT_TYPE_INT, "max-replace-args", NULL, struct batch_config, args.max_args, "N",
		    "the same; 0: run the command once for each, without it"),
	  .short_name = 'N', .fits = is_number },
	{ OPT_FIELD(OPT_TYPE_INT, "max-lines", NULL, struct batch_config, args.max_lines, "N",
		    "the same, with -L NUMBER"),
	  .short_name = 'L', .fits = is_number },
	OPT_FLAG("xargs", NULL, struct batch_config, args.line,
		 "as many arguments as fit into a command"),
	{ OPT_FIELD(OPT_TYPE_FLAG, "multiple", NULL, struct batch_config, args.spread, NULL,
		    "the same, spread evenly over the jobs; -m NUMBER is --min-runs"),
	  .short_name = 'm' },
	{ OPT_FIELD(OPT_TYPE_FLAG, "context", NULL, struct batch_config, args.context, NULL,
		    "the same, and the word around {} is repeated"),
	  .short_name = 'X' },
	{ OPT_FIELD(OPT_TYPE_INT, "max-chars", NULL, struct batch_config, args.max_chars, "N",
		    "bytes of a command (default 131000)"),
	  .short_name = 's', .fits = is_number },
	{ OPT_FIELD(OPT_TYPE_STR, "replace", NULL, struct batch_config, args.replace, "TEXT",
		    "stands for the arguments instead of {}"),
	  .short_name = 'I' },
	OPT_FLAG("quote", NULL, struct batch_config, args.quote, "quote the words of the command"),
	{ OPT_FIELD(OPT_TYPE_LIST, "parameter-list", NULL, struct batch_config, args.lists,
		    "NAME VALUES", "{NAME} is each of these values, separated by commas"),
	  .short_name = 'L', .words = 2 },
	{ OPT_FIELD(OPT_TYPE_LIST, "parameter-scan", NULL, struct batch_config, args.scans,
		    "NAME MIN MAX", "{NAME} is each number from MIN to MAX; -P NUMBER is --jobs"),
	  .short_name = 'P', .words = 3, .fits = is_not_number },
	{ .type = OPT_TYPE_CALL,
	  .name = "max-procs",
	  .short_name = 'P',
	  .arg = "N",
	  .parse = parse_jobs,
	  .help = "the same as --jobs" },
	{ OPT_FIELD(OPT_TYPE_STR, "parameter-step-size", NULL, struct batch_config, args.step, "N",
		    "of --parameter-scan (default 1)"),
	  .short_name = 'D' },

	OPT_GROUP("Standard input in blocks"),
	OPT_FLAG("pipe", NULL, struct batch_config, args.pipe,
		 "run the command once for every block of standard input, which it reads"),
	OPT_CALL("block", NULL, struct batch_config, args.block_size, parse_block, "SIZE",
		 "bytes of a block, as far as whole records allow (default 1M)"),
	OPT_STR("recend", NULL, struct batch_config, args.recend, "TEXT",
		"a record ends with this (default \\n, a line)"),
	OPT_STR("recstart", NULL, struct batch_config, args.recstart, "TEXT",
		"a record begins with this"),
	OPT_FLAG("regexp", NULL, struct batch_config, args.regexp,
		 "--recstart and --recend are regular expressions"),
	OPT_FLAG("remove-rec-sep", NULL, struct batch_config, args.remove_separators,
		 "leave out what is between records"),
	OPT_FLAG("rrs", NULL, struct batch_config, args.remove_separators, "the same"),
	{ .type = OPT_TYPE_FLAG,
	  .name = "pipe-part",
	  .help = "blocks of a file",
	  .later = "write --pipe < FILE" },
	{ .type = OPT_TYPE_FLAG,
	  .name = "round-robin",
	  .help = "blocks for commands that already run",
	  .later = "every block has a command of its own; choose a larger --block" },
	{ .type = OPT_TYPE_FLAG,
	  .name = "tee",
	  .help = "all of standard input for each command",
	  .later = "write it to a file, and name that in the command" },
	{ .type = OPT_TYPE_FLAG,
	  .name = "cat",
	  .help = "a block as a file",
	  .later = "the command reads its block on standard input, as /dev/stdin if it wants a "
		   "file" },

	OPT_GROUP("Cores"),
	{ .type = OPT_TYPE_CALL,
	  .name = "jobs",
	  .short_name = 'j',
	  .arg = "N|N%|auto",
	  .parse = parse_jobs,
	  .help = "orders at a time (default auto: as many as the cores allow)" },
	OPT_INT("cores", NULL, struct batch_config, cores, "N",
		"cores for an order that does not say (default 1)"),
	CALL_ALL("allowed-cores", parse_allowed, "LIST", "use only these CPUs, such as 2-7,12"),
	OPT_CALL("reserve-cores", NULL, struct batch_config, reserve, parse_reserve, "N|auto",
		 "cores to leave to the runner and the rest of the host (default auto: 1 if one "
		 "can be spared)"),
	OPT_CHOICE("place", NULL, struct batch_config, place, place_names,
		   "compact: fill one cache group after the other; spread: use them evenly; none: "
		   "do not pin"),
	OPT_CHOICE("smt", NULL, struct batch_config, smt, smt_names,
		   "avoid: one CPU a core; use: all CPUs of a core, for one order; share: orders "
		   "may share a core"),
	OPT_FLAG("dry-run", NULL, struct batch_config, dry_run,
		 "print the commands and the plan (-q: only the commands), run nothing"),

	OPT_GROUP("Schedule"),
	OPT_CHOICE("order", NULL, struct batch_config, order, order_names,
		   "which order first; longest needs earlier results"),
	OPT_INT("seed", NULL, struct batch_config, seed, "N", "of --order=random (default 1)"),
	OPT_LIST("history", struct batch_config, history, "FILE",
		 "earlier results to learn run times from"),
	OPT_DURATION("delay", NULL, struct batch_config, delay_ns, "TIME",
		     "wait this long between two starts"),
	OPT_SIZE("memfree", NULL, struct batch_config, memory_free, "SIZE",
		 "start an order only while the host has this much free memory"),
	OPT_CALL("load", NULL, struct batch_config, load, parse_load, "N|N%",
		 "start an order only while fewer threads than this want to run"),
	OPT_INT("nice", NULL, struct batch_config, nice, "N", "added to the priority of orders"),
	OPT_DURATION("deadline", NULL, struct batch_config, deadline_ns, "TIME",
		     "stop the whole batch after this time"),
	OPT_CALL("halt", NULL, struct batch_config, halt, parse_halt, "RULE",
		 "when to stop: never, soon|now,fail|success|done=N|N%"),

	OPT_GROUP("Faults"),
	CALL_ALL("timeout", parse_timeout, "TIME|N%",
		 "end an order after this time, or this part of the median"),
	CALL_ALL("memory-limit", parse_memory_limit, "SIZE|max",
		 "kill an order whose processes have more memory together; max: only measure it"),
	OPT_DURATION("cpu-timeout", NULL, struct batch_config, cpu_timeout_ns, "TIME",
		     "end an order after this CPU time of its whole tree"),
	OPT_CALL("term-seq", NULL, struct batch_config, ladder, parse_ladder, "SEQ",
		 "signals and milliseconds to end an order with (default TERM,5000,KILL)"),
	OPT_INT("retries", NULL, struct batch_config, retries, "N",
		"further attempts after one that failed (default 0)"),
	OPT_CALL("retry-on", NULL, struct batch_config, retry_on, parse_retry_on, "REASONS",
		 "what to retry: exit, exit=N, signal, timeout, cpu-timeout, oom, spawn, lost, any "
		 "(default any)"),
	OPT_DURATION("retry-delay", NULL, struct batch_config, retry_delay_ns, "TIME",
		     "before the second attempt; doubles each time (default 1s)"),
	{ OPT_FIELD(OPT_TYPE_FLAG, "ignore-failure", NULL, struct batch_config, ignore_failure,
		    NULL, "a run counts whatever its exit code is"),
	  .short_name = 'i' },
	OPT_STR("canary", NULL, struct batch_config, canary, "CMD|auto",
		"run this before the others, or the first order of each program; if it fails, the "
		"rest does not run"),

	OPT_GROUP("Repetition and measurement"),
	{ OPT_FIELD(OPT_TYPE_INT, "runs", NULL, struct batch_config, runs, "N",
		    "runs of each order (default 1)"),
	  .short_name = 'r', .fits = is_number },
	{ OPT_FIELD(OPT_TYPE_INT, "warmup", NULL, struct batch_config, warmup, "N",
		    "runs before those that count (default 0)"),
	  .short_name = 'w' },

	{ OPT_FIELD(OPT_TYPE_INT, "min-runs", NULL, struct batch_config, min_runs, "N",
		    "at least N runs, and 3 s of them, as many as necessary (default 10)"),
	  .short_name = 'm', .fits = is_number },
	{ OPT_FIELD(OPT_TYPE_INT, "max-runs", NULL, struct batch_config, max_runs, "N",
		    "at most N runs (default 1000)"),
	  .short_name = 'M' },
	OPT_CALL("precision", NULL, struct batch_config, precision, share_parse_part, "SHARE",
		 "run until the median's interval reaches no farther than this, such as 1%"),
	OPT_CALL("confidence", NULL, struct batch_config, confidence, share_parse_part, "SHARE",
		 "of that interval (default 95%)"),
	{ OPT_FIELD(OPT_TYPE_STR, "setup", NULL, struct batch_config, hooks[BATCH_HOOK_SETUP],
		    "CMD", "run this before the first run of an order"),
	  .short_name = 's', .fits = is_not_number },
	{ OPT_FIELD(OPT_TYPE_STR, "prepare", NULL, struct batch_config, hooks[BATCH_HOOK_PREPARE],
		    "CMD", "run this before every run, unmeasured"),
	  .short_name = 'p' },
	{ OPT_FIELD(OPT_TYPE_STR, "cleanup", NULL, struct batch_config, hooks[BATCH_HOOK_CLEANUP],
		    "CMD",
		    "run this after the last run of an order; behind --transferfile or --return it "
		    "takes no CMD: hosts remove the files they were sent, and those they return"),
	  .short_name = 'c', .is_flag = moves_files },
	OPT_FLAG("ab", NULL, struct batch_config, ab,
		 "compare two commands: A='./old {}' B='./new {}' ::: ARGUMENTS"),
	OPT_CHOICE("interleave", NULL, struct batch_config, interleave, interleave_names,
		   "which of A and B goes first in a block: by turns, or by chance"),
	OPT_CALL("count", NULL, struct batch_config, measure, count_opt_parse, "SOURCE",
		 "count instructions: auto, perf, cachegrind, callgrind, none (default)"),
	OPT_CALL("env", NULL, struct batch_config, measure.env, parse_env,
		 "inherit|clean|keep=LIST",
		 "environment of the orders (default inherit; clean with --count)"),
	OPT_CHOICE("quiet-check", NULL, struct batch_config, measure.quiet, quiet_names,
		   "when the host is not quiet (default warn with repeated runs)"),

	OPT_GROUP("Output"),
	{ OPT_FIELD(OPT_TYPE_FLAG, "keep-order", NULL, struct batch_config, keep_order, NULL,
		    "show outputs in the order of the list"),
	  .short_name = 'k' },
	OPT_FLAG("tag", NULL, struct batch_config, args.tag,
		 "the arguments and a tab in front of every line"),
	OPT_STR("tagstring", NULL, struct batch_config, args.tag_text, "TEMPLATE",
		"this and a tab in front of every line"),
	OPT_FLAG("line-buffer", NULL, struct batch_config, line_buffer,
		 "show every line when it is complete"),
	{ OPT_FIELD(OPT_TYPE_FLAG, "ungroup", NULL, struct batch_config, ungroup, NULL,
		    "orders write to the terminal themselves"),
	  .short_name = 'u' },
	{ .type = OPT_TYPE_STR,
	  .name = "time-unit",
	  .short_name = 'u',
	  .arg = "UNIT",
	  .fits = is_time_unit,
	  .help = "of the table",
	  .later = "every time is shown in the unit that fits it" },
	OPT_FLAG("show-output", NULL, struct batch_config, show_output,
		 "show the output of repeated runs, too"),
	OPT_CHOICE("exit-code", NULL, struct batch_config, exit_code, exit_names,
		   "1 if an order failed, or how many did"),

	OPT_GROUP("Many hosts"),
	OPT_STR("hosts", NULL, struct batch_config, hosts.list, "HOST[:JOBS],...",
		"run the orders on these hosts, over ssh, from here"),
	OPT_STR("hostfile", NULL, struct batch_config, hosts.file, "FILE",
		"the same with a host a line, as mpirun reads it (slots=N, # comments)"),
	OPT_STR("ssh", NULL, struct batch_config, hosts.ssh, "COMMAND",
		"command that reaches a host, with its options (default ssh)"),
	OPT_DURATION("ssh-timeout", NULL, struct batch_config, hosts.timeout_ns, "TIME",
		     "a host that has not answered by then is given up (default 30 s)"),
	OPT_STR("features", NULL, struct batch_config, features, "WORD,...",
		"what this host has, for orders that name the features they need"),
	OPT_STR("nnodes", NULL, struct batch_config, meeting.nnodes, "N|MIN:MAX",
		"hosts that run the orders; more are spares"),
	OPT_FLAG(
		"transfer", NULL, struct batch_config, files.args,
		"send the files that are the arguments of an order to its host: --transferfile {}"),
	OPT_LIST("transferfile", struct batch_config, files.transfer, "FILE",
		 "send this file to the host of an order, before it runs; {} is its argument"),
	OPT_LIST("tf", struct batch_config, files.transfer, "FILE", "the same as --transferfile"),
	OPT_LIST("return", struct batch_config, files.returns, "FILE",
		 "fetch this file from the host of an order, after it has run"),
	OPT_SIZE("return-limit", NULL, struct batch_config, files.limit, "SIZE",
		 "what a host may send of one order, output and files (default 10G; 0: no limit)"),
	OPT_CALL("trc", NULL, struct batch_config, files, parse_trc, "FILE",
		 "the same as --transfer --return FILE --cleanup"),
	OPT_STR("rdzv-endpoint", NULL, struct batch_config, meeting.endpoint, "HOST[:PORT][,...]",
		"where the hosts find each other; the same on all of them"),
	OPT_STR("rdzv-backend", NULL, struct batch_config, meeting.backend, "NAME",
		"how they find each other: c10d, etcd or exec:PROGRAM, as in muster run"),
	OPT_STR("rdzv-id", NULL, struct batch_config, meeting.id, "ID",
		"name of this batch, if several meet at the same place"),
	OPT_STR("rdzv-conf", NULL, struct batch_config, meeting.conf, "KEY=VALUE,...",
		"further settings, as in muster run"),

	OPT_GROUP("Results"),
	{ .type = OPT_TYPE_CALL,
	  .name = "output",
	  .short_name = 'o',
	  .arg = "FILE",
	  .parse = parse_output,
	  .help = "result file: a line of JSON for every attempt; inherit, null and pipe are what "
		  "they are in hyperfine" },
	OPT_STR("joblog", NULL, struct batch_config, joblog, "FILE",
		"also write the job log of GNU parallel"),
	OPT_STR("results", NULL, struct batch_config, results, "DIR|TEMPLATE",
		"keep the output of the orders in files there, instead of showing it"),
	OPT_STR("export-json", NULL, struct batch_config, exports.json, "FILE",
		"all runs in hyperfine's JSON"),
	OPT_STR("export-csv", NULL, struct batch_config, exports.csv, "FILE",
		"a line per order as CSV"),
	OPT_STR("export-markdown", NULL, struct batch_config, exports.markdown, "FILE",
		"a line per order as a Markdown table"),
	OPT_STR("export-junit", NULL, struct batch_config, exports.junit, "FILE",
		"JUnit XML; an order is a test case"),
	OPT_STR("export-google-benchmark", NULL, struct batch_config, exports.google, "FILE",
		"all runs in Google Benchmark's JSON"),
	OPT_STR("export-pytest-benchmark", NULL, struct batch_config, exports.pytest, "FILE",
		"all runs in pytest-benchmark's JSON"),
	OPT_FLAG("noise", NULL, struct batch_config, noise,
		 "tell how good this host is for measuring: run one command against itself"),
	OPT_FLAG("json", NULL, struct batch_config, json, "with --noise: as JSON"),
	OPT_STR("history-dir", NULL, struct batch_config, filing.dir, "DIR",
		"also file the result in this history, for muster trend"),
	OPT_STR("version-label", NULL, struct batch_config, filing.version, "NAME",
		"the version it is filed under (default: the commit here)"),
	OPT_STR("host-class", NULL, struct batch_config, filing.host_class, "NAME",
		"the class of hosts (default: processor and number of CPUs)"),
	OPT_STR("configuration", NULL, struct batch_config, filing.configuration, "NAME",
		"the configuration (default: how it was measured)"),
	OPT_INT("notify", NULL, struct batch_config, notify, "N",
		"write a byte to descriptor N after every line of the result file, if it can take "
		"one"),
	OPT_INT("lifeline", NULL, struct batch_config, lifeline, "N",
		"stop when descriptor N reports end of file"),
	OPT_CHOICE("progress", NULL, struct batch_config, progress, progress_names,
		   "how to show progress"),
	{ .type = OPT_TYPE_CALL,
	  .name = "http",
	  .arg = "[ADDR:]PORT",
	  .parse = parse_http,
	  .bare = "0",
	  .help = "serve a page of the batch for browsers, and print its address (alone: any port "
		  "of 127.0.0.1)" },
	{ OPT_FIELD(OPT_TYPE_FLAG, "quiet", NULL, struct batch_config, quiet, NULL,
		    "only the output of the orders, and errors"),
	  .short_name = 'q' },
	OPT_END,
};
