#include "run/config.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/procfs.h"
#include "base/random.h"
#include "base/str.h"
#include "core/fleet/fleet.h"
#include "net/http.h"
#include "proto/step_pattern.h"
#include "run/checks/preflight_options.h"
#include "run/worker_env.h"
#include "sys/engine_ask.h"
#include "sys/hwloc_topology.h"
#include "watch/flight_fetch.h"
#include "watch/stacks.h"

#define BACKOFF_MAX_DEFAULT_NS (60 * NS_PER_S)
#define CPUS_MAX (1 << 16)
#define SIGNAL_TEXT_MAX 32
#define SHM_SMALL ((uint64_t)64 << 20)

#define COOL_DOWN_DEFAULT_NS (600 * NS_PER_S)

const struct run_options run_options_default = {
	.rdzv = {
		.endpoint = "",
		.conf = "",
		.node_rank = RENDEZVOUS_RANK_UNSET,
		.master_port = RENDEZVOUS_PORT_UNSET,
	},
	.hosts = { .ssh = "ssh",
		   .timeout_ns = RUN_SSH_TIMEOUT_DEFAULT_S * NS_PER_S,
		   .fanout = FLEET_FANOUT_DEFAULT },
	.nproc_per_node = "1",
	.monitor_interval = 0.1,
	.event_log_handler = "null",
	.lifeline = -1,
	.role = "default",
	.redirects = "0",
	.tee = "0",
	.local_ranks_filter = "",
	.numa_binding = -1,
	.signals_to_handle = RUN_SIGNALS_DEFAULT,
	.shutdown_ns = NS_NEVER,
	.lost_host_ns = RUN_LOST_HOST_UNSET,
	.notice_ns = RUN_NOTICE_DEFAULT_S * NS_PER_S,
	.diagnose_ns = NS_NEVER,
	.preflight = { .strikes = -1, .cool_down_ns = COOL_DOWN_DEFAULT_NS },
};

int run_nodes_parse(const char *text, uint32_t *ret_min, uint32_t *ret_max, struct err *err)
{
	if (!text) {
		*ret_min = *ret_max = 1;
		return 0;
	}
	const char *rest = text;
	int64_t bounds[2];
	int parts = 0;
	while (rest) {
		size_t len;
		const char *piece = str_split(&rest, ':', &len);
		AUTO_FREE char *number = mem_strndup(piece, len);
		if (parts == 2 || str_to_i64_python(number, &bounds[parts++]) < 0)
			return err_set(err, EINVAL, "--nnodes: '%.64s' is neither N nor MIN:MAX",
				       text);
	}
	int64_t min = bounds[0], max = bounds[parts - 1];
	if (min < 1 || min > max)
		return err_set(err, EINVAL, "--nnodes: '%.64s' needs 0 < MIN <= MAX", text);
	if (max > MSG_NODES_MAX)
		return err_set(err, EINVAL,
			       "--nnodes: '%.64s' is more than the %d nodes a job may have", text,
			       MSG_NODES_MAX);
	*ret_min = (uint32_t)min;
	*ret_max = (uint32_t)max;
	return 0;
}

/* The CPUs that this process may use: what a batch system gave it, not what the machine has. */
static int count_cpus(uint32_t *ret_count, struct err *err)
{
	for (size_t max = CPU_SETSIZE; max <= CPUS_MAX; max *= 2) {
		cpu_set_t *set = CPU_ALLOC(max);
		size_t size = CPU_ALLOC_SIZE(max);
		int r = sched_getaffinity(0, size, set);
		int count = r == 0 ? CPU_COUNT_S(size, set) : 0;
		CPU_FREE(set);
		if (r == 0) {
			*ret_count = (uint32_t)count;
			return 0;
		}
		if (errno != EINVAL)
			break;
	}
	return err_set(err, errno, "--nproc-per-node: cannot read the CPU affinity: %m");
}

static int count_devices(const char *text, enum device_kind kind, uint32_t *ret_count,
			 struct err *err)
{
	struct devices devices;
	int r = devices_find(kind, &devices, err);
	if (r < 0)
		return err_wrap(err, "--nproc-per-node=%s", text);
	if (devices.count == 0)
		return err_set(err, EINVAL,
			       "--nproc-per-node: '%s': there is no such device; give the number, "
			       "or see what 'muster doctor' says of devices",
			       text);
	*ret_count = devices.count;
	return 0;
}

