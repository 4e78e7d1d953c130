#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/dir.h"
#include "base/newfile.h"

/* A directory of its own, which the test removes. */
static int make_root(char *path)
{
	ck_assert_ptr_nonnull(mkdtemp(path));
	int root = open(path, O_PATH | O_DIRECTORY | O_CLOEXEC);
	ck_assert_int_ge(root, 0);
	return root;
}

static int put(int root, const char *path, const char *text, bool *ret_replaced)
{
	const char *name;
	struct newfile file = NEWFILE_INIT;
	int dir = dir_beneath(root, path, true, &name, NULL);
	int r = dir < 0 ? dir : newfile_open(&file, dir, name, NULL);
	if (r < 0)
		return r;
	ck_assert_int_ge(fd_write_all(file.fd, text, strlen(text)), 0);
	bool there = faccessat(root, path, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
	ck_assert_int_eq(there, *ret_replaced);
	return newfile_place(&file, 0741, ret_replaced, NULL);
}

TEST(a_file_appears_when_it_is_whole_and_says_whether_it_replaced_one)
{
	char path[] = "/tmp/muster-newfile-XXXXXX";
	AUTO(fd_close) int root = make_root(path);
	bool replaced = false;
	struct stat st;
	ck_assert_int_eq(put(root, "a/b/file", "one", &replaced), 0);
	ck_assert(!replaced);
	ck_assert_int_eq(fstatat(root, "a/b/file", &st, 0), 0);
	ck_assert_int_eq(st.st_mode & 07777, 0741);
	replaced = true;
	ck_assert_int_eq(put(root, "./a//b/./file", "two!", &replaced), 0);
	ck_assert(replaced);
	ck_assert_int_eq(fstatat(root, "a/b/file", &st, 0), 0);
	ck_assert_int_eq(st.st_size, 4);
	unlinkat(root, "a/b/file", 0);
	/* Nothing else was left there. */
	ck_assert_int_eq(unlinkat(root, "a/b", AT_REMOVEDIR), 0);
	ck_assert_int_eq(unlinkat(root, "a", AT_REMOVEDIR), 0);
	ck_assert_int_eq(rmdir(path), 0);
}

TEST(a_file_gets_no_right_that_the_umask_withholds)
{
	char path[] = "/tmp/muster-newfile-XXXXXX";
	AUTO(fd_close) int root = make_root(path);
	bool replaced = false;
	struct stat st;
	umask(037);
	ck_assert_int_eq(put(root, "file", "one", &replaced), 0);
	ck_assert_int_eq(fstatat(root, "file", &st, 0), 0);
	ck_assert_int_eq(st.st_mode & 07777, 0740);
	unlinkat(root, "file", 0);
	ck_assert_int_eq(rmdir(path), 0);
}

TEST(no_path_leads_out_of_the_directory)
{
	char path[] = "/tmp/muster-newfile-XXXXXX";
	AUTO(fd_close) int root = make_root(path);
	bool replaced = false;
	ck_assert_int_eq(mkdirat(root, "inside", 0700), 0);
	ck_assert_int_eq(symlinkat(path, root, "inside/link"), 0);
	ck_assert_int_eq(put(root, "/tmp/muster-x", "", &replaced), -EINVAL);
	ck_assert_int_eq(put(root, "../muster-x", "", &replaced), -EINVAL);
	ck_assert_int_eq(put(root, "inside/../../muster-x", "", &replaced), -EINVAL);
	ck_assert_int_lt(put(root, "inside/link/x", "", &replaced), 0);
	/* A link is not written through, nor replaced. */
	replaced = true;
	ck_assert_int_eq(put(root, "inside/link", "", &replaced), -EEXIST);
	ck_assert_int_eq(unlinkat(root, "inside/link", 0), 0);
	ck_assert_int_eq(unlinkat(root, "inside", AT_REMOVEDIR), 0);
	ck_assert_int_eq(rmdir(path), 0);
}
