#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "run/tell/error_file.h"

static const char sample[] =
	"{\"message\": {\"message\": \"ValueError: boom\", \"extraInfo\": {\"py_callstack\": "
	"\"Traceback (most recent call last):\\nValueError: boom\\n\", \"timestamp\": "
	"\"1794771769\"}}}";

static struct error_file file;

static void parse(const char *text)
{
	error_file_done(&file);
	error_file_parse(text, strlen(text), &file);
}

TEST(error_file_gives_message_traceback_and_time)
{
	parse(sample);
	ck_assert_int_eq(file.state, ERROR_FILE_GOOD);
	ck_assert_str_eq(file.message, "ValueError: boom");
	ck_assert_str_eq(file.traceback, "Traceback (most recent call last):\nValueError: boom\n");
	ck_assert_int_eq(file.timestamp, 1794771769);
	parse("{\"message\": \"plain\", \"timestamp\": 12}");
	ck_assert_int_eq(file.state, ERROR_FILE_GOOD);
	ck_assert_str_eq(file.message, "plain");
	ck_assert_int_eq(file.timestamp, 12);
	error_file_done(&file);
}

TEST(error_file_cut_anywhere_is_told_never_fatal)
{
	for (size_t len = 0; len < strlen(sample); len++) {
		error_file_parse(sample, len, &file);
		ck_assert_int_eq(file.state, ERROR_FILE_BAD);
		ck_assert_str_eq(file.problem, len ? "is cut short" : "is empty");
		error_file_done(&file);
	}
}

