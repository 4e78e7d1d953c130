/* The list of a directory, as a coordinator sends it: whatever it says, all paths are beneath that
 * directory. */
#include <stdlib.h>

#include "core/deal/files.h"

#define LISTS_MAX 8 /* of directories in directories */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	AUTO(tree_done) struct tree tree = TREE_INIT;
	int lists = 0;
	tree_begin(&tree);
	do {
		if (*tree_path(&tree) && !files_name_ok(tree_path(&tree)))
			abort();
		if (tree.seen > TREE_ENTRIES_MAX || tree.todo.count > tree.seen)
			abort();
		if (lists++ < LISTS_MAX && tree_add(&tree, (const char *)data, size, NULL) < 0)
			return 0;
	} while (tree_next(&tree));
	return 0;
}
