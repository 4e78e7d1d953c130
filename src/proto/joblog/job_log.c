#include "proto/joblog/job_log.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/mem.h"

struct host {
	uint64_t next; /* the number that its next line should have */
	bool new;      /* it was not heard of before: its lines begin where it says */
};

struct stream {
	struct line_blocks blocks;
	struct host *host; /* NULL: it has not said who it is */
	bool bad;
};

static void free_stream(struct stream *stream)
{
	if (!stream)
		return;
	line_blocks_done(&stream->blocks);
	free(stream);
}

void job_log_restart(struct job_log *log)
{
	map_foreach(entry, &log->streams) free_stream(entry->value);
	map_done(&log->streams);
	log->streams = MAP_INIT;
}

void job_log_done(struct job_log *log)
{
	job_log_restart(log);
	map_foreach(entry, &log->hosts) free(entry->value);
	map_done(&log->hosts);
	*log = JOB_LOG_INIT;
}

static struct host *host_of(struct job_log *log, uint64_t id)
{
	struct host *host = map_get(&log->hosts, &id, sizeof(id));
	if (host || log->hosts.count >= JOB_LOG_HOSTS_MAX)
		return host;
	host = NEW(struct host);
	host->new = true;
	map_put(&log->hosts, &id, sizeof(id), host);
	return host;
}

/* Its lines up to this number should have come. */
static void note_gap(struct job_log *log, struct host *host, const char *name, uint64_t number,
		     struct buf *out)
{
	if (number > host->next) {
		uint64_t gap = number - host->next;
		log->missing += gap;
		buf_printf(out, "muster: %" PRIu64 " lines of %s are missing here\n", gap, name);
	}
	host->next = MAX(host->next, number);
}

/* A line that came before is not written twice. */
static void take_line(struct job_log *log, struct stream *stream, const char *name,
		      const struct line_block *block, struct buf *out)
{
	struct host *host = stream->host;
	if (host && block->number < host->next)
		return;
	if (host)
		note_gap(log, host, name, block->number, out);
	if (host)
		host->next = block->number + 1;
	buf_printf(out, "[%u%s]: ", block->rank, block->kind == LINE_STDERR ? "!" : "");
	buf_append(out, block->text.data, block->text.len);
	buf_append_char(out, '\n');
	log->lines++;
}

static void begin_at(struct host *host, uint64_t number)
{
	if (!host || !host->new)
		return;
	host->next = number;
	host->new = false;
}

static void take_block(struct job_log *log, struct stream *stream, const char *name,
		       const struct line_block *block, struct buf *out)
{
	if (block->kind == LINE_BEGIN)
		stream->host = host_of(log, block->number);
	else if (block->kind == LINE_FROM)
		begin_at(stream->host, block->number);
	else if (block->kind == LINE_NEXT && stream->host)
		note_gap(log, stream->host, name, block->number, out);
	else if (block->kind != LINE_NEXT)
		take_line(log, stream, name, block, out);
}

int job_log_take(struct job_log *log, uint16_t slot, const char *name, struct bytes piece,
		 bool last, struct buf *out)
{
	struct stream *stream = map_get(&log->streams, &slot, sizeof(slot));
	struct line_block block;
	int r = 0;
	if (!stream) {
		stream = NEW(struct stream);
		*stream = (struct stream){ .blocks = LINE_BLOCKS_INIT };
		map_put(&log->streams, &slot, sizeof(slot), stream);
	}
	while (!stream->bad && (r = line_blocks_next(&stream->blocks, &piece, &block, NULL)) > 0)
		take_block(log, stream, name, &block, out);
	if (r < 0) {
		stream->bad = true;
		line_blocks_done(&stream->blocks);
	}
	if (last)
		free_stream(map_remove(&log->streams, &slot, sizeof(slot)));
	return r;
}

void job_log_sum(const struct job_log *log, struct buf *out)
{
	if (log->missing)
		buf_printf(out,
			   "muster: %" PRIu64 " lines are missing in this log, of %" PRIu64 "\n",
			   log->missing, log->missing + log->lines);
}
