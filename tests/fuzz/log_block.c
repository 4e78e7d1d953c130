/* Streams of log blocks: no input crashes the reader, and what it reads does not depend on the
 * pieces in which the stream arrives. */
#include <stdlib.h>
#include <string.h>

#include "proto/log_block.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Appends the bytes with their places; what went wrong, too. */
static int read_all(const uint8_t *data, size_t size, size_t piece, struct buf *out)
{
	struct log_blocks blocks = LOG_BLOCKS_INIT;
	for (size_t at = 0; at < size; at += piece) {
		struct bytes input = bytes_of(data + at, MIN(piece, size - at)), bytes;
		int r;
		while ((r = log_blocks_next(&blocks, &input, &bytes, NULL)) > 0)
			for (size_t i = 0; i < bytes.len; i++)
				buf_printf(out, "%u %d %02x\n", blocks.rank, blocks.stream,
					   bytes.data[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(buf_done) struct buf whole = BUF_INIT, cut = BUF_INIT;
	if (size == 0)
		return 0;
	int a = read_all(data, size, size, &whole);
	int b = read_all(data, size, 1 + data[size - 1] % 7, &cut);
	if (a != b || strcmp(buf_str(&whole), buf_str(&cut)) != 0)
		abort();
	return 0;
}
