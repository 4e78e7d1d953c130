#include "core/pmi/mpi_library.h"

#include <string.h>

#include "base/str.h"

/* The first row that fits counts. MPICH and what keeps its binary interface (Intel MPI, MVAPICH,
 * Cray) have version 12, as nobody else; Open MPI had 0, 1, 12 in 1.10, 20 and has 40. Open MPI
 * 1.10 is not told apart by the name. */
static const struct {
	const char *begin, *version; /* version: NULL, any */
	enum mpi_library kind;
	const char *what;
} libraries[] = {
	{ "libmpich", NULL, MPI_LIBRARY_PMI, NULL },
	{ "libmpi.so", "12", MPI_LIBRARY_PMI, NULL },
	{ "libmpifort.so", "12", MPI_LIBRARY_PMI, NULL },
	{ "libmpicxx.so", "12", MPI_LIBRARY_PMI, NULL },
	{ "libpmi.so", NULL, MPI_LIBRARY_PMI, NULL },
	{ "libmpi.so", NULL, MPI_LIBRARY_OTHER, "Open MPI" },
	{ "libmpi_mpifh.so", NULL, MPI_LIBRARY_OTHER, "Open MPI" },
	{ "libmpi_usempif08.so", NULL, MPI_LIBRARY_OTHER, "Open MPI" },
	{ "libmpi_cxx.so", NULL, MPI_LIBRARY_OTHER, "Open MPI" },
	{ "libpmix.so", NULL, MPI_LIBRARY_OTHER, "PMIx" },
	{ "libpmi2.so", NULL, MPI_LIBRARY_OTHER, "PMI-2" },
};

/* libmpi.so.12.1.8 is of version 12, as libmpi.so.12 is. */
static bool has_version(const char *rest, const char *version)
{
	size_t len = strlen(version);
	return *rest == '.' && strncmp(rest + 1, version, len) == 0 &&
	       (rest[1 + len] == '\0' || rest[1 + len] == '.');
}

enum mpi_library mpi_library_kind(const char *name, const char **ret_what)
{
	const char *slash = strrchr(name, '/');
	name = slash ? slash + 1 : name;
	for (size_t i = 0; i < ARRAY_LEN(libraries); i++) {
		const char *rest = name + strlen(libraries[i].begin);
		if (!str_starts(name, libraries[i].begin) ||
		    (libraries[i].version && !has_version(rest, libraries[i].version)))
			continue;
		if (libraries[i].what)
			*ret_what = libraries[i].what;
		return libraries[i].kind;
	}
	return MPI_LIBRARY_NONE;
}
