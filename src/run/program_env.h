/* Variables for programs that do not read torch's (--env): JAX, and the rank variables of Open MPI
 * and PMI. In addition to the environment of run/worker_env.h. */
#ifndef RUN_PROGRAM_ENV_H
#define RUN_PROGRAM_ENV_H

#include "base/strv.h"
#include "base/err.h"

struct worker_round;

enum program_kind {
	PROGRAM_JAX = 1 << 0, /* jax.distributed.initialize() without arguments */
	PROGRAM_MPI = 1 << 1, /* OMPI_COMM_WORLD_*, PMI_*, MPI_LOCALRANKID and the like */
};

/* For the option table: adds the kinds in "jax,mpi" to the `unsigned` at `field`. */
int program_kinds_parse(const char *text, void *field, struct err *err);

/* Sets the variables of one worker. `jax_port`: where rank 0's JAX serves; see
 * program_port_reserve(). */
void program_env_rank(unsigned kinds, const struct worker_round *round, uint32_t local_rank,
		      uint16_t jax_port, struct strv *env);

/* Keeps a port free for rank 0's JAX coordinator, which binds it with SO_REUSEPORT while we hold it
 * without listening, so that no other program gets it in between. *port 0: any; it is then set.
 * Returns the descriptor to close when the round is over. */
int program_port_reserve(uint16_t *port, struct err *err);

#endif
