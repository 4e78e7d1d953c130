#include "run/tell/error_file.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "sys/disk.h"
#include "sys/thread.h"

static void json_drop(json_t **json)
{
	json_decref(*json);
}

static char *copy_string(const json_t *json)
{
	/* Jansson only lets valid UTF-8 in; an escaped NUL would end the text early, and may. */
	return json_is_string(json) ? mem_strdup(json_string_value(json)) : NULL;
}

/* torch writes the time as text, others as a number. */
static int64_t read_timestamp(const json_t *json)
{
	int64_t value = 0;
	if (json_is_integer(json))
		return json_integer_value(json);
	if (json_is_string(json) && str_to_i64(json_string_value(json), &value) < 0)
		return 0;
	return value;
}

static void set_bad(struct error_file *file, char *problem)
{
	file->state = ERROR_FILE_BAD;
	file->problem = problem;
}

static json_t *load(const char *data, size_t len, struct error_file *file)
{
	json_error_t error;
	json_t *root = json_loadb(data, len, JSON_ALLOW_NUL, &error);
	if (root)
		return root;
	/* A text cut inside an escape is "invalid" to the parser, at its very end. */
	bool cut = json_error_code(&error) == json_error_premature_end_of_input ||
		   (len && data[0] == '{' && (size_t)error.position >= len);
	set_bad(file, len == 0 ? mem_strdup("is empty")
		      : cut    ? mem_strdup("is cut short")
			       : mem_printf("is not JSON (line %d: %s)", error.line, error.text));
	return NULL;
}

void error_file_parse(const char *data, size_t len, struct error_file *ret_file)
{
	*ret_file = ERROR_FILE_INIT;
	AUTO(json_drop) json_t *root = load(data, len, ret_file);
	if (!root)
		return;
	const json_t *message = json_object_get(root, "message");
	if (json_is_string(message)) {
		ret_file->message = copy_string(message);
		ret_file->timestamp = read_timestamp(json_object_get(root, "timestamp"));
	} else if (json_is_object(message)) {
		const json_t *extra = json_object_get(message, "extraInfo");
		ret_file->message = copy_string(json_object_get(message, "message"));
		ret_file->traceback = copy_string(json_object_get(extra, "py_callstack"));
		ret_file->timestamp = read_timestamp(json_object_get(extra, "timestamp"));
	}
	if (ret_file->message || ret_file->traceback)
		ret_file->state = ERROR_FILE_GOOD;
	else
		set_bad(ret_file, mem_strdup("has no message in it"));
}

/* A worker can leave anything there: a FIFO must not make us wait. */
static int read_regular(const char *path, struct buf *ret_data, struct err *err)
{
	struct stat st;
	AUTO(fd_close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
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

/* Where a file system has not answered once, nobody waits for it again. */
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

/* With a bound: the worker may have died of the very server that has its file. */
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

/* A new file under the name, in the place of a regular file of ours, which may be open elsewhere.
 * A device (/dev/null) takes what is written to it. A link, a FIFO or another user's file stays. */
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

int error_file_pass_up(const char *from, const char *to, int exit_code, struct err *err)
{
	AUTO(buf_done) struct buf data = BUF_INIT;
	json_error_t error;
	int r = read_in_time(from, &data, err);
	if (r == -ENOENT)
		return 0;
	if (r < 0)
		return err_wrap(err, "%s", from);
	AUTO(json_drop)
	json_t *root =
		json_loadb((const char *)buf_data(&data), buf_len(&data), JSON_ALLOW_NUL, &error);
	if (!root)
		return err_set(err, EINVAL, "%s: %s", from, error.text);
	json_t *message = json_object_get(root, "message");
	if (json_is_object(message))
		json_object_set_new(message, "errorCode", json_integer(exit_code));
	AUTO(fd_close) int fd = open_to_pass_up(to, err);
	if (fd < 0)
		return fd;
	AUTO_FREE char *text = json_dumps(root, JSON_ENSURE_ASCII);
	r = fd_write_all(fd, text, strlen(text));
	return r < 0 ? err_set(err, -r, "%s: %m", to) : 0;
}
