#include "run/workers.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/procfs.h"
#include "base/str.h"
#include "sys/signals.h"

/* The kernel stops a background process that reads its terminal; anything else may be read. */
static bool may_read_stdin(void)
{
	return !isatty(STDIN_FILENO) || tcgetpgrp(STDIN_FILENO) == getpgrp();
}

void workers_init(struct workers *workers, const struct run_config *config, struct warden *warden,
		  struct output *output, struct logdir *logdir)
{
	*workers = (struct workers){
		.config = config,
		.output = output,
		.logdir = logdir,
		.warden = warden,
		.jax_fd = -1,
		.next_id = 1,
		.pids = mem_alloc(config->nproc * sizeof(pid_t)),
		.usages = mem_alloc(config->nproc * sizeof(struct rusage)),
		.keeps_tail = mem_alloc(config->nproc * sizeof(*workers->keeps_tail)),
		.stdin_is_ours = may_read_stdin(),
	};
	gethostname(workers->host, sizeof(workers->host) - 1);
}

void workers_done(struct workers *workers)
{
	strv_done(&workers->env);
	fd_close(&workers->jax_fd);
	free(workers->pids);
	free(workers->usages);
	free(workers->keeps_tail);
}

/* All nodes must know it without a message: with several nodes it is the port after the store's. */
static void choose_jax_port(struct workers *workers, const struct msg_formed *formed)
{
	struct err err = ERR_INIT;
	fd_close(&workers->jax_fd);
	if (!(workers->config->env_kinds & PROGRAM_JAX))
		return;
	workers->jax_port = formed->nodes > 1 ? (uint16_t)(formed->master_port + 1) : 0;
	if (formed->group_rank != 0)
		return;
	workers->jax_fd = program_port_reserve(&workers->jax_port, &err);
	if (workers->jax_fd < 0)
		log_warn("%s", err.msg);
}

void workers_begin(struct workers *workers, const struct msg_formed *formed)
{
	const struct run_config *config = workers->config;
	struct err err = ERR_INIT;
	if (logdir_begin(workers->logdir, config->nproc, &err) < 0)
		log_warn("no log directory for this attempt: %s", err.msg);

	memcpy(workers->master_addr, formed->master_host, sizeof(workers->master_addr));
	workers->round = (struct worker_round){
		.rank_base = formed->rank_base,
		.role_rank_base = formed->role_rank_base,
		.group_rank = formed->group_rank,
		.world_size = formed->world_size,
		.role_world_size = formed->role_world_size,
		.group_world_size = formed->nodes,
		.local_world_size = config->nproc,
		.role = config->role,
		.run_id = config->run_id,
		.master_addr = workers->master_addr,
		.master_port = formed->master_port,
		.agent_store = true,
		.restart_count = formed->restarts,
		.max_restarts = formed->max_restarts,
		.signals = config->signals_text,
		.virtual_local_rank = config->virtual_local_rank,
	};
	strv_done(&workers->env);
	worker_env_round(&workers->round, environ, &workers->env);
	guard_begin(workers->guard, config->nproc, formed->rank_base, formed->world_size,
		    &workers->env);
	if (worker_env_limits_threads(&workers->round, environ))
		log_info("OMP_NUM_THREADS is not set: each worker gets 1 thread; set it to choose");
	choose_jax_port(workers, formed);
	workers->first_id = workers->next_id;
	workers->next_id += config->nproc;
	memset(workers->pids, 0, config->nproc * sizeof(pid_t));
	memset(workers->usages, 0, config->nproc * sizeof(struct rusage));
}

/* The descriptors for the worker's stdout and stderr; -1: muster's own. */
static int open_output(struct workers *workers, uint32_t local_rank,
		       int ret_fds[OUTPUT_STREAM_COUNT], struct err *err)
{
	AUTO(strv_done) struct strv paths = STRV_INIT;
	struct output_worker worker = {
		.id = workers_id_of(workers, local_rank),
		.role_name = workers->config->role,
		.rank = workers->round.rank_base + local_rank,
		.local_rank = local_rank,
		.group_rank = workers->round.group_rank,
		.host = workers->host,
	};
	worker.count =
		workers->config->guard.hang.silent_ns || workers->config->guard.hang.start_ns;
	run_streams_route(&workers->config->streams, workers->logdir, local_rank, &paths, &worker);
	memcpy(workers->keeps_tail[local_rank], worker.keep_tail, sizeof(worker.keep_tail));
	return output_add(workers->output, &worker, ret_fds, err);
}

static int make_env(const struct workers *workers, uint32_t local_rank, struct strv *env,
		    struct err *err)
{
	const struct run_config *config = workers->config;
	AUTO_FREE char *error_file = logdir_error_file(workers->logdir, local_rank);
	int r = worker_env_rank(&workers->round, environ, local_rank, error_file, env, err);
	if (r < 0)
		return r;
	run_placement_env(&config->placement, environ, local_rank, env);
	program_env_rank(config->env_kinds, &workers->round, local_rank, workers->jax_port, env);
	return 0;
}

