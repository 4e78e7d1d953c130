#include "proto/dash/log_feed.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"
#include "core/lines/merge.h"
#include "proto/json_out.h"
#include "proto/log_block.h"

/* One stream of one worker. */
struct writer {
	uint32_t rank;
	struct buf partial; /* a line that has no end yet */
};

struct kept {
	char *json;
	size_t len;
};

struct log_feed {
	struct map hosts;   /* slot -> struct log_blocks, while the host tells */
	struct map writers; /* rank and stream -> struct writer */
	struct merge merge;
	struct kept kept[LOG_FEED_KEPT_MAX]; /* a ring */
	uint64_t first, next;		     /* numbers of the oldest one and of the one to come */
	size_t bytes;
};

struct log_feed *log_feed_new(void)
{
	struct log_feed *feed = NEW(struct log_feed);
	feed->hosts = feed->writers = MAP_INIT;
	merge_init(&feed->merge);
	return feed;
}

static struct kept *kept_at(const struct log_feed *feed, uint64_t number)
{
	return (struct kept *)&feed->kept[number % LOG_FEED_KEPT_MAX];
}

static void forget_oldest(struct log_feed *feed)
{
	struct kept *kept = kept_at(feed, feed->first++);
	feed->bytes -= kept->len;
	free(kept->json);
	*kept = (struct kept){ .json = NULL };
}

void log_feed_free(struct log_feed *feed)
{
	if (!feed)
		return;
	log_feed_end(feed, 0);
	while (feed->first < feed->next)
		forget_oldest(feed);
	map_done(&feed->hosts);
	map_done(&feed->writers);
	merge_done(&feed->merge);
	free(feed);
}

/* ---- lines ---- */

static void add_line(struct log_feed *feed, struct writer *writer, uint64_t now_ns)
{
	struct buf *text = &writer->partial;
	struct line line = { .text = buf_data(text), .len = buf_len(text), .end = LINE_OPEN };
	if (buf_len(text))
		merge_add(&feed->merge, writer->rank, &line, now_ns);
	buf_done(text);
}

static void take_bytes(struct log_feed *feed, struct writer *writer, struct bytes bytes,
		       uint64_t now_ns)
{
	for (size_t i = 0; i < bytes.len; i++) {
		char c = (char)bytes.data[i];
		if (c == '\n' || c == '\r')
			add_line(feed, writer, now_ns);
		else
			buf_append_char(&writer->partial, c ? c : '?');
		if (buf_len(&writer->partial) >= LOG_FEED_LINE_MAX)
			add_line(feed, writer, now_ns);
	}
}

/* NULL: there are too many. */
static struct writer *writer_of(struct log_feed *feed, const struct log_blocks *blocks)
{
	const uint32_t key[] = { blocks->rank, blocks->stream };
	struct writer *writer = map_get(&feed->writers, key, sizeof(key));
	if (writer || feed->writers.count >= LOG_FEED_WRITERS_MAX ||
	    blocks->rank >= LOG_FEED_RANK_MAX)
		return writer;
	writer = NEW(struct writer);
	*writer = (struct writer){ .rank = blocks->rank, .partial = BUF_INIT };
	map_put(&feed->writers, key, sizeof(key), writer);
	return writer;
}

int log_feed_take(struct log_feed *feed, uint16_t slot, struct bytes piece, bool last,
		  uint64_t now_ns)
{
	struct log_blocks *blocks = map_get(&feed->hosts, &slot, sizeof(slot));
	struct bytes bytes;
	int r;
	if (!blocks) {
		blocks = NEW(struct log_blocks);
		*blocks = LOG_BLOCKS_INIT;
		map_put(&feed->hosts, &slot, sizeof(slot), blocks);
	}
	while ((r = log_blocks_next(blocks, &piece, &bytes, NULL)) > 0) {
		struct writer *writer = writer_of(feed, blocks);
		if (writer)
			take_bytes(feed, writer, bytes, now_ns);
	}
	if (last || r < 0)
		free(map_remove(&feed->hosts, &slot, sizeof(slot)));
	return r;
}

static void end_writer(struct log_feed *feed, struct writer *writer, uint64_t now_ns)
{
	add_line(feed, writer, now_ns);
	free(writer);
}

void log_feed_end(struct log_feed *feed, uint64_t now_ns)
{
	map_foreach(entry, &feed->writers) end_writer(feed, entry->value, now_ns);
	map_foreach(entry, &feed->hosts) free(entry->value);
	map_done(&feed->writers);
	map_done(&feed->hosts);
	feed->writers = feed->hosts = MAP_INIT;
}

/* ---- kept ones ---- */

static void keep(struct log_feed *feed, struct merge_line *line, uint64_t wall_ms)
{
	AUTO(buf_done) struct buf json = BUF_INIT, ranks = BUF_INIT;
	AUTO_FREE char *text = mem_strndup((const char *)line->text, line->len);
	merge_line_writers(line, 0, &ranks);
	struct json_out out = JSON_OUT(&json, .ascii = true);
	json_out_open(&out, NULL, '[');
	json_out_int(&out, NULL, (int64_t)wall_ms);
	json_out_text(&out, NULL, buf_str(&ranks));
	json_out_text(&out, NULL, text);
	json_out_close(&out, ']');
	struct kept kept = { .len = buf_len(&json) };
	kept.json = buf_take_str(&json);
	while (feed->first < feed->next && (feed->next - feed->first == LOG_FEED_KEPT_MAX ||
					    feed->bytes + kept.len > LOG_FEED_KEPT_BYTES))
		forget_oldest(feed);
	feed->bytes += kept.len;
	*kept_at(feed, feed->next++) = kept;
}

bool log_feed_collect(struct log_feed *feed, uint64_t now_ns, uint64_t wall_ms)
{
	bool any = false;
	for (struct merge_line *line; (line = merge_next(&feed->merge, UINT32_MAX, now_ns));) {
		keep(feed, line, wall_ms);
		merge_line_free(line);
		any = true;
	}
	return any;
}

bool log_feed_put(const struct log_feed *feed, uint64_t *at, size_t max, struct buf *text)
{
	uint64_t from = feed->next, lost;
	if (*at >= feed->next)
		return false;
	for (size_t len = 0; from > MAX(feed->first, *at); from--) {
		len += kept_at(feed, from - 1)->len + 1;
		if (len > max)
			break;
	}
	lost = from - *at;
	struct json_out json = JSON_OUT(text), *out = &json;
	json_out_open(out, NULL, '{');
	if (lost)
		json_out_int(out, "lost", (int64_t)lost);
	json_out_open(out, "lines", '[');
	for (; from < feed->next; from++)
		json_out_raw(out, NULL, kept_at(feed, from)->json, kept_at(feed, from)->len);
	json_out_close(out, ']');
	json_out_close(out, '}');
	*at = feed->next;
	return true;
}
