/* What `muster run` was asked to do: as typed (`struct run_options`), and checked and complete
 * (`struct run_config`), which is all the job works from.
 *
 * The rules and defaults are those of torchrun; docs/differences.md lists where we differ. Everything
 * that can be wrong with a value is found here, before any process or file exists.
 */
#ifndef RUN_CONFIG_H
#define RUN_CONFIG_H

#include <signal.h>

#include "base/env.h"
#include "base/err.h"
#include "core/exit_set.h"
#include "run/entry.h"
#include "run/guard.h"
#include "run/round_store.h"
#include "run/placement.h"
#include "run/program_env.h"
#include "run/rendezvous.h"
#include "run/streams.h"

#define RUN_NPROC_MAX 65536 /* workers on one host */
#define RUN_SHUTDOWN_DEFAULT_S 30
#define RUN_SIGNALS_DEFAULT "SIGTERM,SIGINT,SIGHUP,SIGQUIT"
#define RUN_PORT_UNSET INT64_MIN
#define RUN_RANK_UNSET INT64_MIN

/* After which time a group is started again: `initial_ns` the first time, doubled each time after,
 * never more than `max_ns`. All zero: at once. */
struct run_backoff {
	uint64_t initial_ns;
	uint64_t max_ns;
};

enum run_style { RUN_STYLE_MUSTER, RUN_STYLE_TORCHRUN, RUN_STYLE_NONE };
enum run_capture { RUN_CAPTURE_AUTO, RUN_CAPTURE_ALWAYS, RUN_CAPTURE_NEVER };
enum run_stdin { RUN_STDIN_FIRST, RUN_STDIN_ALL };

/* The option values as typed; texts are borrowed from argv or the environment. */
struct run_options {
	const char *nnodes;
	const char *nproc_per_node;
	const char *rdzv_backend;
	const char *rdzv_endpoint;
	const char *rdzv_id;
	const char *rdzv_conf;
	bool standalone;
	int64_t max_restarts;
	struct run_backoff restart_backoff;
	struct exit_set no_restart_on;
	double monitor_interval;
	int start_method;
	const char *event_log_handler;
	uint64_t hang_timeout_ns, start_timeout_ns; /* 0: off */
	int hang_action;
	uint64_t diagnose_ns; /* NS_NEVER: not given */
	const char *http; /* NULL: not over TCP */
	const char *events;
	int64_t lifeline; /* -1: none */
	const char *role;
	const char *preload; /* NULL: not given */
	bool module, no_python, run_path;
	const char *log_dir;
	const char *redirects, *tee;
	const char *local_ranks_filter;
	const char *duplicate_stdout_filters, *duplicate_stderr_filters;
	const char *prefix; /* NULL: only what is tee'd gets one */
	bool merge_output;
	uint64_t log_max_size; /* 0: no limit */
	int64_t node_rank; /* RUN_RANK_UNSET: not given */
	const char *master_addr;
	int64_t master_port; /* RUN_PORT_UNSET: not given */
	const char *local_addr;
	int64_t store_port; /* 0: a fresh one each round */
	int store_access;
	const char *logs_specs;
	int numa_binding; /* -1: not given */
	const char *bind; /* NULL: not given */
	bool show_binding, dry_run;
	unsigned env_kinds; /* enum program_kind, as bits */
	const char *signals_to_handle;
	uint64_t shutdown_ns; /* NS_NEVER: not given */
	bool virtual_local_rank;
	int capture, stdin_mode, exit_code, report; /* of the enums above */
};

extern const struct run_options run_options_default;

struct run_config {
	uint32_t min_nodes, max_nodes;
	uint32_t nproc;
	const char *role;
	char *run_id;
	struct rendezvous rdzv;

	/* Where the agent of group rank 0 serves the workers' store. */
	const char *master_addr; /* NULL: known when the nodes have met */
	uint16_t master_port; /* 0: a fresh one each round */
	bool store_at_endpoint; /* this node coordinates, and the store shares its port */
	enum store_access store_access;

	uint32_t max_restarts;
	struct run_backoff restart_backoff;
	struct exit_set no_restart_on;

	sigset_t stop_signals;	  /* end the job when muster gets them */
	const char *signals_text; /* the same as typed, for TORCHELASTIC_SIGNALS_TO_HANDLE */
	uint64_t shutdown_ns;	  /* between the stop signal and SIGKILL */

	const char *log_dir; /* NULL: a temporary one; "/dev/null": none */
	enum run_capture capture;
	struct run_streams streams;
	enum run_stdin stdin_mode;
	enum run_style exit_code;
	enum run_style report;
	bool virtual_local_rank;
	struct run_placement placement;
	bool show_binding, dry_run;
	unsigned env_kinds; /* enum program_kind, as bits */

	struct guard_config guard;
	bool console_events; /* torch's events on stderr */
	const char *events; /* a file, fd:N or -; NULL: only in a log directory */
	int lifeline;	    /* a descriptor at whose end the job is stopped; -1: none */
	const char *http; /* [ADDRESS:]PORT to serve health, metrics and state on; NULL: only privately */

	const char *preload; /* MODULE,MODULE... for warm workers; NULL: none */
	struct entry entry; /* what each worker executes */
};

#define RUN_CONFIG_INIT ((struct run_config){ .nproc = 0 })

/* Checks everything but the entry point, which entry_resolve() fills in. -EINVAL: a usage error;
 * any other code: the system's. Borrows the texts of `options`. */
int run_config_make(const struct run_options *options, struct run_config *ret_config,
		    struct err *err);
void run_config_done(struct run_config *config);

/* Parsers for the option table: "INITIAL[:MAX]", and a list for exit_set_parse(). */
int run_backoff_parse(const char *text, void *field, struct err *err);
int run_no_restart_parse(const char *text, void *field, struct err *err);

#endif
