/* The coordinator's side of files that move with orders: reads what hosts ask for, and keeps what
 * they return until the result counts. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "batch/many/dealer_private.h"
#include "core/deal/files.h"

/* ---- to hosts ---- */

/* What a host asks for: a file, or a text that stands for it. */
struct source {
	int fd; /* -1: the text */
	struct buf text;
	uint64_t size;
	uint32_t mode;
	uint8_t flags; /* WORK_LIST, WORK_LINK */
};

static void source_done(struct source *source)
{
	fd_close(&source->fd);
	buf_done(&source->text);
}

static int compare_names(const void *a, const void *b)
{
	return strcmp(*(char *const *)a, *(char *const *)b);
}

/* In an order that is the same each time: a long list is asked for in parts. */
static int list_names(int *fd, struct strv *names, struct err *err)
{
	DIR *dir = fdopendir(*fd);
	const struct dirent *entry;
	if (!dir)
		return err_set(err, errno, "%m");
	fd_take(fd);
	errno = 0;
	while ((entry = readdir(dir)) && names->count <= TREE_ENTRIES_MAX)
		if (!str_eq(entry->d_name, ".") && !str_eq(entry->d_name, ".."))
			strv_add(names, entry->d_name);
	int r = entry	? err_set(err, E2BIG, "a directory with more than %d entries",
				  TREE_ENTRIES_MAX)
		: errno ? err_set(err, errno, "%m")
			: 0;
	closedir(dir);
	if (names->count > 0)
		qsort(names->items, names->count, sizeof(*names->items), compare_names);
	return r;
}

static int list_directory(int *fd, struct source *source, struct err *err)
{
	AUTO(strv_done) struct strv names = STRV_INIT;
	int r = list_names(fd, &names, err);
	for (size_t i = 0; r >= 0 && i < names.count; i++)
		buf_append(&source->text, names.items[i], strlen(names.items[i]) + 1);
	if (r >= 0 && buf_len(&source->text) > TREE_LIST_MAX)
		r = err_set(err, E2BIG, "a directory with more than %zu bytes of names",
			    TREE_LIST_MAX);
	source->size = buf_len(&source->text);
	source->flags = WORK_LIST;
	return r;
}

static int take_source(int *fd, bool trees, struct source *source, struct err *err)
{
	struct stat st;
	if (*fd < 0 || fstat(*fd, &st) < 0)
		return err_set(err, errno, "%m");
	source->mode = st.st_mode & 0777;
	if (S_ISDIR(st.st_mode) && !trees)
		return err_set(err, EISDIR,
			       "it is a directory, and the version of this host moves files only");
	if (S_ISDIR(st.st_mode))
		return list_directory(fd, source, err);
	if (!S_ISREG(st.st_mode))
		return err_set(err, EINVAL, "it is neither a regular file nor a directory");
	source->size = (uint64_t)st.st_size;
	source->fd = fd_take(fd);
	return 0;
}

static int read_link(int dir, const char *name, struct source *source, struct err *err)
{
	char *target = (char *)buf_reserve(&source->text, FILES_PATH_MAX);
	ssize_t n = readlinkat(dir, name, target, FILES_PATH_MAX);
	if (n < 0 || n == FILES_PATH_MAX)
		return err_set(err, n < 0 ? errno : ENAMETOOLONG, "%m");
	buf_commit(&source->text, (size_t)n);
	source->size = (uint64_t)n;
	source->flags = WORK_LINK;
	return 0;
}

