#include "run/program_env.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/env.h"
#include "base/fd.h"
#include "base/str.h"
#include "run/worker_env.h"

static int parse_one(const char *name, size_t len, unsigned *kinds)
{
	static const struct {
		const char *name;
		enum program_kind kind;
	} known[] = { { "jax", PROGRAM_JAX }, { "mpi", PROGRAM_MPI } };
	for (size_t i = 0; i < ARRAY_LEN(known); i++)
		if (strlen(known[i].name) == len && strncmp(known[i].name, name, len) == 0) {
			*kinds |= known[i].kind;
			return 0;
		}
	return -EINVAL;
}

int program_kinds_parse(const char *text, void *field, struct err *err)
{
	unsigned kinds = *(unsigned *)field;
	const char *rest = text, *piece;
	size_t len;
	while ((piece = str_split(&rest, ',', &len)))
		if (parse_one(piece, len, &kinds) < 0)
			return err_set(err, EINVAL, "'%.64s' is neither jax nor mpi", text);
	*(unsigned *)field = kinds;
	return 0;
}

static void set_jax(const struct worker_round *round, uint32_t local_rank, uint16_t port,
		    struct strv *env)
{
	env_setf(env, "JAX_COORDINATOR_ADDRESS", "%s:%u", round->master_addr, port);
	env_setf(env, "JAX_NUM_PROCESSES", "%u", round->world_size);
	env_setf(env, "JAX_PROCESS_ID", "%u", round->rank_base + local_rank);

	/* jax.distributed.initialize() without arguments takes count and id from a launcher it
	 * knows. It recognises Open MPI's by the address of its daemon, which JAX itself does not
	 * use. */
	env_setf(env, "OMPI_MCA_orte_hnp_uri", "0.0;tcp://%s:%u", round->master_addr, port);
	env_setf(env, "OMPI_COMM_WORLD_SIZE", "%u", round->world_size);
	env_setf(env, "OMPI_COMM_WORLD_RANK", "%u", round->rank_base + local_rank);
	env_setf(env, "OMPI_COMM_WORLD_LOCAL_RANK", "%u", local_rank);
}

static void set_mpi(const struct worker_round *round, uint32_t local_rank, struct strv *env)
{
	const struct {
		const char *name;
		uint32_t value;
	} variables[] = {
		{ "OMPI_COMM_WORLD_SIZE", round->world_size },
		{ "OMPI_COMM_WORLD_RANK", round->rank_base + local_rank },
		{ "OMPI_COMM_WORLD_LOCAL_SIZE", round->local_world_size },
		{ "OMPI_COMM_WORLD_LOCAL_RANK", local_rank },
		{ "OMPI_COMM_WORLD_NODE_RANK", local_rank },
		{ "OMPI_UNIVERSE_SIZE", round->world_size },
		{ "PMI_SIZE", round->world_size },
		{ "PMI_RANK", round->rank_base + local_rank },
		{ "PMIX_RANK", round->rank_base + local_rank },
		{ "MPI_LOCALNRANKS", round->local_world_size },
		{ "MPI_LOCALRANKID", local_rank },
	};
	for (size_t i = 0; i < ARRAY_LEN(variables); i++)
		env_setf(env, variables[i].name, "%u", variables[i].value);
}

void program_env_rank(unsigned kinds, const struct worker_round *round, uint32_t local_rank,
		      uint16_t jax_port, struct strv *env)
{
	if (kinds & PROGRAM_JAX)
		set_jax(round, local_rank, jax_port, env);
	if (kinds & PROGRAM_MPI)
		set_mpi(round, local_rank, env);
}

int program_port_reserve(uint16_t *port, struct err *err)
{
	AUTO(fd_close) int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in address = { .sin_family = AF_INET, .sin_port = htons(*port) };
	socklen_t len = sizeof(address);
	int on = 1;
	if (fd < 0 || setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof(on)) < 0 ||
	    bind(fd, (struct sockaddr *)&address, sizeof(address)) < 0 ||
	    getsockname(fd, (struct sockaddr *)&address, &len) < 0)
		return err_set(err, errno, "reserve port %u for JAX: %m", *port);
	*port = ntohs(address.sin_port);
	return fd_take(&fd);
}