TEST(error_file_with_other_content_says_what_is_wrong)
{
	static const char *const cases[][2] = {
		{ "hello", "is not JSON (byte 1, line 1)" },
		{ "{\n\"a\": x}", "is not JSON (byte 8, line 2)" },
		{ "{\"message\": \"\xff\"}", "is not UTF-8" },
		{ "[]", "has no message in it" },
		{ "{}", "has no message in it" },
		{ "{\"message\": 3}", "has no message in it" },
		{ "{\"message\": {\"extraInfo\": 4}}", "has no message in it" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		parse(cases[i][0]);
		ck_assert_int_eq(file.state, ERROR_FILE_BAD);
		ck_assert_str_eq(file.problem, cases[i][1]);
	}
	parse("{\"message\": {\"message\": \"m\", \"extraInfo\": {\"timestamp\": \"soon\"}}}");
	ck_assert_int_eq(file.state, ERROR_FILE_GOOD);
	ck_assert_int_eq(file.timestamp, 0);
	error_file_done(&file);
}

TEST(error_file_nested_too_deeply_is_told_never_fatal)
{
	char deep[10000];
	memset(deep, '[', sizeof(deep));
	error_file_parse(deep, sizeof(deep), &file);
	ck_assert_str_eq(file.problem, "is nested more than 64 levels deep");
	error_file_done(&file);
}

/* Half a surrogate pair, as Python makes of bytes that are not UTF-8, NUL and NaN. */
TEST(error_file_may_have_what_only_python_writes)
{
	parse("{\"x\": NaN, \"message\": \"a\\udcffb\\u0000c\"}");
	ck_assert_int_eq(file.state, ERROR_FILE_GOOD);
	ck_assert_str_eq(file.message, "a\xef\xbf\xbd"
				       "b\xef\xbf\xbd"
				       "c");
	error_file_done(&file);
}

static void write_file(const char *path, const char *text, off_t size)
{
	int fd = open(path, O_CREAT | O_WRONLY | O_TRUNC, 0600);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(fd_write_all(fd, text, strlen(text)), 0);
	if (size)
		ck_assert_int_eq(ftruncate(fd, size), 0);
	close(fd);
}

TEST(error_file_may_be_absent_huge_or_not_a_file)
{
	char directory[] = "/tmp/error_file_test_XXXXXX";
	ck_assert_ptr_nonnull(mkdtemp(directory));
	ck_assert_int_eq(chdir(directory), 0);
	error_file_read("absent", &file);
	ck_assert_int_eq(file.state, ERROR_FILE_ABSENT);
	write_file("huge", "{", (off_t)1 << 30);
	error_file_read("huge", &file);
	ck_assert_int_eq(file.state, ERROR_FILE_BAD);
	ck_assert_str_eq(file.problem, "has 1073741824 bytes, more than the 4194304 that are read");
	error_file_done(&file);
	ck_assert_int_eq(mkfifo("fifo", 0600), 0);
	error_file_read("fifo", &file);
	ck_assert_str_eq(file.problem, "is not a regular file");
	error_file_done(&file);
	error_file_read(".", &file);
	ck_assert_str_eq(file.problem, "is not a regular file");
	error_file_done(&file);
	unlink("huge");
	unlink("fifo");
	rmdir(directory);
}

TEST(error_passed_up_replaces_nothing_but_a_regular_file_of_ours)
{
	char directory[] = "/tmp/error_file_test_XXXXXX";
	struct err err = ERR_INIT;
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct stat st;
	ck_assert_ptr_nonnull(mkdtemp(directory));
	ck_assert_int_eq(chdir(directory), 0);
	write_file("child", sample, 0);
	write_file("other", "kept", 0);
	ck_assert_int_eq(symlink("other", "link"), 0);
	ck_assert_int_eq(mkfifo("fifo", 0600), 0);
	ck_assert_int_eq(error_file_pass_up("child", "link", 1, &err), -EEXIST);
	ck_assert_ptr_nonnull(strstr(err.msg, "link"));
	ck_assert_int_eq(error_file_pass_up("child", "fifo", 1, &err), -EEXIST);
	ck_assert_int_eq(lstat("fifo", &st), 0);
	ck_assert(S_ISFIFO(st.st_mode));
	ck_assert_int_eq(lstat("link", &st), 0);
	ck_assert(S_ISLNK(st.st_mode));
	ck_assert_int_eq(file_read("other", 4096, &text, &err), 0);
	ck_assert_str_eq(buf_str(&text), "kept");
	/* What a device is given is its own affair: /dev/null takes it, /dev/full does not. */
	if (mknod("null", S_IFCHR | 0600, makedev(1, 3)) == 0) {
		ck_assert_int_eq(error_file_pass_up("child", "null", 1, &err), 0);
		ck_assert_int_eq(lstat("null", &st), 0);
		ck_assert(S_ISCHR(st.st_mode));
		unlink("null");
	}
	if (geteuid() == 0) {
		ck_assert_int_eq(chown("other", 1, 1), 0);
		ck_assert_int_eq(error_file_pass_up("child", "other", 1, &err), -EEXIST);
	}
	const char *made[] = { "child", "other", "link", "fifo" };
	for (size_t i = 0; i < ARRAY_LEN(made); i++)
		unlink(made[i]);
	rmdir(directory);
}

TEST(error_is_passed_up_with_its_exit_code)
{
	char directory[] = "/tmp/error_file_test_XXXXXX";
	struct err err = ERR_INIT;
	AUTO(buf_done) struct buf text = BUF_INIT;
	ck_assert_ptr_nonnull(mkdtemp(directory));
	ck_assert_int_eq(chdir(directory), 0);
	write_file("child", sample, 0);
	write_file("parent", "old and longer than the new one? no, but replaced", 0);
	ck_assert_int_eq(error_file_pass_up("child", "parent", -9, &err), 0);
	ck_assert_int_eq(file_read("parent", 4096, &text, &err), 0);
	ck_assert_ptr_nonnull(strstr(buf_str(&text), "\"errorCode\": -9"));
	error_file_read("parent", &file);
	ck_assert_str_eq(file.message, "ValueError: boom");
	error_file_done(&file);
	write_file("child", "{\"message\"", 0);
	ck_assert_int_eq(error_file_pass_up("child", "parent", 1, &err), -EINVAL);
	ck_assert_int_eq(error_file_pass_up("absent", "parent", 1, &err), 0);
	unlink("child");
	unlink("parent");
	rmdir(directory);
}
