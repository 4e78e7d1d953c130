#include "run/ask/answer_logs.h"

#include <errno.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/mem.h"
#include "core/lines/tail.h"
#include "run/ask/log_reader.h"

struct answer_logs {
	struct event_base *base;
	const struct pages *pages;
	struct inquiry ask;
	bool follow, tail;
	void (*on_more)(void *arg);
	void *arg;

	struct log_reader reader; /* of the files */
	struct event *readable;	  /* NULL: there is no reader */
	bool next_waits;	  /* another round has begun: read its files after these */

	/* by local rank: bytes of its output in memory that were taken */
	uint64_t (*seen)[OUTPUT_STREAM_COUNT];
	size_t seen_count;
	struct buf pending; /* of those, not taken yet */
	struct event *look;
};

static uint32_t rank_of(const struct answer_logs *logs, size_t local_rank)
{
	return (uint32_t)(logs->pages->workers->round.rank_base + local_rank);
}

static char *file_of(const struct answer_logs *logs, size_t local_rank, enum output_stream stream)
{
	return run_streams_file(&logs->pages->config->streams, logs->pages->workers->logdir,
				(uint32_t)local_rank, stream);
}

static enum log_stream log_stream(enum output_stream stream)
{
	return stream == OUTPUT_STDOUT ? LOG_STDOUT : LOG_STDERR;
}

/* Whether any of them is kept where `is_there` looks. */
static bool any_stream(const struct answer_logs *logs,
		       bool (*is_there)(const struct answer_logs *, size_t, enum output_stream))
{
	for (size_t i = 0; i < logs->pages->config->nproc; i++)
		for (int stream = 0; stream < OUTPUT_STREAM_COUNT; stream++)
			if (is_there(logs, i, (enum output_stream)stream))
				return true;
	return false;
}

/* ---- files ---- */

static void on_readable(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct answer_logs *logs = arg;
	logs->on_more(logs->arg);
}

static size_t list_files(const struct answer_logs *logs, struct log_file **ret_files)
{
	struct log_file *files = NULL;
	size_t count = 0, cap = 0;
	for (size_t i = 0; i < logs->pages->config->nproc; i++)
		for (int stream = 0; stream < OUTPUT_STREAM_COUNT; stream++) {
			if (!inquiry_means(&logs->ask, rank_of(logs, i)))
				continue;
			char *path = file_of(logs, i, (enum output_stream)stream);
			if (!path)
				continue;
			ARRAY_RESERVE(files, count, cap);
			files[count++] = (struct log_file){
				.path = path,
				.stream = log_stream((enum output_stream)stream),
				.rank = rank_of(logs, i),
			};
		}
	*ret_files = files;
	return count;
}

static void start_reader(struct answer_logs *logs)
{
	struct log_file *files;
	size_t count = list_files(logs, &files);
	if (count == 0 || log_reader_start(files, count, logs->follow,
					   logs->tail ? ASK_LOGS_TAIL_BYTES : LOG_READER_ALL,
					   &logs->reader, NULL) < 0)
		return;
	logs->readable = event_new(logs->base, logs->reader.fd, EV_READ, on_readable, logs);
	event_add(logs->readable, NULL);
}

static void end_reader(struct answer_logs *logs)
{
	if (logs->readable)
		event_free(logs->readable);
	logs->readable = NULL;
	log_reader_done(&logs->reader);
}

static void take_files(struct answer_logs *logs, size_t max, struct buf *out)
{
	char chunk[16 << 10];
	while (logs->readable && max > 0) {
		ssize_t n = read(logs->reader.fd, chunk, MIN(sizeof(chunk), max));
		if (n > 0) {
			buf_append(out, chunk, (size_t)n);
			max -= (size_t)n;
		} else if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
			event_add(logs->readable, NULL);
			return;
		} else {
			end_reader(logs);
			if (logs->next_waits)
				start_reader(logs);
			logs->next_waits = false;
		}
	}
}

/* ---- output in memory ---- */

static bool has_no_file(const struct answer_logs *logs, size_t local_rank,
			enum output_stream stream)
{
	AUTO_FREE char *path = file_of(logs, local_rank, stream);
	return !path;
}

static bool is_in_memory(const struct answer_logs *logs, size_t local_rank,
			 enum output_stream stream)
{
	return has_no_file(logs, local_rank, stream) &&
	       logs->pages->workers->keeps_tail[local_rank][stream];
}

