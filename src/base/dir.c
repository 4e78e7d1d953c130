#include "base/dir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/stat.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)
#define LINKS_MAX 40
#define OTHERS_WRITE (S_IWGRP | S_IWOTH)

/* One step down. Each part is opened by itself, so that no link is followed, on any kernel. */
static int enter(int dir, const char *part, size_t len, bool make, struct err *err)
{
	AUTO_FREE char *name = mem_strndup(part, len);
	if (str_eq(name, ".."))
		return err_set(err, EINVAL, "'..' leads out of the directory");
	if (make && mkdirat(dir, name, 0777) < 0 && errno != EEXIST)
		return err_set(err, errno, "make directory %s: %m", name);
	int fd = openat(dir, name, DIR_FLAGS | O_NOFOLLOW);
	return fd >= 0 ? fd : err_set(err, errno, "%s: %m", name);
}

int dir_beneath(int root, const char *path, bool make, const char **ret_name, struct err *err)
{
	AUTO(fd_close) int dir = openat(root, ".", DIR_FLAGS);
	if (dir < 0)
		return err_set(err, errno, "the working directory: %m");
	const char *part = path, *slash;
	if (*path == '/')
		return err_set(err, EINVAL, "an absolute path");
	for (; (slash = strchr(part, '/')); part = slash + 1) {
		size_t len = (size_t)(slash - part);
		if (len == 0 || (len == 1 && *part == '.'))
			continue;
		int next = enter(dir, part, len, make, err);
		if (next < 0)
			return next;
		fd_close(&dir);
		dir = next;
	}
	*ret_name = part;
	return fd_take(&dir);
}

int dir_make_all(const char *path)
{
	AUTO_FREE char *part = mem_strdup(path);
	for (char *p = *part ? part + 1 : part;; p++) {
		char end = *p;
		if (end && end != '/')
			continue;
		*p = '\0';
		if (mkdir(part, 0777) < 0 && errno != EEXIST)
			return -errno;
		*p = end;
		if (!end)
			break;
	}
	struct stat st;
	if (stat(path, &st) < 0)
		return -errno;
	return S_ISDIR(st.st_mode) ? 0 : -ENOTDIR;
}

int dir_of(const char *path, const char **ret_name, struct err *err)
{
	const char *slash = strrchr(path, '/');
	AUTO_FREE char *dir =
		slash ? mem_strndup(path, (size_t)(slash - path) + 1) : mem_strdup(".");
	int r = slash ? dir_make_all(dir) : 0;
	if (r < 0)
		return err_set(err, -r, "make directory %s: %m", dir);
	int fd = open(dir, DIR_FLAGS);
	if (fd < 0)
		return err_set(err, errno, "%s: %m", dir);
	*ret_name = slash ? slash + 1 : path;
	return fd;
}

/* ---- who can change a path ---- */

struct path_walk {
	int dir;
	uid_t root;    /* who owns "/": root, as this user namespace calls it */
	struct buf at; /* where `dir` is, for messages */
	char *rest;
	int links;
};

static bool is_trusted(const struct path_walk *walk, uid_t user)
{
	return user == 0 || user == geteuid() || user == walk->root;
}

static bool others_write(const struct stat *st)
{
	return st->st_mode & (st->st_gid == 0 ? S_IWOTH : OTHERS_WRITE);
}

/* Kernels that cannot tell say no. */
static bool is_mount_point(int dir)
{
	struct statx st = { 0 };
	return syscall(SYS_statx, dir, "", AT_EMPTY_PATH, STATX_TYPE, &st) == 0 &&
	       (st.stx_attributes & STATX_ATTR_MOUNT_ROOT);
}

static int check_dir(struct path_walk *walk, struct err *err)
{
	struct stat st;
	const char *name = buf_len(&walk->at) ? buf_str(&walk->at) : "/";
	if (fstat(walk->dir, &st) < 0)
		return err_set(err, errno, "%s: %m", name);
	if (!is_trusted(walk, st.st_uid))
		return err_set(err, EPERM, "user %u owns %s and can replace what is in it",
			       st.st_uid, name);
	if (others_write(&st) && !(st.st_mode & S_ISVTX) && !is_mount_point(walk->dir))
		return err_set(err, EPERM,
			       "other users can replace what is in %s ('chmod +t' ends that)",
			       name);
	return 0;
}

/* Puts the target in front of what is left. */
static int follow_link(struct path_walk *walk, const char *name, const struct stat *st,
		       struct err *err)
{
	char target[4096];
	if (!is_trusted(walk, st->st_uid))
		return err_set(err, EPERM, "user %u made the symbolic link %s/%s", st->st_uid,
			       buf_str(&walk->at), name);
	ssize_t len = readlinkat(walk->dir, name, target, sizeof(target));
	if (len < 0 || len == sizeof(target) || ++walk->links > LINKS_MAX)
		return err_set(err, ELOOP, "%s/%s: %m", buf_str(&walk->at), name);
	char *rest = mem_printf("%.*s/%s", (int)len, target, walk->rest);
	free(walk->rest);
	walk->rest = rest;
	if (target[0] != '/')
		return 0;
	buf_clear(&walk->at);
	fd_close(&walk->dir);
	walk->dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	return walk->dir < 0 ? err_set(err, errno, "/: %m") : 0;
}

