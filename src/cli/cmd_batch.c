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
#include "cli/batch_fleet.h"
#include "cli/batch_hosts.h"
#include "cli/batch_opts.h"
#include "cli/command.h"
#include "cli/hosts.h"
#include "core/dispatch/needs.h"
#include "core/worker/exit_code.h"
#include "proto/orders.h"

/* What --pipe cannot do, because nothing is known of the orders before they come. */
static int check_pipe(const struct command *self, const struct batch_config *config)
{
	const struct arg_options *args = &config->args;
	const struct {
		bool given;
		const char *name;
	} excluded[] = {
		{ config->ab, "--ab" },
		{ config->runs != 1 || config->warmup > 0, "--runs, --warmup" },
		{ config->resume || config->retry_failed, "--resume, --retry-failed" },
		{ config->canary, "--canary" },
		{ config->filter.count > 0, "--filter" },
		{ config->halt.percent > 0, "--halt with a percentage" },
		{ args->names.count > 0, "--command-name" },
		{ args->scans.count || args->lists.count, "--parameter-list, --parameter-scan" },
		{ args->null_ends || args->delimiter, "-0, -d (see --recend)" },
		{ args->colsep || args->csv, "--colsep, --csv" },
		{ args->eof, "--eof" },
		{ args->skip_empty, "--no-run-if-empty" },
		{ args->link, "--link" },
		{ args->line || args->spread || args->context, "--xargs, -m, -X" },
		{ args->max_args == 0 || args->max_lines == 0, "-N0, -L0" },
	};
	for (size_t i = 0; i < ARRAY_LEN(excluded); i++)
		if (excluded[i].given)
			return command_usage_error(self, "--pipe does not work with %s",
						   excluded[i].name);
	return 0;
}

static int check_args(const struct command *self, const struct batch_config *config)
{
	const struct arg_options *args = &config->args;
	if (args->pipe)
		return check_pipe(self, config);
	if (args->header && !str_eq(args->header, ":"))
		return command_usage_error(self,
					   "option '--header': '%s' is not supported without "
					   "--pipe: only ':', the first line",
					   args->header);
	if (args->block_size || args->recstart || args->recend || args->regexp ||
	    args->remove_separators)
		return command_usage_error(self, "--block, --recstart, --recend, --regexp and "
						 "--remove-rec-sep are about --pipe");
	return 0;
}

static int check(const struct command *self, const struct batch_config *config)
{
	if (config->cores < 1 || config->cores > ORDER_CORES_MAX)
		return command_usage_error(self, "option '--cores': from 1 to %d", ORDER_CORES_MAX);
	if (config->runs < 0 || config->runs > ORDER_RUNS_MAX || config->min_runs < 0 ||
	    config->max_runs < 0)
		return command_usage_error(self, "option '--runs': from 1 to %d", ORDER_RUNS_MAX);
	if (config->warmup < 0 || config->warmup > ORDER_RUNS_MAX)
		return command_usage_error(self, "option '--warmup': from 0 to %d", ORDER_RUNS_MAX);
	if (config->keep_order && (config->line_buffer || config->ungroup))
		return command_usage_error(self, "--keep-order shows outputs one after the other: "
						 "it excludes --line-buffer and --ungroup");
	if (config->ungroup && (config->args.tag || config->args.tag_text || config->results))
		return command_usage_error(self, "with --ungroup the outputs do not pass through "
						 "muster: no --tag, no --results");
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
	if (config->features && !needs_features_ok(config->features))
		return command_usage_error(self,
					   "option '--features': '%.64s' is not a list of words of "
					   "letters, digits and ._+:-, with commas between them",
					   config->features);
	int status = check_args(self, config);
	if (status != 0)
		return status;
	if (config->http && config->args.pipe)
		return command_usage_error(self,
					   "--http shows a list of orders: it excludes --pipe");
	if (config->json && !config->noise)
		return command_usage_error(self, "--json is about --noise");
	if (config->ab && config->filter.count > 0)
		return command_usage_error(self, "--filter is about lists of orders, not --ab");
	if (!config->filing.dir &&
	    (config->filing.version || config->filing.host_class || config->filing.configuration))
		return command_usage_error(self,
					   "--version-label, --host-class and --configuration "
					   "are about --history-dir");
	return 0;
}

