#include "cli/run_opts.h"

#include "base/str.h"
#include "watch/flight_fetch.h"

static const char *const start_methods[] = { "spawn", "fork", "forkserver", NULL };
static const char *const numa_bindings[] = { "node", "socket", "exclusive", "core-complex", NULL };
static const char *const bad_nodes[] = {
	[RUN_BAD_NODE_PARK] = "park", [RUN_BAD_NODE_LEAVE] = "leave", NULL
};
static const char *const styles[] = {
	[RUN_STYLE_MUSTER] = "muster", [RUN_STYLE_TORCHRUN] = "torchrun", NULL
};
static const char *const reports[] = { [RUN_STYLE_MUSTER] = "muster",
				       [RUN_STYLE_TORCHRUN] = "torchrun",
				       [RUN_STYLE_NONE] = "none",
				       NULL };
static const char *const captures[] = { [RUN_CAPTURE_AUTO] = "auto",
					[RUN_CAPTURE_ALWAYS] = "always",
					[RUN_CAPTURE_NEVER] = "never",
					NULL };
static const char *const mpis[] = {
	[RUN_MPI_AUTO] = "auto", [RUN_MPI_NONE] = "none", [RUN_MPI_PMI] = "pmi", NULL
};
static const char *const stdins[] = { [RUN_STDIN_FIRST] = "first", [RUN_STDIN_ALL] = "all", NULL };
static const char *const usr_signals[] = {
	[RUN_USR_AUTO] = "auto", [RUN_USR_IGNORE] = "ignore", [RUN_USR_DEFAULT] = "default", NULL
};
static const char *const store_accesses[] = {
	[STORE_ACCESS_MEMBERS] = "members", [STORE_ACCESS_ANY] = "any", NULL
};

static const char *const hang_actions[] = { [HANG_ACTION_RESTART] = "restart",
					    [HANG_ACTION_REPORT] = "report",
					    [HANG_ACTION_STOP] = "stop",
					    NULL };

#define O struct run_options

