#include "run/mpi/mpi.h"

#include <ctype.h>
#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/env.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "run/config.h"
#include "sys/spawn.h"

#define READ_SIZE 16384
#define LAST_WORDS_MAX ((size_t)1 << 20) /* more than a socket holds */

struct rank {
	struct mpi *mpi;
	size_t number;
	int fd; /* our end; -1: none */
	struct event *on_read, *on_write;
};

struct mpi {
	const struct run_config *config;
	struct event_base *base;
	const struct mpi_handler *handler;
	void *arg;

	struct pmi pmi; /* of this round */
	struct pmi_actions actions;
	struct rank *ranks;
	bool acting;
	char name[PMI_NAME_MAX];
	char host[MSG_HOST_MAX];
};

/* ---- sockets ---- */

static void hang_up(struct rank *rank)
{
	if (rank->on_read)
		event_free(rank->on_read);
	if (rank->on_write)
		event_free(rank->on_write);
	rank->on_read = rank->on_write = NULL;
	fd_close(&rank->fd);
}

/* A rank that does not read its answers is not read. */
static void write_out(struct rank *rank)
{
	struct buf *out = &rank->mpi->pmi.ranks[rank->number].out;
	while (rank->fd >= 0 && buf_len(out)) {
		ssize_t n = send(rank->fd, buf_data(out), buf_len(out), MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno != EAGAIN)
			buf_clear(out); /* nobody is left to read it; reading tells the end */
		if (n < 0)
			break;
		buf_consume(out, (size_t)n);
	}
	if (rank->fd < 0)
		return;
	if (buf_len(out))
		event_add(rank->on_write, NULL);
	if (buf_len(out) > PMI_OUT_MAX)
		event_del(rank->on_read);
	else
		event_add(rank->on_read, NULL);
}

static void fail(struct mpi *mpi, const struct pmi_action *action)
{
	bool aborts = action->type == PMI_DO_ABORT;
	struct exit_status status = { .kind = EXIT_CODE, .value = EXIT_CODE_FAILED };
	char text[MSG_BLAME_MAX];
	uint32_t rank = mpi->pmi.config.rank_base + (uint32_t)action->rank;
	if (aborts) {
		/* as a shell would see it; an abort is never a success */
		if (action->code & 0xff)
			status.value = action->code & 0xff;
		snprintf(text, sizeof(text), "rank %u called MPI_Abort with code %d%s%s", rank,
			 action->code, *action->text ? ": " : "", action->text);
	} else {
		snprintf(text, sizeof(text), "rank %u: %s", rank, action->text);
	}
	mpi->handler->on_failed(mpi->arg, action->rank, aborts ? FAILURE_ABORT : FAILURE_PMI,
				&status, text);
}

static void act(struct mpi *mpi, const struct pmi_action *action)
{
	switch (action->type) {
	case PMI_DO_WRITE:
		write_out(&mpi->ranks[action->rank]);
		break;
	case PMI_DO_PUT:
		mpi->handler->on_exchange(
			mpi->arg, &(struct agent_event){ .type = AGENT_PUT,
							 .put = { action->seq, action->pairs } });
		break;
	case PMI_DO_WANT:
		mpi->handler->on_exchange(mpi->arg, &(struct agent_event){ .type = AGENT_WANT,
									   .want = action->want });
		break;
	case PMI_DO_ABORT:
	case PMI_DO_BLAME:
		fail(mpi, action);
		break;
	}
}

static void act_all(struct mpi *mpi)
{
	if (mpi->acting)
		return;
	mpi->acting = true;
	for (size_t i = 0; i < mpi->actions.count; i++) {
		struct pmi_action action = mpi->actions.items[i]; /* more may be added meanwhile */
		act(mpi, &action);
	}
	mpi->actions.count = 0;
	mpi->acting = false;
}

