#include "proto/joblog/line_block.h"

#include <errno.h>

#include "proto/pack.h"

struct head {
	enum line_kind kind;
	uint32_t rank;
	uint64_t number;
	uint32_t len;
};

static bool pack_head(struct pack *p, struct head *head)
{
	PACK_ENUM(p, head->kind, LINE_KIND_COUNT);
	pack_u32(p, &head->rank);
	pack_u64(p, &head->number);
	pack_u32(p, &head->len);
	pack_require(p, head->len <= LINE_BLOCK_MAX);
	return !p->bad;
}

void line_block_put(const struct line_block *block, struct buf *out)
{
	unsigned char bytes[LINE_BLOCK_HEAD];
	struct head head = { block->kind, block->rank, block->number, (uint32_t)block->text.len };
	struct pack p = pack_writer(bytes, sizeof(bytes));
	bool fits = pack_head(&p, &head);
	assert(fits && block->text.len <= LINE_BLOCK_MAX);
	if (!fits)
		return;
	buf_append(out, bytes, sizeof(bytes));
	buf_append(out, block->text.data, block->text.len);
}

void line_blocks_done(struct line_blocks *blocks)
{
	buf_done(&blocks->held);
	*blocks = LINE_BLOCKS_INIT;
}

/* Until so many bytes are held; false: there are not enough. */
static bool hold(struct line_blocks *blocks, struct bytes *input, size_t want)
{
	size_t len = MIN(want - MIN(want, buf_len(&blocks->held)), input->len);
	buf_append(&blocks->held, input->data, len);
	*input = bytes_of(input->data + len, input->len - len);
	return buf_len(&blocks->held) >= want;
}

int line_blocks_next(struct line_blocks *blocks, struct bytes *input, struct line_block *ret_block,
		     struct err *err)
{
	struct head head = { .len = 0 };
	if (blocks->given)
		buf_clear(&blocks->held);
	blocks->given = false;
	if (!hold(blocks, input, LINE_BLOCK_HEAD))
		return 0;
	struct pack p = pack_reader(buf_data(&blocks->held), LINE_BLOCK_HEAD);
	if (!pack_head(&p, &head))
		return err_set(err, EPROTO, "a line of the job's log with a bad head");
	if (!hold(blocks, input, LINE_BLOCK_HEAD + head.len))
		return 0;
	blocks->given = true;
	*ret_block = (struct line_block){ head.kind, head.rank, head.number,
					  bytes_of(buf_data(&blocks->held) + LINE_BLOCK_HEAD,
						   head.len) };
	return 1;
}
