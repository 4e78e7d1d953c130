/* The files that move with an order of a batch on many hosts: how they are named, and the way
 * through a directory. Pure.
 *
 * A path is the coordinator's. What a host calls the file is beneath its own working directory: the
 * path itself, or what stands behind "/./" in it, as with rsync -R and GNU parallel. */
#ifndef CORE_DEAL_FILES_H
#define CORE_DEAL_FILES_H

#include "base/err.h"
#include "base/strv.h"

#define FILES_MAX 64 /* of one order, in each direction */
#define FILES_PATH_MAX 4096

/* Borrowed from `path`. */
const char *files_name(const char *path);

/* Whether a host may use the name: relative, without "..", and of a file. */
bool files_name_ok(const char *name);

/* The same of the name of a path. */
bool files_path_ok(const char *path);

/* A directory that moves, entry by entry: what the host still has to ask for.
 *
 *     tree_begin(&tree);
 *     do {
 *         fetch(tree_path(&tree));                  // "": the directory itself
 *         tree_add(&tree, list, len, &err);         // if that is a directory
 *     } while (tree_next(&tree)); */
#define TREE_ENTRIES_MAX 100000
#define TREE_LIST_MAX ((size_t)4 << 20) /* bytes, of the names in one directory */

struct tree {
	struct strv todo; /* paths beneath it; the last one is the next */
	size_t seen;	  /* entries */
	char *path;	  /* NULL: the directory itself */
};

#define TREE_INIT ((struct tree){ .todo = { .items = NULL } })

void tree_done(struct tree *tree);
void tree_begin(struct tree *tree);

/* What the present path has: names, each with a NUL behind it. */
int tree_add(struct tree *tree, const char *list, size_t len, struct err *err);

/* Goes to the next path; false: that was all. */
bool tree_next(struct tree *tree);

static inline const char *tree_path(const struct tree *tree)
{
	return tree->path ? tree->path : "";
}

#endif
