#include "sys/disk.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/map.h"
#include "base/mem.h"
#include "sys/thread.h"

struct disk_file {
	struct list all;   /* in disk->files to the end, which reports its losses */
	struct list ready; /* in disk->ready while there is work to do */
	char *path;
	unsigned users;
	bool appends; /* what the file has stays */
	bool adopted; /* the caller's descriptor: cannot be opened again by its path */
	struct buf pending;
	uint64_t missing;
	int error; /* the last reason */

	/* Only the writing thread uses these: */
	int fd;
	bool opened; /* or at least tried */
	uint64_t size;
};

struct disk {
	uint64_t max_size;
	uint64_t hang_ns;
	disk_trouble_fn *trouble;
	void *trouble_arg;
	bool started;
	pthread_t thread;

	/* guards everything below and the upper part of the files; never held during I/O */
	pthread_mutex_t lock;
	pthread_cond_t work;
	pthread_cond_t moved;
	struct list files;
	struct map open; /* path -> a file that has users */
	struct list ready;
	size_t backlog; /* bytes accepted and not yet written, including those being written */
	uint64_t moved_ns;
	struct disk_file *writing; /* NULL: nothing is being written */
	size_t writing_len;
	bool hung;
	bool told;
	bool closing;
};

static void tell(struct disk *disk, const char *path, int error)
{
	pthread_mutex_lock(&disk->lock);
	bool first = !disk->told;
	disk->told = true;
	pthread_mutex_unlock(&disk->lock);
	if (!first)
		return;
	AUTO_FREE char *text = mem_printf(
		"cannot write %s: %s; the job goes on, the log is incomplete", path,
		error == ETIMEDOUT ? "the file system does not answer" : strerror(error));
	disk->trouble(disk->trouble_arg, text);
}

static int open_file(struct disk_file *file)
{
	int flags = O_WRONLY | O_CREAT | O_CLOEXEC | O_NOCTTY;
	flags |= file->appends ? O_APPEND : O_TRUNC;
	file->fd = dir_open(file->path, flags, 0666);
	if (file->fd < 0 && errno == ENOENT && strchr(file->path, '/')) {
		const char *name;
		AUTO(fd_close) int dir UNUSED = dir_of(file->path, &name, NULL);
		file->fd = dir_open(file->path, flags, 0666);
	}
	struct stat info;
	file->opened = true;
	file->size = file->appends && file->fd >= 0 && fstat(file->fd, &info) == 0
			     ? (uint64_t)info.st_size
			     : 0;
	return file->fd < 0 ? -errno : 0;
}

static int rotate(struct disk_file *file)
{
	AUTO_FREE char *aside = mem_printf("%s.1", file->path);
	fd_close(&file->fd);
	if (dir_rename(file->path, aside) < 0)
		return -errno;
	return open_file(file);
}

/* How much of the data still goes into this file: whole lines, if it holds one. */
static size_t room_before_rotation(const struct disk *disk, const struct disk_file *file,
				   const unsigned char *data, size_t len)
{
	if (disk->max_size == 0 || file->adopted || file->size + len <= disk->max_size)
		return len;
	size_t room = file->size < disk->max_size ? (size_t)(disk->max_size - file->size) : 0;
	const unsigned char *newline = room ? memrchr(data, '\n', room) : NULL;
	if (newline)
		return (size_t)(newline - data) + 1;
	/* Not one line fits. A fresh file takes the line whole, however long it is. */
	if (file->size > 0)
		return 0;
	newline = memchr(data, '\n', len);
	return newline ? (size_t)(newline - data) + 1 : len;
}

/* Writes to the open file; returns how many bytes got there, and sets *ret_error if not all did. */
static size_t write_file(const struct disk *disk, struct disk_file *file, const unsigned char *data,
			 size_t len, int *ret_error)
{
	size_t done = 0;
	*ret_error = 0;
	while (done < len) {
		size_t part = room_before_rotation(disk, file, data + done, len - done);
		ssize_t n = part > 0 ? write(file->fd, data + done, part) : 0;
		if (n < 0 && errno == EINTR)
			continue;
		/* Other processes share the descriptor and may have made it non-blocking. */
		if (n < 0 && errno == EAGAIN && file->adopted) {
			poll(&(struct pollfd){ .fd = file->fd, .events = POLLOUT }, 1, -1);
			continue;
		}
		if (n < 0) {
			*ret_error = errno;
			return done;
		}
		done += (size_t)n;
		file->size += (uint64_t)n;
		int r = part == 0 ? rotate(file) : 0;
		if (r < 0) {
			*ret_error = -r;
			return done;
		}
	}
	return done;
}