const struct opt run_opts[] = {
	OPT_GROUP("Workers"),
	{ OPT_FIELD(OPT_TYPE_STR, "nproc-per-node", "PET_NPROC_PER_NODE", O, nproc_per_node, "N",
		    "workers on this host: a number, cpu, gpu, xpu or auto (default 1)"),
	  .elsewhere = 'n' },
	{ OPT_FIELD(OPT_TYPE_FLAG, "module", "PET_MODULE", O, module, NULL,
		    "SCRIPT is the name of a Python module, as python -m"),
	  .short_name = 'm' },
	OPT_FLAG("no-python", "PET_NO_PYTHON", O, no_python,
		 "PROGRAM is no script, whatever it looks like"),
	OPT_FLAG("run-path", "PET_RUN_PATH", O, run_path, "run the script by Python's runpy"),
	OPT_FLAG("use-env", NULL, O, use_env,
		 "accepted for torch.distributed.launch; ranks are in the environment"),
	OPT_STR("role", "PET_ROLE", O, role, "NAME", "the workers' role (default 'default')"),
	OPT_FLAG("virtual-local-rank", "PET_VIRTUAL_LOCAL_RANK", O, virtual_local_rank,
		 "every worker sees LOCAL_RANK=0 and its device alone"),
	OPT_CHOICE("stdin", NULL, O, stdin_mode, stdins,
		   "who reads our standard input: local rank 0 (default), or all as with torchrun"),
	{ OPT_FIELD(OPT_TYPE_CHOICE, "start-method", "PET_START_METHOD", O, start_method, NULL,
		    "accepted for torchrun; workers are always started afresh"),
	  .choices = start_methods, .without_effect = true },
	OPT_STR("preload", NULL, O, preload, "MODULE,...",
		"import these Python modules once and fork the workers from there"),
	OPT_CALL("env", NULL, O, env_kinds, program_kinds_parse, "KIND",
		 "also set the variables of other kinds of programs: jax, mpi (may be repeated)"),
	OPT_CHOICE(
		"mpi", NULL, O, mpi, mpis,
		"serve MPI libraries in the workers, so that they are one world: pmi (MPICH, Intel "
		"MPI, MVAPICH), none, or auto, as the program is linked (default)"),
	{ OPT_FIELD(OPT_TYPE_STR, "preflight", NULL, O, preflight.checks, "quick|full|NAME,...",
		    "check this host before it joins the job and after each failure (muster "
		    "doctor); one that is not fit becomes a spare of last resort"),
	  .bare = "quick" },
	OPT_STR("check", NULL, O, preflight.command, "COMMAND",
		"run this, too; the node is not fit if it fails"),
	OPT_STR("check-limits", NULL, O, preflight.limits, "FIGURE=[LOW]:[HIGH],...",
		"a node with a figure outside these is not fit"),
	OPT_CHOICE("bad-node", NULL, O, preflight.bad_node, bad_nodes,
		   "a node that is not fit waits as a spare of last resort, or leaves with 91"),
	OPT_INT("strikes", NULL, O, preflight.strikes, "N",
		"after so many failures of its workers a host is of last resort (default 3 with "
		"--preflight, otherwise 0: never)"),
	OPT_DURATION("cool-down", NULL, O, preflight.cool_down_ns, "TIME",
		     "a host's failures are forgotten after this (default 10min)"),
	OPT_STR("exclude-hosts", NULL, O, preflight.exclude_hosts, "HOST,...",
		"hosts that get no workers"),
	OPT_FLAG("dry-run", NULL, O, dry_run,
		 "print ranks, environment, CPUs and commands, and start nothing"),

	OPT_GROUP("Placement"),
	OPT_CHOICE("numa-binding", NULL, O, numa_binding, numa_bindings,
		   "bind each worker to CPUs near its device, as torchrun"),
	OPT_STR("bind", NULL, O, bind, "PLACE",
		"bind each worker to its share: none, core, l3, numa, socket, "
		"explicit:LIST:LIST..."),
	OPT_FLAG("show-binding", NULL, O, show_binding,
		 "draw on stderr which worker is bound where"),

	OPT_GROUP("Failures"),
	OPT_CALL("max-restarts", "PET_MAX_RESTARTS", O, restarts, run_restarts_parse,
		 "N[/progress]",
		 "start the group again up to N times (default 0); with /progress, only attempts "
		 "in a row without a new step count"),
	OPT_CALL("restart-backoff", NULL, O, restart_backoff, run_backoff_parse, "TIME[:MAX]",
		 "wait before a restart, twice as long each time, up to MAX (default 0; MAX 1m)"),
	OPT_CALL("no-restart-on", NULL, O, no_restart_on, run_no_restart_parse, "LIST",
		 "ends not worth a restart: exit codes and signals, such as 2,64-78,SIGSEGV"),
	OPT_DURATION("shutdown-timeout", "PET_SHUTDOWN_TIMEOUT", O, shutdown_ns, "TIME",
		     "time between the stop signal and SIGKILL (default 30 s)"),
	OPT_DURATION("lost-host-timeout", NULL, O, lost_host_ns, "TIME",
		     "end the job when a host that it needs is lost and not back by then (default "
		     "join_timeout; 1 min with --hosts and in a step of Slurm)"),
	OPT_DURATION("notice", NULL, O, notice_ns, "TIME",
		     "time for workers that ask (muster_stop_after(3)) to save and leave together "
		     "after SIGTERM or SIGUSR1 (default 60 s; 0: they are stopped)"),
	OPT_STR("signals-to-handle", "PET_SIGNALS_TO_HANDLE", O, signals_to_handle, "LIST",
		"signals that end the job (default " RUN_SIGNALS_DEFAULT ")"),
	OPT_CHOICE("usr-signals", NULL, O, usr_signals, usr_signals,
		   "how workers begin with SIGUSR1 and SIGUSR2: ignored, or with the default "
		   "effect, which ends them; auto: ignored under Slurm"),
	OPT_FLOAT("monitor-interval", "PET_MONITOR_INTERVAL", O, monitor_interval, "SECONDS",
		  "accepted for torchrun; nothing is polled"),
	OPT_CHOICE("exit-code", NULL, O, exit_code, styles,
		   "of a failed job: the first cause's own (default), or always 1 as torchrun"),
	OPT_CALL("exit-map", NULL, O, exit_map, run_exit_map_parse, "LIST",
		 "other exit codes, for schedulers: NAME[=CODE] of the table in muster(1), "
		 "CODE=CODE, SIGNAL=CODE"),

	OPT_GROUP("Watching"),
	OPT_STR("events", NULL, O, events, "FILE|fd:N|-",
		"write what happens there, one JSON line each (muster-events(7))"),
	OPT_INT("lifeline", NULL, O, lifeline, "N",
		"stop the job at the end of file of descriptor N, a pipe that another process "
		"holds open"),
	OPT_STR("http", NULL, O, http, "[ADDR:]PORT",
		"serve /healthz, /readyz, /metrics and /api/state there (default: only to muster "
		"status)"),
	OPT_DURATION("hang-timeout", NULL, O, hang_timeout_ns, "TIME",
		     "a worker hangs when it prints nothing and sends no heartbeat for this long "
		     "(default: never)"),
	OPT_DURATION("start-timeout", NULL, O, start_timeout_ns, "TIME",
		     "the same for a worker's first sign of life (default: as --hang-timeout)"),
	OPT_CHOICE("hang-action", NULL, O, hang_action, hang_actions,
		   "what to do with a group in which a worker hangs (default restart)"),
	OPT_STR("progress-regex", NULL, O, progress_regex, "PATTERN",
		"find the step that a worker is at in what it prints, such as 'step (\\d+)'"),
	OPT_INT("progress-total", NULL, O, progress_total, "N",
		"steps in all, for the time that is left (default: as the workers say)"),
	OPT_SIZE("keep-limit", NULL, O, keep_limit, "SIZE",
		 "memory that workers of this host may keep over restarts, muster_keep(3) "
		 "(default: half of the host's)"),
	{ OPT_FIELD(OPT_TYPE_INT, "flight-recorder", NULL, O, flight, "N",
		    "have PyTorch record each worker's last N collectives (2000), so that a report "
		    "of a hang names the rank that did not come"),
	  .bare = FLIGHT_DEFAULT_SIZE },
	OPT_FLAG("exclude-culprit", NULL, O, exclude_culprit,
		 "after a hang, start again without the host of the rank that did not come, if "
		 "enough others are there"),
	OPT_DURATION("diagnose-timeout", NULL, O, diagnose_ns, "TIME",
		     "time to collect stacks before a worker is ended (default: 10 s for "
		     "hangs and with --flight-recorder, else 0)"),

	OPT_GROUP("Output"),
	OPT_STR("log-dir", "PET_LOG_DIR", O, log_dir, "DIR",
		"where logs and errors go (default: a temporary directory; /dev/null: nowhere)"),
	OPT_FLAG("shared-log-dir", NULL, O, shared_log_dir,
		 "as root, take a --log-dir that other users can replace"),
	OPT_CHOICE(
		"report", NULL, O, report, reports,
		"form of the report on failure: for people (default), torchrun's table, or none"),
	OPT_CHOICE("capture", NULL, O, capture, captures,
		   "keep the end of each worker's output for the report and muster logs; auto: "
		   "unless it is a terminal"),
	{ OPT_FIELD(OPT_TYPE_STR, "redirects", "PET_REDIRECTS", O, redirects, "MASK",
		    "write stdout (1), stderr (2) or both (3) to log files"),
	  .short_name = 'r' },
	{ OPT_FIELD(OPT_TYPE_STR, "tee", "PET_TEE", O, tee, "MASK", "the same, and show them too"),
	  .short_name = 't' },
	{ OPT_FIELD(OPT_TYPE_STR, "local-ranks-filter", "PET_LOCAL_RANKS_FILTER", O,
		    local_ranks_filter, "LIST", "show only these local ranks") },
	{ OPT_FIELD(OPT_TYPE_STR, "duplicate-stdout-filters", "PET_DUPLICATE_STDOUT_FILTERS", O,
		    duplicate_stdout_filters, "LIST",
		    "copy stdout lines with one of these texts to one file") },
	{ OPT_FIELD(OPT_TYPE_STR, "duplicate-stderr-filters", "PET_DUPLICATE_STDERR_FILTERS", O,
		    duplicate_stderr_filters, "LIST", "the same for stderr") },
	OPT_STR("prefix", NULL, O, prefix, "TEMPLATE",
		"put this before each line shown; knows ${role_name} ${rank} ${local_rank} "
		"${group_rank} ${host}"),
	OPT_FLAG("merge-output", NULL, O, merge_output,
		 "show a line that many workers print alike once, with their number"),
	OPT_STR("job-log", NULL, O, job_log, "FILE",
		"one log of what all hosts print, written where the coordinator is"),
	OPT_SIZE("log-max-size", NULL, O, log_max_size, "SIZE",
		 "begin a log file again at this size, the full one set aside as FILE.1"),
	OPT_STR("logs-specs", NULL, O, logs_specs, "NAME",
		"refused: a Python plug-in for logs, which torchrun loads"),
	OPT_STR("event-log-handler", "PET_EVENT_LOG_HANDLER", O, event_log_handler, "NAME",
		"where torch's events go: null (default) or console (stderr)"),

	OPT_GROUP("Hosts"),
	OPT_STR("hosts", NULL, O, hosts.list, "HOST[:SLOTS],...",
		"start the job on these hosts, over ssh, from here"),
	OPT_STR("hostfile", NULL, O, hosts.file, "FILE",
		"the same with a host a line, as mpirun reads it (slots=N, # comments)"),
	OPT_STR("ssh", NULL, O, hosts.ssh, "COMMAND",
		"command that reaches a host, with its options (default ssh)"),
	OPT_DURATION("ssh-timeout", NULL, O, hosts.timeout_ns, "TIME",
		     "a host that has not answered by then is given up (default 30 s)"),
	OPT_INT("ssh-fanout", NULL, O, hosts.fanout, "N",
		"hosts that one host reaches; more are reached by those (default 64)"),

	OPT_GROUP("Nodes"),
	OPT_STR("nnodes", "PET_NNODES", O, rdzv.nnodes, "N|MIN:MAX", "number of nodes (default 1)"),
	OPT_FLAG("standalone", "PET_STANDALONE", O, rdzv.standalone,
		 "a job of its own on this host"),
	OPT_FLAG("slurm", NULL, O, slurm,
		 "in a batch script of Slurm: start on every node of the job, through srun"),
	OPT_INT("node-rank", "PET_NODE_RANK", O, rdzv.node_rank, "N",
		"rank of this node (default: 0 with static, else any)"),
	OPT_STR("master-addr", "PET_MASTER_ADDR", O, rdzv.master_addr, "HOST",
		"host of node 0, with --master-port (default 127.0.0.1)"),
	OPT_INT("master-port", "PET_MASTER_PORT", O, rdzv.master_port, "PORT",
		"port of the workers' store on it (default: a fresh one each round)"),
	OPT_STR("local-addr", "PET_LOCAL_ADDR", O, rdzv.local_addr, "HOST",
		"address of this node, where it serves the workers' store"),
	OPT_INT("store-port", NULL, O, store_port, "PORT",
		"port of the workers' store in every round (default: a fresh one each)"),
	OPT_CHOICE("store-access", NULL, O, store_access, store_accesses,
		   "who may connect to it: hosts of the job (default), or any host"),
	OPT_STR("rdzv-id", "PET_RDZV_ID", O, rdzv.id, "ID",
		"name of the job (default: a random one)"),
	OPT_STR("rdzv-backend", "PET_RDZV_BACKEND", O, rdzv.backend, "NAME",
		"how nodes find each other: c10d, static, etcd or exec:PROGRAM (default: as the "
		"other options suggest)"),
	OPT_STR("rdzv-endpoint", "PET_RDZV_ENDPOINT", O, rdzv.endpoint, "HOST[:PORT][,...]",
		"where nodes find each other, the same on all; the later ones stand in for the "
		"first (port 29400)"),
	OPT_STR("rdzv-conf", "PET_RDZV_CONF", O, rdzv.conf, "KEY=VALUE,...",
		"settings of the rendezvous, such as join_timeout=600"),
	OPT_END,
};

#undef O

char *const *run_opts_args(char **argv, int first)
{
	bool taken = str_eq(argv[first - 1], "--");
	char **args = argv + first + 1;
	return !taken && args[0] && str_eq(args[0], "--") ? args + 1 : args;
}
