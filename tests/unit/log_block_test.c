/* Logs of many workers as one stream. */
#include "unit.h"

#include <errno.h>
#include <string.h>

#include "core/lines/tail.h"
#include "proto/log_block.h"

static void put(struct buf *out, enum log_stream stream, uint32_t rank, const char *text)
{
	log_block_head(out, stream, rank, strlen(text));
	buf_append_str(out, text);
}

/* The bytes of the stream, as "rank/stream:text;" */
static int read_all(const struct buf *in, size_t piece, struct buf *out)
{
	struct log_blocks blocks = LOG_BLOCKS_INIT;
	for (size_t at = 0; at < buf_len(in); at += piece) {
		struct bytes input = bytes_of(buf_data(in) + at, MIN(piece, buf_len(in) - at));
		struct bytes bytes;
		int r;
		while ((r = log_blocks_next(&blocks, &input, &bytes, NULL)) > 0)
			for (size_t i = 0; i < bytes.len; i++)
				buf_printf(out, "%u/%d:%c;", blocks.rank, (int)blocks.stream,
					   bytes.data[i]);
		if (r < 0)
			return r;
	}
	return 0;
}

TEST(blocks_come_out_as_they_went_in_whatever_the_pieces)
{
	AUTO(buf_done) struct buf in = BUF_INIT;
	put(&in, LOG_STDOUT, 3, "ab");
	put(&in, LOG_BOTH, 70000, "");
	put(&in, LOG_STDERR, 17, "c");
	for (size_t piece = 1; piece <= buf_len(&in); piece++) {
		AUTO(buf_done) struct buf out = BUF_INIT;
		ck_assert_int_eq(read_all(&in, piece, &out), 0);
		ck_assert_str_eq(buf_str(&out), "3/0:a;3/0:b;17/1:c;");
	}
}

TEST(a_head_that_no_sender_would_send_is_refused)
{
	AUTO(buf_done) struct buf in = BUF_INIT, out = BUF_INIT;
	put(&in, LOG_STDOUT, 3, "ab");
	buf_data(&in)[0] = LOG_STREAM_COUNT;
	ck_assert_int_eq(read_all(&in, buf_len(&in), &out), -EPROTO);
	buf_data(&in)[0] = LOG_STDOUT;
	buf_data(&in)[8] = 1; /* 16 MiB */
	ck_assert_int_eq(read_all(&in, buf_len(&in), &out), -EPROTO);
}

static void expect_since(const struct tail *tail, uint64_t seen, size_t len, char first)
{
	AUTO(buf_done) struct buf out = BUF_INIT;
	tail_copy_since(tail, seen, &out);
	ck_assert_uint_eq(buf_len(&out), len);
	if (len > 0)
		ck_assert_int_eq(buf_data(&out)[0], first);
}

TEST(a_tail_gives_out_what_was_not_seen_and_is_still_there)
{
	struct tail tail = TAIL_INIT;
	tail_write(&tail, "abcdef", 6);
	expect_since(&tail, 0, 6, 'a');
	expect_since(&tail, 4, 2, 'e');
	expect_since(&tail, 6, 0, 0);
	char many[1000];
	for (int i = 0; i < 100; i++) {
		memset(many, 'A' + i % 26, sizeof(many));
		tail_write(&tail, many, sizeof(many));
	}
	expect_since(&tail, 6, TAIL_MAX, 'A' + (int)((100000 - TAIL_MAX) / 1000) % 26);
	expect_since(&tail, tail.total - 10, 10, 'A' + 99 % 26);
	tail_done(&tail);
}
