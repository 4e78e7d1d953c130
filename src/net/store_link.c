#include "net/store_link.h"

#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/list.h"
#include "base/mem.h"

#define RECEIVE_CHUNK ((size_t)64 << 10)

/* A server may hold values that grew beyond what one request may carry. */
static const struct c10d_limits reply_limits = {
	.key_max = C10D_KEY_MAX,
	.value_max = (size_t)1 << 30,
	.keys_max = (size_t)1 << 24,
	.message_max = ((size_t)1 << 30) + 64,
};

struct ask {
	struct list link;
	enum c10d_query query;
	size_t count;
	store_reply_fn *on_reply;
	void *arg;
	struct buf wire; /* until it is sent */
};

struct store_link {
	int fd;
	bool connected;
	bool ready;
	bool canceling; /* the head is a wait, and CANCEL_WAIT has been sent behind it */
	/* that wait was answered first: the answer to CANCEL_WAIT will follow */
	bool swallow_cancel;
	struct list queued; /* not sent yet */
	struct list sent;   /* in the order of their answers */
	struct buf out;
	struct buf in;
	struct c10d_parser parser;
};

static bool is_wait(enum c10d_query query)
{
	return query == C10D_WAIT || query == C10D_BARRIER;
}

static struct ask *first(const struct list *list)
{
	return list_empty(list) ? NULL : list_entry(list->next, struct ask, link);
}

static void finish(struct ask *ask, int result, const struct c10d_message *reply)
{
	list_unlink(&ask->link);
	if (ask->on_reply)
		ask->on_reply(ask->arg, result, reply);
	buf_done(&ask->wire);
	free(ask);
}

static void fail_all(struct store_link *link, int result)
{
	for (struct ask *ask; (ask = first(&link->sent));)
		finish(ask, result, NULL);
	for (struct ask *ask; (ask = first(&link->queued));)
		finish(ask, result, NULL);
}

static void on_handshake(void *arg, int result, const struct c10d_message *reply UNUSED)
{
	struct store_link *link = arg;
	link->ready = result == 0;
}

int store_link_open(const struct addr *addr, struct store_link **ret_link, struct err *err)
{
	char text[ADDR_TEXT_MAX];
	addr_format(addr, text);
	AUTO(fd_close)
	int fd = socket(addr->any.sa_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	if (fd < 0)
		return err_set(err, errno, "connect to the store at %s: %m", text);
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &(int){ 1 }, sizeof(int));
	setsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &(int){ 1 }, sizeof(int));
	if (connect(fd, &addr->any, addr_len(addr)) < 0 && errno != EINPROGRESS)
		return err_set(err, errno, "connect to the store at %s: %m", text);

	struct store_link *link = NEW(struct store_link);
	link->fd = fd_take(&fd);
	list_init(&link->queued);
	list_init(&link->sent);
	link->in = link->out = BUF_INIT;
	/* In one piece: a PyTorch server closes the connection on a VALIDATE in two pieces. */
	store_link_ask(link, &(struct c10d_message){ .query = C10D_VALIDATE, .number = C10D_MAGIC },
		       NULL, NULL);
	store_link_ask(link, &(struct c10d_message){ .query = C10D_PING, .number = getpid() },
		       on_handshake, link);
	*ret_link = link;
	return 0;
}

void store_link_free(struct store_link *link)
{
	if (!link)
		return;
	fail_all(link, -ECONNABORTED);
	fd_close(&link->fd);
	buf_done(&link->in);
	buf_done(&link->out);
	free(link);
}

void store_link_abandon(struct store_link *link)
{
	list_foreach(it, &link->sent) list_entry(it, struct ask, link)->on_reply = NULL;
	list_foreach(it, &link->queued) list_entry(it, struct ask, link)->on_reply = NULL;
	shutdown(link->fd, SHUT_RDWR);
}

int store_link_fd(const struct store_link *link)
{
	return link->fd;
}

bool store_link_ready(const struct store_link *link)
{
	return link->ready;
}

/* May the next queued request be sent, or must a wait end first? */
static bool may_send(const struct store_link *link)
{
	if (list_empty(&link->queued))
		return false;
	return list_empty(&link->sent) ||
	       !is_wait(list_entry(link->sent.prev, struct ask, link)->query);
}

short store_link_events(const struct store_link *link)
{
	bool sends = !link->connected || buf_len(&link->out) > 0 || may_send(link);
	return (short)(POLLIN | (sends ? POLLOUT : 0));
}

void store_link_ask(struct store_link *link, const struct c10d_message *request,
		    store_reply_fn *on_reply, void *arg)
{
	struct ask *ask = NEW(struct ask);
	ask->query = request->query;
	ask->count = request->count;
	ask->on_reply = on_reply;
	ask->arg = arg;
	ask->wire = BUF_INIT;
	c10d_put_request(&ask->wire, request);
	list_append(&link->queued, &ask->link);
}

void store_link_cancel_wait(struct store_link *link)
{
	struct ask *last =
		list_empty(&link->sent) ? NULL : list_entry(link->sent.prev, struct ask, link);
	if (last && is_wait(last->query) && !link->canceling) {
		c10d_put_request(&link->out, &(struct c10d_message){ .query = C10D_CANCEL_WAIT });
		link->canceling = true;
		return;
	}
	if (last && is_wait(last->query))
		return; /* is being cancelled already */
	list_foreach(it, &link->queued)
	{
		struct ask *ask = list_entry(it, struct ask, link);
		if (is_wait(ask->query)) {
			finish(ask, -ECANCELED, NULL);
			return;
		}
	}
}

