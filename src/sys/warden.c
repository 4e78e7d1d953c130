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
#include "base/procfs.h"
#include "base/random.h"
#include "sys/cgroup.h"
#include "sys/proctree.h"
#include "sys/start/start_ring.h"
#include "sys/warden_proto.h"

#define FREE_WAIT_MS 1000
#define BORN_WAIT_NS NS_PER_S
#define IDLE_HEIR_MAX_NS (2 * NS_PER_S) /* it looks every few ms; a busy host takes longer */
#define LEAF_NAME_MAX 32
#define CGROUP_WAIT_NS (200 * NS_PER_MS)
/* no event says "fewer descriptors are in flight" */
#define CROWDED_RETRY_MS 10
/* To warden_kill_all() the warden answers within SURVIVOR_AFTER_NS, however long the killing takes.
 */
#define MUTE_MAX_S 5

struct warden {
	struct wire wire;
	pid_t heir;		  /* our child; the warden itself if it has none */
	pid_t pid;		  /* 0: it has not told yet */
	int pidfd;		  /* of the warden; -1 */
	char leaf[LEAF_NAME_MAX]; /* name of its cgroup */
	size_t starting;	  /* requests to start without an answer yet */
	bool deaf;		  /* sending failed; what it has sent is still read */
	bool lost, told_lost;
	uint64_t lost_ns;  /* when that was told */
	bool answers_kill; /* it has named a survivor: it works on them */
	struct event *on_readable, *on_writable, *on_retry, *on_mute; /* NULL unless watched */
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
	pid_t heir = child_fork();
	if (heir < 0)
		return err_set(err, errno, "fork: %m");
	if (heir == 0)
		heir_main(opts ? opts : &(struct warden_opts){ .name = NULL }, leaf, theirs, agent);

	struct warden *warden = NEW(struct warden);
	wire_init(&warden->wire, fd_take(&ours));
	warden->heir = heir;
	warden->pidfd = -1;
	memcpy(warden->leaf, leaf, sizeof(leaf));
	*ret_warden = warden;
	return 0;
}

/* ---- the end ---- */

/* Waits for the heir, which ends last: 1 if it has ended, and nothing is left below it unless it
 * was killed. Then our own resource usage includes that of the workers. */
static int wait_for_heir(struct warden *warden, int ms, bool *ret_clean)
{
	AUTO(fd_close) int pidfd = pidfd_open(warden->heir, 0);
	struct pollfd ended = { .fd = pidfd, .events = POLLIN };
	int r, status;
	do
		r = pidfd < 0 ? 0 : poll(&ended, 1, ms);
	while (r < 0 && errno == EINTR);
	if (!child_try_wait(warden->heir, &status))
		return 0;
	*ret_clean = WIFEXITED(status) && WEXITSTATUS(status) == 0;
	return 1;
}

static void signal_warden(struct warden *warden, int sig)
{
	if (warden->pidfd >= 0)
		pidfd_send_signal(warden->pidfd, sig, NULL, 0);
}

/* In case they were stopped: they have work to do. A warden that has not told its pid yet has no
 * child. */
static void wake(struct warden *warden)
{
	kill(warden->heir, SIGCONT);
	if (warden->pidfd >= 0)
		signal_warden(warden, SIGCONT);
	else
		proctree_signal_below(warden->heir, SIGCONT);
}

static bool stands_still(struct warden *warden)
{
	struct proc_stat stat;
	return warden->pidfd >= 0 && procfs_stat(warden->pid, &stat) == 0 && stat.state == 'T';
}

void warden_clear_cgroup(const char *leaf)
{
	struct cgroup cgroup;
	if (cgroup_open(leaf, &cgroup, NULL) < 0)
		return;
	if (cgroup_kill(&cgroup) == 0)
		cgroup_wait_empty(&cgroup, clock_now_ns() + CGROUP_WAIT_NS);
	cgroup_remove(&cgroup);
}

/* The warden was killed, and the heir clears up after it: has it ended after `ms`? */
static bool end_lost(struct warden *warden, int ms)
{
	bool clean;
	if (!wait_for_heir(warden, ms, &clean))
		return false;
	if (!clean)
		warden_clear_cgroup(warden->leaf);
	return true;
}

/* It was continued when we closed the connection: so something keeps stopping it. */
static void end_stopped(struct warden *warden)
{
	bool clean = false;
	signal_warden(warden, SIGKILL);
	wait_for_heir(warden, FREE_WAIT_MS, &clean);
}

static void wait_for_end(struct warden *warden)
{
	bool clean;
	if (warden->lost)
		end_lost(warden, FREE_WAIT_MS);
	else if (!wait_for_heir(warden, FREE_WAIT_MS, &clean) && stands_still(warden))
		end_stopped(warden);
}

static void event_drop(struct event **event)
{
	if (*event)
		event_free(*event);
	*event = NULL;
}

static void close_link(struct warden *warden)
{
	event_drop(&warden->on_readable);
	event_drop(&warden->on_writable);
	event_drop(&warden->on_retry);
	event_drop(&warden->on_mute);
	wire_done(&warden->wire);
}

static void release(struct warden *warden)
{
	fd_close(&warden->pidfd);
	free(warden);
}

void warden_close(struct warden *warden)
{
	if (!warden)
		return;
	close_link(warden);
	warden->deaf = true;
	wake(warden);
}

void warden_free(struct warden *warden)
{
	if (!warden)
		return;
	warden_close(warden);
	wait_for_end(warden);
	release(warden);
}

pid_t warden_heir(const struct warden *warden)
{
	return warden->heir;
}

