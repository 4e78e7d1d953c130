#include "net/link.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/mem.h"
#include "net/link_private.h"
#include "proto/round_msg.h"

#define READ_CHUNK ((size_t)16 << 10)
#define OUT_KEPT ((size_t)512) /* a larger buffer is freed when it is empty */

/* ---- life ---- */

/* Not inline: GCC at -O3 does not see that a pin of a caller keeps the link, and warns. */
__attribute__((noinline)) static void free_link(struct link *link)
{
	if (link->pinned) {
		link->free_later = true;
		return;
	}
	event_del(&link->readable);
	event_del(&link->writable);
	event_del(&link->timer);
	list_unlink(&link->strangers);
	fd_close(&link->fd);
	buf_done(&link->in);
	buf_done(&link->out);
	munge_client_cancel(link->munge_client_request);
	greeting_free(link->greeting);
	session_free(link->session);
	free(link->addrs);
	free(link->failure);
	free(link->name);
	free(link);
}

/* Every function that calls back does so between these two. */
static void pin(struct link *link)
{
	link->pinned++;
}

static void unpin(struct link *link)
{
	if (--link->pinned == 0 && link->free_later)
		free_link(link);
}

static void set_timer(struct link *link, uint64_t deadline_ns)
{
	const struct timeval left = clock_left(deadline_ns, clock_now_ns());
	evtimer_add(&link->timer, &left);
}

static void tell_end(struct link *link, const struct link_end *end)
{
	pin(link);
	link->state = LINK_ENDED;
	if (link->hooks->on_end)
		link->hooks->on_end(link, end);
	else if (link->handler)
		link->handler->on_down(link->arg, link, end);
	free_link(link);
	unpin(link);
}

void link_end(struct link *link, enum link_end_kind kind, bool dead, const char *fmt, ...)
{
	struct link_end end = { .kind = kind, .dead = dead };
	va_list args;
	va_start(args, fmt);
	vsnprintf(end.text, sizeof(end.text), fmt, args);
	va_end(args);
	tell_end(link, &end);
}

/* Whether an error means that the peer has closed its end, rather than that it is unreachable. */
static bool is_death(int code)
{
	return code == ECONNRESET || code == EPIPE;
}

/* The connection is over; `code` 0: end of stream. */
static void end_of_stream(struct link *link, int code)
{
	if (link->write_error && (code == 0 || is_death(code)))
		/* the kernel reports an error once: the writer got it */
		code = link->write_error;
	if (code != 0 && !is_death(code)) {
		errno = code;
		link_end(link, LINK_UNREACHABLE, false, "%s is unreachable: %m", link->name);
		return;
	}
	const char *doubt = link->state != LINK_UP
				    ? " without an answer: is it a muster coordinator?"
			    : buf_len(&link->in) > 0 ? " in the middle of a frame"
						     : "";
	link_end(link, LINK_CLOSED, true, "%s closed the connection%s", link->name, doubt);
}

/* ---- sending ---- */

void link_flush_soon(struct link *link)
{
	event_active(&link->writable, EV_WRITE, 0);
}

/* Writes as much as the socket takes. The reader reports errors, after all data before them. */
static void flush(struct link *link)
{
	while (buf_len(&link->out) > 0) {
		ssize_t n = send(link->fd, buf_data(&link->out), buf_len(&link->out),
				 MSG_NOSIGNAL | MSG_DONTWAIT);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN) {
			event_add(&link->writable, NULL);
			return;
		}
		if (n < 0) {
			link->write_error = errno;
			buf_done(&link->out);
			/* The kernel might not wake the reader for an error that the writer already
			 * got. */
			event_active(&link->readable, EV_READ, 0);
			return;
		}
		link->traffic.out += (uint64_t)n;
		buf_consume(&link->out, (size_t)n);
	}
	if (link->out.cap > OUT_KEPT)
		buf_done(&link->out);
}