static int walk_down(struct path_walk *walk, const char *name, struct err *err)
{
	int next = openat(walk->dir, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (next < 0)
		return err_set(err, errno, "%s/%s: %m", buf_str(&walk->at), name);
	fd_close(&walk->dir);
	walk->dir = next;
	buf_printf(&walk->at, "/%s", name);
	return check_dir(walk, err);
}

static int walk_step(struct path_walk *walk, struct err *err)
{
	struct stat st;
	char *part = walk->rest + strspn(walk->rest, "/");
	size_t len = strcspn(part, "/");
	AUTO_FREE char *name = mem_strndup(part, len);
	char *rest = mem_strdup(part + len);
	free(walk->rest);
	walk->rest = rest;
	if (len == 0 || str_eq(name, "."))
		return 0;
	if (fstatat(walk->dir, name, &st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_set(err, errno, "%s/%s: %m", buf_str(&walk->at), name);
	return S_ISLNK(st.st_mode) ? follow_link(walk, name, &st, err) : walk_down(walk, name, err);
}

static char *absolute(const char *path)
{
	AUTO_FREE char *here = *path == '/' ? mem_strdup("") : getcwd(NULL, 0);
	return mem_printf("%s/%s", here ? here : "", path);
}

int dir_check(const char *path, struct err *err)
{
	struct path_walk walk = { .dir = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC),
				  .at = BUF_INIT,
				  .rest = absolute(path) };
	struct stat st;
	int r = walk.dir < 0 || fstat(walk.dir, &st) < 0 ? err_set(err, errno, "/: %m") : 0;
	if (r == 0) {
		walk.root = st.st_uid;
		r = check_dir(&walk, err);
	}
	while (r == 0 && *walk.rest)
		r = walk_step(&walk, err);
	fd_close(&walk.dir);
	buf_done(&walk.at);
	free(walk.rest);
	return r;
}

/* ---- private directories ---- */

int dir_open_private(int parent, const char *name, struct err *err)
{
	struct stat st;
	AUTO(fd_close) int fd = openat(parent, name, DIR_FLAGS | O_NOFOLLOW);
	if (fd < 0 || fstat(fd, &st) < 0)
		return err_set(err, errno, "%s: %m", name);
	if (st.st_uid != geteuid() || (st.st_mode & 077))
		return err_set(err, EPERM, "%s is not a private directory of this user", name);
	return fd_take(&fd);
}

int dir_make_private(int parent, const char *name, struct err *err)
{
	int fd =
		mkdirat(parent, name, 0700) < 0 ? -1 : openat(parent, name, DIR_FLAGS | O_NOFOLLOW);
	return fd < 0 ? err_set(err, errno, "mkdir %s: %m", name) : fd;
}

void dir_remove_flat(int parent, const char *name)
{
	int fd = openat(parent, name, DIR_FLAGS | O_NOFOLLOW);
	DIR *dir = fd < 0 ? NULL : fdopendir(fd);
	if (!dir)
		return;
	for (const struct dirent *entry; (entry = readdir(dir));)
		if (!str_eq(entry->d_name, ".") && !str_eq(entry->d_name, ".."))
			unlinkat(fd, entry->d_name, 0);
	closedir(dir);
	unlinkat(parent, name, AT_REMOVEDIR);
}

/* ---- the held directory ---- */

static struct {
	pthread_mutex_t lock;
	char *path;
	int fd;
} held = { .lock = PTHREAD_MUTEX_INITIALIZER, .fd = -1 };

void dir_release(void)
{
	pthread_mutex_lock(&held.lock);
	free(held.path);
	held.path = NULL;
	fd_close(&held.fd);
	pthread_mutex_unlock(&held.lock);
}

void dir_hold(const char *path, int fd)
{
	dir_release();
	pthread_mutex_lock(&held.lock);
	held.path = mem_strdup(path);
	held.fd = fd;
	pthread_mutex_unlock(&held.lock);
}

/* A place to look from, AT_FDCWD for a path that is elsewhere. */
struct place {
	int dir;
	const char *name;
	int flags; /* more of them for open() */
	int error; /* errno has it, too */
};

static void place_done(struct place *place)
{
	fd_close(&place->dir);
}

static struct place find_place(const char *path, bool make)
{
	struct place place = { .dir = AT_FDCWD, .name = path };
	struct err err = ERR_INIT;
	pthread_mutex_lock(&held.lock);
	size_t len = held.path ? strlen(held.path) : 0;
	bool beneath = len && strncmp(path, held.path, len) == 0 && path[len] == '/';
	AUTO(fd_close) int root = beneath ? fcntl(held.fd, F_DUPFD_CLOEXEC, 0) : -1;
	pthread_mutex_unlock(&held.lock);
	if (!beneath)
		return place;
	path += len + 1;
	int dir = root < 0 ? -errno : dir_beneath(root, path, make, &place.name, &err);
	place.flags = O_NOFOLLOW;
	place.dir = dir;
	place.error = errno = dir < 0 ? -dir : 0;
	return place;
}

int dir_open(const char *path, int flags, mode_t mode)
{
	AUTO(place_done) struct place place = find_place(path, flags & O_CREAT);
	return place.error ? -1 : openat(place.dir, place.name, flags | place.flags, mode);
}

int dir_make(const char *path)
{
	AUTO(place_done) struct place place = find_place(path, true);
	return place.error ? -1 : mkdirat(place.dir, place.name, 0777);
}

int dir_stat(const char *path, struct stat *ret)
{
	AUTO(place_done) struct place place = find_place(path, false);
	return place.error ? -1 : fstatat(place.dir, place.name, ret, 0);
}

int dir_rename(const char *path, const char *to)
{
	AUTO(place_done) struct place place = find_place(path, false);
	const char *name = place.dir == AT_FDCWD ? to : strrchr(to, '/') + 1;
	return place.error ? -1 : renameat(place.dir, place.name, place.dir, name);
}
