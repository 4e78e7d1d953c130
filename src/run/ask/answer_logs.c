#include "run/ask/answer_logs.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/dir.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "core/lines/tail.h"
#include "proto/log_block.h"
#include "sys/thread.h"

/* Reads log files in a thread and gives them out through a pipe as a stream of blocks
 * (proto/log_block.h): a file server that does not answer stops the thread, not the loop, and a
 * slow reader of the pipe holds the thread back. */

#define LOG_READER_PERIOD_MS 100 /* between two looks at files that are followed */

struct log_file {
	char *path;
	enum log_stream stream;
	uint32_t rank;
};

struct log_reader {
	int fd;	       /* the pipe, non-blocking; end of file: that was all */
	int finish_fd; /* of a reader that follows */
};

#define LOG_READER_INIT ((struct log_reader){ -1, -1 })

#define LOG_READER_ALL UINT64_MAX

struct open_file {
	struct log_file file;
	int fd; /* -1: it does not exist (yet) */
	uint64_t shown;
};

/* Belongs to the thread. */
struct reading {
	struct open_file *files;
	size_t count;
	bool follow;
	uint64_t tail; /* bytes of a file that is there at the beginning */
	int out, finish_fd;
	bool broken; /* the pipe has no reader any more */
};

static void reading_free(struct reading *reading)
{
	for (size_t i = 0; i < reading->count; i++) {
		fd_close(&reading->files[i].fd);
		free(reading->files[i].file.path);
	}
	free(reading->files);
	fd_close(&reading->out);
	fd_close(&reading->finish_fd);
	free(reading);
}

static void give(struct reading *reading, const struct log_file *file, const void *data, size_t len)
{
	AUTO(buf_done) struct buf block = BUF_INIT;
	log_block_head(&block, file->stream, file->rank, len);
	buf_append(&block, data, len);
	if (fd_write_all(reading->out, buf_data(&block), buf_len(&block)) < 0)
		reading->broken = true;
}

static void skip_to_tail(const struct reading *reading, struct open_file *file)
{
	struct stat info;
	if (fstat(file->fd, &info) < 0 || (uint64_t)info.st_size <= reading->tail)
		return;
	off_t at = info.st_size - (off_t)reading->tail;
	if (lseek(file->fd, at, SEEK_SET) == at)
		file->shown = (uint64_t)at;
}

static void read_rest(struct reading *reading, struct open_file *file)
{
	char chunk[LOG_BLOCK_MAX / 4];
	if (file->fd < 0) {
		file->fd = dir_open(file->file.path, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
		skip_to_tail(reading, file);
	}
	for (ssize_t n;
	     !reading->broken && file->fd >= 0 && (n = read(file->fd, chunk, sizeof(chunk))) > 0;) {
		file->shown += (uint64_t)n;
		give(reading, &file->file, chunk, (size_t)n);
	}
}

/* True if the name belongs to another file now, or the file was truncated: --log-max-size. */
static bool is_replaced(const struct open_file *file)
{
	struct stat open_one, named;
	if (file->fd < 0 || fstat(file->fd, &open_one) < 0 || dir_stat(file->file.path, &named) < 0)
		return false;
	return open_one.st_ino != named.st_ino || (uint64_t)open_one.st_size < file->shown;
}

static void read_new(struct reading *reading)
{
	for (size_t i = 0; i < reading->count && !reading->broken; i++) {
		struct open_file *file = &reading->files[i];
		read_rest(reading, file);
		if (!is_replaced(file))
			continue;
		fd_close(&file->fd);
		file->shown = 0;
		read_rest(reading, file);
	}
}

/* False: it is time to finish. */
static bool wait_for_more(struct reading *reading)
{
	struct pollfd fds[] = { { .fd = reading->out },
				{ .fd = reading->finish_fd, .events = POLLIN } };
	poll(fds, ARRAY_LEN(fds), LOG_READER_PERIOD_MS);
	reading->broken |= (fds[0].revents & POLLERR) != 0;
	return !fds[1].revents && !reading->broken;
}

static void *read_main(void *arg)
{
	struct reading *reading = arg;
	read_new(reading);
	reading->tail = LOG_READER_ALL;
	while (reading->follow && !reading->broken) {
		reading->follow = wait_for_more(reading);
		read_new(reading);
	}
	reading_free(reading);
	return NULL;
}

static struct reading *take_files(struct log_file *files, size_t count, bool follow, uint64_t tail)
{
	struct reading *reading = NEW(struct reading);
	*reading = (struct reading){ .files = mem_alloc((count + 1) * sizeof(*reading->files)),
				     .count = count,
				     .follow = follow,
				     .tail = tail,
				     .out = -1,
				     .finish_fd = -1 };
	for (size_t i = 0; i < count; i++)
		reading->files[i] = (struct open_file){ .file = files[i], .fd = -1 };
	free(files);
	return reading;
}

/* The thread ends by itself. */
static void log_reader_done(struct log_reader *reader)
{
	fd_close(&reader->fd);
	fd_close(&reader->finish_fd);
}

/* Takes over `files` with their paths, also on failure. Of what is there already, it reads the last
 * `tail` bytes of each. A reader that follows goes on with what is
 * added, also when the file is set aside for a new one, until log_reader_finish(). */
static int log_reader_start(struct log_file *files, size_t count, bool follow, uint64_t tail,
			    struct log_reader *ret_reader, struct err *err)
{
	struct reading *reading = take_files(files, count, follow, tail);
	struct log_reader reader = LOG_READER_INIT;
	pthread_t thread;
	int r = fd_open_pipe(&reader.fd, &reading->out, err);
	if (r == 0 && (reader.finish_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0)
		r = err_set(err, errno, "cannot make an event: %m");
	if (r == 0 && (reading->finish_fd = fcntl(reader.finish_fd, F_DUPFD_CLOEXEC, 0)) < 0)
		r = err_set(err, errno, "cannot copy a descriptor: %m");
	if (r == 0)
		r = fd_set_nonblock(reader.fd, true);
	if (r == 0 && (r = thread_start(&thread, read_main, reading)) < 0)
		err_set(err, -r, "cannot start a thread: %m");
	if (r < 0) {
		reading_free(reading);
		log_reader_done(&reader);
		return r;
	}
	pthread_detach(thread);
	*ret_reader = reader;
	return 0;
}

/* Nothing more will be written: it reads the files to their ends. */
static void log_reader_finish(struct log_reader *reader)
{
	if (reader->finish_fd >= 0)
		eventfd_write(reader->finish_fd, 1);
}

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

static void put_files(struct answer_logs *logs, size_t max, struct buf *out)
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
	put_files(logs, max - len, out);
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
