#include "unit.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "cli/run_opts.h"

static struct run_options options;
static struct err err;

#define PARSE(...) \
	(options = run_options_default, err = ERR_INIT, \
	 opt_parse(run_opts, OPT_STOP_AT_POSITIONAL, &options, \
		   (int)ARRAY_LEN(((char *[]){ "run", __VA_ARGS__ })), \
		   (char *[]){ "run", __VA_ARGS__, NULL }, NULL, &err))

static const struct opt *find(const char *name)
{
	for (const struct opt *opt = run_opts; opt->type != OPT_TYPE_END; opt++)
		if (opt->name && str_eq(opt->name, name))
			return opt;
	return NULL;
}

TEST(every_option_of_torchrun_is_known_with_its_variable)
{
	static const struct {
		const char *name, *env;
		char short_name;
	} known[] = {
		{ "nnodes", "PET_NNODES", 0 },
		{ "nproc-per-node", "PET_NPROC_PER_NODE", 0 },
		{ "rdzv-backend", "PET_RDZV_BACKEND", 0 },
		{ "rdzv-endpoint", "PET_RDZV_ENDPOINT", 0 },
		{ "rdzv-id", "PET_RDZV_ID", 0 },
		{ "rdzv-conf", "PET_RDZV_CONF", 0 },
		{ "standalone", "PET_STANDALONE", 0 },
		{ "max-restarts", "PET_MAX_RESTARTS", 0 },
		{ "monitor-interval", "PET_MONITOR_INTERVAL", 0 },
		{ "start-method", "PET_START_METHOD", 0 },
		{ "event-log-handler", "PET_EVENT_LOG_HANDLER", 0 },
		{ "role", "PET_ROLE", 0 },
		{ "module", "PET_MODULE", 'm' },
		{ "no-python", "PET_NO_PYTHON", 0 },
		{ "run-path", "PET_RUN_PATH", 0 },
		{ "log-dir", "PET_LOG_DIR", 0 },
		{ "redirects", "PET_REDIRECTS", 'r' },
		{ "tee", "PET_TEE", 't' },
		{ "local-ranks-filter", "PET_LOCAL_RANKS_FILTER", 0 },
		{ "duplicate-stdout-filters", "PET_DUPLICATE_STDOUT_FILTERS", 0 },
		{ "duplicate-stderr-filters", "PET_DUPLICATE_STDERR_FILTERS", 0 },
		{ "node-rank", "PET_NODE_RANK", 0 },
		{ "master-addr", "PET_MASTER_ADDR", 0 },
		{ "master-port", "PET_MASTER_PORT", 0 },
		{ "local-addr", "PET_LOCAL_ADDR", 0 },
		{ "logs-specs", NULL, 0 },
		{ "numa-binding", NULL, 0 },
		{ "signals-to-handle", "PET_SIGNALS_TO_HANDLE", 0 },
		{ "shutdown-timeout", "PET_SHUTDOWN_TIMEOUT", 0 },
		{ "virtual-local-rank", "PET_VIRTUAL_LOCAL_RANK", 0 },
	};
	for (size_t i = 0; i < ARRAY_LEN(known); i++) {
		const struct opt *opt = find(known[i].name);
		ck_assert_msg(opt != NULL, "--%s is missing", known[i].name);
		ck_assert_int_eq(opt->short_name, known[i].short_name);
		ck_assert_int_eq(opt->env == NULL, known[i].env == NULL);
		if (opt->env)
			ck_assert_str_eq(opt->env, known[i].env);
	}
}

TEST(options_stop_at_the_command)
{
	ck_assert_int_eq(PARSE("--nproc_per_node", "4", "--max-restarts=3", "train.py",
			       "--max-restarts", "9"),
			 4);
	ck_assert_str_eq(options.nproc_per_node, "4");
	ck_assert_int_eq(options.restarts.max, 3);
	ck_assert_int_eq(PARSE("-m", "--shutdown-timeout=1.5", "--restart-backoff=1s:2m", "pkg"),
			 4);
	ck_assert(options.module);
	ck_assert_uint_eq(options.shutdown_ns, 1500 * NS_PER_MS);
	ck_assert_uint_eq(options.restart_backoff.max_ns, 120 * NS_PER_S);
	ck_assert_int_eq(PARSE("--report=torchrun", "--exit-code", "torchrun", "--stdin=all",
			       "--capture=never", "x"),
			 6);
	ck_assert_int_eq(options.report, RUN_STYLE_TORCHRUN);
	ck_assert_int_eq(options.exit_code, RUN_STYLE_TORCHRUN);
	ck_assert_int_eq(options.stdin_mode, RUN_STDIN_ALL);
	ck_assert_int_eq(options.capture, RUN_CAPTURE_NEVER);
}

TEST(variables_give_defaults_and_the_command_line_wins)
{
	setenv("PET_NPROC_PER_NODE", "2", 1);
	setenv("PET_STANDALONE", "1", 1);
	setenv("PET_MAX_RESTARTS", "z", 1);
	ck_assert_int_eq(PARSE("--max-restarts=1", "x"), 2);
	ck_assert_str_eq(options.nproc_per_node, "2");
	ck_assert(options.rdzv.standalone);
	ck_assert_int_lt(PARSE("x"), 0);
	ck_assert_str_eq(err.msg,
			 "PET_MAX_RESTARTS (default of '--max-restarts'): invalid integer 'z'");
}

TEST(the_first_double_dash_next_to_the_command_goes)
{
	static char *cases[][6] = {
		{ "run", "s", "--", "--a", NULL },
		{ "run", "--", "s", "--", "a", NULL },
		{ "run", "s", "x", "--", "y", NULL },
		{ "run", "s", NULL },
	};
	static const char *const expected[] = { "--a", "--", "x", NULL };
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		int count = 0;
		while (cases[i][count])
			count++;
		options = run_options_default;
		int first = opt_parse(run_opts, OPT_STOP_AT_POSITIONAL, &options, count, cases[i],
				      NULL, &err);
		ck_assert_str_eq(cases[i][first], "s");
		const char *word = run_opts_args(cases[i], first)[0];
		ck_assert_int_eq(word == NULL, expected[i] == NULL);
		if (word)
			ck_assert_str_eq(word, expected[i]);
	}
}
