/* The agent's side. */
#include "sys/warden.h"

#include <errno.h>
#include <event2/event.h>
#include <inttypes.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/random.h"
#include "sys/cgroup.h"
#include "sys/proctree.h"
#include "sys/warden_proto.h"

#define FREE_WAIT_MS 1000
#define SWEEP_NS NS_PER_S
#define SWEEP_PERIOD_MS 5
#define LEAF_NAME_MAX 32
#define CGROUP_WAIT_NS (200 * NS_PER_MS)
/* no event says "fewer descriptors are in flight" */
#define CROWDED_RETRY_MS 10

struct warden {
	struct wire wire;
	pid_t pid;
	char leaf[LEAF_NAME_MAX]; /* name of its cgroup */
	size_t starting;	  /* requests to start without an answer yet */
	bool deaf;		  /* sending failed; what it has sent is still read */
	bool lost, told_lost;
	struct event *on_readable, *on_writable, *on_retry; /* NULL unless watched */
	warden_ready_fn *on_ready;
	void *arg;
};

/* Random, because pids of two namespaces may meet in one hierarchy, and we kill by this name. */
static void name_leaf(char leaf[LEAF_NAME_MAX])
{
	snprintf(leaf, LEAF_NAME_MAX, "warden-%016" PRIx64, random_u64());
}

int warden_new(const struct warden_opts *opts, struct warden **ret_warden, struct err *err)
{
	if (prctl(PR_SET_CHILD_SUBREAPER, 1) < 0)
		return err_set(err, errno, "become a subreaper: %m");
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) < 0)
		return err_set(err, errno, "socketpair: %m");
	AUTO(fd_close) int ours = pair[0];
	AUTO(fd_close) int theirs = pair[1];

	char leaf[LEAF_NAME_MAX];
	name_leaf(leaf);
	pid_t agent = getpid();
	pid_t pid = child_fork();
	if (pid < 0)
		return err_set(err, errno, "fork: %m");
	if (pid == 0)
		warden_main(opts && opts->name ? opts->name : "warden", leaf, theirs, agent);

	struct warden *warden = NEW(struct warden);
	wire_init(&warden->wire, fd_take(&ours));
	warden->pid = pid;
	memcpy(warden->leaf, leaf, sizeof(leaf));
	*ret_warden = warden;
	return 0;
}

enum warden_end {
	END_CLEAN,   /* it has put everything away */
	END_LATER,   /* it goes on alone, with what does not die */
	END_STOPPED, /* it stands still */
	END_KILLED,
};

static enum warden_end wait_for_end(pid_t pid)
{
	AUTO(fd_close) int pidfd = pidfd_open(pid, 0);
	struct pollfd ended = { .fd = pidfd, .events = POLLIN };
	int r, status;
	do
		r = pidfd < 0 ? 0 : poll(&ended, 1, FREE_WAIT_MS);
	while (r < 0 && errno == EINTR);
	if (child_try_wait(pid, &status))
		return WIFEXITED(status) ? END_CLEAN : END_KILLED;
	siginfo_t info = { 0 };
	waitid(P_PID, (id_t)pid, &info, WSTOPPED | WNOHANG | WNOWAIT);
	return info.si_pid == pid ? END_STOPPED : END_LATER;
}

/* A stopped warden cannot put anything away. It was continued when we hung up: so something keeps
 * stopping it, and what it has comes to us. */
static void replace_stopped(pid_t pid)
{
	kill(pid, SIGKILL);
	child_wait(pid);
	uint64_t deadline_ns = clock_now_ns() + SWEEP_NS;
	while (proctree_sweep() > 0 && clock_now_ns() < deadline_ns)
		poll(NULL, 0, SWEEP_PERIOD_MS);
}

/* A warden that was killed has left its cgroup behind. */
static void clear_cgroup(const char *leaf)
{
	struct cgroup cgroup;
	if (cgroup_open(leaf, &cgroup, NULL) < 0)
		return;
	if (cgroup_kill(&cgroup) == 0)
		cgroup_wait_empty(&cgroup, clock_now_ns() + CGROUP_WAIT_NS);
	cgroup_remove(&cgroup);
}