static int parse_nproc(const char *text, uint32_t *ret_nproc, struct err *err)
{
	int64_t count;
	int r = str_to_i64_python(text, &count);
	if (r == -ERANGE || (r == 0 && count > RUN_NPROC_MAX))
		return err_set(
			err, EINVAL,
			"--nproc-per-node: '%.64s' is more than the %d workers a host may have",
			text, RUN_NPROC_MAX);
	if (r == 0 && count < 1)
		return err_set(err, EINVAL, "--nproc-per-node: '%.64s' must be at least 1", text);
	if (r == 0) {
		*ret_nproc = (uint32_t)count;
		return 0;
	}
	if (str_eq(text, "cpu"))
		return count_cpus(ret_nproc, err);
	if (str_eq(text, "gpu"))
		return count_devices(text, DEVICE_GPU, ret_nproc, err);
	if (str_eq(text, "xpu"))
		return count_devices(text, DEVICE_XPU, ret_nproc, err);
	if (str_eq(text, "auto"))
		return count_devices(text, DEVICE_GPU, ret_nproc, NULL) == 0 ||
				       count_devices(text, DEVICE_XPU, ret_nproc, NULL) == 0
			       ? 0
			       : count_cpus(ret_nproc, err);
	return err_set(err, EINVAL,
		       "--nproc-per-node: '%.64s' is neither a number nor cpu, gpu, xpu or auto",
		       text);
}

int run_signals_parse(const char *text, sigset_t *ret_set, struct err *err)
{
	sigset_t set;
	sigemptyset(&set);
	const char *rest = text, *piece;
	size_t len;
	while ((piece = str_split(&rest, ',', &len))) {
		char name[SIGNAL_TEXT_MAX];
		piece = str_trim(piece, &len);
		snprintf(name, sizeof(name), "%.*s", (int)MIN(len, sizeof(name) - 1), piece);
		int sig = str_to_signal(name);
		if (sig < 0)
			return err_set(err, EINVAL, "--signals-to-handle: '%s' is not a signal",
				       name);
		if (sig == SIGKILL || sig == SIGSTOP || sig == SIGCHLD)
			return err_set(err, EINVAL, "--signals-to-handle: '%s' cannot be handled",
				       name);
		sigaddset(&set, sig);
	}
	*ret_set = set;
	return 0;
}

static bool is_given(const char *text)
{
	return text && *text;
}

/* Torch reads the time as a float; anything that is not a number above 0 means "off". */
static uint64_t uninterruptible_time(void)
{
	const char *text = getenv("TORCHELASTIC_UNINTERRUPTIBLE_STATE_TIMEOUT");
	double seconds;
	if (!text || str_to_double(text, &seconds) < 0 || !(seconds > 0) || seconds > 1e9)
		return 0;
	return (uint64_t)(seconds * (double)NS_PER_S);
}

static uint64_t keep_limit(uint64_t given)
{
	return given ? given : procfs_memory_total() / 2;
}

static struct guard_config make_guard(const struct run_options *options)
{
	const char *enabled = getenv("TORCHELASTIC_ENABLE_FILE_TIMER");
	const char *path = getenv("TORCHELASTIC_TIMER_FILE");
	bool given = options->diagnose_ns != NS_NEVER;
	return (struct guard_config){
		.diagnose_timer_ns = given	       ? options->diagnose_ns
				     : options->flight ? STACKS_DEFAULT_NS
						       : 0,
		.diagnose_hang_ns = given ? options->diagnose_ns : STACKS_DEFAULT_NS,
		.hang = { .silent_ns = options->hang_timeout_ns,
			  .start_ns = options->start_timeout_ns,
			  .uninterruptible_ns = uninterruptible_time() },
		.hang_action = (enum hang_action)options->hang_action,
		.file_timer = enabled && str_eq(enabled, "1"),
		.timer_file = path && *path ? path : NULL,
		.flight = (uint32_t)options->flight,
		.warm = is_given(options->preload),
		.exclude_culprit = options->exclude_culprit,
		.keep_limit = keep_limit(options->keep_limit),
	};
}

static int check_lifeline(int64_t fd, struct err *err)
{
	if (fd == -1 || (fd >= 0 && fd <= INT_MAX && fcntl((int)fd, F_GETFD) >= 0))
		return 0;
	return err_set(err, EINVAL, "--lifeline: %" PRId64 " is not an open descriptor", fd);
}

