#include "batch/show/output_file.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"

#define READABLE_MAX 80 /* bytes of the command in the name of a file */

/* Characters that a file name cannot hold become %XX. */
static void append_safe(struct buf *name, const char *text)
{
	for (const char *p = text; *p; p++) {
		bool dot_first = *p == '.' && p == text;
		if (*p == '/' || *p == '%' || (unsigned char)*p < 0x20 || dot_first)
			buf_printf(name, "%%%02X", (unsigned char)*p);
		else
			buf_append_char(name, *p);
	}
}

/* What it runs, for people, and some digits of its hash: there may be others like it. */
static void append_readable(struct buf *name, const struct order *order)
{
	AUTO(buf_done) struct buf command = BUF_INIT;
	char hash[ORDER_HASH_TEXT];
	bool gap = false;
	order_append_command(order, 0, &command);
	for (const char *p = buf_str(&command); *p && buf_len(name) < READABLE_MAX; p++) {
		bool plain = isalnum((unsigned char)*p) || strchr("-_.+=,", *p) || *p & 0x80;
		if (!plain) {
			gap = buf_len(name) > 0;
			continue;
		}
		if (gap || (buf_len(name) == 0 && *p == '.'))
			buf_append_char(name, '_');
		gap = false;
		buf_append_char(name, *p);
	}
	order_hash_text(order, hash);
	buf_printf(name, "-%.8s", hash);
}

/* ".B", ".run2", ".try3": which execution of the order. */
static void append_trial(struct buf *name, const struct batch_trial *trial, bool repeated)
{
	if (trial->variant)
		buf_printf(name, ".%c", trial->variant);
	if (trial->warmup)
		buf_append_str(name, ".warmup");
	if (repeated)
		buf_printf(name, ".run%d", trial->run);
	if (trial->attempt > 1)
		buf_printf(name, ".try%d", trial->attempt);
}

static const char *order_path(const struct order *order)
{
	return order->extra ? order->extra->output_path : NULL;
}

/* "DIR/ID.out", or the path that the user made: "PATH" and "PATH.err", as in GNU parallel. */
char *output_file(const struct order *order, const char *dir, const struct batch_trial *trial,
		  bool repeated, int stream)
{
	AUTO(buf_done) struct buf name = BUF_INIT;
	if (order_path(order))
		buf_append_str(&name, order_path(order));
	else if (order->id)
		append_safe(&name, order->id);
	else
		append_readable(&name, order);
	append_trial(&name, trial, repeated);
	if (order_path(order))
		return mem_printf("%s%s", buf_str(&name), stream ? ".err" : "");
	return mem_printf("%s/%s.%s", dir, buf_str(&name), stream ? "err" : "out");
}

/* The directories of a path. */
static int make_parents(const char *path, struct err *err)
{
	AUTO_FREE char *folder = mem_strdup(path);
	for (char *slash = strchr(folder + 1, '/'); slash; slash = strchr(slash + 1, '/')) {
		*slash = '\0';
		if (mkdir(folder, 0777) < 0 && errno != EEXIST)
			return err_set(err, errno, "%s: %m", folder);
		*slash = '/';
	}
	return 0;
}

int output_open(const char *path, const struct order *order, struct err *err)
{
	if (order_path(order) && make_parents(path, err) < 0)
		return -err->code;
	int fd = open(path, O_RDWR | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
	return fd < 0 ? err_set(err, errno, "%s: %m", path) : fd;
}

int output_copy(const char *path, const struct order *order, int fd, struct err *err)
{
	char piece[65536];
	AUTO(fd_close) int to = output_open(path, order, err);
	if (to < 0)
		return to;
	ssize_t n = 0;
	for (off_t at = 0; fd >= 0 && (n = pread(fd, piece, sizeof(piece), at)) > 0; at += n) {
		int r = fd_write_all(to, piece, (size_t)n);
		if (r < 0)
			return err_set(err, -r, "%s: %m", path);
	}
	return n < 0 ? err_set(err, errno, "%s: %m", path) : 0;
}
