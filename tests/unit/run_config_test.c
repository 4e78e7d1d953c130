#include "unit.h"

#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "core/worker/exit_set.h"
#include "run/config.h"

static struct run_options options;
static struct run_config config;
static struct err err;

static int make(void)
{
	run_config_done(&config);
	err = ERR_INIT;
	return run_config_make(&options, &config, &err);
}

#define REFUSED(field, value, message) \
	do { \
		options = run_options_default; \
		options.field = (value); \
		ck_assert_int_eq(make(), -EINVAL); \
		ck_assert_str_eq(err.msg, message); \
	} while (0)

TEST(config_defaults_are_one_node_one_worker_no_restart)
{
	options = run_options_default;
	ck_assert_int_eq(make(), 0);
	ck_assert_uint_eq(config.max_nodes, 1);
	ck_assert_uint_eq(config.nproc, 1);
	ck_assert_uint_eq(config.max_restarts, 0);
	ck_assert_uint_eq(config.shutdown_ns, 30 * NS_PER_S);
	ck_assert_str_eq(config.role, "default");
	ck_assert_str_eq(config.master_addr, "127.0.0.1");
	ck_assert_uint_eq(config.master_port, 0);
	ck_assert_uint_eq(strlen(config.run_id), 36);
	ck_assert_ptr_null(config.log_dir);
	for (int sig = 1; sig < 32; sig++)
		ck_assert_int_eq(sigismember(&config.stop_signals, sig),
				 sig == SIGTERM || sig == SIGINT || sig == SIGHUP ||
					 sig == SIGQUIT);
	run_config_done(&config);
}

TEST(config_refuses_each_bad_number_of_workers_by_value)
{
	REFUSED(nproc_per_node, "0", "--nproc-per-node: '0' must be at least 1");
	REFUSED(nproc_per_node, "-1", "--nproc-per-node: '-1' must be at least 1");
	REFUSED(nproc_per_node, "abc",
		"--nproc-per-node: 'abc' is neither a number nor cpu, gpu, xpu or auto");
	REFUSED(nproc_per_node, "1e9",
		"--nproc-per-node: '1e9' is neither a number nor cpu, gpu, xpu or auto");
	REFUSED(nproc_per_node, "1000000000",
		"--nproc-per-node: '1000000000' is more than the 65536 workers a host may have");
	REFUSED(nproc_per_node, "99999999999999999999999",
		"--nproc-per-node: '99999999999999999999999' is more than the 65536 workers a host "
		"may have");
}

TEST(config_refuses_a_role_that_a_message_cannot_carry)
{
	char role[65];
	memset(role, 'r', sizeof(role));
	role[63] = '\0';
	options = run_options_default;
	options.role = role;
	ck_assert_int_eq(make(), 0);
	ck_assert_str_eq(config.role, role);
	role[63] = 'r';
	role[64] = '\0';
	options.role = role;
	ck_assert_int_eq(make(), -EINVAL);
	ck_assert_ptr_nonnull(strstr(err.msg, "rrr...' is longer than 63 bytes"));
}

TEST(config_refuses_streams_and_places_it_cannot_read)
{
	REFUSED(tee, "4",
		"--tee: '4' is neither 0, 1 (stdout), 2 (stderr), 3 (both) nor a list such as "
		"0:1,12:3");
	REFUSED(redirects, "1:9",
		"--redirects: '1:9' is neither 0, 1 (stdout), 2 (stderr), 3 (both) nor a list such "
		"as 0:1,12:3");
	REFUSED(local_ranks_filter, "a",
		"--local-ranks-filter: 'a' is not a list of local ranks such as 0,3");
	REFUSED(bind, "moon",
		"--bind: 'moon' is neither none, core, l3, numa, socket nor explicit:LIST:LIST");
	REFUSED(bind, "explicit:x", "--bind=explicit: 'x' is not a list of CPUs such as 0-3,8");
}

TEST(config_counts_the_cpus_it_may_use)
{
	cpu_set_t set;
	ck_assert_int_eq(sched_getaffinity(0, sizeof(set), &set), 0);
	options = run_options_default;
	options.nproc_per_node = "cpu";
	ck_assert_int_eq(make(), 0);
	ck_assert_int_eq(config.nproc, CPU_COUNT(&set));
	options.nproc_per_node = " 1_0 ";
	ck_assert_int_eq(make(), 0);
	ck_assert_int_eq(config.nproc, 10);
	run_config_done(&config);
}

TEST(config_refuses_each_bad_number_of_nodes_by_value)
{
	REFUSED(rdzv.nnodes, "4:2", "--nnodes: '4:2' needs 0 < MIN <= MAX");
	REFUSED(rdzv.nnodes, "0", "--nnodes: '0' needs 0 < MIN <= MAX");
	REFUSED(rdzv.nnodes, "1:1000001",
		"--nnodes: '1:1000001' is more than the 1000000 nodes a job may have");
	REFUSED(rdzv.nnodes, "5000000000",
		"--nnodes: '5000000000' is more than the 1000000 nodes a job may have");
	REFUSED(rdzv.nnodes, "1:2:3", "--nnodes: '1:2:3' is neither N nor MIN:MAX");
	REFUSED(rdzv.nnodes, "", "--nnodes: '' is neither N nor MIN:MAX");
	REFUSED(rdzv.nnodes, "1:x", "--nnodes: '1:x' is neither N nor MIN:MAX");
	REFUSED(rdzv.nnodes, "2",
		"--nnodes: '2': several nodes need --rdzv-endpoint=HOST, the same on all of them, "
		"or "
		"--master-addr=HOST and --node-rank=N");
	REFUSED(rdzv.node_rank, 1, "--node-rank: 1 must be below the number of nodes, which is 1");
}

