/* The files of a batch: the result file and the job log.
 *
 * A line is one write at the end of the file, so it is there whole or, after a crash, torn at the
 * very end, where a resume cuts it off. The kernel has it when append returns; fsync follows within
 * a second. */
#ifndef BATCH_JOURNAL_H
#define BATCH_JOURNAL_H

#include "base/buf.h"
#include "base/err.h"

struct journal {
	int fd; /* -1: there is none */
	int log_fd;
	char *path, *log_path;
	uint64_t end;
	bool dirty;
	bool unnamed;  /* it has had no name from the start: /dev/fd/N */
	int notify_fd; /* gets a byte for every line, if it can take one; -1: none. Borrowed */
};

#define JOURNAL_INIT ((struct journal){ .fd = -1, .log_fd = -1, .notify_fd = -1 })

/* `path` may be NULL. Refuses a file that is not empty unless `resume`; then cuts off what follows
 * `keep` bytes, a torn line. If there is nothing to keep, the file must begin like a header. Locks
 * the file against a second runner. Writes `header` to a new file only. */
int journal_open(struct journal *journal, const char *path, bool resume, struct err *err);
int journal_begin(struct journal *journal, uint64_t keep, const struct buf *header,
		  struct err *err);
void journal_done(struct journal *journal);

/* Appends a whole line to a file that passes journal_check(). On failure (a full disk) the file
 * ends where it ended before. */
int journal_append(struct journal *journal, const void *line, size_t len, struct err *err);

/* Is the file still there, and as long as we left it? -ESTALE. */
int journal_check(const struct journal *journal, struct err *err);
void journal_sync(struct journal *journal);

/* GNU parallel's job log: opened with its heading; appended to when it exists and `resume`. */
int journal_open_log(struct journal *journal, const char *path, bool resume, struct err *err);
int journal_append_log(struct journal *journal, const struct buf *line, struct err *err);

/* One line of it: times in nanoseconds, `receive` bytes of standard output; ":" is this host. */
void journal_format_log(struct buf *out, size_t seq, const char *host, uint64_t start_wall_ns,
			uint64_t runtime_ns, uint64_t receive, int exit_value, int sig,
			const char *command);

#endif