static void event_drop(struct event **event)
{
	if (*event)
		event_free(*event);
	*event = NULL;
}

void warden_free(struct warden *warden)
{
	if (!warden)
		return;
	event_drop(&warden->on_readable);
	event_drop(&warden->on_writable);
	event_drop(&warden->on_retry);
	wire_done(&warden->wire);
	kill(warden->pid, SIGCONT); /* in case it was stopped: it has work to do */
	enum warden_end end = wait_for_end(warden->pid);
	if (end == END_STOPPED)
		replace_stopped(warden->pid);
	if (end == END_STOPPED || end == END_KILLED)
		clear_cgroup(warden->leaf);
	free(warden);
}

pid_t warden_pid(const struct warden *warden)
{
	return warden->pid;
}

/* Watches for writability while something is queued. */
static void update_watch(struct warden *warden)
{
	if (!warden->on_writable)
		return;
	bool waits = !warden->deaf && wire_waits(&warden->wire);
	if (waits && warden->wire.crowded)
		event_add(warden->on_retry,
			  &(struct timeval){ .tv_usec = CROWDED_RETRY_MS * 1000 });
	else if (waits)
		event_add(warden->on_writable, NULL);
	else
		event_del(warden->on_writable);
}

static void flush(struct warden *warden)
{
	if (!warden->deaf && wire_flush(&warden->wire) < 0)
		warden->deaf = true;
	update_watch(warden);
}

static void on_io(evutil_socket_t fd UNUSED, short what, void *arg)
{
	struct warden *warden = arg;
	if (what & (EV_WRITE | EV_TIMEOUT))
		flush(warden);
	if (what & EV_READ)
		warden->on_ready(warden, warden->arg);
}

int warden_watch(struct warden *warden, struct event_base *base, warden_ready_fn *on_ready,
		 void *arg)
{
	warden->on_ready = on_ready;
	warden->arg = arg;
	warden->on_readable = event_new(base, warden->wire.fd, EV_READ | EV_PERSIST, on_io, warden);
	warden->on_writable =
		event_new(base, warden->wire.fd, EV_WRITE | EV_PERSIST, on_io, warden);
	warden->on_retry = event_new(base, -1, 0, on_io, warden);
	if (!warden->on_readable || !warden->on_writable || !warden->on_retry)
		return -ENOMEM;
	update_watch(warden);
	return event_add(warden->on_readable, NULL) < 0 ? -EIO : 0;
}

int warden_wait(struct warden *warden, uint64_t deadline_ns)
{
	for (;;) {
		if (warden->lost)
			return 0;
		uint64_t now_ns = clock_now_ns();
		if (now_ns >= deadline_ns)
			return -ETIMEDOUT;
		bool waits = !warden->deaf && wire_waits(&warden->wire);
		struct pollfd ready = { .fd = warden->wire.fd, .events = POLLIN };
		uint64_t left_ms = (deadline_ns - now_ns + NS_PER_MS - 1) / NS_PER_MS;
		if (waits && warden->wire.crowded)
			left_ms = MIN(left_ms, (uint64_t)CROWDED_RETRY_MS);
		else if (waits)
			ready.events |= POLLOUT;
		if (poll(&ready, 1, (int)MIN(left_ms, (uint64_t)INT32_MAX)) < 0 && errno != EINTR)
			return -errno;
		if (waits)
			flush(warden);
		if (ready.revents & (POLLIN | POLLHUP))
			return 0;
	}
}

/* The next frame, received if need be; 0 when there is none now. */
static int next_frame(struct warden *warden, struct wire_frame *ret_frame)
{
	int r = wire_next(&warden->wire, ret_frame);
	while (r == 0 && !warden->lost) {
		ssize_t n = wire_fill(&warden->wire);
		if (n == -EAGAIN)
			return 0;
		if (n <= 0)
			warden->lost = warden->deaf = true;
		else
			r = wire_next(&warden->wire, ret_frame);
	}
	if (r < 0)
		warden->lost = warden->deaf = true;
	return r > 0;
}

