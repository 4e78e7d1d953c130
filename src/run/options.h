/* The option values of `muster run` as typed; run/config.h has them checked and complete. */
#ifndef RUN_OPTIONS_H
#define RUN_OPTIONS_H

#include "core/worker/exit_set.h"
#include "nodes/rendezvous.h"

#define RUN_SHUTDOWN_DEFAULT_S 30
#define RUN_SIGNALS_DEFAULT "SIGTERM,SIGINT,SIGHUP,SIGQUIT"

/* The pause before a restart: `initial_ns` the first time, doubled each time after, at most
 * `max_ns`. All zero: no pause. */
struct run_backoff {
	uint64_t initial_ns;
	uint64_t max_ns;
};

enum run_style { RUN_STYLE_MUSTER, RUN_STYLE_TORCHRUN, RUN_STYLE_NONE };
enum run_capture { RUN_CAPTURE_AUTO, RUN_CAPTURE_ALWAYS, RUN_CAPTURE_NEVER };
enum run_stdin { RUN_STDIN_FIRST, RUN_STDIN_ALL };

/* The option values as typed; texts are borrowed from argv or the environment. */
struct run_options {
	struct rendezvous_options rdzv;
	const char *nproc_per_node;
	int64_t max_restarts;
	struct run_backoff restart_backoff;
	struct exit_set no_restart_on;
	double monitor_interval;
	int start_method;
	const char *event_log_handler;
	uint64_t hang_timeout_ns, start_timeout_ns; /* 0: off */
	int hang_action;
	uint64_t diagnose_ns; /* NS_NEVER: not given */
	const char *http;     /* NULL: not over TCP */
	const char *events;
	int64_t lifeline; /* -1: none */
	const char *role;
	const char *preload; /* NULL: not given */
	bool module, no_python, run_path;
	bool use_env; /* accepted: there is no other way */
	const char *log_dir;
	const char *redirects, *tee;
	const char *local_ranks_filter;
	const char *duplicate_stdout_filters, *duplicate_stderr_filters;
	const char *prefix; /* NULL: only tee'd lines get one */
	bool merge_output;
	uint64_t log_max_size; /* 0: no limit */
	int64_t store_port;    /* 0: a fresh one each round */
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

/* Parsers for the option table: "INITIAL[:MAX]", and a list for exit_set_parse(). */
int run_backoff_parse(const char *text, void *field, struct err *err);
int run_no_restart_parse(const char *text, void *field, struct err *err);

#endif