/* Opens if need be and writes; without the lock. */
static void work_on(struct disk *disk, struct disk_file *file, const struct buf *data)
{
	bool needs_open = file->fd < 0 && (!file->opened || buf_len(data) > 0);
	int error = needs_open ? -open_file(file) : 0;
	size_t done = 0;
	if (error == 0)
		done = write_file(disk, file, buf_data(data), buf_len(data), &error);
	if (error == 0)
		return;
	tell(disk, file->path, error);
	pthread_mutex_lock(&disk->lock);
	file->missing += buf_len(data) - done;
	file->error = error;
	pthread_mutex_unlock(&disk->lock);
}

static void release(struct disk_file *file)
{
	list_unlink(&file->all);
	list_unlink(&file->ready);
	buf_done(&file->pending);
	fd_close(&file->fd);
	free(file->path);
	free(file);
}

/* Closes an unused file; one without losses need not be remembered. */
static void retire_unused(struct disk_file *file)
{
	if (file->users > 0 || buf_len(&file->pending) > 0)
		return;
	fd_close(&file->fd);
	if (file->error == 0)
		release(file);
}

static void *writer_main(void *arg)
{
	struct disk *disk = arg;
	pthread_mutex_lock(&disk->lock);
	for (;;) {
		struct list *link = list_shift(&disk->ready);
		if (!link && disk->closing)
			break;
		if (!link) {
			pthread_cond_wait(&disk->work, &disk->lock);
			continue;
		}
		struct disk_file *file = list_entry(link, struct disk_file, ready);
		AUTO(buf_done) struct buf data = file->pending;
		file->pending = BUF_INIT;
		disk->writing = file;
		disk->writing_len = buf_len(&data);
		pthread_mutex_unlock(&disk->lock);

		work_on(disk, file, &data);

		pthread_mutex_lock(&disk->lock);
		disk->writing = NULL;
		disk->backlog -= buf_len(&data);
		disk->moved_ns = clock_now_ns();
		disk->hung = false;
		retire_unused(file);
		pthread_cond_signal(&disk->moved);
	}
	pthread_mutex_unlock(&disk->lock);
	return NULL;
}

struct disk *disk_new(uint64_t max_size, uint64_t hang_ns, disk_trouble_fn *trouble, void *arg)
{
	struct disk *disk = NEW(struct disk);
	disk->max_size = max_size;
	disk->hang_ns = hang_ns;
	disk->trouble = trouble;
	disk->trouble_arg = arg;
	list_init(&disk->files);
	list_init(&disk->ready);
	pthread_mutex_init(&disk->lock, NULL);
	pthread_cond_init(&disk->work, NULL);
	thread_cond_init(&disk->moved);
	disk->started = thread_start(&disk->thread, writer_main, disk) == 0;
	return disk;
}

static bool idle(const struct disk *disk)
{
	return !disk->writing && list_empty(&disk->ready);
}

/* Waits until the writer makes progress; false when it hangs. With the lock. */
static bool wait_for_move(struct disk *disk)
{
	uint64_t deadline_ns = ns_add(disk->moved_ns, disk->hang_ns);
	if (!disk->hung && !thread_cond_wait_until(&disk->moved, &disk->lock, deadline_ns))
		disk->hung = clock_now_ns() >= ns_add(disk->moved_ns, disk->hang_ns);
	return !disk->hung;
}

static void make_ready(struct disk *disk, struct disk_file *file)
{
	/* The time without progress counts from when there was something to do. */
	if (idle(disk))
		disk->moved_ns = clock_now_ns();
	if (list_empty(&file->ready))
		list_append(&disk->ready, &file->ready);
	pthread_cond_signal(&disk->work);
}

/* With the lock. */
static struct disk_file *add_file(struct disk *disk, const char *path, int fd)
{
	struct disk_file *file = NEW(struct disk_file);
	file->path = mem_strdup(path);
	file->fd = fd;
	list_init(&file->ready);
	list_append(&disk->files, &file->all);
	return file;
}

static struct disk_file *open_path(struct disk *disk, const char *path, bool appends)
{
	pthread_mutex_lock(&disk->lock);
	struct disk_file *file = map_get(&disk->open, path, strlen(path));
	if (!file) {
		file = add_file(disk, path, -1);
		file->appends = appends;
		map_put(&disk->open, path, strlen(path), file);
		make_ready(disk, file);
	}
	file->users++;
	pthread_mutex_unlock(&disk->lock);
	return file;
}