bool warden_try_free(struct warden *warden, bool idle)
{
	close_link(warden);
	kill(warden->heir, SIGCONT);
	if (idle && clock_now_ns() - warden->lost_ns >= IDLE_HEIR_MAX_NS)
		kill(warden->heir, SIGKILL);
	if (!end_lost(warden, 0))
		return false;
	release(warden);
	return true;
}

/* ---- messages ---- */

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
	warden->wire.drained = false;
	if (what & EV_READ)
		warden->on_ready(warden, warden->arg);
}

/* It hangs in the start of a program whose file server does not answer, or is traced. Everything
 * was to be killed: the heir does that. */
static void on_mute(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	signal_warden(arg, SIGKILL);
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
	warden->on_mute = event_new(base, -1, 0, on_mute, warden);
	if (!warden->on_readable || !warden->on_writable || !warden->on_retry || !warden->on_mute)
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
		warden->wire.drained = false;
		if (ready.revents & (POLLIN | POLLHUP))
			return 0;
	}
}

/* The next frame, received if need be; 0 when there is none now. */
static int next_frame(struct warden *warden, struct wire_frame *ret_frame)
{
	int r = wire_next(&warden->wire, ret_frame);
	while (r == 0 && !warden->lost && !warden->wire.drained) {
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

static void take_reply(const struct wire_frame *frame, struct warden_reply *ret_reply)
{
	assert(frame->len == sizeof(*ret_reply));
	memcpy(ret_reply, frame->data, sizeof(*ret_reply));
}

/* Its first message. */
static void take_born(struct warden *warden, const struct warden_reply *reply,
		      struct wire_frame *frame)
{
	assert(reply->born);
	warden->pid = reply->event.pid;
	warden->pidfd = frame->fd_count ? fd_take(&frame->fds[0]) : -1;
}

/* The next reply; its frame is the caller's to free. 0 when there is none now. */
static int next_reply(struct warden *warden, struct wire_frame *ret_frame,
		      struct warden_reply *ret_reply)
{
	while (next_frame(warden, ret_frame)) {
		take_reply(ret_frame, ret_reply);
		if (!ret_reply->born)
			return 1;
		take_born(warden, ret_reply, ret_frame);
		wire_frame_done(ret_frame);
	}
	return 0;
}

pid_t warden_pid(struct warden *warden)
{
	uint64_t deadline_ns = clock_now_ns() + BORN_WAIT_NS;
	while (warden->pid == 0 && warden_wait(warden, deadline_ns) == 0 && !warden->lost) {
		struct wire_frame frame;
		struct warden_reply reply;
		if (!next_frame(warden, &frame))
			continue;
		take_reply(&frame, &reply);
		take_born(warden, &reply, &frame);
		wire_frame_done(&frame);
	}
	return warden->pid ? warden->pid : warden->heir;
}

static void note_answer(struct warden *warden, bool survivor)
{
	warden->answers_kill = survivor;
	if (warden->on_mute)
		event_del(warden->on_mute);
}

static int tell_lost(struct warden *warden, struct warden_event *ret_event)
{
	if (!warden->lost || warden->told_lost)
		return 0;
	warden->told_lost = true;
	warden->lost_ns = clock_now_ns();
	if (warden->on_readable)
		event_del(warden->on_readable);
	note_answer(warden, false);
	update_watch(warden);
	*ret_event =
		(struct warden_event){ .type = WARDEN_LOST, .pidfd = -1, .ns = warden->lost_ns };
	return 1;
}

int warden_next(struct warden *warden, struct warden_event *ret_event)
{
	struct wire_frame frame;
	struct warden_reply reply;
	while (next_reply(warden, &frame, &reply)) {
		*ret_event = reply.event;
		ret_event->pidfd = frame.fd_count ? fd_take(&frame.fds[0]) : -1;
		wire_frame_done(&frame);
		if (reply.answers_spawn)
			warden->starting--;
		if (ret_event->type == WARDEN_EXITED && ret_event->next)
			warden->starting++;
		if (ret_event->type == WARDEN_EMPTY || ret_event->type == WARDEN_SURVIVOR)
			note_answer(warden, ret_event->type == WARDEN_SURVIVOR);
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
	int fds[WIRE_FDS_MAX];
	size_t fd_count = 0;
	for (int i = 0; i < 3; i++)
		if (spec->stdio[i] >= 0 && !(flags & WARDEN_SAME))
			fds[fd_count++] = spec->stdio[i];
	if (spec->group_fd > 0)
		fds[fd_count++] = spec->group_fd;
	if (spec->extra_fd > 0)
		fds[fd_count++] = spec->extra_fd;
	wire_begin(&warden->wire, REQUEST_SPAWN);
	request_spawn_put(&warden->wire.out, id, spec, flags);
	int r = send_frame(warden, fds, fd_count);
	if (r < 0)
		return err_set(err, -r, "ask the warden to start %s: %m", spec->path);
	warden->starting++;
	return 0;
}

bool warden_lay(struct start_ring *ring, uint64_t number, const struct spawn_spec *spec)
{
	AUTO(buf_done) struct buf request = BUF_INIT;
	request_spawn_put(&request, 0, spec, WARDEN_QUIET | WARDEN_SAME | WARDEN_STAY);
	return start_ring_lay(ring, number, &request);
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
	wake(warden); /* a stopped warden would let its workers outlive us */
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
	if (warden->on_mute && !warden->deaf && !warden->answers_kill)
		event_add(warden->on_mute, &(struct timeval){ .tv_sec = MUTE_MAX_S });
}
