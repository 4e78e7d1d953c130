/* A file that appears under its name only when it is whole: it is written under a temporary one in
 * the same directory. */
#ifndef BASE_NEWFILE_H
#define BASE_NEWFILE_H

#include <sys/types.h>

#include "base/err.h"
#include "base/util.h"

#define NEWFILE_TEMP_MAX 40

struct newfile {
	int dir, fd;	/* -1: none */
	mode_t allowed; /* by the umask */
	char *name;
	char temp[NEWFILE_TEMP_MAX];
};

#define NEWFILE_INIT ((struct newfile){ .dir = -1, .fd = -1 })

/* Owns `dir` from now on, also on failure. Write to file->fd. */
int newfile_open(struct newfile *file, int dir, const char *name, struct err *err);

/* Puts it in its place, also over another file, with as much of `mode` as the umask leaves, and
 * closes it. */
int newfile_place(struct newfile *file, mode_t mode, bool *ret_replaced, struct err *err);

/* Removes it, unless it is in its place. */
void newfile_drop(struct newfile *file);

#endif
