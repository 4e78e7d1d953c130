/* Bytes from clients into the server's sessions: nothing crashes, memory stays within its limits,
 * and the replies do not depend on how the stream was cut. The first two bytes choose the cuts, the
 * rest is what the first client sends; a second client waits and hears of what the first one does.
 */
#include <stdlib.h>

#include "proto/store_session.h"

#define TABLE_MAX ((size_t)1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct run {
	struct store_table table;
	struct store_session client[2];
	struct buf out[2];
	bool failed;
};

static const struct store_session_limits limits = {
	.wire = { .key_max = 64, .value_max = 4096, .keys_max = 64, .message_max = 16384 },
	.reply_max = 65536,
	.replies_high = SIZE_MAX,
};

static void tell_released(struct run *run)
{
	for (struct store_waiter *w; (w = store_table_next_released(&run->table));)
		buf_append_char(&run->out[w == &run->client[1].waiter], STORE_RELEASED_BYTE);
}

static size_t feed(struct run *run, int who, const uint8_t *data, size_t len)
{
	struct err err;
	ssize_t n = store_session_feed(&run->client[who], &run->table, &limits, data, len,
				       &run->out[who], &err);
	tell_released(run);
	if (run->table.bytes > TABLE_MAX)
		abort();
	run->failed |= n < 0;
	return n < 0 ? 0 : (size_t)n;
}

static void second_client_waits(struct run *run)
{
	static const uint8_t request[] = { C10D_VALIDATE,
					   0xce,
					   0xf7,
					   0x85,
					   0x3c,
					   C10D_WAIT,
					   1,
					   0,
					   0,
					   0,
					   0,
					   0,
					   0,
					   0,
					   1,
					   0,
					   0,
					   0,
					   0,
					   0,
					   0,
					   0,
					   'k' };
	if (feed(run, 1, request, sizeof(request)) != sizeof(request))
		abort();
}

static void converse(struct run *run, const uint8_t *data, size_t size, size_t first, size_t step)
{
	store_table_init(&run->table, TABLE_MAX, (const uint64_t[2]){ 1, 2 });
	for (int i = 0; i < 2; i++) {
		store_session_init(&run->client[i], NULL);
		run->out[i] = BUF_INIT;
	}
	run->failed = false;
	second_client_waits(run);
	size_t begin = 0;
	for (size_t end = MIN(first, size);; end = MIN(end + step, size)) {
		/* A buffer of exactly the bytes that came, for the sanitizer's sake. */
		size_t len = end - begin;
		uint8_t *piece = malloc(len ? len : 1);
		memcpy(piece, data + begin, len);
		begin += feed(run, 0, piece, len);
		free(piece);
		if (end == size || run->failed)
			break;
	}
}

static void run_done(struct run *run)
{
	for (int i = 0; i < 2; i++) {
		store_session_done(&run->client[i], &run->table);
		buf_done(&run->out[i]);
	}
	store_table_done(&run->table);
}

static void expect_same(const struct buf *a, const struct buf *b)
{
	if (!bytes_eq(bytes_of(buf_data(a), buf_len(a)), bytes_of(buf_data(b), buf_len(b))))
		abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	struct run whole, split;
	converse(&whole, data + 2, size - 2, size, 1);
	converse(&split, data + 2, size - 2, data[0], 1 + (size_t)data[1]);
	if (whole.failed != split.failed)
		abort();
	expect_same(&whole.out[0], &split.out[0]);
	expect_same(&whole.out[1], &split.out[1]);
	run_done(&whole);
	run_done(&split);
	return 0;
}
