#include "cli/jobs/log_show.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/mem.h"
#include "core/lines/merge.h"
#include "proto/log_block.h"

/* One stream of one worker. */
struct writer {
	uint32_t rank;
	struct line_split split;
};

struct log_show {
	struct log_show_options options;
	struct map hosts;   /* slot -> struct log_blocks, while the host answers */
	struct map writers; /* rank and stream -> struct writer */
	struct merge merge;
	bool failed; /* a host could not answer */
};

/* Lines that wait for equal ones; those of finished answers have waited long enough. */
static void show_merged(struct log_show *show, uint64_t now_ns)
{
	for (struct merge_line *line; (line = merge_next(&show->merge, UINT32_MAX, now_ns));) {
		AUTO(buf_done) struct buf ranks = BUF_INIT;
		merge_line_writers(line, 0, &ranks);
		printf("[%s] ", buf_str(&ranks));
		fwrite(line->text, 1, line->len, stdout);
		if (line->end != LINE_NEWLINE)
			putchar('\n');
		merge_line_free(line);
	}
}

/* `ends`: the stream ends with this line, which has no end of its own. */
static void show_line(struct log_show *show, uint32_t rank, const struct line *line, bool ends)
{
	const struct log_show_options *o = &show->options;
	if (o->grep && !memmem(line->text, line->len, o->grep, strlen(o->grep)))
		return;
	if (!o->each && !o->raw) {
		merge_add(&show->merge, rank, line, o->live ? clock_now_ns() : 0);
		return;
	}
	if (!o->raw && !line->continues)
		printf("[%" PRIu32 "] ", rank);
	fwrite(line->text, 1, line->len, stdout);
	if (ends && !o->raw)
		putchar('\n');
}

static struct writer *writer_of(struct log_show *show, const struct log_blocks *blocks)
{
	const uint32_t key[] = { blocks->rank, blocks->stream };
	struct writer *writer = map_get(&show->writers, key, sizeof(key));
	if (writer)
		return writer;
	writer = NEW(struct writer);
	*writer = (struct writer){ .rank = blocks->rank, .split = LINE_SPLIT_INIT };
	map_put(&show->writers, key, sizeof(key), writer);
	return writer;
}

static void take_bytes(struct log_show *show, const struct log_blocks *blocks, struct bytes bytes)
{
	if (show->options.raw && !show->options.grep) {
		fwrite(bytes.data, 1, bytes.len, stdout);
		return;
	}
	struct writer *writer = writer_of(show, blocks);
	struct line line;
	line_split_push(&writer->split, bytes.data, bytes.len);
	while (line_split_next(&writer->split, &line))
		show_line(show, writer->rank, &line, false);
}

void log_show_reply(void *arg, const struct msg_reply *reply)
{
	struct log_show *show = arg;
	if (!reply)
		return; /* asked again: what was shown stays */
	if (reply->failed) {
		fprintf(stderr, "muster logs: %s: %.*s\n", reply->name, (int)reply->piece.len,
			(const char *)reply->piece.data);
		show->failed = true;
		return;
	}
	struct log_blocks *blocks = map_get(&show->hosts, &reply->slot, sizeof(reply->slot));
	if (!blocks) {
		blocks = NEW(struct log_blocks);
		map_put(&show->hosts, &reply->slot, sizeof(reply->slot), blocks);
	}
	struct bytes input = reply->piece, bytes;
	while (log_blocks_next(blocks, &input, &bytes, NULL) > 0)
		take_bytes(show, blocks, bytes);
	if (reply->last)
		free(map_remove(&show->hosts, &reply->slot, sizeof(reply->slot)));
	show_merged(show, show->options.live ? clock_now_ns() : 0);
	fflush(stdout);
}

void log_show_tick(void *arg)
{
	struct log_show *show = arg;
	show_merged(show, clock_now_ns());
	fflush(stdout);
}

struct log_show *log_show_new(const struct log_show_options *options)
{
	struct log_show *show = NEW(struct log_show);
	*show = (struct log_show){ .options = *options, .hosts = MAP_INIT, .writers = MAP_INIT };
	merge_init(&show->merge);
	return show;
}

static void finish_writer(struct log_show *show, struct writer *writer)
{
	struct line line;
	if (line_split_finish(&writer->split, &line))
		show_line(show, writer->rank, &line, true);
	line_split_done(&writer->split);
	free(writer);
}

bool log_show_finish(struct log_show *show)
{
	map_foreach(entry, &show->writers) finish_writer(show, entry->value);
	show_merged(show, NS_NEVER);
	fflush(stdout);
	map_foreach(entry, &show->hosts) free(entry->value);
	map_done(&show->hosts);
	map_done(&show->writers);
	merge_done(&show->merge);
	bool answered = !show->failed;
	free(show);
	return answered;
}