static int check_flight(const struct run_options *options, struct err *err)
{
	if (options->flight < 0 || options->flight > FLIGHT_SIZE_MAX)
		return err_set(err, EINVAL,
			       "--flight-recorder: %" PRId64 " is not between 0 and %d",
			       options->flight, FLIGHT_SIZE_MAX);
	if (options->exclude_culprit && !options->flight)
		return err_set(err, EINVAL, "--exclude-culprit needs --flight-recorder");
	return 0;
}

/* Names of modules, which may contain dots, separated by commas. */
static int check_preload(const char *text, struct err *err)
{
	const char *rest = text && *text ? text : NULL, *name;
	size_t len;
	while ((name = str_split(&rest, ',', &len)))
		if (len == 0 || strspn(name, ".") > 0 || len != strcspn(name, " \t,;'\"/\\()"))
			return err_set(err, EINVAL, "--preload: '%.*s' is not the name of a module",
				       (int)len, name);
	return 0;
}

static int parse_events(const char *handler, bool *ret_console, struct err *err)
{
	*ret_console = str_eq(handler, "console");
	if (*ret_console || str_eq(handler, "null") || str_eq(handler, "dynamic_rendezvous"))
		return 0;
	return err_set(err, EINVAL, "--event-log-handler: '%.64s' is neither null nor console",
		       handler);
}

/* ---- engines ---- */

static bool says_how_nodes_meet(const struct rendezvous_options *options)
{
	return options->standalone || is_given(options->backend) || is_given(options->endpoint) ||
	       is_given(options->master_addr) || options->master_port != RENDEZVOUS_PORT_UNSET ||
	       options->node_rank != RENDEZVOUS_RANK_UNSET;
}

/* A place of its own: the endpoints of an engine do not replace it. */
static bool says_where_nodes_meet(const struct rendezvous_options *options)
{
	return is_given(options->endpoint) || is_given(options->master_addr) ||
	       options->master_port != RENDEZVOUS_PORT_UNSET ||
	       (is_given(options->backend) && !str_eq(options->backend, "c10d") &&
		!str_eq(options->backend, "static"));
}

/* Of the endpoints of an engine: static has one. */
static void keep_first(char *endpoints)
{
	endpoints[strcspn(endpoints, ",")] = '\0';
}

/* Completes what the user gave with what Slurm or another engine says, if one started us. The texts
 * belong to config->engine. */
static int ask_engine(struct run_options *options, struct run_config *config, struct err *err)
{
	struct rendezvous_options *rdzv = &options->rdzv;
	struct engine_settings *engine = &config->engine;
	struct engine_asked asked = {
		.min_nodes = rdzv->nnodes ? config->min_nodes : 0,
		.max_nodes = rdzv->nnodes ? config->max_nodes : 0,
		.rendezvous = says_how_nodes_meet(rdzv),
		.alone = rdzv->standalone,
		.place = says_where_nodes_meet(rdzv),
		.node_rank = rdzv->node_rank != RENDEZVOUS_RANK_UNSET ? rdzv->node_rank : -1,
	};
	int r = engine_ask(asked, engine, err);
	if (r < 0)
		return r;
	if (engine->notice)
		log_info("%s", engine->notice);
	if (engine->warning)
		log_warn("%s", engine->warning);
	rdzv->munge = engine->munge;
	if (!engine->settles)
		return 0;
	config->min_nodes = engine->min_nodes;
	config->max_nodes = engine->max_nodes;
	if (engine->endpoint && is_given(rdzv->backend) && str_eq(rdzv->backend, "static"))
		keep_first(engine->endpoint);
	if (engine->endpoint)
		rdzv->endpoint = engine->endpoint;
	if (engine->master_addr) {
		rdzv->master_addr = engine->master_addr;
		rdzv->master_port = engine->master_port;
	}
	if (engine->node_rank >= 0)
		rdzv->node_rank = engine->node_rank;
	if (!is_given(rdzv->id))
		rdzv->id = engine->run_id;
	const char *place = engine->endpoint ? engine->endpoint : engine->master_addr;
	log_debug("%s: %u to %u nodes, run '%s', endpoints %s", engine->engine, config->min_nodes,
		  config->max_nodes, rdzv->id, place ? place : "none");
	return 0;
}

/* An engine may give a task fewer CPUs than its workers need, by a mask or by a quota, and nothing
 * fails, only slowly. */
