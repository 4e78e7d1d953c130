#include "unit.h"

#include "core/lines/stack_groups.h"

static struct stack_groups groups;
static struct buf out;

static void add(size_t rank, const char *text)
{
	stack_groups_add(&groups, rank, text, strlen(text));
}

static const char *print(void)
{
	buf_clear(&out);
	stack_groups_print(&groups, &out);
	stack_groups_done(&groups);
	return buf_str(&out);
}

TEST(alike_stacks_are_one_group_and_the_odd_one_comes_first)
{
	add(0, "Process 10: python a.py\nPython v3.11.7 (/usr/bin/python3)\n\nThread 10 (idle): "
	       "\"MainThread\"\n    f (a.py:1)\n");
	add(1, "Process 11: python a.py\nPython v3.11.7 (/usr/bin/python3)\n\nThread 11 (idle): "
	       "\"MainThread\"\n    f (a.py:1)\n");
	add(2, "Process 12: python a.py\nPython v3.11.7 (/usr/bin/python3)\n\nThread 12 (idle): "
	       "\"MainThread\"\n    g (a.py:2)\n");
	add(5, "Thread 0x7F11 (idle): \"MainThread\"\n    f (a.py:1)\n");
	ck_assert_str_eq(
		print(),
		"1 of 4 workers (rank 2):\nThread (idle): \"MainThread\"\n    g (a.py:2)\n"
		"3 of 4 workers (ranks 0-1,5):\nThread (idle): \"MainThread\"\n    f (a.py:1)\n");
	buf_done(&out);
}

TEST(groups_of_one_size_are_in_the_order_of_their_ranks)
{
	add(3, "b");
	add(4, "a");
	ck_assert_str_eq(print(), "1 of 2 workers (rank 3):\nb\n1 of 2 workers (rank 4):\na\n");
	buf_done(&out);
}

TEST(no_stack_and_broken_ones_do_no_harm)
{
	ck_assert_str_eq(print(), "");
	add(0, "");
	add(1, "Thread ");
	add(2, "Thread 5");
	ck_assert_str_eq(print(),
			 "1 of 3 workers (rank 0):\n2 of 3 workers (ranks 1-2):\nThread \n");
	buf_done(&out);
}
