#include "run/mpi/choice.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "core/pmi/mpi_library.h"
#include "proto/elf.h"
#include "run/config.h"

static ssize_t read_at(void *arg, uint64_t at, void *ret_bytes, size_t len)
{
	const int *fd = arg;
	return pread(*fd, ret_bytes, len, (off_t)at);
}

static int read_needed(const char *path, struct strv *ret_names)
{
	AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
	return fd < 0 ? -errno : elf_needed(read_at, &fd, ret_names);
}

static int choose(const struct run_config *config, const struct strv *names, enum run_mpi *ret_mpi,
		  struct err *err)
{
	/* one worker is the whole world, whoever starts it */
	bool alone = config->nproc == 1 && config->max_nodes == 1;
	enum run_mpi mpi = RUN_MPI_NONE;
	for (size_t i = 0; i < names->count; i++) {
		const char *what;
		enum mpi_library kind = mpi_library_kind(names->items[i], &what);
		if (kind == MPI_LIBRARY_PMI)
			mpi = RUN_MPI_PMI;
		if (kind == MPI_LIBRARY_OTHER && !alone)
			return err_set(err, EINVAL,
				       "'%.200s' is linked with %.64s (%s), which muster does not "
				       "serve: start it with the mpirun of its MPI, or give "
				       "--mpi=none if each worker is to be a world of its own",
				       config->entry.title, names->items[i], what);
	}
	*ret_mpi = mpi;
	return 0;
}

int mpi_choose(struct run_config *config, struct err *err)
{
	if (config->mpi != RUN_MPI_AUTO)
		return 0;
	config->mpi = RUN_MPI_NONE;
	if (config->entry.python)
		return 0;
	AUTO(strv_done) struct strv names = STRV_INIT;
	int r = read_needed(config->entry.path, &names);
	if (r < 0 && r != -ENOEXEC)
		log_warn("cannot read whether '%s' calls MPI: %s; if it does, give --mpi=pmi",
			 config->entry.title, strerror(-r));
	return r < 0 ? 0 : choose(config, &names, &config->mpi, err);
}
