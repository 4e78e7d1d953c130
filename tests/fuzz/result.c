/* Any bytes as a line of a result file: what is accepted must survive being written and read
 * again. */
#include <stdlib.h>
#include <string.h>

#include "proto/result.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct result first = RESULT_INIT, second = RESULT_INIT;
	struct buf once = BUF_INIT, twice = BUF_INIT;
	struct err err = ERR_INIT;
	if (result_read((const char *)data, size, &first, &err) == 1) {
		result_write(&first, &once);
		if (result_read((const char *)buf_data(&once), buf_len(&once), &second, &err) != 1)
			abort();
		result_write(&second, &twice);
		if (buf_len(&once) != buf_len(&twice) ||
		    memcmp(buf_data(&once), buf_data(&twice), buf_len(&once)) != 0)
			abort();
	}
	result_done(&first);
	result_done(&second);
	buf_done(&once);
	buf_done(&twice);
	return 0;
}
