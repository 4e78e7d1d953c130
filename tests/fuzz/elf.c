/* Whatever a program's file contains: no crash, and the names of its libraries are within their
 * bounds. */
#include "proto/elf.h"

#include <stdlib.h>
#include <string.h>

#include "base/bytes.h"
#include "core/pmi/mpi_library.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static ssize_t read_bytes(void *arg, uint64_t at, void *ret_bytes, size_t len)
{
	const struct bytes *file = arg;
	if (at >= file->len)
		return 0;
	len = MIN(len, file->len - (size_t)at);
	memcpy(ret_bytes, file->data + at, len);
	return (ssize_t)len;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(strv_done) struct strv names = STRV_INIT;
	struct bytes file = bytes_of(data, size);
	int r = elf_needed(read_bytes, &file, &names);
	if (names.count > ELF_DYNAMIC_MAX || (r < 0 && names.count))
		abort();
	for (size_t i = 0; i < names.count; i++) {
		const char *what = NULL;
		enum mpi_library kind = mpi_library_kind(names.items[i], &what);
		if (strlen(names.items[i]) >= ELF_NAME_MAX || (kind == MPI_LIBRARY_OTHER) != !!what)
			abort();
	}
	return 0;
}
