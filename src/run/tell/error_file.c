#include "run/tell/error_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/dir.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "proto/json_value.h"
#include "sys/disk.h"
#include "sys/thread.h"

/* torch writes the time as text, others as a number. */
static int64_t read_timestamp(struct json_value json)
{
	AUTO_FREE char *text = json_value_text(json);
	int64_t value = 0;
	bool known = text ? str_to_i64(text, &value) == 0 : json_value_int(json, &value);
	return known ? value : 0;
}

static void set_bad(struct error_file *file, char *problem)
{
	file->state = ERROR_FILE_BAD;
	file->problem = problem;
}

/* Where the reader stopped: at the end, if only the rest is missing. */
static char *explain(const struct json_in *in)
{
	size_t line = 1;
	for (const char *p = in->start; p < in->pos; p++)
		line += *p == '\n';
	if (in->start == in->end)
		return mem_strdup("is empty");
	if (in->pos == in->end)
		return mem_strdup("is cut short");
	if (in->depth == JSON_DEPTH_MAX && strchr("[{", *in->pos))
		return mem_printf("is nested more than %d levels deep", JSON_DEPTH_MAX);
	return mem_printf("is not JSON (byte %zu, line %zu)", json_in_column(in), line);
}

/* Python wrote it, mostly. -EINVAL: *ret_problem says why, to be freed. */
static int load(const char *data, size_t len, struct json_value *ret_root, char **ret_problem)
{
	struct json_in in;
	json_in_init(&in, data, len);
	in.python = true;
	if (json_in_value(&in, ret_root) < 0 || json_in_end(&in) < 0)
		*ret_problem = explain(&in);
	else if (!utf8_valid(data, len))
		*ret_problem = mem_strdup("is not UTF-8");
	else
		return 0;
	return -EINVAL;
}

void error_file_parse(const char *data, size_t len, struct error_file *ret_file)
{
	struct json_value root;
	char *problem;
	*ret_file = ERROR_FILE_INIT;
	if (load(data, len, &root, &problem) < 0) {
		set_bad(ret_file, problem);
		return;
	}
	struct json_value message = json_value_get(root, "message");
	if (message.kind == JSON_STRING) {
		ret_file->message = json_value_text(message);
		ret_file->timestamp = read_timestamp(json_value_get(root, "timestamp"));
	} else if (message.kind == JSON_OBJECT) {
		struct json_value extra = json_value_get(message, "extraInfo");
		ret_file->message = json_value_text(json_value_get(message, "message"));
		ret_file->traceback = json_value_text(json_value_get(extra, "py_callstack"));
		ret_file->timestamp = read_timestamp(json_value_get(extra, "timestamp"));
	}
	if (ret_file->message || ret_file->traceback)
		ret_file->state = ERROR_FILE_GOOD;
	else
		set_bad(ret_file, mem_strdup("has no message in it"));
}

/* A worker can leave anything there: a FIFO must not block us. */
static int read_regular(const char *path, struct buf *ret_data, struct err *err)
{
	struct stat st;
	AUTO(fd_close) int fd = dir_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, errno, "cannot be read: %m");
	if (!S_ISREG(st.st_mode))
		return err_set(err, EINVAL, "is not a regular file");
	int r = fd_read_all(fd, ERROR_FILE_MAX, ret_data, err);
	if (r == -EFBIG)
		return err_set(err, EFBIG, "has %lld bytes, more than the %d that are read",
			       (long long)st.st_size, ERROR_FILE_MAX);
	return r < 0 ? err_wrap(err, "cannot be read") : 0;
}

/* After a file system did not answer once, do not wait for it again. */
static bool disk_hangs;

struct reading {
	char *path;
	struct buf data;
	int result;
	struct err err;
};

static void reading_free(void *arg)
{
	struct reading *reading = arg;
	buf_done(&reading->data);
	free(reading->path);
	free(reading);
}

static void read_now(void *arg)
{
	struct reading *reading = arg;
	reading->result = read_regular(reading->path, &reading->data, &reading->err);
}

