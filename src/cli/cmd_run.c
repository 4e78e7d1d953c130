/* muster run: start a group of workers, follow it to its end, say how it ended. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/command.h"
#include "cli/hosts.h"
#include "cli/run_opts.h"
#include "cli/stand_in.h"
#include "core/host/engine.h"
#include "core/host/hostlist.h"
#include "core/rounds/job_exit.h"
#include "core/worker/exit_code.h"
#include "fleet/starter.h"
#include "net/token.h"
#include "proto/fleet/fleet_msg.h"
#include "run/checks/preflight.h"
#include "run/dry_run.h"
#include "run/job.h"
#include "run/limits.h"
#include "run/mpi/choice.h"
#include "run/options.h"
#include "run/tell/report.h"
#include "sys/disk.h"
#include "sys/signals.h"
#include "sys/thread.h"

/* ---- --hosts: the job starts on other hosts, from here ---- */

/* What contradicts --hosts: the nodes find each other by other means then. */
static const char *const excluded[] = { "standalone",  "node-rank", "master-addr",
					"master-port", "lifeline",  "local-addr" };

static int check_options(const struct run_options *o, const struct opt_seen *seen, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(excluded); i++)
		if (opt_given(run_opts, seen, excluded[i]))
			return err_set(err, EINVAL, "--hosts and --%s exclude each other",
				       excluded[i]);
	return hosts_check(&o->hosts, err);
}

/* "user@node7.cluster" is named by node7.cluster and by node7. */
static bool is_named(const char *host, const char *name)
{
	const char *at = strrchr(host, '@');
	host = at ? at + 1 : host;
	return str_eq(host, name) ||
	       (strlen(name) == strcspn(host, ".") && memcmp(host, name, strlen(name)) == 0);
}

static int leave_out(const char *list, struct hostfile *hosts, struct err *err)
{
	AUTO(strv_done) struct strv names = STRV_INIT;
	uint32_t count;
	size_t kept = 0;
	int r = list ? hostlist_expand(list, HOSTLIST_HOSTS_MAX, &names, &count, err) : 0;
	if (r < 0)
		return err_wrap(err, "--exclude-hosts");
	for (size_t i = 0; i < hosts->count; i++) {
		bool out = false;
		for (size_t n = 0; n < names.count; n++)
			out |= is_named(hosts->items[i].name, names.items[n]);
		if (!out)
			hosts->items[kept++] = hosts->items[i];
	}
	hosts->count = kept;
	return kept ? 0 : err_set(err, EINVAL, "--exclude-hosts: no host is left");
}

/* Without --nnodes all hosts are needed. */
static int count_nodes(const struct run_options *o, const struct opt_seen *seen, uint32_t hosts,
		       struct starter_config *config, struct err *err)
{
	config->min_nodes = config->max_nodes = hosts;
	if (!opt_given(run_opts, seen, "nnodes"))
		return 0;
	int r = run_nodes_parse(o->rdzv.nnodes, &config->min_nodes, &config->max_nodes, err);
	if (r == 0 && config->min_nodes > hosts)
		return err_set(err, EINVAL, "--nnodes: '%.64s' are more than the %u hosts",
			       o->rdzv.nnodes, hosts);
	return r;
}

/* The options as typed, and the command with its arguments. */
static void cut_argv(char **argv, int first, struct strv *options, struct strv *command)
{
	int end = first - str_eq(argv[first - 1], "--");
	for (int i = 1; i < end; i++)
		strv_add(options, argv[i]);
	strv_add(command, argv[first]);
	strv_add_all(command, run_opts_args(argv, first));
}

static bool is_given(const char *text)
{
	return text && *text;
}

static int start(const struct run_options *o, struct starter_config *config, char **argv, int first,
		 struct err *err)
{
	AUTO(strv_done) struct strv options = STRV_INIT, command = STRV_INIT;
	AUTO_FREE char *token = hosts_secret();
	AUTO_FREE char *run_id = is_given(o->rdzv.id) ? NULL : run_random_id();
	char program[HOSTS_PROGRAM_MAX];
	int r = hosts_program(program, err);
	if (r < 0)
		return r;
	token_hide();
	cut_argv(argv, first, &options, &command);
	config->program = program;
	config->token = token;
	config->run_id = run_id;
	config->options = &options;
	config->command = &command;
	config->conf = o->rdzv.conf;
	config->endpoint =
		is_given(o->rdzv.endpoint) || is_given(o->rdzv.backend) ? o->rdzv.endpoint : NULL;
	return starter_run(config, err);
}