/* An entry of the directory that an order names. Links are not followed: they move as links. */
static int open_beneath(const char *top, const char *path, struct source *source, struct err *err)
{
	const char *name;
	struct stat st;
	AUTO(fd_close) int root = open(top, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (root < 0)
		return err_set(err, errno, "%m");
	AUTO(fd_close) int dir = dir_beneath(root, path, false, &name, err);
	if (dir < 0)
		return dir;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(err, errno, "%m");
	if (S_ISLNK(st.st_mode))
		return read_link(dir, name, source, err);
	AUTO(fd_close)
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
	return take_source(&fd, true, source, err);
}

static int open_source(const char *top, const char *path, bool trees, struct source *source,
		       struct err *err)
{
	if (*path)
		return open_beneath(top, path, source, err);
	AUTO(fd_close) int fd = open(top, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	return take_source(&fd, trees, source, err);
}

static ssize_t read_source(const struct source *source, char *piece, size_t most, uint64_t offset)
{
	if (source->fd >= 0) {
		ssize_t n = pread(source->fd, piece, most, (off_t)offset);
		return n < 0 ? -errno : n;
	}
	size_t n = offset < source->size ? MIN(most, (size_t)(source->size - offset)) : 0;
	if (n > 0)
		memcpy(piece, buf_data(&source->text) + offset, n);
	return (ssize_t)n;
}

/* One piece; returns its length, 0 at the end of the file. */
static ssize_t send_piece(struct dealer *dealer, const struct source *source, uint64_t offset,
			  size_t most, struct work_msg msg)
{
	AUTO_FREE char *piece = mem_alloc(WORK_OUTPUT_MAX);
	ssize_t n = read_source(source, piece, MIN(most, WORK_OUTPUT_MAX), offset);
	if (n < 0)
		return n;
	msg.value = offset;
	msg.count = source->mode;
	msg.text = piece;
	msg.len = (size_t)n;
	msg.flags = source->flags;
	if (n == 0 || offset + (uint64_t)n >= source->size)
		msg.flags |= WORK_FINAL;
	dealer_send(dealer, dealer->peer->id, msg);
	return msg.flags & WORK_FINAL ? 0 : n;
}

void dealer_feed(struct dealer *dealer, uint32_t number)
{
	const struct work_msg *fetch = dealer->msg;
	const struct strv *paths = &dealer_order(dealer, number)->extra->transfer;
	struct work_msg msg = { .type = WORK_PIECE,
				.order = fetch->order,
				.lease = fetch->lease,
				.number = fetch->number };
	uint64_t offset = fetch->value, end = offset + MIN(fetch->count, WORK_FETCH_MAX);
	bool trees = dealer->deal.hosts[dealer->peer->host].facts.trees;
	AUTO(source_done) struct source source = { .fd = -1 };
	AUTO_FREE char *path = mem_strndup(fetch->text, fetch->len);
	struct err err = ERR_INIT;
	ssize_t n = open_source(paths->items[fetch->number], path, trees, &source, &err);
	bool opened = n >= 0;
	n = opened ? 1 : n;
	while (n > 0 && offset < end &&
	       (n = send_piece(dealer, &source, offset, (size_t)(end - offset), msg)) > 0)
		offset += (uint64_t)n;
	if (n >= 0)
		return;
	if (opened)
		err_set(&err, (int)-n, "%m");
	msg.flags = WORK_FAILED;
	msg.text = err.msg;
	msg.len = strlen(err.msg);
	dealer_send(dealer, dealer->peer->id, msg);
}

/* Beneath the directory that the order names, or nothing. */
static bool path_ok(const struct work_msg *fetch)
{
	if (fetch->len == 0)
		return true;
	if (fetch->len >= FILES_PATH_MAX || memchr(fetch->text, '\0', fetch->len))
		return false;
	AUTO_FREE char *path = mem_strndup(fetch->text, fetch->len);
	return files_name_ok(path);
}

int dealer_check_fetch(const struct dealer *dealer, const struct work_msg *msg, struct err *err)
{
	const struct order_extra *extra =
		msg->order < dealer->job->count ? dealer_order(dealer, msg->order)->extra : NULL;
	if (!extra || msg->number >= extra->transfer.count || msg->value > INT64_MAX / 2 ||
	    !path_ok(msg))
		return err_set(err, EPROTO, "it asks for a file that no order has");
	return 0;
}

/* ---- from hosts ---- */

static struct got_file *file_of(struct got *got, uint32_t number, size_t count)
{
	if (!got->files) {
		got->files = NEW_ARRAY(struct got_file, count);
		got->file_count = count;
		for (size_t i = 0; i < count; i++)
			got->files[i] = (struct got_file){ .file = NEWFILE_INIT };
	}
	return &got->files[number];
}

/* Beside the place where it will be. */
static int begin_file(struct got_file *file, const char *path, struct err *err)
{
	const char *name;
	struct stat st;
	newfile_drop(&file->file);
	*file = (struct got_file){ .file = NEWFILE_INIT };
	int dir = dir_of(path, &name, err);
	if (dir < 0)
		return dir;
	if (fstatat(dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && !S_ISREG(st.st_mode)) {
		close(dir);
		return err_set(err, EEXIST, "something else than a file is there");
	}
	return newfile_open(&file->file, dir, name, err);
}

static int write_piece(struct got_file *file, const struct work_msg *msg, struct err *err)
{
	int r = fd_write_all(file->file.fd, msg->text, msg->len);
	if (r < 0)
		return err_set(err, -r, "%m");
	file->bytes += msg->len;
	file->whole = msg->flags & WORK_FINAL;
	file->mode = msg->count;
	return 0;
}

bool dealer_may_take(struct dealer *dealer, struct got *got, size_t len)
{
	uint64_t limit = dealer->many->config->files.limit;
	if (!got->trouble && limit && got->size + len > limit)
		got->trouble =
			mem_printf("what it sends is more than --return-limit=%" PRIu64, limit);
	got->size += len;
	return !got->trouble;
}

int dealer_take_file(struct dealer *dealer, struct peer *peer, const struct work_msg *msg,
		     struct err *err)
{
	if (msg->order >= dealer->job->count || msg->len > WORK_OUTPUT_MAX)
		return err_set(err, EPROTO, "a file of an unknown order");
	const struct batch_order *order = &dealer->job->todo[msg->order];
	const struct order_extra *extra = dealer_order(dealer, msg->order)->extra;
	if (!extra || msg->number >= extra->returns.count)
		return err_set(err, EPROTO, "a file that no order returns");
	if (order->state != BATCH_GIVEN || order->lease != msg->lease || order->host != peer->host)
		return 0; /* its result will not count, either */
	struct got *got = dealer_got(peer, msg->lease);
	struct got_file *file = file_of(got, msg->number, extra->returns.count);
	const char *path = extra->returns.items[msg->number];
	struct err why = ERR_INIT;
	if (!dealer_may_take(dealer, got, msg->len))
		return 0;
	int r = msg->value == 0 ? begin_file(file, path, &why) : 0;
	if (r >= 0 && (msg->value != file->bytes || file->file.fd < 0))
		return err_set(err, EPROTO, "a file with a gap");
	if (r >= 0)
		r = write_piece(file, msg, &why);
	if (r < 0)
		got->trouble = mem_printf("the return of %s: %s", path, why.msg);
	return 0;
}

int dealer_place_files(struct got *got, struct err *err)
{
	bool replaced;
	int r = 0;
	for (size_t i = 0; got && r >= 0 && i < got->file_count; i++)
		if (got->files[i].whole)
			r = newfile_place(&got->files[i].file, got->files[i].mode, &replaced, err);
	return r;
}

void dealer_drop_files(struct got *got)
{
	for (size_t i = 0; i < got->file_count; i++)
		newfile_drop(&got->files[i].file);
	free(got->files);
	free(got->trouble);
}

/* ---- who shares the directory ---- */

static bool any_files(const struct dealer *dealer)
{
	for (uint32_t i = 0; i < dealer->job->count; i++)
		if (order_moves_files(dealer_order(dealer, i)))
			return true;
	return false;
}

void dealer_mark_directory(struct dealer *dealer)
{
	if (!any_files(dealer))
		return;
	snprintf(dealer->mark, sizeof(dealer->mark), ".muster-batch-%016llx",
		 (unsigned long long)random_u64());
	int fd = open(dealer->mark, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
	if (fd >= 0) {
		close(fd);
		return;
	}
	log_warn("hosts that share this directory cannot see it, files are copied: %s: %m",
		 dealer->mark);
	*dealer->mark = '\0';
}

void dealer_unmark_directory(struct dealer *dealer)
{
	if (*dealer->mark)
		unlink(dealer->mark);
}
