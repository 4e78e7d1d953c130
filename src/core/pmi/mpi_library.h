/* What a program that is linked with a library asks of its launcher. */
#ifndef CORE_PMI_MPI_LIBRARY_H
#define CORE_PMI_MPI_LIBRARY_H

#include "base/util.h"

enum mpi_library {
	MPI_LIBRARY_NONE, /* nothing */
	MPI_LIBRARY_PMI,  /* PMI-1, core/pmi/pmi.h */
	MPI_LIBRARY_OTHER /* what nobody here serves */
};

/* `name`: as the program has it, such as libmpich.so.12. Sets `ret_what` to the name of what is not
 * served, a constant, for MPI_LIBRARY_OTHER. */
enum mpi_library mpi_library_kind(const char *name, const char **ret_what);

#endif
