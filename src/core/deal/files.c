#include "core/deal/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

const char *files_name(const char *path)
{
	const char *mark = strstr(path, "/./");
	if (!mark)
		return path;
	const char *name = mark + strlen("/./");
	return name + strspn(name, "/");
}

bool files_name_ok(const char *name)
{
	const char *rest = name, *part;
	size_t len, last = 0;
	bool dot = false;
	if (*name == '/' || strlen(name) >= FILES_PATH_MAX)
		return false;
	while ((part = str_split(&rest, '/', &len))) {
		last = len;
		dot = len == 1 && *part == '.';
		if (len == 2 && memcmp(part, "..", 2) == 0)
			return false;
	}
	return last > 0 && !dot;
}

bool files_path_ok(const char *path)
{
	return strlen(path) < FILES_PATH_MAX && files_name_ok(files_name(path));
}

/* ---- directories ---- */

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

static int add(struct tree *tree, const char *name, struct err *err)
{
	if (strchr(name, '/') || !files_name_ok(name))
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
