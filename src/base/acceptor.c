#include "base/acceptor.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>

#include "base/fd.h"

static int open_reserve(void)
{
	return open("/dev/null", O_RDONLY | O_CLOEXEC);
}

static int take(const struct acceptor *acceptor, struct sockaddr_storage *ret_peer)
{
	socklen_t len = sizeof(*ret_peer);
	ret_peer->ss_family = AF_UNSPEC;
	int fd = accept4(acceptor->fd, (struct sockaddr *)ret_peer, &len,
			 SOCK_CLOEXEC | SOCK_NONBLOCK);
	return fd < 0 ? -errno : fd;
}

static bool refuse(struct acceptor *acceptor)
{
	struct sockaddr_storage peer;
	fd_close(&acceptor->reserve_fd);
	int fd = take(acceptor, &peer);
	bool taken = fd >= 0;
	if (taken && acceptor->handler->on_refused)
		acceptor->handler->on_refused(acceptor->arg, fd, &peer);
	fd_close(&fd);
	acceptor->reserve_fd = open_reserve();
	return taken;
}

/* True if it is worth trying again at once. The system says that it has no descriptor before it
 * looks whether a peer waits. */
static bool is_relieved(struct acceptor *acceptor)
{
	struct pollfd waiting = { .fd = acceptor->fd, .events = POLLIN };
	if (poll(&waiting, 1, 0) <= 0)
		return false;
	if (acceptor->handler->make_room && acceptor->handler->make_room(acceptor->arg))
		return true;
	if (refuse(acceptor))
		return true;
	const struct timeval rest = clock_timeval(ACCEPTOR_REST_NS);
	event_del(&acceptor->acceptable);
	event_add(&acceptor->rested, &rest);
	return false;
}

static void on_acceptable(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct acceptor *acceptor = arg;
	for (int i = 0; i < ACCEPTOR_AT_ONCE; i++) {
		struct sockaddr_storage peer;
		int r = take(acceptor, &peer);
		bool short_of = r == -EMFILE || r == -ENFILE || r == -ENOMEM || r == -ENOBUFS;
		if (r >= 0)
			acceptor->handler->on_accept(acceptor->arg, r, &peer);
		else if (short_of ? !is_relieved(acceptor) : r != -ECONNABORTED && r != -EINTR)
			return;
	}
}

static void on_rested(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	acceptor_listen(arg, true);
}

void acceptor_init(struct acceptor *acceptor, struct event_base *base, int fd,
		   const struct acceptor_handler *handler, void *arg)
{
	*acceptor = (struct acceptor){ .fd = fd, .handler = handler, .arg = arg };
	acceptor->reserve_fd = fd >= 0 ? open_reserve() : -1;
	event_assign(&acceptor->acceptable, base, fd, EV_READ | EV_PERSIST, on_acceptable,
		     acceptor);
	evtimer_assign(&acceptor->rested, base, on_rested, acceptor);
	acceptor_listen(acceptor, true);
}

void acceptor_done(struct acceptor *acceptor)
{
	acceptor_listen(acceptor, false);
	fd_close(&acceptor->fd);
	fd_close(&acceptor->reserve_fd);
}

void acceptor_listen(struct acceptor *acceptor, bool on)
{
	if (acceptor->fd < 0)
		return;
	event_del(&acceptor->rested);
	if (on)
		event_add(&acceptor->acceptable, NULL);
	else
		event_del(&acceptor->acceptable);
}
