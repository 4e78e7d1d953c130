/* The coordinator's side of files that move with orders: reads what hosts ask for, and keeps what
 * they return until the result counts. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "batch/many/dealer_private.h"

/* ---- to hosts ---- */

static int open_regular(const char *path, struct stat *st, struct err *err)
{
	AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0 || fstat(fd, st) < 0)
		return err_set(err, errno, "%m");
	if (!S_ISREG(st->st_mode))
		return err_set(err, EINVAL, "it is not a regular file");
	return fd_take(&fd);
}

/* One piece; returns its length, 0 at the end of the file. */
static ssize_t send_piece(struct dealer *dealer, int fd, const struct stat *st, uint64_t offset,
			  size_t most, struct work_msg msg)
{
	AUTO_FREE char *piece = mem_alloc(WORK_OUTPUT_MAX);
	ssize_t n = pread(fd, piece, MIN(most, WORK_OUTPUT_MAX), (off_t)offset);
	if (n < 0)
		return -errno;
	msg.value = offset;
	msg.count = st->st_mode & 0777;
	msg.text = piece;
	msg.len = (size_t)n;
	if (n == 0 || offset + (uint64_t)n >= (uint64_t)st->st_size)
		msg.flags = WORK_FINAL;
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
	struct stat st;
	struct err err = ERR_INIT;
	AUTO(fd_close) int fd = open_regular(paths->items[fetch->number], &st, &err);
	ssize_t n = fd;
	while (n >= 0 && offset < end &&
	       (n = send_piece(dealer, fd, &st, offset, (size_t)(end - offset), msg)) > 0)
		offset += (uint64_t)n;
	if (n >= 0)
		return;
	if (fd >= 0)
		err_set(&err, (int)-n, "%m");
	msg.flags = WORK_FAILED;
	msg.text = err.msg;
	msg.len = strlen(err.msg);
	dealer_send(dealer, dealer->peer->id, msg);
}

int dealer_check_fetch(const struct dealer *dealer, const struct work_msg *msg, struct err *err)
{
	const struct order_extra *extra =
		msg->order < dealer->list.count ? dealer_order(dealer, msg->order)->extra : NULL;
	if (!extra || msg->number >= extra->transfer.count || msg->value > INT64_MAX / 2)
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
			got->files[i].file = NEWFILE_INIT;
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

int dealer_take_file(struct dealer *dealer, struct peer *peer, const struct work_msg *msg,
		     struct err *err)
{
	if (msg->order >= dealer->list.count || msg->len > WORK_OUTPUT_MAX)
		return err_set(err, EPROTO, "a file of an unknown order");
	const struct deal_order *order = &dealer->orders[msg->order];
	const struct order_extra *extra = dealer_order(dealer, msg->order)->extra;
	if (!extra || msg->number >= extra->returns.count)
		return err_set(err, EPROTO, "a file that no order returns");
	if (order->state != DEAL_GIVEN || order->lease != msg->lease || order->host != peer->host)
		return 0; /* its result will not count, either */
	struct got *got = dealer_got(peer, msg->lease);
	struct got_file *file = file_of(got, msg->number, extra->returns.count);
	const char *path = extra->returns.items[msg->number];
	struct err why = ERR_INIT;
	if (got->trouble)
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
	for (uint32_t i = 0; i < dealer->list.count; i++)
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
