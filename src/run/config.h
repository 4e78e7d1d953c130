/* The checked and complete configuration of `muster run`.
 *
 * The rules and defaults are those of torchrun; docs/differences.md lists where we differ. A wrong
 * value is an error here, before any process or file exists. */
#ifndef RUN_CONFIG_H
#define RUN_CONFIG_H

#include <signal.h>

#include "base/strv.h"
#include "base/err.h"
#include "core/checks/counter_changes.h"
#include "core/checks/digest.h"
#include "core/host/engine.h"
#include "core/worker/exit_set.h"
#include "net/addr.h"
#include "run/entry.h"
#include "nodes/rendezvous.h"
#include "run/guard.h"
#include "run/options.h"
#include "run/round_store.h"
#include "run/placement.h"
#include "run/program_env.h"
#include "run/streams.h"

#define RUN_NPROC_MAX 65536 /* workers on one host */

struct run_config {
	uint32_t min_nodes, max_nodes;
	uint32_t nproc;
	const char *role;
	char *run_id;
	struct engine_settings engine; /* what started us here told us */
	struct rendezvous rdzv;

	/* Where the agent of group rank 0 serves the workers' store. */
	const char *master_addr; /* NULL: known when the nodes have met */
	uint16_t master_port;	 /* 0: a fresh one each round */
	enum store_access store_access;

	uint32_t max_restarts;
	bool restarts_by_progress; /* only attempts in a row without a new step count */
	struct run_backoff restart_backoff;
	struct exit_set no_restart_on;

	sigset_t stop_signals;	  /* they end the job */
	const char *signals_text; /* the same as typed, for TORCHELASTIC_SIGNALS_TO_HANDLE */
	uint64_t shutdown_ns;	  /* between the stop signal and SIGKILL */
	uint64_t lost_host_ns;	  /* see struct run_options */
	uint64_t notice_ns;	  /* for workers to leave together; 0: they are not asked to */
	bool workers_ignore_usr;  /* SIGUSR1 and SIGUSR2, until they catch them */

	const char *log_dir; /* NULL: a temporary one; "/dev/null": none */
	bool shared_log_dir; /* also as root, where other users can replace it */
	enum run_capture capture;
	struct run_streams streams;
	enum run_stdin stdin_mode;
	enum run_style exit_code;
	struct exit_map exit_map;
	enum run_style report;
	bool virtual_local_rank;
	struct run_placement placement;
	bool show_binding, dry_run;
	unsigned env_kinds; /* enum program_kind, as bits */
	enum run_mpi mpi;   /* RUN_MPI_AUTO until mpi_choose() */

	const char
		*fleet_host; /* the name of this host in a job that --hosts started; NULL: none */

	struct guard_config guard;
	struct step_pattern *progress_pattern; /* finds steps in the output; NULL: none */
	uint64_t progress_total;	       /* steps in all; 0: unknown */
	bool console_events;		       /* torch's events on stderr */
	const char *events; /* a file, fd:N or -; NULL: only in a log directory */
	int lifeline;	    /* the job stops at end of file of this descriptor; -1: none */
	/* [ADDRESS:]PORT to serve health, metrics and state on; NULL: only privately */
	const char *http;    /* NULL: not over TCP */
	bool http_by_torch;  /* torch's variable asks for it: a job can do without */
	const char *job_log; /* NULL: none */
	struct addr http_addr;

	const char *preload;   /* MODULE,MODULE... for warm workers; NULL: none */
	struct entry entry;    /* what each worker executes */
	const char *misplaced; /* an option of ours among its arguments; NULL: none; borrowed */

	struct preflight preflight;
	struct check_digest checks;	/* what the checks before the start found */
	struct check_counters counters; /* as they were then */
	bool excluded;			/* --exclude-hosts names this host: it gets no workers */
};

#define RUN_CONFIG_INIT ((struct run_config){ .nproc = 0 })

/* "N" or "MIN:MAX", the value of --nnodes; NULL: it is not given, which is one. */
int run_nodes_parse(const char *text, uint32_t *ret_min, uint32_t *ret_max, struct err *err);

/* SIGTERM and so on, the value of --signals-to-handle. */
int run_signals_parse(const char *text, sigset_t *ret_set, struct err *err);

/* A version 4 UUID, malloc'ed: the name of a job without --rdzv-id. */
char *run_random_id(void);

/* Checks everything but the entry point, which entry_resolve() fills in. -EINVAL: a usage error;
 * any other code: a system error. Borrows the texts of `given`, and
 * reads the environment, in which an engine may have left settings (core/host/engine.h). */
int run_config_make(const struct run_options *given, struct run_config *ret_config,
		    struct err *err);
void run_config_done(struct run_config *config);

#endif
