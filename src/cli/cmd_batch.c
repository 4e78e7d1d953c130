/* muster batch: a list of commands side by side, each on its own cores. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "batch/config.h"
#include "batch/noise_check.h"
#include "cli/command.h"
#include "cli/count_opt.h"
#include "cli/share.h"
#include "core/worker/exit_code.h"
#include "proto/orders.h"

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

static const char *const interleave_names[] = {
	[REPEAT_ABBA] = "abba", [REPEAT_RANDOM] = "random", NULL
};
static const char *const quiet_names[] = { [QUIET_CHECK_OFF] = "off",
					   [QUIET_CHECK_WARN] = "warn",
					   [QUIET_CHECK_WAIT] = "wait",
					   [QUIET_CHECK_FAIL] = "fail",
					   NULL };

static int parse_env(const char *text, void *field, struct err *err)
{
	return fixed_env_parse(text, field, err);
}

/* Some options fill several fields: their parsers get the whole struct (offset 0). */
static int parse_jobs(const char *text, void *field, struct err *err)
{
	struct batch_config *config = field;
	config->jobs = 0;
	config->jobs_percent = 0;
	if (str_eq(text, "auto"))
		return 0;
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
		       "'%s' is not auto, a number from 1 to %d, or a percentage of the cores",
		       text, JOBS_MAX);
}

