/* Any bytes as a result file of another benchmark tool: every value that is accepted can be written
 * as a line of a result file and read again. */
#include <stdlib.h>

#include "proto/bench_import.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static int on_value(void *arg UNUSED, const struct bench_version *version,
		    const struct result *result, struct err *err)
{
	struct result again = RESULT_INIT;
	struct buf line = BUF_INIT;
	result_write(result, &line);
	if (!version->commit || !version->host ||
	    result_read((const char *)buf_data(&line), buf_len(&line), &again, err) != 1)
		abort();
	result_done(&again);
	buf_done(&line);
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct err err = ERR_INIT;
	bench_import((const char *)data, size, on_value, NULL, &err);
	return 0;
}