/* argv[first] is the command of the workers. Returns the exit code. */
static int run_on_hosts(const struct command *self, const struct run_options *o,
			const struct opt_seen *seen, char **argv, int first)
{
	AUTO(hostfile_done) struct hostfile hosts = HOSTFILE_INIT;
	struct err err = ERR_INIT;
	struct starter_config config = { .hosts = &hosts,
					 .what = "run",
					 .fanout = (uint32_t)o->hosts.fanout,
					 .timeout_ns = o->hosts.timeout_ns,
					 .ssh = o->hosts.ssh };
	int r;
	if ((r = check_options(o, seen, &err)) < 0 ||
	    (r = hosts_read(&o->hosts, &hosts, &err)) < 0 ||
	    (r = leave_out(o->preflight.exclude_hosts, &hosts, &err)) < 0 ||
	    (r = count_nodes(o, seen, (uint32_t)hosts.count, &config, &err)) < 0 ||
	    (r = run_signals_parse(o->signals_to_handle, &config.stop_signals, &err)) < 0)
		return command_usage_error(self, "%s", err.msg);
	r = start(o, &config, argv, first, &err);
	if (r >= 0)
		return r;
	log_error("%s", err.msg);
	return EXIT_CODE_SYSTEM;
}

/* ---- on this host ---- */

extern const struct command command_run;

static enum entry_kind entry_kind_of(const struct run_options *o)
{
	if (o->run_path)
		return ENTRY_RUN_PATH;
	if (o->no_python)
		return ENTRY_NO_PYTHON;
	return o->module ? ENTRY_MODULE : ENTRY_AUTO;
}

static int entry_error(int r, const struct err *err)
{
	log_error("%s", err->msg);
	return r == -ENOENT ? EXIT_CODE_NOT_FOUND : EXIT_CODE_NOT_EXEC;
}

static bool wants_colour(void)
{
	const char *term = getenv("TERM"), *no_colour = getenv("NO_COLOR");
	return isatty(STDERR_FILENO) && term && !str_eq(term, "dumb") && !(no_colour && *no_colour);
}

/* torchrun has a table for failed workers, but none for a failed start or a signal. */
static bool wants_table(const struct report *report)
{
	const struct history_attempt *last = history_last(report->history);
	const struct history_failure *cause = last ? history_cause(last) : NULL;
	return report->config->report == RUN_STYLE_TORCHRUN && !report->history->stop_signal &&
	       cause && cause->reason != FAILURE_SPAWN;
}

struct saving {
	const struct report *report;
	int code;
	int result;
	struct err err;
};

static void save_report(void *arg)
{
	struct saving *saving = arg;
	saving->result = report_save(saving->report, saving->code, &saving->err);
}

/* A log directory that does not answer must not keep us from ending. */
static void save(const struct report *report, int code)
{
	struct saving *saving = NEW(struct saving);
	*saving = (struct saving){ .report = report, .code = code };
	if (!thread_call_until(save_report, saving, free, clock_now_ns() + DISK_HANG_NS)) {
		log_warn("no report.json: the file system does not answer");
		_exit(code); /* the thread still reads memory that a return would free */
	}
	if (saving->result < 0)
		log_warn("no report.json: %s", saving->err.msg);
	free(saving);
}

static bool is_writable(int fd)
{
	struct pollfd poll_fd = { .fd = fd, .events = POLLOUT };
	return poll(&poll_fd, 1, 0) > 0;
}

/* A paused terminal may block us, but signals must still end us. */
static void print(const struct job_result *result, const struct buf *text)
{
	if (!is_writable(STDERR_FILENO)) {
		if (result->hurried)
			return;
		signals_release();
	}
	fd_write_all(STDERR_FILENO, buf_data(text), buf_len(text));
}

/* Whether our exit code is that of the job, on whichever host. */
static bool is_ruled(const struct report *report)
{
	const struct outcome *outcome = report->outcome;
	return (outcome->kind == OUTCOME_DONE || outcome->kind == OUTCOME_FAILED) &&
	       !outcome->stuck && !report->history->stop_signal;
}

/* The starter ends with our code, if it is the job's. One report of all hosts is shown, best that
 * of the host where it happened. */
static void hand_over(const struct report *report, const struct buf *text)
{
	const struct history_attempt *last = history_last(report->history);
	const struct history_failure *cause = last ? history_cause(last) : NULL;
	bool here = cause && !cause->elsewhere;
	char what = !is_ruled(report) ? FLEET_REPORT_OWN
		    : here	      ? FLEET_REPORT_HERE
				      : FLEET_REPORT_RULED;
	fd_write_all(FLEET_FD_REPORT, &what, sizeof(what));
	fd_write_all(FLEET_FD_REPORT, buf_data(text), buf_len(text));
}

