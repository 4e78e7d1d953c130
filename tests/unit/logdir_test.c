#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/mem.h"
#include "run/logdir.h"

static struct logdir logdir;
static struct err err;
static char root[] = "/tmp/logdir_test_XXXXXX";

static void begin(void)
{
	ck_assert_ptr_nonnull(mkdtemp(root));
	ck_assert_int_eq(chdir(root), 0);
	setenv("TMPDIR", root, 1);
	err = ERR_INIT;
}

static void end(void)
{
	logdir_done(&logdir);
	char command[128];
	snprintf(command, sizeof(command), "rm -rf '%s'", root);
	ck_assert_int_eq(system(command), 0);
}

static bool exists(const char *path)
{
	return access(path, F_OK) == 0;
}

TEST(log_tree_is_named_as_torchrun_names_it)
{
	begin();
	ck_assert_int_eq(logdir_open(&logdir, "new/logs", "a/b", false, &err), 0);
	ck_assert_int_eq(strncmp(logdir.run, "new/logs/a_b_", 13), 0);
	ck_assert_uint_eq(strlen(logdir.run), 13 + 8);
	ck_assert_int_eq(logdir_begin(&logdir, 2, &err), 0);
	AUTO_FREE char *file = logdir_error_file(&logdir, 1);
	AUTO_FREE char *expected = mem_printf("%s/attempt_0/1/error.json", logdir.run);
	ck_assert_str_eq(file, expected);
	*strrchr(file, '/') = '\0';
	ck_assert(exists(file));
	struct stat st;
	ck_assert_int_eq(stat(logdir.run, &st), 0);
	ck_assert_uint_eq(st.st_mode & 0777, 0700);
	end();
}

TEST(log_tree_that_is_temporary_is_dropped_early_if_nothing_is_in_it)
{
	begin();
	for (int written = 0; written < 2; written++) {
		ck_assert_int_eq(logdir_open(&logdir, NULL, "j", false, &err), 0);
		AUTO_FREE char *run = mem_strdup(logdir.run);
		AUTO_FREE char *file = mem_printf("%s/report.json", run);
		if (written)
			close(creat(file, 0600));
		logdir_drop_empty(&logdir);
		ck_assert_int_eq(exists(run), written);
		ck_assert_str_eq(logdir.run, run);
		logdir_done(&logdir);
		ck_assert_int_eq(exists(run), written);
	}
	ck_assert_int_eq(logdir_open(&logdir, "named", "j", false, &err), 0);
	logdir_drop_empty(&logdir);
	ck_assert(exists(logdir.run));
	end();
}

TEST(log_tree_counts_the_starts_and_keeps_them_all)
{
	begin();
	ck_assert_int_eq(logdir_open(&logdir, "logs", "j", false, &err), 0);
	static const char *const names[] = { "/attempt_0", "/attempt_1", "/attempt_2" };
	for (size_t i = 0; i < ARRAY_LEN(names); i++) {
		ck_assert_int_eq(logdir_begin(&logdir, 1, &err), 0);
		ck_assert_str_eq(strrchr(logdir.attempt, '/'), names[i]);
		AUTO_FREE char *worker = mem_printf("%s/0", logdir.attempt);
		while (!exists(worker)) /* on a slow disk it comes later */
			poll(NULL, 0, 1);
	}
	end();
}

TEST(temporary_tree_goes_when_nothing_was_written)
{
	begin();
	ck_assert_int_eq(logdir_open(&logdir, NULL, "j", false, &err), 0);
	ck_assert_int_eq(logdir_begin(&logdir, 3, &err), 0);
	AUTO_FREE char *run = mem_strdup(logdir.run);
	ck_assert_ptr_nonnull(strstr(run, "/torchelastic_"));
	ck_assert(exists(run));
	logdir_done(&logdir);
	ck_assert(!exists(run));

	ck_assert_int_eq(logdir_open(&logdir, NULL, "j", false, &err), 0);
	ck_assert_int_eq(logdir_begin(&logdir, 2, &err), 0);
	AUTO_FREE char *file = logdir_error_file(&logdir, 1);
	AUTO_FREE char *expected = mem_printf("%s/attempt_0_1_error.json", logdir.run);
	ck_assert_str_eq(file, expected);
	AUTO_FREE char *empty = mem_strdup(logdir.attempt);
	ck_assert_int_eq(mkdir(empty, 0700), 0);
	close(open(file, O_CREAT | O_WRONLY, 0600));
	logdir_done(&logdir);
	ck_assert(exists(file));
	ck_assert(!exists(empty));
	end();
}

TEST(dev_null_means_no_tree)
{
	begin();
	ck_assert_int_eq(logdir_open(&logdir, "/dev/null", "j", false, &err), 0);
	ck_assert_int_eq(logdir_begin(&logdir, 2, &err), 0);
	AUTO_FREE char *file = logdir_error_file(&logdir, 1);
	ck_assert_str_eq(file, "");
	end();
}

TEST(unusable_log_directory_is_refused_by_name)
{
	begin();
	close(open("file", O_CREAT | O_WRONLY, 0600));
	ck_assert_int_eq(logdir_open(&logdir, "file", "j", false, &err), -ENOTDIR);
	ck_assert_ptr_nonnull(strstr(err.msg, "--log-dir: 'file': Not a directory"));
	ck_assert_int_eq(logdir_open(&logdir, "file/below", "j", false, &err), -ENOTDIR);
	ck_assert_int_lt(logdir_open(&logdir, "/proc/nothing", "j", false, &err), 0);
	end();
}

TEST(job_goes_on_without_a_temporary_directory)
{
	begin();
	logdir_done(&logdir);
	/* An unusable TMPDIR is passed over, as Python does. */
	setenv("TMPDIR", "/proc/nothing", 1);
	ck_assert_int_eq(logdir_open(&logdir, NULL, "j", false, &err), 0);
	ck_assert_int_eq(strncmp(logdir.run, "/tmp/", 5), 0);
	logdir_done(&logdir);
	setenv("TMPDIR", "/proc/self", 1);
	ck_assert_int_eq(logdir_open(&logdir, NULL, "j", false, &err), 0);
	if (!logdir.run) /* root may "write" to /proc/self, and then cannot */
		ck_assert_ptr_nonnull(strstr(err.msg, "no log directory under '/proc/self'"));
	ck_assert_int_eq(logdir_begin(&logdir, 2, &err), 0);
	end();
}
