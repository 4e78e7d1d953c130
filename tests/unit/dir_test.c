#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/dir.h"
#include "base/fd.h"
#include "base/mem.h"

#define ANOTHER 65534

static char root[] = "/tmp/muster-dir-XXXXXX";

static void begin(void)
{
	if (geteuid() != 0)
		unit_skip("another user's directories are needed, which only root can make");
	umask(022);
	ck_assert_ptr_nonnull(mkdtemp(root));
	ck_assert_int_eq(chdir(root), 0);
	ck_assert_int_eq(mkdir("theirs", 0755), 0);
	ck_assert_int_eq(mkdir("theirs/ours", 0700), 0);
	ck_assert_int_eq(chown("theirs", ANOTHER, ANOTHER), 0);
	ck_assert_int_eq(mkdir("group", 0755), 0);
	ck_assert_int_eq(chown("group", 0, ANOTHER), 0);
	ck_assert_int_eq(chmod("group", 0775), 0);
	ck_assert_int_eq(mkdir("sticky", 0755), 0);
	ck_assert_int_eq(chmod("sticky", 01777), 0);
	ck_assert_int_eq(mkdir("sticky/ours", 0700), 0);
	ck_assert_int_eq(mkdir("plain", 0755), 0);
}

static void end(void)
{
	AUTO_FREE char *command = mem_printf("rm -rf '%s'", root);
	ck_assert_int_eq(system(command), 0);
}

static void expect(const char *path, const char *reason)
{
	struct err err = ERR_INIT;
	int r = dir_check(path, &err);
	ck_assert_msg(r == (reason ? -EPERM : 0), "%s: %d %s", path, r, err.msg);
	ck_assert_msg(!reason || strstr(err.msg, reason), "%s: %s", path, err.msg);
}

TEST(a_path_that_another_user_can_change_is_told_by_the_directory_that_lets_them)
{
	begin();
	AUTO_FREE char *whole = mem_printf("%s/plain/../sticky//./ours", root);
	expect("plain", NULL);
	expect("sticky", NULL);
	expect("sticky/ours", NULL);
	expect(whole, NULL);
	expect("theirs", "theirs and can replace what is in it");
	expect("theirs/ours", "theirs and can replace what is in it");
	expect("group", "chmod +t");
	ck_assert_int_eq(chmod("group", 01775), 0);
	expect("group", NULL);
	ck_assert_int_eq(dir_check("missing", NULL), -ENOENT);
	end();
}

TEST(a_symbolic_link_is_looked_at_with_what_it_leads_through)
{
	begin();
	AUTO_FREE char *there = mem_printf("%s/theirs/ours", root);
	ck_assert_int_eq(symlink("sticky/ours", "good"), 0);
	ck_assert_int_eq(symlink(there, "bad"), 0);
	ck_assert_int_eq(symlink("loop", "loop"), 0);
	ck_assert_int_eq(symlink("../plain", "sticky/own"), 0);
	ck_assert_int_eq(symlink("../plain", "sticky/alien"), 0);
	ck_assert_int_eq(lchown("sticky/alien", ANOTHER, ANOTHER), 0);
	expect("good", NULL);
	expect("bad", "theirs and can replace what is in it");
	ck_assert_int_eq(dir_check("loop", NULL), -ELOOP);
	expect("sticky/own", NULL);
	expect("sticky/alien", "made the symbolic link");
	end();
}

static void write_to(const char *path)
{
	AUTO(fd_close) int fd = dir_open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
	ck_assert_msg(fd >= 0, "%s: %m", path);
	ck_assert_int_eq(write(fd, "new", 3), 3);
}

static bool is_there(const char *path)
{
	return access(path, F_OK) == 0;
}

TEST(what_is_beneath_the_held_directory_stays_there_when_its_name_leads_elsewhere)
{
	begin();
	AUTO_FREE char *run = mem_printf("%s/plain/run", root);
	AUTO_FREE char *file = mem_printf("%s/a/b/log", run), *old = mem_printf("%s.1", file);
	AUTO_FREE char *link = mem_printf("%s/link", run);
	dir_hold(run, dir_make_private(AT_FDCWD, run, NULL));
	ck_assert_int_eq(rename("plain/run", "plain/moved"), 0);
	ck_assert_int_eq(mkdir("victim", 0700), 0);
	ck_assert_int_eq(symlink("../victim", "plain/run"), 0);
	write_to(file);
	ck_assert(is_there("plain/moved/a/b/log") && !is_there("victim/a"));
	ck_assert_int_eq(dir_rename(file, old), 0);
	ck_assert(is_there("plain/moved/a/b/log.1"));
	ck_assert_int_eq(symlink("../../victim/file", "plain/moved/link"), 0);
	ck_assert_int_eq(dir_open(link, O_WRONLY | O_CREAT, 0666), -1);
	ck_assert_int_eq(errno, ELOOP);
	dir_release();
	write_to("plain/run/file");
	ck_assert(is_there("victim/file"));
	end();
}

TEST(a_flat_directory_is_removed_but_not_what_a_link_of_its_name_leads_to)
{
	begin();
	AUTO(fd_close) int parent = open("plain", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	AUTO(fd_close) int made = dir_make_private(parent, "one", NULL);
	ck_assert_int_ge(made, 0);
	write_to("plain/one/file");
	write_to("sticky/ours/file");
	ck_assert_int_eq(symlink("../sticky/ours", "plain/two"), 0);
	dir_remove_flat(parent, "one");
	dir_remove_flat(parent, "two");
	ck_assert(!is_there("plain/one") && is_there("sticky/ours/file"));
	ck_assert_int_eq(dir_open_private(parent, "two", NULL), -ENOTDIR);
	end();
}
