/* Streams of the job's one log: no input crashes the reader, it holds no more than a block, and
 * what it writes does not depend on the pieces in which a stream arrives. */
#include <stdlib.h>
#include <string.h>

#include "proto/joblog/job_log.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool read_all(const uint8_t *data, size_t size, size_t piece, struct buf *out)
{
	AUTO(job_log_done) struct job_log log = JOB_LOG_INIT;
	bool bad = false;
	for (size_t at = 0; at < size; at += piece)
		bad |= job_log_take(&log, 0, "host", bytes_of(data + at, MIN(piece, size - at)),
				    false, out) < 0;
	job_log_sum(&log, out);
	return bad;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(buf_done) struct buf whole = BUF_INIT, cut = BUF_INIT;
	if (size == 0)
		return 0;
	bool a = read_all(data, size, size, &whole);
	bool b = read_all(data, size, 1 + data[size - 1] % 7, &cut);
	if (a != b || buf_len(&whole) != buf_len(&cut) ||
	    (buf_len(&whole) && memcmp(buf_data(&whole), buf_data(&cut), buf_len(&whole)) != 0))
		abort();
	return 0;
}