void link_seal(struct link *link, size_t before)
{
	if (link->session)
		seal_frame(&link->session->out, &link->out, buf_len(&link->out) - before);
}

void link_send(struct link *link, const struct msg *msg)
{
	struct err err = ERR_INIT;
	size_t before = buf_len(&link->out);
	if (link->state != LINK_UP || link->write_error || link->unsendable)
		return; /* on_down is about to be called */
	if (round_msg_encode(msg, &link->out, &err) < 0) {
		link->unsendable = true;
		free(link->failure);
		link->failure = NEW(struct link_end);
		link->failure->kind = LINK_BROKEN;
		snprintf(link->failure->text, sizeof(link->failure->text), "%s", err.msg);
	} else {
		link_seal(link, before);
	}
	link_flush_soon(link);
}

void link_send_work(struct link *link, const void *data, size_t len)
{
	const unsigned char *at = data;
	if (link->state != LINK_UP || link->write_error || link->unsendable)
		return;
	while (len > 0) {
		size_t before = buf_len(&link->out);
		size_t part = MIN(len, (size_t)(FRAME_BODY_MAX - FRAME_TAG_SIZE));
		frame_put(&link->out, FRAME_WORK, at, part);
		link_seal(link, before);
		at += part;
		len -= part;
	}
	link_flush_soon(link);
}

size_t link_unsent(const struct link *link)
{
	return buf_len(&link->out);
}

/* ---- hanging up ---- */

/* Everything is sent: half-close, and wait for the peer to do the same. Closing at once would reset
 * the connection if the peer has sent something, and a reset can overtake what we sent. */
static void linger_on(struct link *link)
{
	if (buf_len(&link->out) > 0 || link->shut)
		return;
	link->shut = true;
	shutdown(link->fd, SHUT_WR);
}

static void linger(struct link *link)
{
	link->state = LINK_LINGERING;
	link->handler = NULL;
	list_unlink(&link->strangers);
	buf_done(&link->in);
	flush(link);
	linger_on(link);
	set_timer(link, ns_add(clock_now_ns(), LINK_LINGER_NS));
}

void link_hang_up(struct link *link)
{
	if (link->state == LINK_UP)
		linger(link);
	else if (link->state != LINK_ENDED)
		free_link(link);
}

void link_drop(struct link *link)
{
	if (link->state == LINK_UP)
		flush(link);
	if (link->state != LINK_ENDED)
		free_link(link);
}

/* ---- receiving ---- */

static void take_message(struct link *link, const struct frame *frame)
{
	struct node_info node;
	struct msg msg;
	struct err err = ERR_INIT;
	if (frame->type == FRAME_WORK && link->handler->on_work) {
		evtimer_del(&link->timer);
		link->handler->on_work(link->arg, link, frame->body.data, frame->body.len);
		return;
	}
	int r = round_msg_decode(frame, &node, &msg, &err);
	if (r == 0 && msg_from_agent(msg.type) != link->accepted)
		r = err_set(&err, EPROTO, "%s in the wrong direction", msg_type_name(msg.type));
	if (r < 0) {
		link_end(link, LINK_BROKEN, false, "%s sent an invalid frame: %s", link->name,
			 err.msg);
		return;
	}
	if (msg.type == MSG_JOIN || msg.type == MSG_ASK)
		evtimer_del(&link->timer);
	link->handler->on_msg(link->arg, link, &msg);
}

/* Handles the whole frames of a link that is up; returns how many bytes they take. */
static size_t take_frames(struct link *link, const unsigned char *data, size_t len)
{
	size_t used = 0;
	while (link->state == LINK_UP && !link->free_later) {
		struct err err = ERR_INIT;
		unsigned char room[FRAME_BODY_MAX];
		struct frame frame;
		size_t size;
		int r = frame_next(data + used, len - used, &frame, &size, &err);
		if (r > 0 && link->session)
			r = seal_open(&link->session->in, data + used, size, room, &frame, &err);
		if (r == 0)
			break;
		if (r < 0) {
			link_end(link, LINK_BROKEN, false, "%s sent an invalid frame: %s",
				 link->name, err.msg);
			break;
		}
		used += size;
		if (link->hooks->on_frame)
			link->hooks->on_frame(link, &frame);
		else
			take_message(link, &frame);
	}
	return used;
}