int workers_env(const struct workers *workers, uint32_t local_rank, struct strv *ret_env)
{
	strv_add_all(ret_env, strv_argv(&workers->env));
	return make_env(workers, local_rank, ret_env, NULL);
}

int workers_spawn(struct workers *workers, uint32_t local_rank, struct err *err)
{
	const struct run_config *config = workers->config;
	int r = make_env(workers, local_rank, &workers->env, err);
	if (r < 0)
		return r;

	int fds[OUTPUT_STREAM_COUNT];
	r = open_output(workers, local_rank, fds, err);
	if (r < 0)
		return r;
	AUTO(fd_close) int out = fds[OUTPUT_STDOUT];
	AUTO(fd_close) int errors = fds[OUTPUT_STDERR];
	AUTO(fd_close) int mpi = -1;
	r = mpi_prepare(workers->mpi, local_rank, &workers->env, &mpi, err);
	if (r < 0)
		return r;
	bool reads =
		workers->stdin_is_ours && (local_rank == 0 || config->stdin_mode == RUN_STDIN_ALL);

	AUTO(strv_done) struct strv argv = STRV_INIT;
	entry_argv(&config->entry, local_rank, &argv);
	struct spawn_spec spec = {
		.path = config->entry.path,
		.argv = strv_argv(&argv),
		.envp = strv_argv(&workers->env),
		.nofile_soft = workers->nofile_soft,
		.extra_fd = MAX(mpi, 0),
		.ignores_usr = config->workers_ignore_usr,
		.stdio = { reads ? SPAWN_INHERIT : SPAWN_NULL, out >= 0 ? out : SPAWN_INHERIT,
			   errors >= 0 ? errors : SPAWN_INHERIT },
	};
	run_placement_spawn(&config->placement, local_rank, &spec);
	return preload_spawn(workers->preload, workers->warden, workers_id_of(workers, local_rank),
			     &spec, err);
}

int64_t workers_rank_of(const struct workers *workers, uint64_t id)
{
	if (id < workers->first_id || id >= workers->next_id)
		return -1;
	return (int64_t)(id - workers->first_id);
}

void workers_relay(struct workers *workers, const struct group *group, int sig)
{
	AUTO(buf_done) struct buf deaf = BUF_INIT;
	for (size_t i = 0; i < group->count; i++) {
		if (group->workers[i].state == WORKER_ENDED)
			continue;
		if (group->workers[i].state == WORKER_RUNNING &&
		    procfs_catches(workers->pids[i], sig))
			warden_signal(workers->warden, workers_id_of(workers, i), sig);
		else
			buf_printf(&deaf, "%s%zu", buf_len(&deaf) ? ", " : "",
				   workers->round.rank_base + i);
	}
	if (buf_len(&deaf))
		log_warn("%s was not passed to rank %s: not caught there%s", str_signal_name(sig),
			 buf_str(&deaf),
			 workers->config->workers_ignore_usr ? "" : ", it would end the worker");
}

static int by_death(const void *a, const void *b)
{
	const struct worker *const *x = a, *const *y = b;
	if ((*x)->ended_ns != (*y)->ended_ns)
		return (*x)->ended_ns < (*y)->ended_ns ? -1 : 1;
	return *x < *y ? -1 : 1;
}

static struct history_failure *record_one(const struct workers *workers,
					  const struct worker *worker, uint32_t local_rank,
					  struct history *history)
{
	struct history_failure *failure = history_add(history);
	failure->rank = workers->round.rank_base + local_rank;
	failure->local_rank = local_rank;
	failure->id = workers_id_of(workers, local_rank);
	failure->group_rank = workers->round.group_rank;
	failure->pid = workers->pids[local_rank];
	failure->reason = worker->reason;
	failure->spawn_errno = worker->spawn_errno;
	failure->status = worker->status;
	failure->stopped = worker->stopped;
	failure->started_ns = worker->started_ns;
	failure->ended_ns = worker->ended_ns;
	failure->captured = workers->keeps_tail[local_rank][OUTPUT_STDERR];
	char *error_file = logdir_error_file(workers->logdir, local_rank);
	if (*error_file)
		failure->error_file = error_file;
	else
		free(error_file);
	return failure;
}

void workers_record(const struct workers *workers, const struct group *group,
		    struct history *history)
{
	const struct worker **failed = NEW_ARRAY(const struct worker *, group->count);
	size_t count = 0;
	for (size_t i = 0; i < group->count; i++) {
		const struct worker *worker = &group->workers[i];
		if (worker->condemned || !exit_status_ok(&worker->status))
			failed[count++] = worker;
	}
	qsort(failed, count, sizeof(*failed), by_death);
	bool blamed = history_cause(history_last(history));
	for (size_t i = 0; i < count; i++) {
		size_t local_rank = (size_t)(failed[i] - group->workers);
		record_one(workers, failed[i], (uint32_t)local_rank, history)->first =
			!blamed && group->failed && local_rank == group->first;
	}
	free(failed);
}