static int parse_timeout(const char *text, void *field, struct err *err)
{
	struct batch_config *config = field;
	return order_parse_timeout(text, &config->timeout_ns, &config->timeout_percent, err);
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

static const struct opt opts[] = {
	OPT_GROUP("Orders"),
	OPT_FLAG("allow-duplicates", NULL, struct batch_config, allow_duplicates,
		 "accept identical orders, and run each"),
	OPT_FLAG("resume", NULL, struct batch_config, resume,
		 "go on with the result file of -o: run what has no good result in it"),
	OPT_FLAG("retry-failed", NULL, struct batch_config, retry_failed,
		 "run again what failed last in the result file of -o; without ORDERS, as it "
		 "stands there"),
	{ OPT_FIELD(OPT_TYPE_STR, "shell", NULL, struct batch_config, shell, "PROGRAM",
		    "shell for lines that need one (default /bin/sh)") },

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
		 "print the plan and what is shared, run nothing"),

	OPT_GROUP("Schedule"),
	OPT_CHOICE("order", NULL, struct batch_config, order, order_names,
		   "which order first; longest needs earlier results"),
	OPT_INT("seed", NULL, struct batch_config, seed, "N", "of --order=random (default 1)"),
	OPT_LIST("history", struct batch_config, history, "FILE",
		 "earlier results to learn run times from"),
	OPT_DURATION("deadline", NULL, struct batch_config, deadline_ns, "TIME",
		     "stop the whole batch after this time"),
	OPT_CALL("halt", NULL, struct batch_config, halt, parse_halt, "RULE",
		 "when to stop: never, soon|now,fail|success|done=N|N%"),

	OPT_GROUP("Faults"),
	CALL_ALL("timeout", parse_timeout, "TIME|N%",
		 "end an order after this time, or this part of the median"),
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
	OPT_STR("canary", NULL, struct batch_config, canary, "CMD|auto",
		"run this before the others, or the first order of each program; if it fails, the "
		"rest does not run"),

	OPT_GROUP("Repetition and measurement"),
	{ OPT_FIELD(OPT_TYPE_INT, "runs", NULL, struct batch_config, runs, "N",
		    "runs of each order (default 1)"),
	  .short_name = 'r' },
	{ OPT_FIELD(OPT_TYPE_INT, "warmup", NULL, struct batch_config, warmup, "N",
		    "runs before those that count (default 0)"),
	  .short_name = 'w' },

	{ OPT_FIELD(OPT_TYPE_INT, "min-runs", NULL, struct batch_config, min_runs, "N",
		    "at least N runs, and 3 s of them, as many as necessary (default 10)"),
	  .short_name = 'm' },
	{ OPT_FIELD(OPT_TYPE_INT, "max-runs", NULL, struct batch_config, max_runs, "N",
		    "at most N runs (default 1000)"),
	  .short_name = 'M' },
	OPT_CALL("precision", NULL, struct batch_config, precision, share_parse_part, "SHARE",
		 "run until the median's interval reaches no farther than this, such as 1%"),
	OPT_CALL("confidence", NULL, struct batch_config, confidence, share_parse_part, "SHARE",
		 "of that interval (default 95%)"),
	{ OPT_FIELD(OPT_TYPE_STR, "setup", NULL, struct batch_config, hooks[BATCH_HOOK_SETUP],
		    "CMD", "run this before the first run of an order"),
	  .short_name = 's' },
	{ OPT_FIELD(OPT_TYPE_STR, "prepare", NULL, struct batch_config, hooks[BATCH_HOOK_PREPARE],
		    "CMD", "run this before every run, unmeasured"),
	  .short_name = 'p' },
	{ OPT_FIELD(OPT_TYPE_STR, "cleanup", NULL, struct batch_config, hooks[BATCH_HOOK_CLEANUP],
		    "CMD", "run this after the last run of an order"),
	  .short_name = 'c' },
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

	OPT_GROUP("Results"),
	{ OPT_FIELD(OPT_TYPE_STR, "output", NULL, struct batch_config, output, "FILE",
		    "result file: a line of JSON for every attempt"),
	  .short_name = 'o' },
	OPT_STR("joblog", NULL, struct batch_config, joblog, "FILE",
		"also write the job log of GNU parallel"),
	OPT_STR("results", NULL, struct batch_config, results, "DIR",
		"keep the output of the orders in files there, instead of showing it"),
	OPT_STR("export-json", NULL, struct batch_config, exports.json, "FILE",
		"all runs in hyperfine's JSON"),
	OPT_STR("export-csv", NULL, struct batch_config, exports.csv, "FILE",
		"a line per order as CSV"),
	OPT_STR("export-markdown", NULL, struct batch_config, exports.markdown, "FILE",
		"a line per order as a Markdown table"),
	OPT_STR("export-junit", NULL, struct batch_config, exports.junit, "FILE",
		"JUnit XML; an order is a test case"),
	OPT_FLAG("noise", NULL, struct batch_config, noise,
		 "tell how good this host is for measuring: run one command against itself"),
	OPT_STR("history-dir", NULL, struct batch_config, filing.dir, "DIR",
		"also file the result in this history, for muster trend"),
	OPT_STR("version-label", NULL, struct batch_config, filing.version, "NAME",
		"the version it is filed under (default: the commit here)"),
	OPT_STR("host-class", NULL, struct batch_config, filing.host_class, "NAME",
		"the class of hosts (default: processor and number of CPUs)"),
	OPT_STR("configuration", NULL, struct batch_config, filing.configuration, "NAME",
		"the configuration (default: how it was measured)"),
	OPT_CHOICE("progress", NULL, struct batch_config, progress, progress_names,
		   "how to show progress"),
	{ OPT_FIELD(OPT_TYPE_FLAG, "quiet", NULL, struct batch_config, quiet, NULL,
		    "only the output of the orders, and errors"),
	  .short_name = 'q' },
	OPT_END,
};

static int check(const struct command *self, const struct batch_config *config, int argc)
{
	if (config->cores < 1 || config->cores > ORDER_CORES_MAX)
		return command_usage_error(self, "option '--cores': from 1 to %d", ORDER_CORES_MAX);
	if (config->runs < 0 || config->runs > ORDER_RUNS_MAX || config->min_runs < 0 ||
	    config->max_runs < 0)
		return command_usage_error(self, "option '--runs': from 1 to %d", ORDER_RUNS_MAX);
	if (config->warmup < 0 || config->warmup > ORDER_RUNS_MAX)
		return command_usage_error(self, "option '--warmup': from 0 to %d", ORDER_RUNS_MAX);
	if (config->retries < 0 || config->retries > INT16_MAX)
		return command_usage_error(self, "option '--retries': from 0 to %d", INT16_MAX);
	if ((config->resume || config->retry_failed) && !config->output)
		return command_usage_error(self, "--%s needs the result file: -o FILE",
					   config->resume ? "resume" : "retry-failed");
	if (config->runs && (config->min_runs || config->max_runs || config->precision > 0))
		return command_usage_error(self, "--runs is a fixed number: it excludes "
						 "--min-runs, --max-runs and --precision");
	if ((config->resume || config->retry_failed) && (config->ab || config->runs == 0))
		return command_usage_error(
			self,
			"--resume and --retry-failed need a fixed number of --runs, and no --ab");
	if (!config->filing.dir &&
	    (config->filing.version || config->filing.host_class || config->filing.configuration))
		return command_usage_error(self,
					   "--version-label, --host-class and --configuration "
					   "are about --history-dir");
	if (argc == 0 && !config->retry_failed && !config->noise)
		return command_usage_error(
			self,
			"no orders: name a file, - for standard input, or a command with :::");
	return 0;
}