static void put_tail(struct answer_logs *logs, size_t local_rank, enum output_stream stream)
{
	const struct pages *pages = logs->pages;
	uint64_t id = workers_id_of(pages->workers, local_rank);
	AUTO(buf_done) struct buf tail = BUF_INIT;
	if (output_tail_since(pages->output, id, stream, &logs->seen[local_rank][stream], &tail) <
		    0 ||
	    buf_len(&tail) == 0)
		return;
	static_assert(TAIL_MAX <= LOG_BLOCK_MAX, "a tail fits into a block");
	enum log_stream shown =
		output_shares_pipe(pages->output, id) ? LOG_BOTH : log_stream(stream);
	log_block_head(&logs->pending, shown, rank_of(logs, local_rank), buf_len(&tail));
	buf_append(&logs->pending, buf_data(&tail), buf_len(&tail));
}

static void put_tails(struct answer_logs *logs)
{
	for (size_t i = 0; i < logs->seen_count; i++)
		for (int stream = 0; stream < OUTPUT_STREAM_COUNT; stream++)
			if (inquiry_means(&logs->ask, rank_of(logs, i)) &&
			    is_in_memory(logs, i, (enum output_stream)stream))
				put_tail(logs, i, (enum output_stream)stream);
}

/* New bytes push out old ones, so what was not taken before the next look may be lost. */
static void on_look(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct answer_logs *logs = arg;
	if (buf_len(&logs->pending) == 0)
		put_tails(logs);
	if (buf_len(&logs->pending) > 0)
		logs->on_more(logs->arg);
}

static void start_looking(struct answer_logs *logs)
{
	const struct timeval period = clock_timeval(ANSWER_LOGS_PERIOD_NS);
	free(logs->seen);
	logs->seen_count = logs->pages->config->nproc;
	logs->seen = mem_alloc((logs->seen_count + 1) * sizeof(*logs->seen));
	put_tails(logs);
	if (logs->follow && any_stream(logs, has_no_file))
		event_add(logs->look, &period);
}

/* ---- both ---- */

static bool keeps(const struct answer_logs *logs, size_t local_rank, enum output_stream stream)
{
	return !has_no_file(logs, local_rank, stream) ||
	       logs->pages->workers->keeps_tail[local_rank][stream];
}

/* Before the first round: it may. */
static bool keeps_any(const struct answer_logs *logs)
{
	return logs->pages->workers->round.world_size == 0 || any_stream(logs, keeps);
}

bool answer_logs_take(struct answer_logs *logs, size_t max, struct buf *out)
{
	size_t len = MIN(buf_len(&logs->pending), max);
	buf_append(out, buf_data(&logs->pending), len);
	buf_consume(&logs->pending, len);
	take_files(logs, max - len, out);
	return !logs->follow && !logs->readable && buf_len(&logs->pending) == 0;
}

void answer_logs_round_ends(struct answer_logs *logs)
{
	log_reader_finish(&logs->reader);
	put_tails(logs);
}

void answer_logs_round_begins(struct answer_logs *logs)
{
	if (!logs->follow)
		return;
	if (logs->readable)
		logs->next_waits = true;
	else
		start_reader(logs);
	start_looking(logs);
	logs->on_more(logs->arg);
}

struct answer_logs *answer_logs_new(struct event_base *base, const struct pages *pages,
				    const struct inquiry *ask, bool tail,
				    void (*on_more)(void *arg), void *arg)
{
	struct answer_logs *logs = NEW(struct answer_logs);
	*logs = (struct answer_logs){
		.base = base,
		.pages = pages,
		.ask = *ask,
		.follow = ask->kind == ASK_FOLLOW,
		.tail = tail,
		.on_more = on_more,
		.arg = arg,
		.reader = LOG_READER_INIT,
		.pending = BUF_INIT,
	};
	if (!keeps_any(logs)) {
		free(logs);
		return NULL;
	}
	logs->look = event_new(base, -1, EV_PERSIST, on_look, logs);
	start_reader(logs);
	start_looking(logs);
	return logs;
}

void answer_logs_free(struct answer_logs *logs)
{
	if (!logs)
		return;
	end_reader(logs);
	event_free(logs->look);
	buf_done(&logs->pending);
	free(logs->seen);
	free(logs);
}
