#include "proto/valgrind_out.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	uint64_t count = 0;
	struct err err = ERR_INIT;
	int r = valgrind_out_instructions((const char *)data, len, &count, &err);
	assert((r < 0) == (err.code != 0));
	return 0;
}