static void advise_on_cpus(const struct run_config *config)
{
	uint32_t cpus;
	if (!config->engine.more_cpus || count_cpus(&cpus, NULL) < 0)
		return;
	uint64_t quota = (topology_quota_milli("") + 999) / 1000; /* 0: none */
	if (quota && quota < cpus)
		cpus = (uint32_t)quota;
	if (cpus < config->nproc)
		log_warn("%u workers share %u CPU%s, which is all that %s allows here: %s",
			 config->nproc, cpus, cpus == 1 ? "" : "s", config->engine.engine,
			 config->engine.more_cpus);
}

/* A container has a /dev/shm of 64 MiB unless it is told otherwise, and data loaders that fill it
 * die of SIGBUS. */
static void advise_on_shm(const struct engine_settings *engine)
{
	struct statvfs shm;
	if (!engine->more_shm || statvfs("/dev/shm", &shm) < 0)
		return;
	uint64_t bytes = (uint64_t)shm.f_blocks * shm.f_frsize;
	if (bytes <= SHM_SMALL)
		log_warn("/dev/shm has %" PRIu64 " MiB, which data loaders may fill: %s",
			 bytes >> 20, engine->more_shm);
}

/* Where an engine signals every process, a worker that does not expect it would die of it. */
static bool ignores_usr(enum run_usr choice, const struct engine_settings *engine)
{
	return choice == RUN_USR_IGNORE || (choice == RUN_USR_AUTO && engine->signaller);
}

static int check_ports(const struct run_options *options, struct err *err)
{
	if (options->rdzv.master_port != RENDEZVOUS_PORT_UNSET &&
	    (options->rdzv.master_port < 1 || options->rdzv.master_port > UINT16_MAX))
		return err_set(err, EINVAL, "--master-port: %" PRId64 " is not a port (1 to 65535)",
			       options->rdzv.master_port);
	if (options->store_port < 0 || options->store_port > UINT16_MAX)
		return err_set(err, EINVAL, "--store-port: %" PRId64 " is not a port (0 to 65535)",
			       options->store_port);
	return 0;
}

/* The address of the workers' store, as far as it is known before the nodes have met. */
static void place_store(const struct run_options *options, struct run_config *config)
{
	struct rendezvous *rdzv = &config->rdzv;
	bool fixed =
		options->rdzv.master_port != RENDEZVOUS_PORT_UNSET && !options->rdzv.standalone;
	config->store_access = (enum store_access)options->store_access;
	config->master_port = (uint16_t)options->store_port;
	config->master_addr = rdzv->local_addr;
	if (rdzv->is_static && rdzv->node_rank == 0 && !config->master_port) {
		rdzv->store_at_endpoint = true;
		config->master_port = rdzv->endpoints[0].port;
	} else if (rdzv->kind == RENDEZVOUS_LOCAL) {
		if (!config->master_port && fixed)
			config->master_port = (uint16_t)options->rdzv.master_port;
		if (fixed && options->rdzv.master_addr)
			config->master_addr = options->rdzv.master_addr;
		else if (!config->master_addr)
			config->master_addr = "127.0.0.1";
	}
}

static int choose_rendezvous(const struct run_options *options, struct run_config *config,
			     struct err *err)
{
	int r = check_ports(options, err);
	if (r == 0)
		r = rendezvous_make(&options->rdzv, config->min_nodes, config->max_nodes,
				    &config->rdzv, err);
	if (r < 0)
		return r;
	/* torchrun's static form has MAX nodes. Where only a master is given, as Kubeflow does, a
	 * range means what it says, with a coordinator whose place is fixed. */
	if (config->rdzv.is_static && is_given(options->rdzv.backend))
		config->min_nodes = config->max_nodes;
	config->rdzv.lookup_delay_ns = config->engine.lookup_delay_ns;
	place_store(options, config);
	return 0;
}

char *run_random_id(void)
{
	unsigned char b[16];
	random_bytes(b, sizeof(b));
	b[6] = (b[6] & 0x0f) | 0x40;
	b[8] = (b[8] & 0x3f) | 0x80;
	return mem_printf("%02x%02x%02x%02x-%02x%02x-%02x%02x-%02x%02x-%02x%02x%02x%02x%02x%02x",
			  b[0], b[1], b[2], b[3], b[4], b[5], b[6], b[7], b[8], b[9], b[10], b[11],
			  b[12], b[13], b[14], b[15]);
}

/* All nodes of a job must use the same name for it. */
static char *name_job(const struct rendezvous_options *options, const struct rendezvous *rdzv)
{
	if (options->id && *options->id)
		return mem_strdup(options->id);
	return rdzv->kind == RENDEZVOUS_LOCAL ? run_random_id() : mem_strdup("none");
}