static void go_up(struct link *link)
{
	link->state = LINK_UP;
	link->up_ns = clock_now_ns();
	if (link->accepted)
		set_timer(link, ns_add(link->up_ns, LINK_JOIN_NS));
	else
		evtimer_del(&link->timer);
	greeting_free(link->greeting);
	link->greeting = NULL;
	if (!link->accepted && link->handler)
		link->handler->on_up(link->arg, link);
}

/* An unauthenticated peer gets the reason too: its user needs it. */
static void fail_greeting(struct link *link)
{
	const struct greeting *greeting = link->greeting;
	struct link_end end = { .kind = greeting->end };
	if (link->accepted)
		snprintf(end.text, sizeof(end.text), "%s", greeting->why);
	else
		snprintf(end.text, sizeof(end.text), "%s refused the connection: %s", link->name,
			 greeting->why);
	if (link->accepted && link->hooks->on_end) {
		pin(link);
		link->hooks->on_end(link, &end);
		linger(link);
		unpin(link);
	} else {
		tell_end(link, &end);
	}
}

static void on_notary(void *arg, const struct munge_client_answer *answer);

/* Meanwhile nothing is read: the peer may close the connection right after its last frame. */
static void ask_notary(struct link *link)
{
	event_del(&link->readable);
	const struct greeting *greeting = link->greeting;
	struct munge_client *munge = link->self->munge;
	link->munge_client_request =
		greeting->ask == GREETING_SIGN
			? munge_client_sign(munge, greeting->digest, on_notary, link)
			: munge_client_check(munge, greeting->digest, greeting->credential.text,
					     on_notary, link);
}

static size_t take_greeting(struct link *link, const unsigned char *data, size_t len)
{
	size_t used = greeting_feed(link->greeting, data, len, &link->out);
	if (link->greeting->state == GREETING_ASKS && !link->munge_client_request)
		ask_notary(link);
	if (link->greeting->state == GREETING_KNOWN) {
		link->session = greeting_session(link->greeting);
		link->role = link->greeting->hello.role;
		link->peer_minor = link->greeting->minor;
	}
	if (link->greeting->state == GREETING_KNOWN && link->accepted)
		link->hooks->on_known(link); /* may still refuse */
	if (link->state != LINK_GREETING || link->free_later)
		return used;
	if (buf_len(&link->out) > 0)
		link_flush_soon(link);
	if (link->greeting->state == GREETING_FAILED)
		fail_greeting(link);
	else if (link->greeting->state == GREETING_KNOWN)
		go_up(link);
	return used;
}

static size_t take(struct link *link, const unsigned char *data, size_t len)
{
	size_t used = 0;
	if (link->state == LINK_GREETING)
		used = take_greeting(link, data, len);
	if (link->state == LINK_UP && !link->free_later)
		used += take_frames(link, data + used, len - used);
	return used;
}

static void read_fresh(struct link *link, const unsigned char *data, size_t len)
{
	size_t used = take(link, data, len);
	if (!link->free_later && link->state < LINK_LINGERING && used < len)
		buf_append(&link->in, data + used, len - used);
}

static void read_more(struct link *link, const void *data, size_t len)
{
	buf_append(&link->in, data, len);
	/* Callbacks may empty the buffer by hanging up: keep what we read until they are done. */
	struct buf in = link->in;
	link->in = BUF_INIT;
	size_t used = take(link, buf_data(&in), buf_len(&in));
	if (!link->free_later && link->state < LINK_LINGERING && used < buf_len(&in)) {
		buf_consume(&in, used);
		link->in = in;
		in = BUF_INIT;
	}
	buf_done(&in);
}

