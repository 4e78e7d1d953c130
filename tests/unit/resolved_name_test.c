/* A place where a coordinator may be: looked up, and listened on if it is here. */
#include "unit.h"

#include <errno.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "nodes/resolved_name.h"

static struct event_base *base;
static struct resolved_name resolved;
static bool answered;

static void on_done(void *arg UNUSED, struct resolved_name *which UNUSED)
{
	answered = true;
}

static void begin(const char *text)
{
	struct addr_name name;
	ck_assert_int_eq(addr_name_parse(text, 0, &name, NULL), 0);
	base = event_base_new();
	answered = false;
	resolved_name_init(&resolved, &name, base, on_done, NULL);
}

static void end(void)
{
	resolved_name_done(&resolved);
	event_base_free(base);
}

static void look_up(void)
{
	resolved_name_look_up(&resolved);
	while (!answered)
		event_base_loop(base, EVLOOP_ONCE);
}

static struct addr listened_on(int fd)
{
	struct addr addr;
	ck_assert_int_ge(fd, 0);
	ck_assert_int_eq(addr_of_socket(fd, &addr, NULL), 0);
	fd_close(&fd);
	return addr;
}

TEST(an_address_of_this_host_is_listened_on_and_only_there)
{
	begin("127.0.0.1:0");
	ck_assert(resolved.numeric);
	struct addr addr = listened_on(resolved_name_listen(&resolved, false));
	ck_assert(addr_is_loopback(&addr));
	end();
}

TEST(an_address_of_another_host_is_not_ours_unless_it_must_be)
{
	begin("192.0.2.1:0");
	ck_assert_int_eq(resolved_name_listen(&resolved, false), -EADDRNOTAVAIL);
	struct addr addr = listened_on(resolved_name_listen(&resolved, true));
	struct addr any4, any6;
	addr_from_ip("0.0.0.0", 0, &any4);
	addr_from_ip("::", 0, &any6);
	ck_assert(addr_same_host(&addr, &any4) || addr_same_host(&addr, &any6));
	end();
}

TEST(a_port_that_another_process_has_is_not_ours)
{
	begin("127.0.0.1:0");
	int fd = resolved_name_listen(&resolved, false);
	struct addr addr;
	ck_assert_int_eq(addr_of_socket(fd, &addr, NULL), 0);
	resolved.name.port = addr_port(&addr);
	addr_set_port(&resolved.addrs[0], addr_port(&addr));
	ck_assert_int_eq(resolved_name_listen(&resolved, true), -EADDRINUSE);
	fd_close(&fd);
	end();
}

TEST(a_name_is_looked_up_without_waiting_and_again_when_it_is_forgotten)
{
	begin("localhost:7");
	ck_assert(!resolved.numeric);
	ck_assert_uint_eq(resolved.count, 0);
	look_up();
	ck_assert_uint_ge(resolved.count, 1);
	ck_assert(addr_is_loopback(&resolved.addrs[0]));
	ck_assert_uint_eq(addr_port(&resolved.addrs[0]), 7);
	ck_assert_str_eq(resolved.text, "localhost:7");
	resolved_name_forget(&resolved);
	ck_assert_uint_ge(resolved.count, 1); /* still fresh */
	resolved.asked_ns = 1;
	resolved_name_forget(&resolved);
	ck_assert_uint_eq(resolved.count, 0);
	answered = false;
	look_up();
	ck_assert_uint_ge(resolved.count, 1);
	end();
}

/* No label of a name is that long: no resolver needs to be asked. */
#define NO_NAME "a123456789b123456789c123456789d123456789e123456789f123456789g123456789"

TEST(an_unknown_name_says_so)
{
	begin(NO_NAME ":7");
	look_up();
	ck_assert_uint_eq(resolved.count, 0);
	ck_assert(str_starts(resolved.trouble, "look-up of '" NO_NAME "': "));
	ck_assert_int_eq(resolved_name_listen(&resolved, false), -EADDRNOTAVAIL);
	end();
}