TEST(config_refuses_other_bad_values)
{
	REFUSED(restarts.max, -1, "--max-restarts: -1 must be 0 or more");
	REFUSED(monitor_interval, 0.0, "--monitor-interval: 0 must be more than 0");
	REFUSED(monitor_interval, __builtin_nan(""), "--monitor-interval: nan must be more than 0");
	REFUSED(rdzv.master_port, 0, "--master-port: 0 is not a port (1 to 65535)");
	REFUSED(rdzv.master_port, 65536, "--master-port: 65536 is not a port (1 to 65535)");
	REFUSED(signals_to_handle, "SIGTERM,SIGFOO",
		"--signals-to-handle: 'SIGFOO' is not a signal");
	REFUSED(signals_to_handle, "SIGKILL", "--signals-to-handle: 'SIGKILL' cannot be handled");
	REFUSED(event_log_handler, "x", "--event-log-handler: 'x' is neither null nor console");
	options = run_options_default;
	options.no_python = options.module = true;
	ck_assert_int_eq(make(), -EINVAL);
	setenv("TORCH_ELASTIC_SHUTDOWN_TIMEOUT", "soon", 1);
	options = run_options_default;
	ck_assert_int_eq(make(), -EINVAL);
	ck_assert_str_eq(err.msg,
			 "TORCH_ELASTIC_SHUTDOWN_TIMEOUT: 'soon' is not a time in seconds");
}

TEST(config_takes_master_and_names_as_given)
{
	options = run_options_default;
	options.rdzv.master_addr = "10.0.0.1";
	options.rdzv.master_port = 29501;
	options.rdzv.id = "job7";
	options.signals_to_handle = " SIGTERM , usr1";
	ck_assert_int_eq(make(), 0);
	ck_assert_str_eq(config.master_addr, "10.0.0.1");
	ck_assert_uint_eq(config.master_port, 29501);
	ck_assert_str_eq(config.run_id, "job7");
	ck_assert(sigismember(&config.stop_signals, SIGUSR1));
	ck_assert(!sigismember(&config.stop_signals, SIGINT));
	options.rdzv.standalone = true;
	ck_assert_int_eq(make(), 0);
	ck_assert_str_eq(config.master_addr, "127.0.0.1");
	ck_assert_uint_eq(config.master_port, 0);
	run_config_done(&config);
}

TEST(backoff_is_initial_and_cap)
{
	struct run_backoff backoff;
	ck_assert_int_eq(run_backoff_parse("2s", &backoff, &err), 0);
	ck_assert_uint_eq(backoff.initial_ns, 2 * NS_PER_S);
	ck_assert_uint_eq(backoff.max_ns, 60 * NS_PER_S);
	ck_assert_int_eq(run_backoff_parse("200ms:5m", &backoff, &err), 0);
	ck_assert_uint_eq(backoff.initial_ns, 200 * NS_PER_MS);
	ck_assert_uint_eq(backoff.max_ns, 300 * NS_PER_S);
	ck_assert_int_eq(run_backoff_parse("10m", &backoff, &err), 0);
	ck_assert_uint_eq(backoff.max_ns, 600 * NS_PER_S);
	ck_assert_int_eq(run_backoff_parse("5:1", &backoff, &err), -EINVAL);
	ck_assert_int_eq(run_backoff_parse("", &backoff, &err), -EINVAL);
	ck_assert_int_eq(run_backoff_parse("1:", &backoff, &err), -EINVAL);
}

TEST(exit_set_holds_codes_ranges_and_signals)
{
	struct exit_set set;
	ck_assert_int_eq(exit_set_parse("2,64-78,SIGSEGV,bus,hup,0,63", &set, &err), 0);
	const struct {
		struct exit_status status;
		bool in;
	} cases[] = {
		{ { EXIT_CODE, 2, false }, true },	  { { EXIT_CODE, 1, false }, false },
		{ { EXIT_CODE, 64, false }, true },	  { { EXIT_CODE, 78, false }, true },
		{ { EXIT_CODE, 79, false }, false },	  { { EXIT_CODE, SIGSEGV, false }, false },
		{ { EXIT_SIGNAL, SIGSEGV, true }, true }, { { EXIT_SIGNAL, SIGBUS, false }, true },
		{ { EXIT_SIGNAL, 2, false }, false },	  { { EXIT_UNKNOWN, 2, false }, false },
		{ { EXIT_SIGNAL, 1, false }, true },	  { { EXIT_SIGNAL, 0, false }, false },
		{ { EXIT_SIGNAL, 65, false }, false },	  { { EXIT_SIGNAL, 64, false }, false },
		{ { EXIT_CODE, 0, false }, true },	  { { EXIT_CODE, 63, false }, true },
		{ { EXIT_CODE, 256, false }, false },	  { { EXIT_CODE, -1, false }, false },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++)
		ck_assert_msg(exit_set_contains(&set, &cases[i].status) == cases[i].in, "case %zu",
			      i);
	static const char *const bad[] = { "256",
					   "5-2",
					   "-3",
					   "1,,2",
					   "SIGFOO",
					   "3-",
					   "1x",
					   "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
					   "EXIT",
					   "RTMAX+1",
					   "00000000000000000000000000000002" };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ck_assert_msg(exit_set_parse(bad[i], &set, &err) == -EINVAL, "%s", bad[i]);
	ck_assert_int_eq(exit_set_parse("", &set, &err), 0);
	ck_assert(!exit_set_contains(&set, &(struct exit_status){ EXIT_CODE, 2, false }));
}