/* munge has answered: the greeting goes on, with what has come meanwhile. */
static void on_notary(void *arg, const struct munge_client_answer *answer)
{
	struct link *link = arg;
	link->munge_client_request = NULL;
	if (link->state != LINK_GREETING)
		return;
	pin(link);
	event_add(&link->readable, NULL);
	greeting_answer(link->greeting, answer->ok, answer->text, &link->out);
	if (buf_len(&link->in) > 0)
		read_more(link, "", 0);
	else
		take(link, (const unsigned char *)"", 0);
	unpin(link);
}

static void on_readable(evutil_socket_t fd, short what UNUSED, void *arg)
{
	struct link *link = arg;
	unsigned char chunk[READ_CHUNK];
	ssize_t n = recv(fd, chunk, sizeof(chunk), MSG_DONTWAIT);
	if (n < 0 && (errno == EAGAIN || errno == EINTR)) {
		if (!link->write_error)
			return;
		n = 0; /* writing is impossible, and nothing is left to read */
	}
	int code = n < 0 ? errno : 0;
	link->traffic.in += n > 0 ? (uint64_t)n : 0;
	pin(link);
	if (n > 0 && link->state == LINK_LINGERING)
		; /* no process listens */
	else if (n > 0 && buf_len(&link->in) == 0)
		read_fresh(link, chunk, (size_t)n);
	else if (n > 0)
		read_more(link, chunk, (size_t)n);
	else if (link->state == LINK_LINGERING)
		free_link(link);
	else
		end_of_stream(link, code);
	unpin(link);
}

/* ---- connecting ---- */

/* How much the failure of one address tells: "refused" proves that the host is alive and no process
 * listens, unless another address was silent; "no route" on this host tells nothing. */
static int weight(int code)
{
	if (code == ENETUNREACH || code == EADDRNOTAVAIL || code == EAFNOSUPPORT)
		return 1;
	return code == ECONNREFUSED ? 2 : 3;
}

static void note_failure(struct link *link, int code)
{
	if (weight(code) < link->failure_weight)
		return;
	link->failure_weight = weight(code);
	if (!link->failure)
		link->failure = NEW(struct link_end);
	struct link_end *failure = link->failure;
	failure->kind = code == ECONNREFUSED ? LINK_NOBODY : LINK_UNREACHABLE;
	char addr[ADDR_TEXT_MAX];
	addr_format(&link->peer, addr);
	errno = code;
	if (strcmp(addr, link->name) == 0)
		snprintf(failure->text, sizeof(failure->text), "connect to %s: %m", link->name);
	else
		snprintf(failure->text, sizeof(failure->text), "connect to %s (%s): %m", link->name,
			 addr);
}

static void on_writable(evutil_socket_t fd, short what, void *arg);

static void connected(struct link *link)
{
	link->state = LINK_GREETING;
	link->greeting = NEW(struct greeting);
	greeting_connect(link->greeting, link->self, link->hooks->role, &link->out);
	event_add(&link->readable, NULL);
	set_timer(link, link->greet_by_ns);
	flush(link);
}

