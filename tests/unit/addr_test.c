#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "net/addr.h"

TEST(a_host_and_port_are_read_in_all_their_forms)
{
	static const struct {
		const char *text, *host;
		int port; /* -1: refused */
	} cases[] = {
		{ "node1:29500", "node1", 29500 },
		{ "node1", "node1", 7 },
		{ ":80", "", 80 },
		{ "1.2.3.4:0", "1.2.3.4", 0 },
		{ "[::1]:80", "::1", 80 },
		{ "[::1]", "::1", 7 },
		{ "fe80::1", "fe80::1", 7 },
		{ "::", "::", 7 },
		{ "", "", 7 },
		{ "node1:", "", -1 },
		{ "node1:65536", "", -1 },
		{ "node1:x", "", -1 },
		{ "[::1", "", -1 },
		{ "[::1]x", "", -1 },
		{ "node1:-1", "", -1 },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct addr_name name = { .port = 1 };
		struct err err;
		int r = addr_name_parse(cases[i].text, 7, &name, &err);
		ck_assert_msg((r < 0) == (cases[i].port < 0), "'%s' gave %d", cases[i].text, r);
		if (r < 0)
			continue;
		ck_assert_str_eq(name.host, cases[i].host);
		ck_assert_int_eq(name.port, cases[i].port);
	}
	char longest[400];
	memset(longest, 'x', sizeof(longest));
	longest[sizeof(longest) - 1] = '\0';
	ck_assert_int_eq(addr_name_parse(longest, 1, &(struct addr_name){ .port = 0 }, NULL),
			 -EINVAL);
}

TEST(an_ip_stays_an_ip_and_mapped_ipv4_is_shown_as_ipv4)
{
	static const char *const cases[][2] = {
		{ "127.0.0.1", "127.0.0.1:80" },
		{ "::1", "[::1]:80" },
		{ "::ffff:10.1.2.3", "10.1.2.3:80" },
		{ "2001:db8::1", "[2001:db8::1]:80" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct addr addr;
		char text[ADDR_TEXT_MAX];
		ck_assert_int_eq(addr_from_ip(cases[i][0], 80, &addr), 0);
		addr_format(&addr, text);
		ck_assert_str_eq(text, cases[i][1]);
	}
	struct addr a, b;
	ck_assert_int_eq(addr_from_ip("localhost", 80, &a), -EINVAL);
	addr_from_ip("::ffff:127.0.0.1", 1, &a);
	addr_from_ip("127.0.0.1", 2, &b);
	ck_assert(addr_same_host(&a, &b));
	ck_assert(addr_is_loopback(&a));
	addr_from_ip("::1", 2, &b);
	ck_assert(!addr_same_host(&a, &b));
	ck_assert(addr_is_loopback(&b));
	addr_from_ip("0.0.0.0", 2, &b);
	ck_assert(!addr_is_loopback(&b));
}

TEST(a_taken_port_names_this_process)
{
	struct addr addr;
	addr_from_ip("127.0.0.1", 0, &addr);
	AUTO(fd_close) int fd = addr_listen(&addr, NULL);
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(addr_of_socket(fd, &addr, NULL), 0);
	struct err err;
	ck_assert_int_eq(addr_listen(&addr, &err), -EADDRINUSE);
	char expected[64];
	snprintf(expected, sizeof(expected), "(pid %d)", getpid());
	ck_assert_msg(strstr(err.msg, expected), "%s", err.msg);
	char holder[ADDR_HOLDER_MAX];
	addr_port_holder(1, holder);
	ck_assert_str_eq(holder, "an unknown process");
}

TEST(names_are_looked_up_with_a_deadline_and_ips_are_not)
{
	struct addr addrs[4];
	struct err err;
	struct addr_name name = { .host = "localhost", .port = 80 };
	uint64_t soon_ns = clock_now_ns() + 20 * NS_PER_S;
	ck_assert_int_ge(addr_resolve(&name, soon_ns, addrs, 4, &err), 1);
	ck_assert(addr_is_loopback(&addrs[0]));
	ck_assert_int_eq(addr_port(&addrs[0]), 80);
	/* It does not wait, but takes an answer that is there already. */
	int r = addr_resolve(&name, 0, addrs, 4, &err);
	ck_assert(r == -ETIMEDOUT || r >= 1);
	strcpy(name.host, "10.9.8.7");
	ck_assert_int_eq(addr_resolve(&name, 0, addrs, 4, &err), 1);
}

TEST(the_address_towards_loopback_is_loopback)
{
	struct addr peer, mine;
	addr_from_ip("127.0.0.1", 29500, &peer);
	ck_assert_int_eq(addr_towards(&peer, &mine, NULL), 0);
	ck_assert(addr_same_host(&peer, &mine));
	struct addr all[16];
	int count = addr_of_interfaces(all, ARRAY_LEN(all), NULL);
	ck_assert_int_ge(count, 0);
	for (int i = 0; i < count; i++)
		ck_assert(!addr_is_loopback(&all[i]));
}
