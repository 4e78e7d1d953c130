/* A directory that moves with an order of a batch on many hosts, entry by entry: what the host
 * still has to ask for. Pure.
 *
 *     tree_begin(&tree);
 *     do {
 *         fetch(tree_path(&tree));                  // "": the directory itself
 *         tree_add(&tree, list, len, &err);         // if that is a directory
 *     } while (tree_next(&tree)); */
#ifndef CORE_DEAL_TREE_H
#define CORE_DEAL_TREE_H

#include "base/err.h"
#include "base/strv.h"

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
