#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "sys/counter.h"

static char *const clean_env[] = { "LC_ALL=C", NULL };

static uint64_t count_of(const char *folder, char *const *argv)
{
	AUTO_FREE char *prefix = mem_printf("%s/count", folder);
	struct strv words = STRV_INIT;
	counter_wrap(COUNTER_CACHEGRIND, prefix, argv, &words);
	pid_t pid = fork();
	if (pid == 0) {
		execvpe(words.items[0], strv_argv(&words), clean_env);
		_exit(127);
	}
	int status;
	ck_assert_int_eq(waitpid(pid, &status, 0), pid);
	ck_assert_int_eq(status, 0);
	struct err err = ERR_INIT;
	uint64_t count = 0;
	ck_assert_msg(counter_collect(prefix, &count, &err) == 0, "%s", err.msg);
	strv_done(&words);
	return count;
}

TEST(a_program_has_one_number_and_its_children_belong_to_it)
{
	struct err err = ERR_INIT;
	if (counter_check(COUNTER_CACHEGRIND, &err) < 0)
		return; /* not installed here; the end-to-end tests need it */
	char folder[] = "/tmp/muster-count-XXXXXX";
	ck_assert_ptr_nonnull(mkdtemp(folder));
	char *alone[] = { "/bin/true", NULL },
	     *with_child[] = { "/bin/sh", "-c", "/bin/true; exit 0", NULL };
	uint64_t first = count_of(folder, alone), second = count_of(folder, alone);
	ck_assert_uint_gt(first, 1000);
	ck_assert_uint_eq(first, second);
	ck_assert_uint_gt(count_of(folder, with_child), first);
	ck_assert_int_eq(rmdir(folder), 0); /* the files were removed */
}

TEST(a_run_without_counts_says_so)
{
	char folder[] = "/tmp/muster-count-XXXXXX";
	ck_assert_ptr_nonnull(mkdtemp(folder));
	AUTO_FREE char *prefix = mem_printf("%s/count", folder);
	AUTO_FREE char *file = mem_printf("%s.17", prefix);
	uint64_t count;
	ck_assert_int_eq(counter_collect(prefix, &count, NULL), -ENODATA);
	FILE *out = fopen(file, "w");
	fputs("events: Ir\n", out);
	fclose(out);
	ck_assert_int_eq(counter_collect(prefix, &count, NULL), -ENODATA);
	ck_assert_int_eq(rmdir(folder), 0);
}
