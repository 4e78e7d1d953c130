/* What hosts tell of themselves, and what pages want: no input crashes the readers, and what comes
 * out is JSON. The first byte says how the rest is cut into two states. */
#include <stdlib.h>

#include "proto/dash/board.h"
#include "proto/dash/log_feed.h"
#include "proto/dash/roster.h"
#include "proto/dash/wish.h"
#include "proto/json_value.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(struct buf *out)
{
	struct json_value value;
	if (buf_len(out) && json_value_parse(buf_str(out), buf_len(out), &value) < 0)
		abort();
}

static void look(struct board *board, const uint8_t *data, size_t size, size_t cut, uint64_t now_s)
{
	AUTO(buf_done) struct buf changes = BUF_INIT, all = BUF_INIT;
	board_begin(board, cut % 9, now_s * 1000000000, now_s * 1000);
	board_take(board, "one", 0, false, bytes_of(data, cut));
	board_take(board, "two", 1, size % 2, bytes_of(data + cut, size - cut));
	board_end(board);
	board_put_changes(board, &changes);
	board_put_all(board, &all);
	check(&changes);
	check(&all);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 2)
		return 0;
	size_t cut = 1 + data[0] * (size - 1) / 256;
	struct wish wish;
	wish_parse(bytes_of(data, size), &wish, NULL);
	wish_parse(bytes_of(data + 1, size - 1), &wish, NULL);

	struct roster_query query;
	roster_query_parse(bytes_of(data, size), &query, NULL);
	roster_query_done(&query);
	roster_query_parse(bytes_of(data + 1, size - 1), &query, NULL);
	roster_query_done(&query);

	struct board *board = board_new();
	look(board, data + 1, size - 1, cut - 1, 1);
	look(board, data + 1, size - 1, (size - 1) / 2, 2);
	look(board, data + 1, size - 1, size - 1, 3);
	board_free(board);

	struct log_feed *feed = log_feed_new();
	AUTO(buf_done) struct buf lines = BUF_INIT;
	uint64_t at = 0;
	log_feed_take(feed, 0, bytes_of(data, cut), false, 1);
	log_feed_take(feed, 0, bytes_of(data + cut, size - cut), true, 2);
	log_feed_end(feed, 3);
	log_feed_collect(feed, UINT64_MAX, 1);
	log_feed_put(feed, &at, size * 8, &lines);
	check(&lines);
	log_feed_free(feed);
	return 0;
}