struct disk_file *disk_open(struct disk *disk, const char *path)
{
	return open_path(disk, path, false);
}

struct disk_file *disk_append(struct disk *disk, const char *path)
{
	return open_path(disk, path, true);
}

struct disk_file *disk_adopt(struct disk *disk, const char *name, int fd)
{
	pthread_mutex_lock(&disk->lock);
	struct disk_file *file = add_file(disk, name, fd);
	file->opened = file->adopted = true;
	file->users = 1;
	pthread_mutex_unlock(&disk->lock);
	return file;
}

/* With the lock. */
static void take(struct disk *disk, struct disk_file *file, const void *data, size_t len, bool lost)
{
	if (lost) {
		file->missing += len;
		file->error = ETIMEDOUT;
		return;
	}
	buf_append(&file->pending, data, len);
	disk->backlog += len;
	make_ready(disk, file);
}

void disk_write(struct disk *disk, struct disk_file *file, const void *data, size_t len)
{
	pthread_mutex_lock(&disk->lock);
	while (disk->backlog + len > DISK_BACKLOG_MAX && !idle(disk) && wait_for_move(disk))
		;
	bool lost = disk->hung && disk->backlog + len > DISK_BACKLOG_MAX;
	take(disk, file, data, len, lost);
	pthread_mutex_unlock(&disk->lock);
	if (lost)
		tell(disk, file->path, ETIMEDOUT);
}

void disk_try_write(struct disk *disk, struct disk_file *file, const void *data, size_t len)
{
	pthread_mutex_lock(&disk->lock);
	bool lost = disk->backlog + len > DISK_BACKLOG_MAX;
	take(disk, file, data, len, lost);
	pthread_mutex_unlock(&disk->lock);
	if (lost)
		tell(disk, file->path, ETIMEDOUT);
}

void disk_close(struct disk *disk, struct disk_file *file)
{
	pthread_mutex_lock(&disk->lock);
	if (--file->users == 0 && !file->adopted)
		map_remove(&disk->open, file->path, strlen(file->path));
	make_ready(disk, file);
	pthread_mutex_unlock(&disk->lock);
}

/* Counts everything unwritten as missing; returns the path of one of the files, or NULL. */
static const char *give_up(struct disk *disk)
{
	const char *stuck = NULL;
	list_foreach(it, &disk->files)
	{
		struct disk_file *file = list_entry(it, struct disk_file, all);
		size_t in_flight = file == disk->writing ? disk->writing_len : 0;
		if (file != disk->writing && buf_len(&file->pending) == 0)
			continue;
		file->missing += buf_len(&file->pending) + in_flight;
		file->error = ETIMEDOUT;
		stuck = file->path;
	}
	return stuck;
}

void disk_flush(struct disk *disk)
{
	pthread_mutex_lock(&disk->lock);
	while (!idle(disk) && wait_for_move(disk))
		;
	const char *stuck = disk->hung ? give_up(disk) : NULL;
	pthread_mutex_unlock(&disk->lock);
	if (stuck)
		tell(disk, stuck, ETIMEDOUT);
}

void disk_free(struct disk *disk)
{
	if (!disk)
		return;
	pthread_mutex_lock(&disk->lock);
	bool hung = disk->hung;
	disk->closing = true;
	pthread_cond_signal(&disk->work);
	pthread_mutex_unlock(&disk->lock);
	if (hung && disk->started) {
		pthread_detach(disk->thread);
		return;
	}
	if (disk->started)
		pthread_join(disk->thread, NULL);
	list_foreach(it, &disk->files) release(list_entry(it, struct disk_file, all));
	map_done(&disk->open);
	pthread_cond_destroy(&disk->work);
	pthread_cond_destroy(&disk->moved);
	pthread_mutex_destroy(&disk->lock);
	free(disk);
}

void disk_missing(struct disk *disk, struct buf *out)
{
	pthread_mutex_lock(&disk->lock);
	list_foreach(it, &disk->files)
	{
		const struct disk_file *file = list_entry(it, struct disk_file, all);
		if (file->error)
			buf_printf(out, "%s: %" PRIu64 " bytes are missing (%s)\n", file->path,
				   file->missing,
				   file->error == ETIMEDOUT ? "the file system does not answer"
							    : strerror(file->error));
	}
	pthread_mutex_unlock(&disk->lock);
}
