/* What MPI libraries in the workers of this host need of their launcher: a socket for each worker
 * (PMI_FD), served by core/pmi. Nothing blocks; callbacks come only from the loop and from
 * mpi_ended(). */
#ifndef RUN_MPI_MPI_H
#define RUN_MPI_MPI_H

#include "base/err.h"
#include "base/strv.h"
#include "core/pmi/pmi.h"
#include "core/rounds/agent.h"
#include "core/worker/group.h"

struct event_base;
struct run_config;
struct mpi;

struct mpi_handler {
	/* It must end, with the whole group. `status`: the one that counts. */
	void (*on_failed)(void *arg, size_t local_rank, enum failure_reason reason,
			  const struct exit_status *status, const char *text);
	/* PUT or WANT, for the coordinator; mpi_exchanged() answers. Borrowed until the next round.
	 */
	void (*on_exchange)(void *arg, const struct agent_event *event);
};

/* NULL: the workers need nothing. The rest is borrowed. NULL is fine for all that follow. */
struct mpi *mpi_new(const struct run_config *config, struct event_base *base,
		    const struct mpi_handler *handler, void *arg);
void mpi_free(struct mpi *mpi);

/* A round has formed. `host`: the address of this host for others, "" if it is alone. */
void mpi_begin(struct mpi *mpi, const struct msg_formed *formed, struct ballot ballot,
	       const char *host);
void mpi_end(struct mpi *mpi); /* no worker is alive */

/* Sets the worker's variables and gives its end of the socket, which the caller closes once the
 * worker has it; -1: it needs none. */
int mpi_prepare(struct mpi *mpi, uint32_t local_rank, struct strv *env, int *ret_fd,
		struct err *err);

/* It has ended: takes the last that it sent. Returns why that is a failure even if it ended with
 * 0, or FAILURE_EXIT. */
enum failure_reason mpi_ended(struct mpi *mpi, size_t local_rank, const struct exit_status *status);

void mpi_exchanged(struct mpi *mpi, const struct msg *msg); /* UNION or VALUE */

/* Ranks of this host that others wait for in a barrier of MPI's start; "": none. */
void mpi_missing(const struct mpi *mpi, struct buf *ret_ranks);

#endif