/* Takes what it has sent, at most `limit` bytes. */
static void read_in(struct rank *rank, size_t limit)
{
	unsigned char bytes[READ_SIZE];
	for (size_t taken = 0; rank->fd >= 0 && taken < limit;) {
		ssize_t n = recv(rank->fd, bytes, sizeof(bytes), 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			break;
		if (n <= 0) {
			hang_up(rank);
			break;
		}
		taken += (size_t)n;
		pmi_take(&rank->mpi->pmi, rank->number, bytes_of(bytes, (size_t)n),
			 &rank->mpi->actions);
	}
	act_all(rank->mpi);
}

static void on_read(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	read_in(arg, READ_SIZE);
}

static void on_write(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	write_out(arg);
}

/* ---- the workers ---- */

/* The name of this attempt's world. MPI makes names of files and memory of it. */
static void name_world(struct mpi *mpi, const struct msg_formed *formed, struct ballot ballot)
{
	char id[64];
	size_t len = 0;
	for (const char *at = mpi->config->run_id; *at && len + 1 < sizeof(id); at++)
		if (isalnum((unsigned char)*at) || *at == '-' || *at == '_')
			id[len++] = *at;
	id[len] = '\0';
	snprintf(mpi->name, sizeof(mpi->name), "%s.%u.%llx.%llu", id, formed->master_port,
		 (unsigned long long)ballot.epoch, (unsigned long long)ballot.round);
}

void mpi_begin(struct mpi *mpi, const struct msg_formed *formed, struct ballot ballot,
	       const char *host)
{
	if (!mpi)
		return;
	uint32_t count = mpi->config->nproc;
	mpi_end(mpi);
	name_world(mpi, formed, ballot);
	snprintf(mpi->host, sizeof(mpi->host), "%s", host);
	mpi->ranks = NEW_ARRAY(struct rank, count);
	for (size_t i = 0; i < count; i++)
		mpi->ranks[i] = (struct rank){ .mpi = mpi, .number = i, .fd = -1 };
	const struct pmi_config config = {
		.rank_base = formed->rank_base,
		.count = count,
		.world_size = formed->world_size,
		.nodes = formed->nodes,
		.group_rank = formed->group_rank,
		.kvsname = mpi->name,
		.host = mpi->host,
	};
	pmi_begin(&mpi->pmi, &config, &mpi->actions);
	act_all(mpi);
}

void mpi_end(struct mpi *mpi)
{
	if (!mpi || !mpi->ranks)
		return;
	for (size_t i = 0; i < mpi->pmi.config.count; i++)
		hang_up(&mpi->ranks[i]);
	free(mpi->ranks);
	mpi->ranks = NULL;
	/* What was put is borrowed, perhaps by events that nobody has taken yet. */
}

int mpi_prepare(struct mpi *mpi, uint32_t local_rank, struct strv *env, int *ret_fd,
		struct err *err)
{
	*ret_fd = -1;
	if (!mpi)
		return 0;
	struct rank *rank = &mpi->ranks[local_rank];
	int fds[2];
	hang_up(rank);
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds) < 0)
		return err_set(err, errno, "a socket for MPI: %m");
	AUTO(fd_close) int theirs = fds[1];
	rank->fd = fds[0];
	int r = fd_set_nonblock(rank->fd, true);
	if (r < 0)
		return err_set(err, -r, "a socket for MPI: %m");
	rank->on_read = event_new(mpi->base, rank->fd, EV_READ | EV_PERSIST, on_read, rank);
	rank->on_write = event_new(mpi->base, rank->fd, EV_WRITE, on_write, rank);
	event_add(rank->on_read, NULL);

	env_setf(env, "PMI_FD", "%d", SPAWN_EXTRA);
	env_setf(env, "PMI_RANK", "%u", mpi->pmi.config.rank_base + local_rank);
	env_setf(env, "PMI_SIZE", "%u", mpi->pmi.config.world_size);
	env_setf(env, "MPI_LOCALNRANKS", "%u", mpi->pmi.config.count);
	env_setf(env, "MPI_LOCALRANKID", "%u", local_rank);
	env_set(env, "GFORTRAN_UNBUFFERED_PRECONNECTED", "y");
	if (mpi->pmi.config.nodes > 1 && *mpi->host)
		env_set(env, "MPIR_CVAR_CH3_INTERFACE_HOSTNAME", mpi->host);
	*ret_fd = fd_take(&theirs);
	return 0;
}

enum failure_reason mpi_ended(struct mpi *mpi, size_t local_rank, const struct exit_status *status)
{
	if (!mpi || !mpi->ranks)
		return FAILURE_EXIT;
	read_in(&mpi->ranks[local_rank], LAST_WORDS_MAX);
	bool unfinished = pmi_is_unfinished(&mpi->pmi, local_rank);
	return unfinished && exit_status_ok(status) ? FAILURE_UNFINALIZED : FAILURE_EXIT;
}

void mpi_exchanged(struct mpi *mpi, const struct msg *msg)
{
	const struct msg_union *all = &msg->all;
	const struct msg_value *value = &msg->value;
	if (!mpi || !mpi->ranks)
		return;
	if (msg->type == MSG_UNION)
		pmi_union(&mpi->pmi, all->seq, all->size, all->at, all->piece, &mpi->actions);
	else
		pmi_value(&mpi->pmi, value->serial, value->found, value->value, &mpi->actions);
	act_all(mpi);
}

void mpi_missing(const struct mpi *mpi, struct buf *ret_ranks)
{
	if (mpi && mpi->ranks)
		pmi_missing(&mpi->pmi, ret_ranks);
}

/* ---- life ---- */

struct mpi *mpi_new(const struct run_config *config, struct event_base *base,
		    const struct mpi_handler *handler, void *arg)
{
	if (config->mpi != RUN_MPI_PMI)
		return NULL;
	struct mpi *mpi = NEW(struct mpi);
	*mpi = (struct mpi){ .config = config, .base = base, .handler = handler, .arg = arg };
	return mpi;
}

void mpi_free(struct mpi *mpi)
{
	if (!mpi)
		return;
	mpi_end(mpi);
	pmi_done(&mpi->pmi);
	pmi_actions_done(&mpi->actions);
	free(mpi);
}
