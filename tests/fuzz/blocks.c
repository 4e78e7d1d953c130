/* Any bytes as standard input of --pipe: no crash, and the blocks together are the input, unless
 * separators are left out or a header is repeated. The first bytes choose the rules. */
#include <stdlib.h>
#include <string.h>

#include "proto/args/blocks.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(const struct block_rules *rules, const uint8_t *data, size_t size)
{
	AUTO(buf_done) struct buf block = BUF_INIT;
	AUTO(block_cutter_done) struct block_cutter cutter;
	struct err err = ERR_INIT;
	size_t at = 0, out = 0;
	int r;
	if (block_cutter_init(&cutter, rules, &err) < 0)
		return;
	bool whole = !rules->remove && !rules->header;
	while ((r = block_cutter_next(&cutter, &block, &err)) >= 0) {
		size_t len = MIN(block_cutter_wants(&cutter), size - at);
		if (r > 0) {
			if (whole && (out + buf_len(&block) > size || buf_len(&block) == 0 ||
				      memcmp(buf_data(&block), data + out, buf_len(&block)) != 0))
				abort();
			out += buf_len(&block);
		} else if (block_cutter_over(&cutter)) {
			break;
		} else if (len == 0) {
			block_cutter_end(&cutter);
		} else {
			buf_append(&cutter.in, data + at, len);
			at += len;
		}
	}
	if (r == 0 && whole && out != size)
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const ends[] = { NULL, "\\n", ", ", ",_+", "", "\\x00", "ab", "a" };
	static const char *const starts[] = { NULL, "/", "aa", "[0-9]" };
	static const char *const headers[] = { NULL, ":", "2", "(%.*\\n)*" };
	if (size < 4)
		return 0;
	struct block_rules rules = { .size = (uint64_t)data[0] + 1,
				     .records = data[1] & 7,
				     .lines = data[1] >> 6,
				     .recend = ends[data[2] & 7],
				     .recstart = starts[data[2] >> 3 & 3],
				     .regexp = data[2] & 32,
				     .remove = data[2] & 64,
				     .header = headers[data[3] & 3] };
	check(&rules, data + 4, size - 4);
	return 0;
}
