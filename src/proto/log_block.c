#include "proto/log_block.h"

#include <errno.h>
#include <string.h>

#include "proto/pack.h"

static bool pack_head(struct pack *p, enum log_stream *stream, uint32_t *rank, uint32_t *len)
{
	PACK_ENUM(p, *stream, LOG_STREAM_COUNT);
	pack_u32(p, rank);
	pack_u32(p, len);
	pack_require(p, *len <= LOG_BLOCK_MAX);
	return !p->bad;
}

void log_block_head(struct buf *out, enum log_stream stream, uint32_t rank, size_t len)
{
	unsigned char head[LOG_BLOCK_HEAD];
	struct pack p = pack_writer(head, sizeof(head));
	uint32_t size = (uint32_t)len;
	bool fits = pack_head(&p, &stream, &rank, &size);
	assert(fits && len <= LOG_BLOCK_MAX);
	if (fits)
		buf_append(out, head, sizeof(head));
}

static void advance(struct bytes *input, size_t len)
{
	*input = bytes_of(input->data + len, input->len - len);
}

int log_blocks_next(struct log_blocks *blocks, struct bytes *input, struct bytes *ret_bytes,
		    struct err *err)
{
	while (blocks->left == 0) {
		size_t len = MIN(sizeof(blocks->head) - blocks->head_len, input->len);
		if (len == 0)
			return 0;
		memcpy(blocks->head + blocks->head_len, input->data, len);
		blocks->head_len += len;
		advance(input, len);
		if (blocks->head_len < sizeof(blocks->head))
			return 0;
		struct pack p = pack_reader(blocks->head, sizeof(blocks->head));
		uint32_t size = 0;
		blocks->head_len = 0;
		if (!pack_head(&p, &blocks->stream, &blocks->rank, &size))
			return err_set(err, EPROTO, "a block of logs with a bad head");
		blocks->left = size;
	}
	if (input->len == 0)
		return 0;
	*ret_bytes = bytes_of(input->data, MIN(blocks->left, input->len));
	blocks->left -= ret_bytes->len;
	advance(input, ret_bytes->len);
	return 1;
}
