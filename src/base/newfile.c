#include "base/newfile.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)

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

int dir_of(const char *path, const char **ret_name, struct err *err)
{
	const char *slash = strrchr(path, '/');
	AUTO_FREE char *dir = slash ? mem_strndup(path, (size_t)(slash - path) + 1) : NULL;
	for (char *p = dir ? strchr(dir + 1, '/') : NULL; p; p = strchr(p + 1, '/')) {
		*p = '\0';
		if (mkdir(dir, 0777) < 0 && errno != EEXIST)
			return err_set(err, errno, "make directory %s: %m", dir);
		*p = '/';
	}
	int fd = open(dir ? dir : ".", DIR_FLAGS);
	if (fd < 0)
		return err_set(err, errno, "%s: %m", dir ? dir : ".");
	*ret_name = slash ? slash + 1 : path;
	return fd;
}

int newfile_open(struct newfile *file, int dir, const char *name, struct err *err)
{
	*file = (struct newfile){ .dir = dir, .fd = -1, .name = mem_strdup(name) };
	snprintf(file->temp, sizeof(file->temp), ".muster-%016llx",
		 (unsigned long long)random_u64());
	file->fd =
		openat(dir, file->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
	if (file->fd >= 0)
		return 0;
	int r = err_set(err, errno, "write %s: %m", name);
	newfile_drop(file);
	return r;
}

int newfile_place(struct newfile *file, mode_t mode, bool *ret_replaced, struct err *err)
{
	struct stat before;
	bool there = fstatat(file->dir, file->name, &before, AT_SYMLINK_NOFOLLOW) == 0;
	int r = 0;
	if (there && !S_ISREG(before.st_mode))
		r = err_set(err, EEXIST, "write %s: something else than a file is there",
			    file->name);
	else if (fchmod(file->fd, mode & 0777) < 0 || close(fd_take(&file->fd)) < 0 ||
		 renameat(file->dir, file->temp, file->dir, file->name) < 0)
		r = err_set(err, errno, "write %s: %m", file->name);
	else
		*file->temp = '\0';
	newfile_drop(file);
	if (r >= 0)
		*ret_replaced = there;
	return r;
}

void newfile_drop(struct newfile *file)
{
	if (file->dir >= 0 && *file->temp)
		unlinkat(file->dir, file->temp, 0);
	fd_close(&file->fd);
	fd_close(&file->dir);
	free(file->name);
	*file = NEWFILE_INIT;
}