/* Says why the job failed, in every place where the user may look for it. */
static void say(const struct report *report, const struct job_result *result, int code)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct err err = ERR_INIT;

	if (report_pass_up(report, &err) < 0)
		log_warn("TORCHELASTIC_ERROR_FILE: %s", err.msg);
	if (wants_table(report))
		report_torchrun(report, &text);
	else if (report->config->report != RUN_STYLE_NONE)
		report_people(report, wants_colour(), &text);
	buf_append(&text, buf_data(&result->missing), buf_len(&result->missing));
	if (report->config->fleet_host)
		hand_over(report, &text);
	else
		print(result, &text);
	/* A job that was stopped, or left, on request leaves no temporary directory just for a
	 * report. */
	if (!(report->history->stop_signal || report->outcome->left) || report->config->log_dir)
		save(report, code);
}

/* A job that ended well has a report only if its workers told steps or its nodes checked
 * themselves, where the user named a place for it. */
static void say_done(const struct report *report, const struct job_result *result)
{
	struct err err = ERR_INIT;
	if (buf_len(&result->missing) > 0)
		fd_write_all(STDERR_FILENO, buf_data(&result->missing), buf_len(&result->missing));
	AUTO(buf_done) struct buf text = BUF_INIT;
	report_unfit(report, &text);
	fd_write_all(STDERR_FILENO, buf_data(&text), buf_len(&text));
	if (report->config->fleet_host)
		hand_over(report, &BUF_INIT);
	bool has_report = report_has_steps(report) || report->history->nodes.count;
	if (report->config->log_dir && has_report && report_save(report, EXIT_CODE_OK, &err) < 0)
		log_warn("no report.json: %s", err.msg);
}

static int run_job(const struct run_config *config)
{
	struct job_result result;
	struct err err = ERR_INIT;
	int code = EXIT_CODE_SYSTEM;

	if (job_run(config, &result, &err) < 0) {
		limits_explain(err.code, &err);
		log_error("%s", err.msg);
	} else {
		code = history_final_code(&result.history, &result.outcome, config);
		if (result.outcome.kind == OUTCOME_UNKNOWN)
			log_warn("the workers of this node are done, but no coordinator confirmed "
				 "the end of the job");
		struct report report = { config, &result.history, result.logdir.run,
					 &result.outcome };
		if (code)
			say(&report, &result, code);
		else
			say_done(&report, &result);
	}
	job_result_done(&result);
	return code;
}

static int dry_run(const struct run_config *config)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct err err = ERR_INIT;
	int r = dry_run_describe(config, environ, &text, &err);
	if (r < 0) {
		log_error("%s", err.msg);
		return EXIT_CODE_USAGE;
	}
	if (config->show_binding)
		run_placement_draw(&config->placement, &text);
	return fd_write_all(STDOUT_FILENO, buf_data(&text), buf_len(&text)) < 0 ? EXIT_CODE_SYSTEM
										: 0;
}

static void show_binding(const struct run_config *config)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	run_placement_draw(&config->placement, &text);
	fd_write_all(STDERR_FILENO, buf_data(&text), buf_len(&text));
}

/* An option that was typed behind the script, where it is the script's. */
static const char *find_misplaced(char *const *args)
{
	for (; *args; args++)
		if (str_starts(*args, "--") && opt_known(run_opts, *args))
			return *args;
	return NULL;
}

/* 0: the node may join. */
static int check_node(const struct command *self, struct run_config *config)
{
	struct err err = ERR_INIT;
	int r = preflight_run(config, &config->checks, &config->counters, &err);
	if (r == -EINVAL)
		return command_usage_error(self, "--preflight: %s", err.msg);
	if (r == 0)
		return 0;
	log_error("%s", err.msg);
	return exit_map_apply(&config->exit_map, EXIT_REASON_BAD_NODE, EXIT_CODE_BAD_NODE);
}

/* --slurm: becomes an srun that runs the same command line on every node. Returns if that has
 * happened already (0) or is not possible (the exit code). */
static int spread(const struct command *self, char **argv)
{
	AUTO(strv_done) struct strv command = STRV_INIT;
	struct err err = ERR_INIT;
	int r = engine_slurm_spread(environ, &command, &err);
	if (r < 0)
		return command_usage_error(self, "%s", err.msg);
	if (r == 0)
		return 0;
	char program[PATH_MAX];
	ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);
	program[MAX(len, 0)] = '\0';
	strv_add(&command, program);
	strv_add(&command, self->name);
	strv_add_all(&command, argv + 1);
	execvp(command.items[0], command.items);
	log_error("--slurm: execute %s: %m", command.items[0]);
	return EXIT_CODE_NOT_FOUND;
}