/* Tries the next address; true if a connection is under way. */
static bool try_address(struct link *link, uint64_t now_ns)
{
	fd_close(&link->fd);
	link->peer = link->addrs[link->addr_next++];
	link->fd = socket(link->peer.any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (link->fd < 0) {
		note_failure(link, errno);
		return false;
	}
	addr_set_options(link->fd);
	event_assign(&link->readable, link->base, link->fd, EV_READ | EV_PERSIST, on_readable,
		     link);
	event_assign(&link->writable, link->base, link->fd, EV_WRITE, on_writable, link);
	if (connect(link->fd, &link->peer.any, addr_len(&link->peer)) < 0 && errno != EINPROGRESS) {
		note_failure(link, errno);
		return false;
	}
	/* The remaining addresses share the remaining time. */
	uint64_t left_ns = link->connect_by_ns > now_ns ? link->connect_by_ns - now_ns : 0;
	set_timer(link, now_ns + left_ns / (link->addr_count - link->addr_next + 1));
	event_add(&link->writable, NULL);
	return true;
}

static void try_addresses(struct link *link)
{
	uint64_t now_ns = clock_now_ns();
	while (link->addr_next < link->addr_count)
		if (try_address(link, now_ns))
			return;
	if (link->addr_count == 0)
		link_end(link, LINK_UNREACHABLE, false, "%s has no address to connect to",
			 link->name);
	else
		tell_end(link, link->failure);
}

static void finish_connect(struct link *link)
{
	if (link->fd < 0) {
		try_addresses(link);
		return;
	}
	int code = 0;
	socklen_t len = sizeof(code);
	getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &code, &len);
	if (code == 0) {
		connected(link);
		return;
	}
	note_failure(link, code);
	event_del(&link->writable);
	try_addresses(link);
}

static void on_writable(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct link *link = arg;
	pin(link);
	if (link->state == LINK_CONNECTING)
		finish_connect(link);
	else
		flush(link);
	if (link->state == LINK_UP && !link->free_later && buf_len(&link->out) == 0 &&
	    link->handler && link->handler->on_drained)
		link->handler->on_drained(link->arg, link);
	if (link->state == LINK_LINGERING)
		linger_on(link);
	if (link->state == LINK_UP && link->unsendable)
		tell_end(link, link->failure);
	else if (link->state == LINK_UP && buf_len(&link->out) > LINK_UNSENT_MAX)
		link_end(link, LINK_BROKEN, false, "%s does not read: %zu bytes wait for it",
			 link->name, buf_len(&link->out));
	unpin(link);
}

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct link *link = arg;
	pin(link);
	if (link->state == LINK_CONNECTING) {
		event_del(&link->writable);
		note_failure(link, ETIMEDOUT);
		try_addresses(link);
	} else if (link->state == LINK_LINGERING) {
		free_link(link);
	} else if (link->state == LINK_UP) {
		link_end(link, LINK_BROKEN, false, "it did not join in time");
	} else {
		link_end(link, LINK_UNREACHABLE, false, "%s is connected but does not answer",
			 link->name);
	}
	unpin(link);
}

/* ---- lingering on ---- */

struct lingerers {
	struct link **items;
	size_t count, cap;
};

/* After a hang-up only its timer refers to a link. */
static int collect_lingering(const struct event_base *base UNUSED, const struct event *event,
			     void *arg)
{
	struct lingerers *found = arg;
	if (event_get_callback(event) != on_timer)
		return 0;
	struct link *link = event_get_callback_arg(event);
	if (link->state != LINK_LINGERING)
		return 0;
	ARRAY_RESERVE(found->items, found->count, found->cap);
	found->items[found->count++] = link;
	return 0;
}

void link_drop_lingering(struct event_base *base)
{
	struct lingerers found = { .items = NULL };
	event_base_foreach_event(base, collect_lingering, &found);
	for (size_t i = 0; i < found.count; i++)
		free_link(found.items[i]);
	free(found.items);
}

/* ---- making them ---- */

static struct link *new_link(struct event_base *base, const struct link_hooks *hooks, void *owner,
			     int fd)
{
	struct link *link = NEW(struct link);
	link->base = base;
	link->hooks = hooks;
	link->owner = owner;
	link->fd = fd;
	link->in = link->out = BUF_INIT;
	list_init(&link->strangers);
	event_assign(&link->readable, base, fd, EV_READ | EV_PERSIST, on_readable, link);
	event_assign(&link->writable, base, fd, EV_WRITE, on_writable, link);
	evtimer_assign(&link->timer, base, on_timer, link);
	return link;
}