static int shutdown_time(const struct run_options *options, uint64_t *ret_ns, struct err *err)
{
	const char *text = getenv("TORCH_ELASTIC_SHUTDOWN_TIMEOUT");
	if (options->shutdown_ns != NS_NEVER) {
		*ret_ns = options->shutdown_ns;
	} else if (!text) {
		*ret_ns = RUN_SHUTDOWN_DEFAULT_S * NS_PER_S;
	} else if (str_to_duration_ns(text, ret_ns) < 0) {
		return err_set(err, EINVAL,
			       "TORCH_ELASTIC_SHUTDOWN_TIMEOUT: '%.64s' is not a time in seconds",
			       text);
	}
	return 0;
}

static int check_numbers(const struct run_options *options, struct err *err)
{
	if (options->restarts.max < 0 || options->restarts.max > UINT32_MAX)
		return err_set(err, EINVAL, "--max-restarts: %" PRId64 " must be 0 or more",
			       options->restarts.max);
	if (strlen(options->role) >= MSG_ROLE_MAX)
		return err_set(err, EINVAL, "--role: '%.64s...' is longer than %d bytes",
			       options->role, MSG_ROLE_MAX - 1);
	if (!(options->monitor_interval > 0))
		return err_set(err, EINVAL, "--monitor-interval: %g must be more than 0",
			       options->monitor_interval);
	if (options->no_python && options->module && !options->run_path)
		return err_set(
			err, EINVAL,
			"--no-python and --module exclude each other: a module needs Python");
	return 0;
}

static void choose_mpi(const struct run_options *options, struct run_config *config)
{
	config->mpi = (enum run_mpi)options->mpi;
	if (config->env_kinds & PROGRAM_MPI)
		config->mpi = RUN_MPI_PMI;
}

static int parse_progress(const struct run_options *options, struct run_config *config,
			  struct err *err)
{
	if (options->progress_total < 0)
		return err_set(err, EINVAL, "--progress-total: %" PRId64 " must be 0 or more",
			       options->progress_total);
	config->progress_total = (uint64_t)options->progress_total;
	if (!options->progress_regex)
		return 0;
	int r = step_pattern_new(options->progress_regex, &config->progress_pattern, err);
	return r < 0 ? err_wrap(err, "--progress-regex") : 0;
}

/* Torch's agent has only a stub behind its variable, which so must not end a job. */
static int choose_http(const char *typed, struct run_config *config, struct err *err)
{
	const char *by_torch = getenv("TORCHELASTIC_HEALTH_CHECK_PORT");
	struct err why = ERR_INIT;
	config->http_by_torch = !typed;
	config->http = is_given(typed) ? typed : !typed && is_given(by_torch) ? by_torch : NULL;
	if (!config->http || http_address_parse(config->http, &config->http_addr,
						config->http_by_torch ? &why : err) == 0)
		return 0;
	if (!config->http_by_torch)
		return err_wrap(err, "--http=[ADDRESS:]PORT");
	log_warn("TORCHELASTIC_HEALTH_CHECK_PORT: %s; no probes are served there", why.msg);
	config->http = NULL;
	return 0;
}

