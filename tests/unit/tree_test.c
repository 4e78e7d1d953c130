/* The way through a directory that moves with an order. */
#include "unit.h"

#include <errno.h>

#include "base/mem.h"
#include "core/deal/files.h"

static int add(struct tree *tree, const char *list, size_t len)
{
	return tree_add(tree, list, len, NULL);
}

TEST(all_that_is_beneath_a_directory_comes_once)
{
	AUTO(tree_done) struct tree tree = TREE_INIT;
	tree_begin(&tree);
	ck_assert_str_eq(tree_path(&tree), "");
	ck_assert_int_eq(add(&tree, "a\0b\0", 4), 0);
	ck_assert(tree_next(&tree));
	ck_assert_str_eq(tree_path(&tree), "b");
	ck_assert_int_eq(add(&tree, "c\0...\0", 6), 0);
	ck_assert(tree_next(&tree));
	ck_assert_str_eq(tree_path(&tree), "b/...");
	ck_assert_int_eq(add(&tree, "", 0), 0); /* empty */
	ck_assert(tree_next(&tree));
	ck_assert_str_eq(tree_path(&tree), "b/c");
	ck_assert(tree_next(&tree));
	ck_assert_str_eq(tree_path(&tree), "a");
	ck_assert(!tree_next(&tree));
	tree_begin(&tree);
	ck_assert_str_eq(tree_path(&tree), "");
	ck_assert(!tree_next(&tree));
}

TEST(an_entry_is_beneath_the_directory)
{
	static const struct {
		const char *list;
		size_t len;
	} bad[] = { { "", 1 },	    { ".", 2 },		 { "..", 3 },
		    { "a/b", 4 },   { "/", 2 },		 { "a\0..\0b", 7 },
		    { "a\0\0", 3 }, { "a\0unended", 9 }, { "a", 1 } };
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		AUTO(tree_done) struct tree tree = TREE_INIT;
		ck_assert_int_eq(add(&tree, bad[i].list, bad[i].len), -EPROTO);
	}
}

TEST(a_directory_has_limits)
{
	AUTO(tree_done) struct tree tree = TREE_INIT;
	AUTO_FREE char *many = mem_alloc(2 * TREE_ENTRIES_MAX);
	for (size_t i = 0; i < TREE_ENTRIES_MAX; i++)
		many[2 * i] = 'a';
	ck_assert_int_eq(add(&tree, many, 2 * TREE_ENTRIES_MAX), 0);
	ck_assert_int_eq(add(&tree, "a", 2), -E2BIG);
	tree_begin(&tree);
	int r = 0, deep = 0;
	while ((r = add(&tree, "directory", 10)) == 0 && tree_next(&tree))
		deep++;
	ck_assert_int_eq(r, -ENAMETOOLONG);
	ck_assert_int_eq(deep, FILES_PATH_MAX / 10);
	ck_assert_uint_lt(strlen(tree_path(&tree)), FILES_PATH_MAX);
}
