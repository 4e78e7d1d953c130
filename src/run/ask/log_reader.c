#include "run/ask/log_reader.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/fd.h"
#include "base/mem.h"
#include "sys/thread.h"

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

int log_reader_start(struct log_file *files, size_t count, bool follow, uint64_t tail,
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

void log_reader_finish(struct log_reader *reader)
{
	if (reader->finish_fd >= 0)
		eventfd_write(reader->finish_fd, 1);
}

void log_reader_done(struct log_reader *reader)
{
	fd_close(&reader->fd);
	fd_close(&reader->finish_fd);
}
