/* The error.json of a worker: any bytes give one of the three states, with texts that are whole. */
#include <assert.h>
#include <stdint.h>
#include <stdlib.h>

#include "run/tell/error_file.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct error_file file;
	error_file_parse((const char *)data, size, &file);
	assert(file.state != ERROR_FILE_ABSENT);
	assert((file.state == ERROR_FILE_BAD) == (file.problem != NULL));
	assert((file.state == ERROR_FILE_GOOD) == (file.message || file.traceback));
	error_file_done(&file);
	return 0;
}