int run_config_make(const struct run_options *given, struct run_config *ret_config, struct err *err)
{
	struct run_options settled = *given; /* and completed by an engine */
	const struct run_options *options = &settled;
	struct run_config config = {
		.role = options->role,
		.engine = ENGINE_SETTINGS_INIT,
		.rdzv = RENDEZVOUS_INIT,
		.restart_backoff = options->restart_backoff,
		.no_restart_on = options->no_restart_on,
		.signals_text = options->signals_to_handle,
		.log_dir = options->log_dir,
		.shared_log_dir = options->shared_log_dir,
		.capture = (enum run_capture)options->capture,
		.stdin_mode = (enum run_stdin)options->stdin_mode,
		.exit_code = (enum run_style)options->exit_code,
		.exit_map = options->exit_map,
		.report = (enum run_style)options->report,
		.virtual_local_rank = options->virtual_local_rank,
		.show_binding = options->show_binding,
		.dry_run = options->dry_run,
		.env_kinds = options->env_kinds,
		.guard = make_guard(options),
		.preload = options->preload && *options->preload ? options->preload : NULL,
		.events = options->events && *options->events ? options->events : NULL,
		.lifeline = (int)options->lifeline,
		.preflight = options->preflight,
		.lost_host_ns = options->lost_host_ns,
		.notice_ns = options->notice_ns,
		.job_log = options->job_log && *options->job_log ? options->job_log : NULL,
	};
	int r;
	if ((r = check_numbers(options, err)) < 0 ||
	    (r = run_nodes_parse(options->rdzv.nnodes, &config.min_nodes, &config.max_nodes, err)) <
		    0 ||
	    (r = ask_engine(&settled, &config, err)) < 0 ||
	    (r = parse_nproc(options->nproc_per_node, &config.nproc, err)) < 0 ||
	    (r = choose_rendezvous(options, &config, err)) < 0 ||
	    (r = check_lifeline(options->lifeline, err)) < 0 ||
	    (r = check_flight(options, err)) < 0 ||
	    (r = choose_http(options->http, &config, err)) < 0 ||
	    (r = parse_progress(options, &config, err)) < 0 ||
	    (r = check_preload(options->preload, err)) < 0 ||
	    (r = preflight_options_check(&config.preflight, &config.excluded, err)) < 0 ||
	    (r = parse_events(options->event_log_handler, &config.console_events, err)) < 0 ||
	    (r = run_signals_parse(options->signals_to_handle, &config.stop_signals, err)) < 0 ||
	    (r = shutdown_time(options, &config.shutdown_ns, err)) < 0 ||
	    (options->virtual_local_rank &&
	     (r = worker_env_check_devices(environ, config.nproc, err)) < 0) ||
	    (r = run_streams_make(options, config.nproc, &config.streams, err)) < 0 ||
	    (r = run_placement_make(options, config.nproc, &config.placement, err)) < 0) {
		run_config_done(&config);
		return r;
	}
	choose_mpi(options, &config);
	advise_on_cpus(&config);
	advise_on_shm(&config.engine);
	config.workers_ignore_usr = ignores_usr((enum run_usr)options->usr_signals, &config.engine);
	config.max_restarts = (uint32_t)options->restarts.max;
	config.restarts_by_progress = options->restarts.by_progress;
	config.streams.output.steps = config.progress_pattern;
	config.streams.output.queue = config.job_log;
	config.guard.workers = config.nproc;
	config.run_id = name_job(&options->rdzv, &config.rdzv);
	config.rdzv.run_id = config.run_id;
	*ret_config = config;
	return 0;
}

void run_config_done(struct run_config *config)
{
	free(config->run_id);
	engine_settings_done(&config->engine);
	rendezvous_done(&config->rdzv);
	run_streams_done(&config->streams);
	run_placement_done(&config->placement);
	step_pattern_free(config->progress_pattern);
	entry_done(&config->entry);
	*config = RUN_CONFIG_INIT;
}

int run_restarts_parse(const char *text, void *field, struct err *err)
{
	const char *slash = strchr(text, '/');
	AUTO_FREE char *number = mem_strndup(text, slash ? (size_t)(slash - text) : strlen(text));
	struct run_restarts restarts = { .by_progress = slash };
	if (slash && !str_eq(slash, "/progress"))
		return err_set(err, EINVAL, "'%.64s' is neither N nor N/progress", text);
	if (str_to_i64_python(number, &restarts.max) < 0)
		return err_set(err, EINVAL, "invalid integer '%.64s'", number);
	*(struct run_restarts *)field = restarts;
	return 0;
}

int run_backoff_parse(const char *text, void *field, struct err *err)
{
	const char *colon = strchr(text, ':');
	AUTO_FREE char *first = mem_strndup(text, colon ? (size_t)(colon - text) : strlen(text));
	struct run_backoff backoff;
	if (str_to_duration_ns(first, &backoff.initial_ns) < 0 ||
	    (colon && str_to_duration_ns(colon + 1, &backoff.max_ns) < 0))
		return err_set(err, EINVAL, "'%.64s' is not INITIAL[:MAX], such as 1s:1m", text);
	if (!colon)
		backoff.max_ns = MAX(backoff.initial_ns, BACKOFF_MAX_DEFAULT_NS);
	if (backoff.max_ns < backoff.initial_ns)
		return err_set(err, EINVAL, "'%.64s': MAX is less than INITIAL", text);
	*(struct run_backoff *)field = backoff;
	return 0;
}

int run_no_restart_parse(const char *text, void *field, struct err *err)
{
	return exit_set_parse(text, field, err);
}

int run_exit_map_parse(const char *text, void *field, struct err *err)
{
	return exit_map_parse(text, field, err);
}
