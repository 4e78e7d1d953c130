/* The option values of `muster run` as typed; run/config.h has them checked and complete. */
#ifndef RUN_OPTIONS_H
#define RUN_OPTIONS_H

#include "core/fleet/hosts_options.h"
#include "core/worker/exit_code.h"
#include "core/worker/exit_set.h"
#include "nodes/rendezvous.h"

#define RUN_SHUTDOWN_DEFAULT_S 30
#define RUN_NOTICE_DEFAULT_S 60
#define RUN_LOST_HOST_UNSET UINT64_MAX
#define RUN_SSH_TIMEOUT_DEFAULT_S 30
#define RUN_SIGNALS_DEFAULT "SIGTERM,SIGINT,SIGHUP,SIGQUIT"

/* --max-restarts. */
struct run_restarts {
	int64_t max;
	bool by_progress; /* only attempts in a row without a new step count */
};

/* The pause before a restart: `initial_ns` the first time, doubled each time after, at most
 * `max_ns`. All zero: no pause. */
struct run_backoff {
	uint64_t initial_ns;
	uint64_t max_ns;
};

/* What a node checks before it joins and between attempts, and what follows from it. */
struct preflight {
	const char *checks;  /* which ones (sys/checks/checks.h); NULL: none */
	const char *command; /* of the user; NULL: none */
	const char *limits;  /* of figures (core/checks/limits.h); NULL: none */
	int bad_node;	     /* enum run_bad_node */
	int64_t strikes;     /* -1: not given */
	uint64_t cool_down_ns;
	const char *exclude_hosts; /* a host list; NULL: none */
};

enum run_bad_node { RUN_BAD_NODE_PARK, RUN_BAD_NODE_LEAVE };

enum run_mpi { RUN_MPI_AUTO, RUN_MPI_NONE, RUN_MPI_PMI };
enum run_style { RUN_STYLE_MUSTER, RUN_STYLE_TORCHRUN, RUN_STYLE_NONE };
enum run_capture { RUN_CAPTURE_AUTO, RUN_CAPTURE_ALWAYS, RUN_CAPTURE_NEVER };
enum run_usr { RUN_USR_AUTO, RUN_USR_IGNORE, RUN_USR_DEFAULT };
enum run_stdin { RUN_STDIN_FIRST, RUN_STDIN_ALL };

/* The option values as typed; texts are borrowed from argv or the environment. */
struct run_options {
	struct rendezvous_options rdzv;
	struct hosts_options hosts;
	const char *nproc_per_node;
	struct run_restarts restarts;
	struct run_backoff restart_backoff;
	struct exit_set no_restart_on;
	struct exit_map exit_map;
	bool slurm; /* start on every node of the job */
	double monitor_interval;
	int start_method;
	const char *event_log_handler;
	uint64_t hang_timeout_ns, start_timeout_ns; /* 0: off */
	int hang_action;
	uint64_t diagnose_ns; /* NS_NEVER: not given */
	bool exclude_culprit;
	int64_t flight;		    /* operations that PyTorch's recorder keeps; 0: off */
	const char *progress_regex; /* NULL: not given */
	int64_t progress_total;	    /* 0: not given */
	uint64_t keep_limit;	    /* 0: not given */
	const char *http;	    /* NULL: not over TCP */
	const char *job_log;	    /* one log of all hosts; NULL: none */
	const char *events;
	int64_t lifeline; /* -1: none */
	const char *role;
	const char *preload; /* NULL: not given */
	struct preflight preflight;
	bool module, no_python, run_path;
	bool use_env; /* accepted: there is no other way */
	const char *log_dir;
	bool shared_log_dir;
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
	int mpi;	    /* enum run_mpi */
	const char *signals_to_handle;
	uint64_t shutdown_ns; /* NS_NEVER: not given */
	/* a lost host that the job needs is waited for; RUN_LOST_HOST_UNSET: not given */
	uint64_t lost_host_ns;
	uint64_t notice_ns; /* for workers to leave together; 0: they are not asked to */
	int usr_signals;    /* enum run_usr */
	bool virtual_local_rank;
	int capture, stdin_mode, exit_code, report; /* of the enums above */
};

extern const struct run_options run_options_default;

/* Parsers for the option table: "N[/progress]", "INITIAL[:MAX]", and lists for exit_set_parse() and
 * exit_map_parse(). */
int run_restarts_parse(const char *text, void *field, struct err *err);
int run_backoff_parse(const char *text, void *field, struct err *err);
int run_no_restart_parse(const char *text, void *field, struct err *err);
int run_exit_map_parse(const char *text, void *field, struct err *err);

#endif
