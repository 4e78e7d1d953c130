/* --mpi=auto: what the workers' program is linked with decides. */
#ifndef RUN_MPI_CHOICE_H
#define RUN_MPI_CHOICE_H

#include "base/err.h"

struct run_config;

/* Turns RUN_MPI_AUTO into what config->entry needs, by reading the file; interpreters and scripts
 * need nothing. -EINVAL: its MPI is none that muster serves, and there would be more than one
 * worker. */
int mpi_choose(struct run_config *config, struct err *err);

#endif
