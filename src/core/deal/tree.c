#include "core/deal/tree.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/deal/files.h"

void tree_done(struct tree *tree)
{
	strv_done(&tree->todo);
	free(tree->path);
	*tree = TREE_INIT;
}

void tree_begin(struct tree *tree)
{
	tree_done(tree);
}

static bool name_ok(const char *name)
{
	return *name && !strchr(name, '/') && !str_eq(name, ".") && !str_eq(name, "..");
}

static int add(struct tree *tree, const char *name, struct err *err)
{
	if (!name_ok(name))
		return err_set(err, EPROTO, "a list of a directory with an entry that has no name");
	if (++tree->seen > TREE_ENTRIES_MAX)
		return err_set(err, E2BIG, "a directory with more than %d entries",
			       TREE_ENTRIES_MAX);
	AUTO_FREE char *path =
		tree->path ? mem_printf("%s/%s", tree->path, name) : mem_strdup(name);
	if (strlen(path) >= FILES_PATH_MAX)
		return err_set(err, ENAMETOOLONG, "a directory that is too deep");
	strv_add(&tree->todo, path);
	return 0;
}

int tree_add(struct tree *tree, const char *list, size_t len, struct err *err)
{
	const char *end = list + len;
	if (len > 0 && end[-1] != '\0')
		return err_set(err, EPROTO, "a list of a directory that ends within a name");
	for (const char *name = list; name < end; name += strlen(name) + 1) {
		int r = add(tree, name, err);
		if (r < 0)
			return r;
	}
	return 0;
}

bool tree_next(struct tree *tree)
{
	if (tree->todo.count == 0)
		return false;
	free(tree->path);
	tree->path = tree->todo.items[--tree->todo.count];
	tree->todo.items[tree->todo.count] = NULL;
	return true;
}
