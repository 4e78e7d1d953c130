/* One port for two services. */
#include "unit.h"

#include <event2/event.h>
#include <unistd.h>

#include "base/fd.h"
#include "net/shared_port.h"

static struct event_base *base;
static int agent_fd = -1, store_fd = -1;

static void on_agent(void *arg UNUSED, int fd, const struct addr *peer UNUSED)
{
	agent_fd = fd;
}

static void on_store(void *arg UNUSED, int fd, const struct addr *peer UNUSED)
{
	store_fd = fd;
}

static int call(const struct addr *addr, const void *data, size_t len)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	ck_assert_int_eq(connect(fd, &addr->any, addr_len(addr)), 0);
	if (len)
		ck_assert_int_eq(fd_write_all(fd, data, len), 0);
	return fd;
}

static char first_byte(int fd)
{
	char byte;
	ck_assert_int_eq(read(fd, &byte, 1), 1);
	return byte;
}

TEST(the_first_byte_tells_agents_and_workers_apart_and_is_left_to_them)
{
	static const struct shared_port_handler handler = { on_agent, on_store };
	struct addr addr;
	addr_from_ip("127.0.0.1", 0, &addr);
	base = event_base_new();
	int listen_fd = addr_listen(&addr, NULL);
	ck_assert_int_eq(addr_of_socket(listen_fd, &addr, NULL), 0);
	struct shared_port *port = shared_port_new(base, listen_fd, &handler, NULL);
	AUTO(fd_close) int silent = call(&addr, "", 0);
	AUTO(fd_close) int agent = call(&addr, "MUSTER", 6);
	AUTO(fd_close) int worker = call(&addr, "\0\xce\xf7\x85\x3c", 5);
	while (agent_fd < 0 || store_fd < 0)
		event_base_loop(base, EVLOOP_ONCE);
	ck_assert_int_eq(first_byte(agent_fd), 'M');
	ck_assert_int_eq(first_byte(store_fd), 0);
	shared_port_free(port);
	char byte;
	ck_assert_int_eq(read(silent, &byte, 1), 0); /* who has said nothing goes with it */
	fd_close(&agent_fd);
	fd_close(&store_fd);
	event_base_free(base);
}
