#include "unit.h"

#include <errno.h>
#include <string.h>

#include "base/mem.h"
#include "core/fleet/hostfile.h"

static void is(const struct hostfile *list, size_t i, const char *name, uint32_t slots)
{
	ck_assert_uint_lt(i, list->count);
	ck_assert_str_eq(list->items[i].name, name);
	ck_assert_uint_eq(list->items[i].slots, slots);
}

TEST(a_list_of_hosts_may_say_slots)
{
	AUTO(hostfile_done) struct hostfile list = HOSTFILE_INIT;
	struct err err = ERR_INIT;
	ck_assert_int_eq(hostfile_add_list(&list, "a,b:4, user@c ,[::1]:2,fe80::1", &err), 0);
	ck_assert_uint_eq(list.count, 5);
	is(&list, 0, "a", 0);
	is(&list, 1, "b", 4);
	is(&list, 2, "user@c", 0);
	is(&list, 3, "::1", 2);
	is(&list, 4, "fe80::1", 0);
}

TEST(a_host_that_is_named_again_gets_more_slots)
{
	AUTO(hostfile_done) struct hostfile list = HOSTFILE_INIT;
	ck_assert_int_eq(hostfile_add_list(&list, "a,b:2,a,a,b", NULL), 0);
	ck_assert_uint_eq(list.count, 2);
	is(&list, 0, "a", 3);
	is(&list, 1, "b", 3);
}

TEST(a_host_file_is_read_as_mpirun_reads_it)
{
	static const char text[] = "# the nodes\n"
				   "node1 slots=4 max_slots=8\n"
				   "\n"
				   "\tnode2:2\r\n"
				   "node3 slots = 3 # here\n"
				   "node4";
	AUTO(hostfile_done) struct hostfile list = HOSTFILE_INIT;
	struct err err = ERR_INIT;
	ck_assert_msg(hostfile_add_text(&list, text, strlen(text), &err) == 0, "%s", err.msg);
	ck_assert_uint_eq(list.count, 4);
	is(&list, 0, "node1", 4);
	is(&list, 1, "node2", 2);
	is(&list, 2, "node3", 3);
	is(&list, 3, "node4", 0);
}

TEST(what_is_not_a_host_is_refused_with_its_line)
{
	static const struct {
		const char *text, *says;
	} cases[] = {
		{ "a\n-oProxyCommand=x\n", "line 2: '-oProxyCommand=x' is not the name" },
		{ "a;reboot\n", "line 1: 'a;reboot' is not the name" },
		{ "a slots=0\n", "line 1: '0' is not a number of slots" },
		{ "a slots=99999999999\n", "is not a number of slots" },
		{ "a cpus=4\n", "'cpus=4' is neither slots=N nor max_slots=N" },
		{ "[::1\n", "a bracket is not closed" },
		{ "a:x\n", "'x' is not a number of slots" },
		{ ":4\n", "a host has no name" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(hostfile_done) struct hostfile list = HOSTFILE_INIT;
		struct err err = ERR_INIT;
		int r = hostfile_add_text(&list, cases[i].text, strlen(cases[i].text), &err);
		ck_assert_int_eq(r, -EINVAL);
		ck_assert_msg(strstr(err.msg, cases[i].says), "%s", err.msg);
	}
	AUTO(hostfile_done) struct hostfile list = HOSTFILE_INIT;
	ck_assert_int_eq(hostfile_add_list(&list, "a,,b", NULL), -EINVAL);
	ck_assert_int_eq(hostfile_add_text(&list, "a\0b\n", 4, NULL), -EINVAL);
}

TEST(names_of_hosts_have_letters_digits_and_few_signs_and_a_limit)
{
	static const char *const good[] = { "AZ",   "az", "09", "a_b-c.d", "u@h", "[fe80::1%eth0]",
					    "[::1]" };
	static const char *const bad[] = { "a/b", "a b", "a;b", "[::1", "[::1]x", "h:0", "h:x" };
	char name[HOST_NAME_TEXT_MAX + 1];
	struct err err = ERR_INIT;
	for (size_t i = 0; i < ARRAY_LEN(good); i++) {
		AUTO(hostfile_done) struct hostfile list = HOSTFILE_INIT;
		ck_assert_msg(hostfile_add_list(&list, good[i], NULL) == 0, "%s", good[i]);
		ck_assert_uint_eq(list.items[0].slots, 0);
	}
	for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
		AUTO(hostfile_done) struct hostfile list = HOSTFILE_INIT;
		ck_assert_msg(hostfile_add_list(&list, bad[i], NULL) == -EINVAL, "%s", bad[i]);
	}
	for (size_t len = HOST_NAME_TEXT_MAX - 1; len <= HOST_NAME_TEXT_MAX; len++) {
		AUTO(hostfile_done) struct hostfile list = HOSTFILE_INIT;
		memset(name, 'h', len);
		name[len] = '\0';
		ck_assert_int_eq(hostfile_add_list(&list, name, &err),
				 len < HOST_NAME_TEXT_MAX ? 0 : -EINVAL);
	}
	AUTO_FREE char *limit = mem_printf("longer than %d bytes", HOST_NAME_TEXT_MAX - 1);
	ck_assert_ptr_nonnull(strstr(err.msg, limit));
	AUTO(hostfile_done) struct hostfile list = HOSTFILE_INIT;
	AUTO_FREE char *most = mem_printf("a:%d", HOST_SLOTS_MAX);
	AUTO_FREE char *more = mem_printf("b:%d", HOST_SLOTS_MAX + 1);
	ck_assert_int_eq(hostfile_add_list(&list, most, NULL), 0);
	ck_assert_int_eq(hostfile_add_list(&list, more, NULL), -EINVAL);
}
