#include "watch/flight_fetch.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "proto/flight.h"

#define AT_ONCE 64
#define CHUNK 65536
#define GROUPS_MAX ((size_t)16 << 20) /* bytes of a list of process groups */

static const char request[] = "POST /handler/fr_trace_json HTTP/1.1\r\nHost: worker\r\n"
			      "Content-Length: 0\r\nConnection: close\r\n\r\n";

struct call {
	struct flight_answer *answer;
	int fd; /* -1: over */
	size_t sent;
	struct buf reply;
};

static void refuse(struct call *call, const char *why)
{
	snprintf(call->answer->why, sizeof(call->answer->why), "%s", why);
	str_make_printable(call->answer->why);
	fd_close(&call->fd);
}

static char *file_of(const char *dir, uint32_t rank, const char *suffix)
{
	return mem_printf("%s/f%u%s", dir, rank, suffix);
}

/* ---- dumps ---- */

/* When a file was written, by the wall clock; 0: it is not there, or older than the run. */
static uint64_t written_ns(const struct flight_source *source, const char *path)
{
	struct stat info;
	if (stat(path, &info) < 0)
		return 0;
	uint64_t ns = (uint64_t)info.st_mtim.tv_sec * NS_PER_S + (uint64_t)info.st_mtim.tv_nsec;
	return ns >= source->since_ns ? ns : 0;
}

bool flight_died(const struct flight_source *source, uint32_t rank)
{
	AUTO_FREE char *path = file_of(source->dir, rank, ".died");
	return written_ns(source, path);
}

/* What the worker was in when it died: see python/muster/_flight.py. */
static bool died_in_collective(const struct flight_source *source, uint32_t rank)
{
	AUTO_FREE char *path = file_of(source->dir, rank, ".died");
	AUTO(buf_done) struct buf text = BUF_INIT;
	return written_ns(source, path) && file_read(path, FLIGHT_WHY_MAX, &text, NULL) >= 0 &&
	       str_eq(buf_str(&text), "collective");
}

static void add_groups(struct flight_answer *answer, const char *dir);
static void add_noted(struct flight_answer *answer, const char *dir);

/* The record that a dead worker left; false: it left none. */
static bool read_dump(const struct flight_source *source, struct flight_answer *answer)
{
	if (!source->dumps)
		return false;
	AUTO_FREE char *path = mem_printf("%s%u", source->dumps, answer->rank);
	AUTO(buf_done) struct buf data = BUF_INIT;
	uint64_t ns = written_ns(source, path);
	if (!ns || file_read(path, FLIGHT_ANSWER_MAX, &data, NULL) < 0 ||
	    flight_read_pickle(buf_data(&data), buf_len(&data), &answer->record, NULL) < 0)
		return false;
	if (died_in_collective(source, answer->rank))
		record_reopen_last(&answer->record);
	add_noted(answer, source->dir);
	add_groups(answer, source->dir);
	answer->given = true;
	answer->fetched_ns = ns;
	return true;
}

/* ---- calls ---- */

/* The worker's own words, if it left any. */
static void refuse_unserved(struct call *call, const char *dir)
{
	AUTO_FREE char *path = file_of(dir, call->answer->rank, ".why");
	AUTO(buf_done) struct buf why = BUF_INIT;
	if (file_read(path, FLIGHT_WHY_MAX, &why, NULL) >= 0 && buf_len(&why))
		refuse(call, buf_str(&why));
	else
		refuse(call, "it has not imported torch.distributed, or its Python does not read "
			     "PYTHONPATH");
}

static void call_start(struct call *call, struct flight_answer *answer,
		       const struct flight_source *source)
{
	AUTO_FREE char *path = file_of(source->dir, answer->rank, "");
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	*call = (struct call){ .answer = answer, .fd = -1, .reply = BUF_INIT };
	if (strlen(path) >= sizeof(addr.sun_path)) {
		refuse(call, "the path of its socket is too long");
		return;
	}
	memcpy(addr.sun_path, path, strlen(path) + 1);
	call->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (call->fd >= 0 && connect(call->fd, (struct sockaddr *)&addr, sizeof(addr)) == 0)
		return;
	int error = errno;
	if (call->fd >= 0 && (error == ENOENT || error == ECONNREFUSED) &&
	    read_dump(source, answer))
		fd_close(&call->fd);
	else if (error == ENOENT)
		refuse_unserved(call, source->dir);
	else
		refuse(call, error == ECONNREFUSED ? "its process has ended" : strerror(error));
}

/* ---- the answer ---- */

