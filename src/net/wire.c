#include "net/wire.h"

#include <errno.h>
#include <linux/sockios.h>
#include <linux/tcp.h>
#include <poll.h>
#include <sodium.h>
#include <stdio.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/random.h"
#include "net/greeting.h"

#define CHUNK ((size_t)256 << 10)
/* What is under way when a stream ends must drain through a slow wire, too. */
#define SEND_BUFFER (256 << 10)
#define CONNECT_NS (500 * NS_PER_MS)   /* to each address but the last */
#define GREETING_NS (1000 * NS_PER_MS) /* of a caller */
#define SLICE_NS (50 * NS_PER_MS)      /* the best of these counts */
#define STRANGERS_MAX 16
#define LISTENER 3
#define GREETING_CHUNK 4096

/* ---- bytes ---- */

static int send_all(int fd, const void *data, size_t len, uint64_t deadline_ns)
{
	for (const unsigned char *at = data; len > 0;) {
		ssize_t n = send(fd, at, len, MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		if (n < 0 && fd_wait(fd, POLLOUT, deadline_ns) < 0)
			return -ETIMEDOUT;
		at += MAX(n, 0);
		len -= (size_t)MAX(n, 0);
	}
	return 0;
}

/* ---- greeting ---- */

static int receive_some(int fd, struct buf *in, uint64_t deadline_ns)
{
	int r = fd_wait(fd, POLLIN, deadline_ns);
	if (r < 0)
		return r;
	ssize_t n = recv(fd, buf_reserve(in, GREETING_CHUNK), GREETING_CHUNK, MSG_DONTWAIT);
	if (n == 0)
		return -ECONNRESET;
	if (n < 0)
		return errno == EAGAIN || errno == EINTR ? 0 : -errno;
	buf_commit(in, (size_t)n);
	return 0;
}

/* Until both know each other. Nothing of the stream comes before that. */
static int talk(int fd, struct greeting *greeting, struct buf *out, uint64_t deadline_ns)
{
	AUTO(buf_done) struct buf in = BUF_INIT;
	for (;;) {
		if (greeting->accepting && greeting->state == GREETING_KNOWN)
			greeting_welcome(greeting, out);
		int r = send_all(fd, buf_data(out), buf_len(out), deadline_ns);
		if (r < 0 || greeting->state >= GREETING_KNOWN)
			return r;
		buf_clear(out);
		r = receive_some(fd, &in, deadline_ns);
		if (r < 0)
			return r;
		buf_consume(&in, greeting_feed(greeting, buf_data(&in), buf_len(&in), out));
	}
}

/* As links do it, in the name of the pair: who does not know that is a stranger. */
static int greet(int fd, const struct wire_spec *spec, uint64_t deadline_ns, struct err *err)
{
	char name[FRAME_RUN_ID_MAX];
	const struct link_self self = { .run_id = name,
					.token = spec->has_token ? &spec->token : NULL };
	AUTO(buf_done) struct buf out = BUF_INIT;
	struct greeting *greeting = NEW(struct greeting);
	snprintf(name, sizeof(name), "wire %u %016llx", spec->serial,
		 (unsigned long long)spec->secret);
	if (spec->calls)
		greeting_connect(greeting, &self, ROLE_AGENT, &out);
	else
		greeting_accept(greeting, &self);
	int r = talk(fd, greeting, &out, deadline_ns);
	if (r < 0)
		err_set(err, -r, "%s", strerror(-r));
	else if (greeting->state == GREETING_FAILED)
		r = err_set(err, EACCES, "%s", greeting->why);
	greeting_free(greeting);
	return r;
}

/* ---- streams ---- */

/* The best stretch of a stream so far. */
struct pace_meter {
	uint64_t began_ns, slice_ns; /* the beginning of all, and of this slice */
	uint64_t slice_bytes;	     /* that were through when it began */
	double best;		     /* bytes a second */
};

static void meter_begin(struct pace_meter *meter)
{
	*meter = (struct pace_meter){ .began_ns = clock_now_ns() };
	meter->slice_ns = meter->began_ns;
}

static void meter_add(struct pace_meter *meter, uint64_t bytes, uint64_t least_ns)
{
	uint64_t now_ns = clock_now_ns();
	if (now_ns < ns_add(meter->slice_ns, MAX(least_ns, (uint64_t)1)))
		return;
	double pace = (double)(bytes - meter->slice_bytes) * (double)NS_PER_S /
		      (double)(now_ns - meter->slice_ns);
	meter->best = MAX(meter->best, pace);
	meter->slice_ns = now_ns;
	meter->slice_bytes = bytes;
}

/* Where no whole slice brought anything, the stream as a whole counts. */
static double meter_end(struct pace_meter *meter, uint64_t bytes)
{
	if (meter->best <= 0) {
		meter->slice_ns = meter->began_ns;
		meter->slice_bytes = 0;
		meter_add(meter, bytes, 0);
	}
	return meter->best;
}

static unsigned char chunk[CHUNK];

/* Bytes that the other host has confirmed. */
static uint64_t arrived(int fd, uint64_t sent)
{
	int under_way = 0;
	ioctl(fd, SIOCOUTQ, &under_way);
	return sent - MIN(sent, (uint64_t)MAX(under_way, 0));
}

/* Sends for so long, or so many bytes, and says how fast they arrived. On a busy host the other
 * side may not have run yet when the time is over: that says nothing about the wire, so the stream
 * goes on until something has arrived. */
static double stream_out(int fd, uint16_t ms, uint64_t deadline_ns)
{
	struct pace_meter meter;
	uint64_t sent = 0, end_ns = ns_add(clock_now_ns(), ms * NS_PER_MS);
	end_ns = MIN(end_ns, deadline_ns);
	meter_begin(&meter);
	for (uint64_t now_ns; (now_ns = clock_now_ns()) < end_ns ||
			      (now_ns < deadline_ns && arrived(fd, sent) == 0);) {
		if (sent < WIRE_BYTES_MAX) {
			ssize_t n = send(fd, chunk, CHUNK, MSG_NOSIGNAL | MSG_DONTWAIT);
			if (n < 0 && errno != EAGAIN && errno != EINTR)
				break;
			sent += (uint64_t)MAX(n, 0);
			if (n < 0)
				fd_wait(fd, POLLOUT,
					MIN(now_ns < end_ns ? end_ns : deadline_ns,
					    now_ns + SLICE_NS));
		} else if (arrived(fd, sent) == sent) {
			break;
		}
		meter_add(&meter, arrived(fd, sent), SLICE_NS);
	}
	return meter_end(&meter, arrived(fd, sent));
}

/* Reads up to the end of the stream. -1: nothing came. */
static double stream_in(int fd, uint64_t deadline_ns)
{
	struct pace_meter meter;
	uint64_t got = 0;
	if (fd_wait(fd, POLLIN, deadline_ns) < 0)
		return -1;
	meter_begin(&meter);
	while (got <= WIRE_BYTES_MAX + CHUNK && fd_wait(fd, POLLIN, deadline_ns) == 0) {
		ssize_t n = recv(fd, chunk, CHUNK, MSG_DONTWAIT);
		if (n == 0 || (n < 0 && errno != EAGAIN && errno != EINTR))
			break;
		got += (uint64_t)MAX(n, 0);
		meter_add(&meter, got, SLICE_NS);
	}
	return got ? meter_end(&meter, got) : -1;
}

/* ---- calling ---- */

static void prepare(int fd)
{
	static const int on = 1, size = SEND_BUFFER;
	static const struct linger at_once = { .l_onoff = 1, .l_linger = 0 };
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
	setsockopt(fd, SOL_SOCKET, SO_SNDBUF, &size, sizeof(size));
	/* What is left of a stream must not go on after us. */
	setsockopt(fd, SOL_SOCKET, SO_LINGER, &at_once, sizeof(at_once));
}

static int connect_to(const struct addr *addr, uint64_t deadline_ns)
{
	AUTO(fd_close)
	int fd = socket(addr->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int error = 0;
	socklen_t len = sizeof(error);
	if (fd < 0)
		return -errno;
	prepare(fd);
	if (connect(fd, &addr->any, addr_len(addr)) < 0 && errno != EINPROGRESS)
		return -errno;
	int r = fd_wait(fd, POLLOUT, deadline_ns);
	if (r < 0)
		return r;
	getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &len);
	return error ? -error : fd_take(&fd);
}

static int connect_any(const struct wire_spec *spec, struct wire_found *found)
{
	char text[ADDR_TEXT_MAX];
	int fd = -EINVAL;
	for (size_t i = 0; i < spec->addr_count && fd < 0; i++) {
		bool last = i + 1 == spec->addr_count;
		uint64_t deadline_ns = ns_add(clock_now_ns(), (last ? 2 : 1) * CONNECT_NS);
		fd = connect_to(&spec->addrs[i], MIN(deadline_ns, spec->deadline_ns));
		addr_format(&spec->addrs[i], text);
		if (fd < 0)
			snprintf(found->why, sizeof(found->why), "no connection to %s: %s", text,
				 strerror(-fd));
	}
	return fd;
}

/* The kernel's shortest one, from the handshake on: no process was in its way. 0: it does not tell.
 */
static uint64_t round_trip_ns(int fd)
{
	struct tcp_info info = { .tcpi_min_rtt = UINT32_MAX };
	socklen_t len = sizeof(info);
	getsockopt(fd, IPPROTO_TCP, TCP_INFO, &info, &len);
	return info.tcpi_min_rtt == UINT32_MAX ? 0 : info.tcpi_min_rtt * NS_PER_US;
}

static int measure(int fd, const struct wire_spec *spec, struct wire_found *found, struct err *err)
{
	/* The other side is a child that has to start first. */
	int r = greet(fd, spec, spec->deadline_ns, err);
	if (r < 0)
		return r;
	found->latency_ns = round_trip_ns(fd);
	double out = stream_out(fd, spec->ms, spec->deadline_ns);
	shutdown(fd, SHUT_WR);
	/* Through a slow wire no answer comes in time: then the one direction has told enough. */
	double in = stream_in(fd, spec->deadline_ns);
	found->known = true;
	found->bandwidth = (uint64_t)MAX(in < 0 ? out : MIN(in, out), 1);
	return 0;
}

void wire_call(const struct wire_spec *spec, struct wire_found *ret_found)
{
	*ret_found = (struct wire_found){ .known = false };
	random_bytes(chunk, sizeof(chunk));
	AUTO(fd_close) int fd = connect_any(spec, ret_found);
	if (fd < 0) {
		/* Whoever refuses can be reached: the other node may have just ended. */
		ret_found->known = fd != -ECONNREFUSED;
		return;
	}
	struct err err = ERR_INIT;
	if (measure(fd, spec, ret_found, &err) < 0)
		snprintf(ret_found->why, sizeof(ret_found->why), "the other node: %.*s",
			 WIRE_TEXT_MAX - 20, err.msg);
}

/* ---- serving ---- */

int wire_listen(uint16_t *ret_port, struct err *err)
{
	static const struct addr any6 = { .v6 = { .sin6_family = AF_INET6 } };
	static const struct addr any4 = { .v4 = { .sin_family = AF_INET } };
	struct addr bound;
	int fd = addr_try_listen(&any6);
	if (fd < 0)
		fd = addr_listen(&any4, err);
	if (fd < 0)
		return fd;
	int r = addr_of_socket(fd, &bound, err);
	if (r < 0) {
		fd_close(&fd);
		return r;
	}
	*ret_port = addr_port(&bound);
	return fd;
}

static void serve(int fd, const struct wire_spec *spec)
{
	stream_in(fd, spec->deadline_ns);
	stream_out(fd, spec->ms, spec->deadline_ns);
	shutdown(fd, SHUT_WR);
	fd_wait(fd, POLLIN, spec->deadline_ns); /* the caller has all, or hangs up */
}

int wire_serve(int listener, const struct wire_spec *spec, struct err *err)
{
	for (int strangers = 0; strangers < STRANGERS_MAX; strangers++) {
		if (fd_wait(listener, POLLIN, spec->deadline_ns) < 0)
			return err_set(err, ETIMEDOUT, "nobody has called");
		AUTO(fd_close) int fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
		if (fd < 0)
			continue;
		prepare(fd);
		uint64_t greeted_ns = MIN(ns_add(clock_now_ns(), GREETING_NS), spec->deadline_ns);
		if (greet(fd, spec, greeted_ns, NULL) < 0)
			continue;
		serve(fd, spec);
		return 0;
	}
	return err_set(err, EACCES, "only strangers have called");
}

int wire_main(void)
{
	struct wire_spec spec;
	struct wire_found found = { .known = false };
	struct err err = ERR_INIT;
	size_t len = 0;
	for (ssize_t n; len < sizeof(spec); len += (size_t)n)
		if ((n = read(STDIN_FILENO, (char *)&spec + len, sizeof(spec) - len)) <= 0)
			return 1;
	if (sodium_init() < 0 || spec.addr_count > MSG_PAIR_ADDRS_MAX)
		return 1;
	if (spec.calls)
		wire_call(&spec, &found);
	else if (wire_serve(LISTENER, &spec, &err) < 0)
		snprintf(found.why, sizeof(found.why), "%.*s", WIRE_TEXT_MAX - 1, err.msg);
	return fd_write_all(STDOUT_FILENO, &found, sizeof(found)) < 0;
}