static void move_queued(struct store_link *link)
{
	while (may_send(link)) {
		struct ask *ask = first(&link->queued);
		buf_append(&link->out, buf_data(&ask->wire), buf_len(&ask->wire));
		buf_done(&ask->wire);
		list_unlink(&ask->link);
		list_append(&link->sent, &ask->link);
	}
}

/* Requests without a reply are done when they are sent and all before them are answered. */
static void finish_replyless(struct store_link *link)
{
	for (struct ask *ask;
	     (ask = first(&link->sent)) && !c10d_has_reply(ask->query) && buf_len(&link->out) == 0;)
		finish(ask, 0, &(struct c10d_message){ .query = ask->query });
}

static int lost(int code, struct err *err)
{
	if (code == ECONNRESET || code == EPIPE)
		return err_set(err, ECONNRESET, "the store closed the connection");
	return err_set(err, code, "connection to the store: %m");
}

static int send_out(struct store_link *link, struct err *err)
{
	move_queued(link);
	while (buf_len(&link->out) > 0) {
		ssize_t n = send(link->fd, buf_data(&link->out), buf_len(&link->out), MSG_NOSIGNAL);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n < 0)
			return lost(errno, err);
		buf_consume(&link->out, (size_t)n);
	}
	finish_replyless(link);
	return 0;
}

/* The answer to a wait that is being cancelled: 01 alone, or 00 and then 01 when the two
 * crossed. */
static int finish_canceled(struct store_link *link, struct ask *ask,
			   const struct c10d_message *reply)
{
	link->canceling = false;
	if (reply->number == C10D_CANCELED) {
		finish(ask, -ECANCELED, NULL);
	} else {
		link->swallow_cancel = true;
		finish(ask, 0, reply);
	}
	return 0;
}

static int take_reply(struct store_link *link, struct ask *ask, const struct c10d_message *reply,
		      struct err *err)
{
	bool one_byte = is_wait(ask->query);
	if (one_byte && reply->number > C10D_CANCELED)
		return err_set(err, EPROTO, "the store answered %s with %lld",
			       c10d_query_name(ask->query), (long long)reply->number);
	if (one_byte && link->canceling)
		return finish_canceled(link, ask, reply);
	if (one_byte && reply->number == C10D_CANCELED)
		return err_set(err, EPROTO, "the store cancelled a wait by itself");
	finish(ask, 0, reply);
	return 0;
}

/* Takes one whole reply from the input: 1, 0 if there is none, or -errno. */
static int take_one(struct store_link *link, struct err *err)
{
	if (link->swallow_cancel && buf_len(&link->in) > 0) {
		buf_consume(&link->in, 1);
		link->swallow_cancel = false;
		return 1;
	}
	finish_replyless(link);
	struct ask *ask = first(&link->sent);
	if (!ask || buf_len(&link->in) == 0)
		return buf_len(&link->in) == 0
			       ? 0
			       : err_set(err, EPROTO, "the store sent an unexpected reply");
	struct c10d_message reply;
	int r = c10d_parse_reply(&link->parser, &reply_limits, ask->query, ask->count,
				 buf_data(&link->in), buf_len(&link->in), &reply, err);
	if (r <= 0)
		return r;
	size_t size = reply.size;
	r = take_reply(link, ask, &reply, err);
	buf_consume(&link->in, size);
	return r < 0 ? r : 1;
}

static int receive(struct store_link *link, struct err *err)
{
	for (;;) {
		size_t have = buf_len(&link->in);
		size_t want =
			MAX(RECEIVE_CHUNK,
			    link->parser.need > have ? MIN(link->parser.need - have, have) : 0);
		ssize_t n = recv(link->fd, buf_reserve(&link->in, want), want, 0);
		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0 && errno == EAGAIN)
			return 0;
		if (n <= 0)
			return lost(n < 0 ? errno : ECONNRESET, err);
		buf_commit(&link->in, (size_t)n);
		int r;
		while ((r = take_one(link, err)) > 0)
			;
		if (r < 0)
			return r;
	}
}

static int finish_connect(struct store_link *link, struct err *err)
{
	struct pollfd pfd = { .fd = link->fd, .events = POLLOUT };
	if (poll(&pfd, 1, 0) <= 0)
		return 0;
	int error = 0;
	socklen_t len = sizeof(error);
	getsockopt(link->fd, SOL_SOCKET, SO_ERROR, &error, &len);
	if (error)
		return err_set(err, error, "connect to the store: %m");
	link->connected = true;
	return 0;
}

int store_link_step(struct store_link *link, struct err *err)
{
	int r = link->connected ? 0 : finish_connect(link, err);
	if (r == 0 && link->connected) {
		r = send_out(link, err);
		if (r == 0)
			r = receive(link, err);
		if (r == 0) /* answers may release requests that were held back */
			r = send_out(link, err);
	}
	if (r < 0)
		fail_all(link, r);
	return r;
}
