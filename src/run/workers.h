/* The worker processes of this host, round after round: what each one is started with (command,
 * environment, stdio, log directory) and its pid.
 *
 * Every start of a worker has its own number, never reused in this run: the warden and the output
 * thread use it, so that news of an earlier round cannot be mistaken for this one's. */
#ifndef RUN_WORKERS_H
#define RUN_WORKERS_H

#include "core/worker/group.h"
#include "core/rounds/msg.h"
#include "run/config.h"
#include "run/tell/history.h"
#include "run/logdir.h"
#include "run/mpi/mpi.h"
#include "run/preload.h"
#include "run/worker_env.h"
#include "sys/output.h"
#include "sys/warden.h"

struct workers {
	/* Borrowed, for as long as this is used. */
	const struct run_config *config;
	struct output *output;
	struct logdir *logdir;
	struct guard *guard;
	struct warden *warden;	 /* the current one: job.c replaces it when it dies */
	struct mpi *mpi;	 /* NULL: they are not served */
	struct preload *preload; /* NULL: there are no warm workers */

	struct worker_round round; /* the current one */
	struct strv env;	   /* of its workers */
	char master_addr[MSG_HOST_MAX];
	char host[HISTORY_HOST_MAX];
	int jax_fd; /* keeps jax_port free for this round; -1: none */
	uint16_t jax_port;
	uint64_t first_id; /* of local rank 0 */
	uint64_t next_id;
	pid_t *pids;	       /* by local rank; 0: not started yet */
	struct rusage *usages; /* by local rank, of those that ended */
	/* by local rank: the end of that stream is kept */
	bool (*keeps_tail)[OUTPUT_STREAM_COUNT];
	uint64_t nofile_soft; /* their limit of open files: muster's own at its start */
	bool stdin_is_ours;   /* the first worker may read muster's own stdin */
};

void workers_init(struct workers *workers, const struct run_config *config, struct warden *warden,
		  struct output *output, struct logdir *logdir);
void workers_done(struct workers *workers);

/* A round is about to start on this host: makes its log directories and environment. Without the
 * directories it logs a warning and goes on. */
void workers_begin(struct workers *workers, const struct msg_formed *formed);

/* Asks the warden to start one. -errno: it could not be requested. */
int workers_spawn(struct workers *workers, uint32_t local_rank, struct err *err);

/* The environment that this worker is started with. -EINVAL: as worker_env_rank(). */
int workers_env(const struct workers *workers, uint32_t local_rank, struct strv *ret_env);

/* The local rank of a start of this round; -1 for one of an earlier round. */
int64_t workers_rank_of(const struct workers *workers, uint64_t id);

static inline uint64_t workers_id_of(const struct workers *workers, size_t local_rank)
{
	return workers->first_id + local_rank;
}

/* Passes `sig` to workers that catch it; a warning names the others. */
void workers_relay(struct workers *workers, const struct group *group, int sig);

/* Records the failures of the round that just ended, in the order of their deaths; the group's
 * first failure is the first cause, unless the coordinator has named another. */
void workers_record(const struct workers *workers, const struct group *group,
		    struct history *history);

#endif