/* torchrun reads these with static only. Set for all jobs of a host, or for more nodes than this
 * job has, they must not end one that meets in another way. */
static void drop_unread(struct run_options *o, const struct opt_seen *seen)
{
	struct rendezvous_options *rdzv = &o->rdzv;
	bool named = rdzv->backend && *rdzv->backend;
	if (!rdzv->standalone && (!named || str_eq(rdzv->backend, "static")))
		return;
	if (opt_by_variable(run_opts, seen, "node-rank"))
		rdzv->node_rank = RENDEZVOUS_RANK_UNSET;
	if (opt_by_variable(run_opts, seen, "master-port"))
		rdzv->master_port = RENDEZVOUS_PORT_UNSET;
	if (opt_by_variable(run_opts, seen, "master-addr"))
		rdzv->master_addr = NULL;
}

/* argv[first] is the command. */
static int resolve_entry(const struct run_options *o, const struct stand_in *stand_in, char **argv,
			 int first, struct entry *entry, struct err *err)
{
	AUTO(strv_done) struct strv args = STRV_INIT;
	if (stand_in_passes_rank(stand_in) && !o->use_env)
		strv_add(&args, "--local-rank=${local_rank}");
	strv_add_all(&args, run_opts_args(argv, first));
	return entry_resolve(entry_kind_of(o), argv[first], strv_argv(&args), entry, err);
}

static int run_main(const struct command *self, int argc, char **argv)
{
	struct run_options o = run_options_default;
	struct opt_seen seen;
	int first, status;
	AUTO(stand_in_done) struct stand_in stand_in;
	stand_in_take(&stand_in);
	if (!command_parse(self, &o, argc, argv, &seen, &first, &status))
		return status;
	if (first >= argc && seen.took_last)
		return command_usage_error(self,
					   "no command given: '%s' is the value of --%s; the "
					   "command comes behind it",
					   argv[argc - 1], seen.took_last->name);
	if (first >= argc)
		return command_usage_error(self,
					   "no command given: a script, a module or a program, "
					   "such as '%s --nproc-per-node=4 train.py'",
					   command_title(self));
	const char *why = stand_in_why_not(&o);
	if (why && stand_in.python)
		return stand_in_leave(&stand_in, argv, why);
	if (o.logs_specs)
		return command_usage_error(
			self, "--logs-specs: '%.64s' is a Python plug-in, which torchrun loads",
			o.logs_specs);
	drop_unread(&o, &seen);
	AUTO_FREE char *fleet_host = hosts_take_name();
	if (!fleet_host && (o.hosts.list || o.hosts.file))
		return run_on_hosts(self, &o, &seen, argv, first);
	if (o.slurm && (status = spread(self, argv)))
		return status;

	struct err err = ERR_INIT;
	AUTO(run_config_done) struct run_config config = RUN_CONFIG_INIT;
	int r = run_config_make(&o, &config, &err);
	if (r == -EINVAL)
		return command_usage_error(self, "%s", err.msg);
	if (r < 0) {
		log_error("%s", err.msg);
		return EXIT_CODE_SYSTEM;
	}
	config.fleet_host = fleet_host;
	r = resolve_entry(&o, &stand_in, argv, first, &config.entry, &err);
	if (r < 0)
		return entry_error(r, &err);
	if (mpi_choose(&config, &err) < 0)
		return command_usage_error(self, "%s", err.msg);
	config.misplaced = find_misplaced(run_opts_args(argv, first));
	if (config.preload && !config.entry.python) {
		log_warn("--preload: '%s' is not run by Python; it is started in the usual way",
			 config.entry.title);
		config.preload = NULL;
	}
	if (config.dry_run)
		return dry_run(&config);
	if (config.show_binding)
		show_binding(&config);
	status = check_node(self, &config);
	return status ? status : run_job(&config);
}

const struct command command_run = {
	.name = "run",
	.synopsis = "[OPTIONS] SCRIPT|PROGRAM [ARGUMENTS...]",
	.summary = "start a group of workers, watch it, restart it, say why it died",
	.footer = "Examples:\n"
		  "  muster run --nproc-per-node=4 train.py --lr 0.1\n"
		  "  muster run --nproc-per-node=2 --max-restarts=3 ./a.out\n"
		  "  muster run --standalone --nproc-per-node=2 -m package.module\n",
	.opts = run_opts,
	.mode = OPT_STOP_AT_POSITIONAL,
	.main = run_main,
};