struct link *link_new_connecting(struct event_base *base, const struct link_self *self,
				 const struct link_target *target, const struct link_hooks *hooks,
				 void *owner, uint64_t connect_ns, uint64_t greet_ns)
{
	struct link *link = new_link(base, hooks, owner, -1);
	uint64_t now_ns = clock_now_ns();
	link->self = self;
	link->state = LINK_CONNECTING;
	link->name = mem_strdup(target->name);
	link->addr_count = target->count;
	link->addrs = NEW_ARRAY(struct addr, MAX(target->count, (size_t)1));
	memcpy(link->addrs, target->addrs, target->count * sizeof(*target->addrs));
	link->connect_by_ns = ns_add(now_ns, connect_ns);
	link->greet_by_ns = ns_add(now_ns, greet_ns);
	link_flush_soon(link);
	return link;
}

struct link *link_new_accepted(struct event_base *base, int fd, const struct addr *peer,
			       const struct link_self *self, const struct link_hooks *hooks,
			       void *owner, uint64_t greet_by_ns)
{
	struct link *link = new_link(base, hooks, owner, fd);
	char name[ADDR_TEXT_MAX];
	addr_format(peer, name);
	link->self = self;
	link->accepted = true;
	link->state = LINK_GREETING;
	link->name = mem_strdup(name);
	link->peer = *peer;
	link->greeting = NEW(struct greeting);
	greeting_accept(link->greeting, self);
	event_add(&link->readable, NULL);
	set_timer(link, greet_by_ns);
	return link;
}

static struct link *connect_as(struct event_base *base, const struct link_self *self,
			       const struct link_target *target, const struct link_hooks *hooks,
			       const struct link_handler *handler, void *arg)
{
	struct link *link = link_new_connecting(base, self, target, hooks, NULL, LINK_CONNECT_NS,
						LINK_CONNECT_NS + LINK_GREETING_NS);
	link_set_handler(link, handler, arg);
	return link;
}

struct link *link_connect(struct event_base *base, const struct link_self *self,
			  const struct link_target *target, const struct link_handler *handler,
			  void *arg)
{
	static const struct link_hooks hooks = { .role = ROLE_AGENT };
	return connect_as(base, self, target, &hooks, handler, arg);
}

static const struct link_hooks asker_hooks = { .role = ROLE_ASKER };

struct link *link_connect_asker(struct event_base *base, const struct link_self *self,
				const struct link_target *target,
				const struct link_handler *handler, void *arg)
{
	return connect_as(base, self, target, &asker_hooks, handler, arg);
}

struct link *link_greet_asker(struct event_base *base, int fd, const struct link_self *self,
			      const char *name, const struct link_handler *handler, void *arg)
{
	struct link *link = new_link(base, &asker_hooks, NULL, fd);
	link->self = self;
	link->name = mem_strdup(name);
	link->greet_by_ns = ns_add(clock_now_ns(), LINK_GREETING_NS);
	link_set_handler(link, handler, arg);
	connected(link);
	return link;
}

void link_set_handler(struct link *link, const struct link_handler *handler, void *arg)
{
	link->handler = handler;
	link->arg = arg;
}

/* ---- about them ---- */

bool link_is_asker(const struct link *link)
{
	return link->role == ROLE_ASKER;
}

uint32_t link_peer_can(const struct link *link)
{
	return frame_can(link->peer_minor);
}

uint64_t link_up_ns(const struct link *link)
{
	return link->up_ns;
}

void link_traffic(const struct link *link, struct link_traffic *ret_traffic)
{
	*ret_traffic = link->traffic;
}

const char *link_peer_name(const struct link *link)
{
	return link->name;
}

void link_peer_addr(const struct link *link, struct addr *ret_addr)
{
	*ret_addr = link->peer;
}

int link_local_addr(const struct link *link, struct addr *ret_addr, struct err *err)
{
	return addr_of_socket(link->fd, ret_addr, err);
}
