/* Load on a c10d store, from one thread in a closed loop: every connection has one operation under
 * way.
 *
 *   store_load HOST PORT add|set|get CONNECTIONS BYTES SECONDS   operations/s and latencies
 *   store_load HOST PORT wake CONNECTIONS                        one SET, that many waiters
 *   store_load HOST PORT connect CONNECTIONS           simultaneous connects with handshake
 *   store_load HOST PORT hold CONNECTIONS              connects, says "ready", waits for stdin
 *
 * A set is SET and PING in one segment, because SET has no reply. Prints one line of "name value"
 * pairs.
 */
#include <err.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "net/addr.h"
#include "proto/c10d.h"

#define SAMPLES_MAX ((size_t)4 << 20)
#define RECEIVE_SIZE ((size_t)256 << 10)

struct client {
	int fd;
	size_t sent; /* of the request */
	size_t got;  /* of the reply */
	uint64_t begun_ns;
};

static struct addr server;
static int epoll_fd;
static struct client *clients;
static size_t client_count;
static struct buf request = { .mem = NULL };
static size_t reply_size;
static uint32_t *samples_us10; /* tenths of microseconds */
static size_t sample_count;

static void start_connect(struct client *client)
{
	client->fd = socket(server.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (client->fd < 0)
		err(1, "socket");
	setsockopt(client->fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	if (connect(client->fd, &server.any, addr_len(&server)) < 0 && errno != EINPROGRESS)
		err(1, "connect");
	struct epoll_event event = { .events = EPOLLIN | EPOLLOUT, .data.ptr = client };
	epoll_ctl(epoll_fd, EPOLL_CTL_ADD, client->fd, &event);
}

static void want(struct client *client, bool writable)
{
	struct epoll_event event = { .events = EPOLLIN | (writable ? EPOLLOUT : 0),
				     .data.ptr = client };
	epoll_ctl(epoll_fd, EPOLL_CTL_MOD, client->fd, &event);
}

static void send_more(struct client *client)
{
	ssize_t n = send(client->fd, buf_data(&request) + client->sent,
			 buf_len(&request) - client->sent, MSG_NOSIGNAL);
	if (n < 0 && errno != EAGAIN && errno != ENOTCONN)
		err(1, "send");
	if (n > 0)
		client->sent += (size_t)n;
}

/* True when the reply is whole. */
static bool receive_more(struct client *client)
{
	static unsigned char sink[RECEIVE_SIZE];
	ssize_t n = recv(client->fd, sink, sizeof(sink), 0);
	if (n == 0)
		errx(1, "the server closed a connection");
	if (n < 0 && errno != EAGAIN)
		err(1, "recv");
	client->got += n > 0 ? (size_t)n : 0;
	if (client->got > reply_size)
		errx(1, "more reply than expected");
	return client->got == reply_size;
}

static void begin(struct client *client)
{
	client->sent = client->got = 0;
	client->begun_ns = clock_now_ns();
	send_more(client);
	if (client->sent < buf_len(&request))
		want(client, true);
}

static void finish(struct client *client)
{
	uint64_t took_ns = clock_now_ns() - client->begun_ns;
	if (sample_count < SAMPLES_MAX)
		samples_us10[sample_count++] = (uint32_t)(took_ns / 100);
}

/* Every client does the request once, all at the same time. */
static void all_once(void)
{
	size_t left = client_count;
	for (size_t i = 0; i < client_count; i++) {
		clients[i].sent = clients[i].got = 0;
		want(&clients[i], true);
	}
	while (left > 0) {
		struct epoll_event events[256];
		int n = epoll_wait(epoll_fd, events, 256, -1);
		for (int i = 0; i < n; i++) {
			struct client *client = events[i].data.ptr;
			if (client->sent < buf_len(&request)) {
				send_more(client);
				if (client->sent == buf_len(&request))
					want(client, false);
			}
			if ((events[i].events & EPOLLIN) && receive_more(client))
				left--;
		}
	}
}

static void ask(const struct c10d_message *message)
{
	c10d_put_request(&request, message);
}

static void new_request(size_t reply_bytes)
{
	buf_clear(&request);
	reply_size = reply_bytes;
}

static void open_clients(size_t count)
{
	client_count = count;
	clients = NEW_ARRAY(struct client, count);
	new_request(4);
	ask(&(struct c10d_message){ .query = C10D_VALIDATE, .number = C10D_MAGIC });
	ask(&(struct c10d_message){ .query = C10D_PING, .number = 1 });
	for (size_t i = 0; i < count; i++)
		start_connect(&clients[i]);
	all_once();
}

static int by_value(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

static void closed_loop(uint64_t seconds_ns)
{
	uint64_t begun_ns = clock_now_ns(), end_ns = begun_ns + seconds_ns;
	for (size_t i = 0; i < client_count; i++)
		begin(&clients[i]);
	size_t running = client_count;
	while (running > 0) {
		struct epoll_event events[256];
		int n = epoll_wait(epoll_fd, events, 256, -1);
		for (int i = 0; i < n; i++) {
			struct client *client = events[i].data.ptr;
			if (client->sent < buf_len(&request)) {
				send_more(client);
				if (client->sent == buf_len(&request))
					want(client, false);
			}
			if (!(events[i].events & EPOLLIN) || !receive_more(client))
				continue;
			finish(client);
			if (clock_now_ns() < end_ns)
				begin(client);
			else
				running--;
		}
	}
	uint64_t took_ns = clock_now_ns() - begun_ns;
	qsort(samples_us10, sample_count, sizeof(*samples_us10), by_value);
	printf("ops %zu seconds %.6f p50_us %.1f p99_us %.1f\n", sample_count,
	       (double)took_ns / 1e9, samples_us10[sample_count / 2] / 10.0,
	       samples_us10[sample_count * 99 / 100] / 10.0);
}

static void set_value(size_t bytes)
{
	AUTO_FREE char *value = mem_alloc(bytes + 1);
	ask(&(struct c10d_message){ .query = C10D_SET,
				    .string = { bytes_str("/bench"), bytes_of(value, bytes) } });
	ask(&(struct c10d_message){ .query = C10D_PING, .number = 1 });
}

static void prepare(const char *what, size_t bytes)
{
	new_request(4);
	set_value(bytes);
	if (str_eq(what, "set"))
		return;
	all_once();
	new_request(8);
	if (str_eq(what, "add")) {
		ask(&(struct c10d_message){
			.query = C10D_ADD, .string[0] = bytes_str("/count"), .number = 1 });
	} else {
		reply_size = 8 + bytes;
		ask(&(struct c10d_message){ .query = C10D_GET, .string[0] = bytes_str("/bench") });
	}
}

/* All wait for one key (a PING behind each WAIT tells that it is registered), then one more sets
 * it. */
static void wake(void)
{
	AUTO(buf_done) struct buf list = BUF_INIT;
	c10d_put_string(&list, bytes_str("/wake"));
	new_request(4);
	ask(&(struct c10d_message){ .query = C10D_WAIT,
				    .count = 1,
				    .list = bytes_of(buf_data(&list), buf_len(&list)) });
	ask(&(struct c10d_message){ .query = C10D_PING, .number = 1 });
	client_count--;
	all_once();

	new_request(1);
	struct client *setter = &clients[client_count];
	AUTO(buf_done) struct buf set = BUF_INIT;
	c10d_put_request(&set, &(struct c10d_message){ .query = C10D_SET,
						       .string[0] = bytes_str("/wake") });
	uint64_t begun_ns = clock_now_ns();
	if (send(setter->fd, buf_data(&set), buf_len(&set), 0) != (ssize_t)buf_len(&set))
		err(1, "send");
	for (size_t i = 0; i < client_count; i++)
		clients[i].got = 0;
	for (size_t left = client_count; left > 0;) {
		struct epoll_event events[256];
		int n = epoll_wait(epoll_fd, events, 256, -1);
		for (int i = 0; i < n; i++)
			left -= receive_more(events[i].data.ptr);
	}
	printf("ms %.3f\n", (double)(clock_now_ns() - begun_ns) / 1e6);
}

static uint64_t number(const char *text)
{
	uint64_t value;
	if (str_to_u64(text, &value) < 0)
		errx(2, "'%s' is not a number", text);
	return value;
}

int main(int argc, char **argv)
{
	if (argc < 5 || addr_from_ip(argv[1], (uint16_t)number(argv[2]), &server) < 0)
		errx(2, "usage: store_load HOST PORT MODE CONNECTIONS [BYTES SECONDS]");
	const char *mode = argv[3];
	size_t count = number(argv[4]);
	fd_limit_raise();
	epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	samples_us10 = NEW_ARRAY(uint32_t, SAMPLES_MAX);

	uint64_t begun_ns = clock_now_ns();
	open_clients(str_eq(mode, "wake") ? count + 1 : count);
	if (str_eq(mode, "connect")) {
		printf("ms %.3f\n", (double)(clock_now_ns() - begun_ns) / 1e6);
	} else if (str_eq(mode, "wake")) {
		wake();
	} else if (str_eq(mode, "hold")) {
		puts("ready");
		fflush(stdout);
		while (getchar() != EOF)
			;
	} else if (argc == 7) {
		double seconds;
		if (str_to_double(argv[6], &seconds) < 0)
			errx(2, "'%s' is not a time", argv[6]);
		prepare(mode, number(argv[5]));
		closed_loop((uint64_t)(seconds * 1e9));
	} else {
		errx(2, "unknown mode '%s'", mode);
	}
	return 0;
}
