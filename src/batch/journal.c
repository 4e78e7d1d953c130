#include "batch/journal.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"

#define LOG_HEADING "Seq\tHost\tStarttime\tJobRuntime\tSend\tReceive\tExitval\tSignal\tCommand\n"

void journal_done(struct journal *journal)
{
	journal_sync(journal);
	fd_close(&journal->fd);
	fd_close(&journal->log_fd);
	free(journal->path);
	free(journal->log_path);
	*journal = JOURNAL_INIT;
}

/* A full pipe is news enough, and a reader that is gone wants none. */
static void notify(const struct journal *journal)
{
	if (journal->notify_fd >= 0 && write(journal->notify_fd, "", 1) < 0)
		return;
}

/* Of the open file: reading the same file elsewhere in this process does not drop it. */
static int lock(int fd, const char *path, struct err *err)
{
	struct flock flock = { .l_type = F_WRLCK, .l_whence = SEEK_SET };
	if (fcntl(fd, F_OFD_SETLK, &flock) < 0 && (errno == EAGAIN || errno == EACCES))
		return err_set(err, EBUSY, "%s is being written by another batch", path);
	return 0;
}

int journal_open(struct journal *journal, const char *path, bool resume, struct err *err)
{
	struct stat info;
	if (!path)
		return 0;
	AUTO(fd_close)
	int fd = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY, 0666);
	if (fd < 0)
		return err_set(err, errno, "%s: %m", path);
	int r = lock(fd, path, err);
	if (r < 0)
		return r;
	if (fstat(fd, &info) < 0)
		return err_set(err, errno, "%s: %m", path);
	if (info.st_size > 0 && !resume)
		return err_set(err, EEXIST, "%s exists: continue it with --resume", path);
	journal->fd = fd_take(&fd);
	journal->path = mem_strdup(path);
	journal->unnamed = info.st_nlink == 0;
	return 0;
}

/* No line of the file is whole: is what it has the beginning of a header? */
static int check_torn_header(const struct journal *journal, struct err *err)
{
	static const char expected[] = "{\"muster\":\"batch\"";
	char found[sizeof(expected) - 1];
	ssize_t len = pread(journal->fd, found, sizeof(found), 0);
	if (len < 0)
		return err_set(err, errno, "%s: %m", journal->path);
	if (memcmp(found, expected, (size_t)len) != 0)
		return err_set(err, EEXIST, "%s is not a result file: nothing was written to it",
			       journal->path);
	return 0;
}

int journal_begin(struct journal *journal, uint64_t keep, const struct buf *header, struct err *err)
{
	if (journal->fd < 0)
		return 0;
	struct stat info;
	if (fstat(journal->fd, &info) < 0)
		return err_set(err, errno, "%s: %m", journal->path);
	int r = S_ISREG(info.st_mode) && keep == 0 ? check_torn_header(journal, err) : 0;
	if (r < 0)
		return r;
	if (S_ISREG(info.st_mode) && (uint64_t)info.st_size > keep &&
	    ftruncate(journal->fd, (off_t)keep) < 0)
		return err_set(err, errno, "%s: cannot cut off a torn line: %m", journal->path);
	journal->end = keep;
	if (keep)
		notify(journal); /* of the lines that are there already */
	return keep ? 0 : journal_append(journal, buf_data(header), buf_len(header), err);
}

int journal_check(const struct journal *journal, struct err *err)
{
	struct stat info;
	if (journal->fd < 0 || fstat(journal->fd, &info) < 0 || !S_ISREG(info.st_mode))
		return 0;
	if (info.st_nlink == 0 && !journal->unnamed)
		return err_set(err, ESTALE, "%s was deleted: its results are lost", journal->path);
	if ((uint64_t)info.st_size != journal->end)
		return err_set(err, ESTALE,
			       "%s was changed by another program: it has %lld bytes, not %llu",
			       journal->path, (long long)info.st_size,
			       (unsigned long long)journal->end);
	return 0;
}

int journal_append(struct journal *journal, const void *line, size_t len, struct err *err)
{
	int r = journal_check(journal, err);
	if (journal->fd < 0 || r < 0)
		return r;
	r = fd_write_all(journal->fd, line, len);
	if (r < 0) {
		err_set(err, -r, "%s: %m", journal->path);
		if (ftruncate(journal->fd, (off_t)journal->end) < 0)
			err_wrap(err, "a partial line is left");
		return r;
	}
	journal->end += len;
	journal->dirty = true;
	notify(journal);
	return 0;
}

void journal_sync(struct journal *journal)
{
	if (journal->fd >= 0 && journal->dirty)
		fdatasync(journal->fd);
	journal->dirty = false;
}

int journal_open_log(struct journal *journal, const char *path, bool resume, struct err *err)
{
	struct stat info;
	if (!path)
		return 0;
	int flags = O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOCTTY | (resume ? 0 : O_TRUNC);
	journal->log_fd = open(path, flags, 0666);
	if (journal->log_fd < 0 || fstat(journal->log_fd, &info) < 0)
		return err_set(err, errno, "%s: %m", path);
	journal->log_path = mem_strdup(path);
	int r = info.st_size ? 0
			     : fd_write_all(journal->log_fd, LOG_HEADING, sizeof(LOG_HEADING) - 1);
	return r < 0 ? err_set(err, -r, "%s: %m", path) : 0;
}

int journal_append_log(struct journal *journal, const struct buf *line, struct err *err)
{
	if (journal->log_fd < 0)
		return 0;
	int r = fd_write_all(journal->log_fd, buf_data(line), buf_len(line));
	return r < 0 ? err_set(err, -r, "%s: %m", journal->log_path) : 0;
}

void journal_format_log(struct buf *out, size_t seq, const char *host, uint64_t start_wall_ns,
			uint64_t runtime_ns, uint64_t receive, int exit_value, int sig,
			const char *command)
{
	buf_printf(out, "%zu\t%s\t%.3f\t%10.3f\t0\t%llu\t%d\t%d\t%s\n", seq, host,
		   (double)start_wall_ns / 1e9, (double)runtime_ns / 1e9,
		   (unsigned long long)receive, exit_value, sig, command);
}