/* Fills in what the command line left open. */
static void settle(struct batch_config *config, const struct opt_seen *seen)
{
	bool adaptive = config->min_runs || config->max_runs || config->precision > 0;
	bool counts = config->measure.count_auto || config->measure.count != COUNTER_NONE;
	if (!opt_given(opts, seen, "runs"))
		config->runs = adaptive ? 0 : config->ab ? REPEAT_MIN_RUNS : 1;
	if (!opt_given(opts, seen, "quiet-check") && (config->runs != 1 || config->ab))
		config->measure.quiet = QUIET_CHECK_WARN;
	if (!opt_given(opts, seen, "env") && counts)
		config->measure.env.clean = true;
}

/* Exports and histories are made from a result file: without -o, from a temporary one. */
static int run_with_exports(struct batch_config *config, int argc, char *const *argv)
{
	const char *folder = getenv("TMPDIR");
	if (config->output || !(export_wanted(&config->exports) || config->filing.dir))
		return batch_run(config, argc, argv);
	AUTO_FREE char *path = mem_printf("%s/muster-XXXXXX", folder && *folder ? folder : "/tmp");
	AUTO(fd_close) int fd = mkostemp(path, O_CLOEXEC);
	if (fd < 0) {
		fprintf(stderr, "muster batch: %s: %s\n", path, strerror(errno));
		return EXIT_CODE_SYSTEM;
	}
	config->output = path;
	int status = batch_run(config, argc, argv);
	unlink(path);
	return status;
}

/* The words are one command; none: a loop of the shell. */
static int check_noise(const struct batch_config *config, int argc, char *const *argv)
{
	AUTO(buf_done) struct buf command = BUF_INIT;
	for (int i = 0; i < argc; i++) {
		buf_append_str(&command, i ? " " : "");
		buf_append_str(&command, argv[i]);
	}
	return noise_check(config, argc ? buf_str(&command) : NULL);
}

static int batch_main(const struct command *self, int argc, char **argv)
{
	struct batch_config config = {
		.cores = 1,
		.reserve = -1,
		.seed = 1,
		.confidence = REPEAT_CONFIDENCE,
		.shell = "/bin/sh",
		.retry_on = retry_rule_any(),
		.retry_delay_ns = NS_PER_S,
	};
	struct opt_seen seen;
	int first, status;
	ladder_parse("TERM,5000,KILL", &config.ladder, NULL);
	if (!command_parse(self, &config, argc, argv, &seen, &first, &status))
		return status;
	settle(&config, &seen);
	status = check(self, &config, argc - first);
	if (status == 0 && config.noise)
		status = check_noise(&config, argc - first, argv + first);
	else if (status == 0)
		status = run_with_exports(&config, argc - first, argv + first);
	strv_done(&config.history);
	strv_done(&config.measure.env.keep);
	return status;
}

const struct command command_batch = {
	.name = "batch",
	.synopsis = "[OPTIONS] ORDERS...|-  or  [OPTIONS] COMMAND ::: ARGUMENT...",
	.summary = "run a list of commands side by side, each on its own cores",
	.footer = "Examples:\n"
		  "  muster batch orders.txt\n"
		  "  muster batch --cores=2 --timeout=60s --retries=2 --resume -o run.jsonl list\n"
		  "  muster batch -j2 'sleep {}' ::: 1 2 3\n",
	.opts = opts,
	.mode = OPT_STOP_AT_POSITIONAL,
	.main = batch_main,
};
