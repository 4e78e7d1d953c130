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

int newfile_open(struct newfile *file, int dir, const char *name, struct err *err)
{
	*file = (struct newfile){ .dir = dir, .fd = -1, .name = mem_strdup(name) };
	snprintf(file->temp, sizeof(file->temp), ".muster-%016llx",
		 (unsigned long long)random_u64());
	file->fd =
		openat(dir, file->temp, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0777);
	struct stat st;
	/* Nobody else may read what is not whole; what the umask leaves is kept for the end. */
	if (file->fd >= 0 && fstat(file->fd, &st) == 0 && fchmod(file->fd, 0600) == 0) {
		file->allowed = st.st_mode & 0777;
		return 0;
	}
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
	else if (fchmod(file->fd, mode & file->allowed) < 0 || close(fd_take(&file->fd)) < 0 ||
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