static void add_groups(struct flight_answer *answer, const char *dir)
{
	AUTO_FREE char *path = file_of(dir, answer->rank, ".groups");
	AUTO(buf_done) struct buf text = BUF_INIT;
	if (file_read(path, GROUPS_MAX, &text, NULL) >= 0)
		flight_read_groups(buf_str(&text), buf_len(&text), &answer->record, NULL);
}

/* What gloo does not record. */
static void add_noted(struct flight_answer *answer, const char *dir)
{
	AUTO_FREE char *path = file_of(dir, answer->rank, ".noted");
	AUTO(buf_done) struct buf text = BUF_INIT;
	if (file_read(path, GROUPS_MAX, &text, NULL) >= 0 && *buf_str(&text))
		flight_read_more(buf_str(&text), strlen(buf_str(&text)), &answer->record, NULL);
}

static void call_finish(struct call *call, const struct flight_source *source)
{
	struct flight_answer *answer = call->answer;
	const char *text = buf_str(&call->reply);
	const char *body = strstr(text, "\r\n\r\n");
	struct err err = ERR_INIT;
	fd_close(&call->fd);
	if (!str_starts(text, "HTTP/1.1 200 ") || !body) {
		refuse(call, "PyTorch's worker server gives no flight record");
		return;
	}
	body += strlen("\r\n\r\n");
	size_t len = buf_len(&call->reply) - (size_t)(body - text);
	if (flight_read_json(body, len, &answer->record, &err) < 0) {
		refuse(call, err.msg);
		return;
	}
	if (died_in_collective(source, answer->rank)) /* it is about to end */
		record_reopen_last(&answer->record);
	add_noted(answer, source->dir);
	add_groups(answer, source->dir);
	answer->given = true;
	answer->fetched_ns = clock_wall_ns();
}

static void call_send(struct call *call)
{
	ssize_t n =
		send(call->fd, request + call->sent, strlen(request) - call->sent, MSG_NOSIGNAL);
	if (n > 0)
		call->sent += (size_t)n;
	else if (n < 0 && errno != EAGAIN && errno != EINTR)
		refuse(call, strerror(errno));
}

static void call_receive(struct call *call, const struct flight_source *source)
{
	ssize_t n = fd_read_some(call->fd, CHUNK, &call->reply);
	if (n == 0)
		call_finish(call, source);
	else if (n < 0 && n != -EAGAIN)
		refuse(call, strerror((int)-n));
	else if (buf_len(&call->reply) > FLIGHT_ANSWER_MAX)
		refuse(call, "its record is too long");
}

/* Steps all calls once; false: nothing is left to do. */
static bool calls_step(struct call *calls, size_t count, const struct flight_source *source,
		       uint64_t deadline_ns, int cancel_fd)
{
	struct pollfd fds[AT_ONCE + 1];
	size_t open = 0;
	for (size_t i = 0; i < count; i++) {
		bool sending = calls[i].sent < strlen(request);
		fds[i] = (struct pollfd){ .fd = calls[i].fd, .events = sending ? POLLOUT : POLLIN };
		open += calls[i].fd >= 0;
	}
	fds[count] = (struct pollfd){ .fd = cancel_fd, .events = POLLIN };
	uint64_t now_ns = clock_now_ns();
	if (open == 0 || now_ns >= deadline_ns)
		return false;
	if (poll(fds, count + 1, clock_left_ms(deadline_ns, now_ns)) < 0)
		return errno == EINTR;
	if (fds[count].revents)
		return false;
	for (size_t i = 0; i < count; i++) {
		if (calls[i].fd < 0 || !fds[i].revents)
			continue;
		if (calls[i].sent < strlen(request))
			call_send(&calls[i]);
		else
			call_receive(&calls[i], source);
	}
	return true;
}

void flight_fetch(const struct flight_source *source, struct flight_answer *answers, size_t count,
		  uint64_t deadline_ns, int cancel_fd)
{
	for (size_t first = 0; first < count; first += AT_ONCE) {
		struct call calls[AT_ONCE];
		size_t n = MIN(count - first, (size_t)AT_ONCE);
		for (size_t i = 0; i < n; i++)
			call_start(&calls[i], &answers[first + i], source);
		while (calls_step(calls, n, source, deadline_ns, cancel_fd))
			continue;
		for (size_t i = 0; i < n; i++) {
			if (calls[i].fd >= 0)
				refuse(&calls[i], "it does not answer");
			buf_done(&calls[i].reply);
		}
	}
}

void flight_answers_done(struct flight_answer *answers, size_t count)
{
	for (size_t i = 0; i < count; i++)
		record_done(&answers[i].record);
}