static int tell_lost(struct warden *warden, struct warden_event *ret_event)
{
	if (!warden->lost || warden->told_lost)
		return 0;
	warden->told_lost = true;
	if (warden->on_readable)
		event_del(warden->on_readable);
	update_watch(warden);
	*ret_event =
		(struct warden_event){ .type = WARDEN_LOST, .pidfd = -1, .ns = clock_now_ns() };
	return 1;
}

int warden_next(struct warden *warden, struct warden_event *ret_event)
{
	struct wire_frame frame;
	while (next_frame(warden, &frame)) {
		struct warden_reply reply;
		assert(frame.len == sizeof(reply));
		memcpy(&reply, frame.data, sizeof(reply));
		*ret_event = reply.event;
		ret_event->pidfd = frame.fd_count ? fd_take(&frame.fds[0]) : -1;
		wire_frame_done(&frame);
		if (reply.answers_spawn)
			warden->starting--;
		/* An EMPTY that crossed a request to start is no longer true. */
		if (ret_event->type != WARDEN_EMPTY || warden->starting == 0)
			return 1;
	}
	return tell_lost(warden, ret_event);
}

static int send_frame(struct warden *warden, const int *fds, size_t fd_count)
{
	int r = wire_end(&warden->wire, fds, fd_count);
	if (r < 0 && r != -EMFILE)
		warden->deaf = true;
	update_watch(warden);
	return r;
}

int warden_spawn(struct warden *warden, uint64_t id, const struct spawn_spec *spec, unsigned flags,
		 struct err *err)
{
	if (warden->deaf)
		return err_set(err, EPIPE, "the warden is gone");
	int fds[3];
	size_t fd_count = 0;
	for (int i = 0; i < 3; i++)
		if (spec->stdio[i] >= 0)
			fds[fd_count++] = spec->stdio[i];
	wire_begin(&warden->wire, REQUEST_SPAWN);
	request_spawn_put(&warden->wire.out, id, spec, flags);
	int r = send_frame(warden, fds, fd_count);
	if (r < 0)
		return err_set(err, -r, "ask the warden to start %s: %m", spec->path);
	warden->starting++;
	return 0;
}

int warden_adopt(struct warden *warden, uint64_t id, pid_t pid, int gate, struct err *err)
{
	if (warden->deaf)
		return err_set(err, EPIPE, "the warden is gone");
	struct request_adopt request;
	memset(&request, 0, sizeof(request)); /* padding too: it leaves the process */
	request.id = id;
	request.pid = pid;
	wire_begin(&warden->wire, REQUEST_ADOPT);
	buf_append(&warden->wire.out, &request, sizeof(request));
	int r = send_frame(warden, &gate, pid > 0);
	if (r < 0)
		return err_set(err, -r, "ask the warden to adopt process %d: %m", (int)pid);
	warden->starting++;
	return 0;
}

void warden_sync(struct warden *warden)
{
	if (warden->deaf)
		return;
	wire_begin(&warden->wire, REQUEST_SYNC);
	send_frame(warden, NULL, 0);
}

static void request_signal(struct warden *warden, enum signal_scope scope, uint64_t id, int sig)
{
	if (warden->deaf)
		return;
	struct request_signal request = { .id = id, .scope = scope, .sig = sig };
	wire_begin(&warden->wire, REQUEST_SIGNAL);
	buf_append(&warden->wire.out, &request, sizeof(request));
	send_frame(warden, NULL, 0);
	kill(warden->pid, SIGCONT); /* a stopped warden would let its workers outlive us */
}

void warden_signal(struct warden *warden, uint64_t id, int sig)
{
	request_signal(warden, SCOPE_MAIN, id, sig);
}

void warden_signal_group(struct warden *warden, uint64_t id, int sig)
{
	request_signal(warden, SCOPE_GROUP, id, sig);
}

void warden_signal_orphans(struct warden *warden, int sig)
{
	request_signal(warden, SCOPE_ORPHANS, 0, sig);
}

void warden_signal_all(struct warden *warden, int sig)
{
	assert(sig != SIGKILL);
	request_signal(warden, SCOPE_ALL, 0, sig);
}

void warden_kill_all(struct warden *warden)
{
	request_signal(warden, SCOPE_ALL, 0, SIGKILL);
}
