/* Finding a program in the directories of PATH. */
#ifndef BASE_PATH_H
#define BASE_PATH_H

#include "base/util.h"

/* What PATH means when it is not set: as in the C library and in Python. */
#define PATH_DEFAULT "/bin:/usr/bin"

/* A regular file that we may execute. */
bool path_is_program(const char *path);

/* The first program `name` in the directories of `path` (NULL: of $PATH), a malloc'ed string; NULL
 * if there is none. An empty directory means the working directory. */
char *path_search(const char *name, const char *path);

/* One of the programs that muster starts: in the build tree beside us, at its installed place
 * relative to us, at its configured place; else the name alone, and PATH decides. Malloc'ed. */
char *path_libexec(const char *name);

#endif