static bool exports_to_stdout(const struct export_paths *paths)
{
	const char *all[] = { paths->json,  paths->csv,	   paths->markdown,
			      paths->junit, paths->google, paths->pytest };
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (all[i] && str_eq(all[i], "-"))
			return true;
	return false;
}

/* Fills in what the command line left open. */
static void settle(struct batch_config *config, const struct opt_seen *seen)
{
	bool adaptive = config->min_runs || config->max_runs || config->precision > 0;
	struct arg_options *args = &config->args;
	if (args->max_lines >= 0 && !args->pipe)
		args->max_args = args->max_lines;
	bool counts = config->measure.count_auto || config->measure.count != COUNTER_NONE;
	if (!opt_given(batch_opts, seen, "runs"))
		config->runs = adaptive ? 0 : config->ab ? REPEAT_MIN_RUNS : 1;
	if (!opt_given(batch_opts, seen, "quiet-check") && (config->runs != 1 || config->ab))
		config->measure.quiet = QUIET_CHECK_WARN;
	config->table = (config->runs != 1 || config->ab) && !config->quiet && !config->dry_run &&
			!config->noise && !exports_to_stdout(&config->exports);
	if (!opt_given(batch_opts, seen, "env") && counts)
		config->measure.env.clean = true;
}

/* Exports and histories are made from a result file: without -o, from a temporary one. */
static int run_with_exports(struct batch_config *config, int argc, char *const *argv)
{
	const char *folder = getenv("TMPDIR");
	bool reads = export_wanted(&config->exports) || config->filing.dir || config->table;
	if (config->output || !reads)
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

/* --cleanup without a command is about files. */
static void settle_files(struct batch_config *config)
{
	const char **hook = &config->hooks[BATCH_HOOK_CLEANUP];
	if (!*hook || **hook || !file_options_given(&config->files))
		return;
	*hook = NULL;
	config->files.cleanup = true;
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
	AUTO(batch_config_done) struct batch_config config;
	struct opt_seen seen;
	int first, status;
	batch_config_init(&config);
	if (!command_parse(self, &config, argc, argv, &seen, &first, &status))
		return status;
	AUTO(engine_settings_done) struct engine_settings engine = ENGINE_SETTINGS_INIT;
	AUTO(rendezvous_done) struct rendezvous rdzv = RENDEZVOUS_INIT;
	AUTO_FREE char *fleet_host = hosts_take_name();
	AUTO(batch_fleet_done) struct batch_fleet fleet = BATCH_FLEET_INIT;
	settle(&config, &seen);
	settle_files(&config);
	status = check(self, &config);
	bool runs = !config.dry_run && !config.noise;
	if (status == 0 && runs && fleet_host)
		status = batch_fleet_join(self, &config, &fleet);
	else if (status == 0 && runs && (config.hosts.list || config.hosts.file))
		status = batch_fleet_prepare(self, &config, &seen, argv, first, &fleet);
	if (status == 0 && runs)
		status = batch_hosts_find(self, &config, &engine, &rdzv);
	if (status == 0 && fleet.prepared)
		status = batch_fleet_start(&config, &fleet);
	if (status == 0 && config.noise)
		status = check_noise(&config, argc - first, argv + first);
	else if (status == 0)
		status = run_with_exports(&config, argc - first, argv + first);
	return status;
}

const struct command command_batch = {
	.name = "batch",
	.synopsis = "[OPTIONS] ORDERS...|- or [OPTIONS] COMMAND [::: ARG...]",
	.summary = "run a list of commands side by side, each on its own cores",
	.footer = "Examples:\n"
		  "  muster batch orders.txt\n"
		  "  muster batch --cores=2 --timeout=60s --retries=2 --resume -o run.jsonl list\n"
		  "  muster batch -j2 'sleep {}' ::: 1 2 3\n"
		  "  find . -name '*.log' -print0 | muster batch -0 gzip\n"
		  "  muster batch -r 10 -L level 1,6,9 'gzip -{level} -k -c data'\n",
	.opts = batch_opts,
	.mode = OPT_STOP_AT_POSITIONAL,
	.main = batch_main,
};
