/* Directories held by descriptor: what is opened from there stays there, whoever renames the
 * directories above or puts a symbolic link in their place. */
#ifndef BASE_DIR_H
#define BASE_DIR_H

#include <sys/stat.h>

#include "base/err.h"

/* The directory of `path`, which is beneath `root`: neither a symbolic link nor ".." leads out of
 * it. With `make`, directories that are missing are made. *ret_name is the last part, borrowed. */
int dir_beneath(int root, const char *path, bool make, const char **ret_name, struct err *err);

/* The directory of any path, which is made if it is missing. */
int dir_of(const char *path, const char **ret_name, struct err *err);

/* Makes the directory with all that are missing above it. 0 or -errno. */
int dir_make_all(const char *path);

/* -EPERM if another user than root can put another directory in the place of `path`, or files into
 * it: a directory on the way, or it itself, is theirs, or others may write into it and it is not
 * sticky. A mount point that root made for everybody, such as a pod's volume, counts as root's. */
int dir_check(const char *path, struct err *err);

/* A directory of this user that is closed to others, in `parent` (AT_FDCWD for a path). */
int dir_open_private(int parent, const char *name, struct err *err);

/* Makes a new one of mode 0700, if the file system has modes. */
int dir_make_private(int parent, const char *name, struct err *err);

/* Removes it in `parent` with the files in it, of which none is a directory. */
void dir_remove_flat(int parent, const char *name);

/* Takes `fd`. From now on the functions below reach what is beneath `path` through it, for every
 * thread; at most one directory at a time. */
void dir_hold(const char *path, int fd);
void dir_release(void);

/* As open() and the like, but what is beneath the held directory is reached from there, without
 * following symbolic links. With O_CREAT, missing directories there are made. */
int dir_open(const char *path, int flags, mode_t mode);
int dir_make(const char *path);
int dir_stat(const char *path, struct stat *ret);
int dir_rename(const char *path, const char *to); /* both in the same directory */

#endif
