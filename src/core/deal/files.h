/* The files that move with an order of a batch on many hosts: how they are named. Pure.
 *
 * A path is the coordinator's. What a host calls the file is beneath its own working directory: the
 * path itself, or what stands behind "/./" in it, as with rsync -R and GNU parallel. */
#ifndef CORE_DEAL_FILES_H
#define CORE_DEAL_FILES_H

#include "base/util.h"

#define FILES_MAX 64 /* of one order, in each direction */
#define FILES_PATH_MAX 4096

/* Borrowed from `path`. */
const char *files_name(const char *path);

/* Whether a host may use the name: relative, without "..", and of a file. */
bool files_name_ok(const char *name);

/* The same of the name of a path. */
bool files_path_ok(const char *path);

#endif