/* With a time limit: the worker may have died because of the very server that holds its file. */
static int read_in_time(const char *path, struct buf *ret_data, struct err *err)
{
	if (disk_hangs)
		return err_set(err, ETIMEDOUT, "was not read: the file system does not answer");
	struct reading *reading = NEW(struct reading);
	*reading = (struct reading){ .path = mem_strdup(path), .data = BUF_INIT, .err = ERR_INIT };
	if (!thread_call_until(read_now, reading, reading_free,
			       ns_add(clock_now_ns(), DISK_HANG_NS))) {
		disk_hangs = true;
		return read_in_time(path, ret_data, err);
	}
	int r = reading->result;
	if (r < 0) {
		*err = reading->err;
	} else {
		*ret_data = reading->data;
		reading->data = BUF_INIT;
	}
	reading_free(reading);
	return r;
}

void error_file_read(const char *path, struct error_file *ret_file)
{
	AUTO(buf_done) struct buf data = BUF_INIT;
	struct err err = ERR_INIT;
	*ret_file = ERROR_FILE_INIT;
	int r = read_in_time(path, &data, &err);
	if (r == 0)
		error_file_parse((const char *)buf_data(&data), buf_len(&data), ret_file);
	else if (r != -ENOENT)
		set_bad(ret_file, mem_strdup(err.msg));
}

void error_file_done(struct error_file *file)
{
	free(file->message);
	free(file->traceback);
	free(file->problem);
	*file = ERROR_FILE_INIT;
}

/* Replaces a regular file of ours, which may be open elsewhere, with a new one. Writes into a
 * device (/dev/null). Leaves a link, a FIFO or another user's file alone. */
static int open_to_pass_up(const char *path, struct err *err)
{
	struct stat st;
	bool there = lstat(path, &st) == 0;
	int flags = O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC;
	if (there && S_ISCHR(st.st_mode))
		flags = O_WRONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	else if (there && !(S_ISREG(st.st_mode) && st.st_uid == geteuid()))
		return err_set(err, EEXIST,
			       "%s is not a regular file of this user: it was not replaced", path);
	else if (there && unlink(path) < 0)
		return err_set(err, errno, "%s: %m", path);
	int fd = open(path, flags, 0666);
	return fd < 0 ? err_set(err, errno, "%s: %m", path) : fd;
}

static void put_message(struct json_out *out, struct json_value message, int exit_code)
{
	AUTO(buf_done) struct buf key = BUF_INIT;
	struct json_value member;
	struct json_in in;
	json_out_open(out, "message", '{');
	for (json_value_enter(message, &in); json_value_next_member(&in, &key, &member);)
		if (!str_eq(buf_str(&key), "errorCode"))
			json_out_raw(out, buf_str(&key), member.text, member.len);
	json_out_int(out, "errorCode", exit_code);
	json_out_close(out, '}');
}

/* The same JSON, with the exit code in the message if that is an object. */
static void put_error(struct buf *text, struct json_value root, int exit_code)
{
	AUTO(buf_done) struct buf key = BUF_INIT;
	struct json_out json = JSON_OUT(text, .ascii = true, .spaced = true), *out = &json;
	struct json_value member;
	struct json_in in;
	if (root.kind != JSON_OBJECT) {
		json_out_raw(out, NULL, root.text, root.len);
		return;
	}
	json_out_open(out, NULL, '{');
	for (json_value_enter(root, &in); json_value_next_member(&in, &key, &member);)
		if (str_eq(buf_str(&key), "message") && member.kind == JSON_OBJECT)
			put_message(out, member, exit_code);
		else
			json_out_raw(out, buf_str(&key), member.text, member.len);
	json_out_close(out, '}');
}

int error_file_pass_up(const char *from, const char *to, int exit_code, struct err *err)
{
	AUTO(buf_done) struct buf data = BUF_INIT;
	int r = read_in_time(from, &data, err);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return err_wrap(err, "%s", from);
	AUTO_FREE char *problem = NULL;
	struct json_value root;
	if (load((const char *)buf_data(&data), buf_len(&data), &root, &problem) < 0)
		return err_set(err, EINVAL, "%s %s", from, problem);
	AUTO(buf_done) struct buf text = BUF_INIT;
	put_error(&text, root, exit_code);
	AUTO(fd_close) int fd = open_to_pass_up(to, err);
	if (fd < 0)
		return fd;
	r = fd_write_all(fd, buf_data(&text), buf_len(&text));
	return r < 0 ? err_set(err, -r, "%s: %m", to) : 0;
}
