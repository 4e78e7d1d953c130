/* The environment of the workers: muster's own, overlaid with the variables that torch.distributed
 * and related programs read (RANK, WORLD_SIZE, MASTER_ADDR, TORCHELASTIC_*).
 *
 * worker_env_round() builds it once per round; worker_env_rank() then turns it into that of one
 * worker after the other, in place, so that a thousand workers do not cost a thousand copies. */
#ifndef RUN_WORKER_ENV_H
#define RUN_WORKER_ENV_H

#include "base/strv.h"
#include "base/err.h"

/* A round on this host. Texts are borrowed. */
struct worker_round {
	uint32_t rank_base;	 /* RANK of local rank 0 */
	uint32_t role_rank_base; /* ROLE_RANK of local rank 0 */
	uint32_t group_rank;
	uint32_t world_size, role_world_size, group_world_size, local_world_size;
	const char *role;
	const char *run_id;
	const char *master_addr;
	uint16_t master_port;
	bool agent_store; /* the agent serves the store; otherwise worker rank 0 does */
	uint32_t restart_count, max_restarts;
	const char *signals;	 /* --signals-to-handle */
	bool virtual_local_rank; /* every worker is LOCAL_RANK 0 of one device */
};

/* `inherited` is muster's own environment; strings that are not NAME=value are kept. */
void worker_env_round(const struct worker_round *round, char *const *inherited,
		      struct strv *ret_env);

/* `error_file` may be "": none. -EINVAL: in virtual mode CUDA_VISIBLE_DEVICES of `inherited` lists
 * fewer devices than there are workers. */
int worker_env_rank(const struct worker_round *round, char *const *inherited, uint32_t local_rank,
		    const char *error_file, struct strv *env, struct err *err);

/* The same check in advance: does every one of `nproc` workers in virtual mode get a device? */
int worker_env_check_devices(char *const *inherited, uint32_t nproc, struct err *err);

/* Whether workers get OMP_NUM_THREADS=1 because the user chose nothing: several workers, each with
 * as many threads as the host has cores, would slow each other down. */
bool worker_env_limits_threads(const struct worker_round *round, char *const *inherited);

#endif
