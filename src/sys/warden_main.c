/* The warden process: one loop over requests, exits, and the end of the agent. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/procfs.h"
#include "sys/cgroup.h"
#include "sys/proctree.h"
#include "sys/start/process_title.h"
#include "sys/start/spawn_cache.h"
#include "sys/start/start_ring.h"
#include "sys/warden_proto.h"

/* While killing, exits drive the work. A clock is only needed for processes that do not exit: it
 * starts fast and slows down. */
#define KILL_PERIOD_MIN_NS (10 * NS_PER_MS)
#define KILL_PERIOD_MAX_NS (500 * NS_PER_MS)
/* no event says that descriptors in flight have arrived */
#define CROWDED_RETRY_NS (10 * NS_PER_MS)
/* Answers to requests that come one behind the other share a message; the first waits this long at
 * most. */
#define HOLD_MAX_NS NS_PER_MS
#define SURVIVOR_AFTER_NS (500 * NS_PER_MS) /* killed this long ago and still there: report it */

enum kill_scope {
	KILL_NOTHING,
	KILL_ORPHANS,
	KILL_ALL,
};

struct main_process {
	uint64_t id;
	pid_t pid;
	uint64_t start_ns;
	bool quiet;
	bool aside; /* WARDEN_ASIDE */
};

struct wardship {
	struct wire wire;
	struct start_ring *ring; /* NULL: none; for the rest see struct warden_opts */
	int taker;
	struct buf taken;	   /* from the ring */
	bool is_along;		   /* it is where its last program was, by WARDEN_ALONG */
	struct warden_event ended; /* to be told: a program after which another may start */
	bool has_ended;
	pid_t agent;
	int agent_fd;	      /* pidfd of the agent; -1 if there is none */
	int stdio[3];	      /* the agent's descriptors, for SPAWN_INHERIT */
	const char *leaf;     /* its name */
	struct cgroup cgroup; /* of all programs, if there is one */
	bool cgroup_spent;    /* it was killed: see renew_cgroup() */
	bool agent_gone;
	struct main_process *mains;
	size_t main_count, main_cap;
	struct buf pointers; /* argv and envp of the request at hand */
	struct spawn_cache cache;
	bool empty_due; /* something was started or asked for since the last EMPTY */
	bool sync_due;	/* SYNCED is due */

	enum kill_scope killing;
	uint64_t kill_since_ns, kill_next_ns, kill_period_ns;
	struct pids newcomers; /* adopted, and still to be moved into the cgroup */
	struct pids killed;    /* children that got SIGKILL and are not yet reaped, oldest first */
	struct pids named;     /* survivors already reported */
	struct pids groups;    /* process groups that got `group_sig` */
	int group_sig;
};

/* ---- telling the agent ---- */

static void send_reply(struct wardship *ward, const struct warden_reply *reply, int pidfd)
{
	wire_begin(&ward->wire, 0);
	buf_append(&ward->wire.out, reply, sizeof(*reply));
	/* Exits wait for the flush at the end of the turn, so that many share one system call. */
	if (pidfd >= 0 && wire_end(&ward->wire, &pidfd, 1) == -EMFILE)
		send_reply(ward, reply, -1);
	else if (pidfd < 0)
		wire_end_later(&ward->wire);
}

static void tell(struct wardship *ward, const struct warden_event *event, bool answers_spawn,
		 int pidfd)
{
	if (ward->agent_gone)
		return;
	struct warden_reply reply;
	memset(&reply, 0, sizeof(reply)); /* padding too: it leaves the process */
	reply.event = *event;
	reply.answers_spawn = answers_spawn;
	send_reply(ward, &reply, pidfd);
}

static void tell_empty(struct wardship *ward)
{
	tell(ward, &(struct warden_event){ .type = WARDEN_EMPTY, .ns = clock_now_ns() }, false, -1);
	ward->empty_due = false;
}

static void tell_synced(struct wardship *ward)
{
	tell(ward, &(struct warden_event){ .type = WARDEN_SYNCED, .ns = clock_now_ns() }, false,
	     -1);
	ward->sync_due = false;
}

/* ---- starting ---- */

/* Replaces the markers in the request with descriptors of this process. */
static int resolve_stdio(const struct wardship *ward, const struct wire_frame *frame,
			 const struct request_spawn *head, struct spawn_spec *spec)
{
	size_t next = 0;
	for (int i = 0; i < 3 && !(head->flags & WARDEN_SAME); i++) {
		if (head->stdio[i] >= 0 && next >= frame->fd_count)
			return frame->fds_lost ? -EMFILE : -EPROTO;
		spec->stdio[i] = head->stdio[i] >= 0		   ? frame->fds[next++]
				 : head->stdio[i] == SPAWN_INHERIT ? ward->stdio[i]
								   : SPAWN_NULL;
	}
	if (next + head->has_group + head->has_extra > frame->fd_count)
		return frame->fds_lost ? -EMFILE : -EPROTO;
	spec->group_fd = head->has_group ? frame->fds[next++] : 0;
	spec->extra_fd = head->has_extra ? frame->fds[next] : 0;
	return 0;
}

static void add_main(struct wardship *ward, const struct main_process *main)
{
	ARRAY_RESERVE(ward->mains, ward->main_count, ward->main_cap);
	ward->mains[ward->main_count++] = *main;
}

static void refuse(struct wardship *ward, uint64_t id, enum spawn_step step, int error)
{
	tell(ward,
	     &(struct warden_event){ .type = WARDEN_SPAWN_FAILED,
				     .id = id,
				     .step = step,
				     .error = error,
				     .ns = clock_now_ns() },
	     true, -1);
}

static void tell_spawned(struct wardship *ward, const struct main_process *main, int pidfd)
{
	tell(ward,
	     &(struct warden_event){ .type = WARDEN_SPAWNED,
				     .id = main->id,
				     .pid = main->pid,
				     .start_ns = main->start_ns,
				     .ns = clock_now_ns() },
	     true, pidfd);
}

/* WARDEN_ALONG. If that fails, the child tries it, and tells why it cannot. */
static void go_along(struct wardship *ward, unsigned flags, struct spawn_spec *spec)
{
	if (!(flags & WARDEN_STAY))
		ward->is_along = flags & WARDEN_ALONG && spec->cpus &&
				 sched_setaffinity(0, spec->cpus_size, spec->cpus) == 0;
	if (ward->is_along)
		spec->cpus = NULL;
}

static void handle_spawn(struct wardship *ward, struct wire_frame *frame)
{
	struct request_spawn_view view;
	if (request_spawn_get(frame, &ward->pointers, &view) < 0)
		return;
	bool aside = view.head.flags & WARDEN_ASIDE;
	ward->empty_due |= !aside;
	uint64_t id = view.head.id;
	if (view.head.flags & WARDEN_STAY)
		spawn_cache_get_spot(&ward->cache, &id, &view.spec);
	else if (ward->ring)
		spawn_cache_put_spot(&ward->cache, id, &view.spec);
	int r = resolve_stdio(ward, frame, &view.head, &view.spec);
	if (r >= 0 && view.head.flags & WARDEN_SAME)
		r = spawn_cache_get(&ward->cache, ward->stdio, &view.spec);
	if (r < 0)
		return refuse(ward, id, SPAWN_STDIO, -r);
	if (view.head.flags & WARDEN_KEEP)
		spawn_cache_put(&ward->cache, view.head.stdio, frame->fds, view.spec.envp);
	if (ward->killing == KILL_ALL)
		return refuse(ward, id, SPAWN_REQUEST, ECANCELED);

	go_along(ward, view.head.flags, &view.spec);
	view.spec.cgroup_fd = ward->cgroup.path && !aside ? ward->cgroup.fd : 0;
	view.spec.tracer = ward->agent;
	view.spec.wants_pidfd = view.head.flags & WARDEN_PIDFD;
	struct spawned spawned;
	enum spawn_step step;
	r = spawn_start(&view.spec, &spawned, &step);
	if (r < 0)
		return refuse(ward, id, step, -r);
	AUTO(fd_close) int pidfd = spawned.pidfd;
	struct main_process main = { .id = id,
				     .pid = spawned.pid,
				     .quiet = view.head.flags & WARDEN_QUIET,
				     .aside = aside,
				     .start_ns = spawned.exec_ns };
	add_main(ward, &main);
	if (!main.quiet)
		tell_spawned(ward, &main, pidfd);
}

/* ---- reaping ---- */

static struct main_process *find_main_by_pid(struct wardship *ward, pid_t pid)
{
	for (size_t i = 0; i < ward->main_count; i++)
		if (ward->mains[i].pid == pid)
			return &ward->mains[i];
	return NULL;
}

/* Such a process does not keep the group alive and is not a target, until everything has to go. */
static bool is_spared(struct wardship *ward, pid_t pid)
{
	const struct main_process *main = ward->agent_gone ? NULL : find_main_by_pid(ward, pid);
	return main && main->aside;
}

static void tell_exit(struct wardship *ward, struct main_process *main, int wait_status,
		      const struct rusage *usage)
{
	struct warden_event event = { .type = WARDEN_EXITED,
				      .id = main->id,
				      .pid = main->pid,
				      .start_ns = main->start_ns,
				      .ns = clock_now_ns(),
				      .status = exit_status_from_wait(wait_status),
				      .usage = *usage };
	bool quiet = main->quiet;
	*main = ward->mains[--ward->main_count];
	ward->has_ended = ward->ring && quiet && ward->main_count == 0 && wait_status == 0;
	if (ward->has_ended)
		ward->ended = event;
	else
		tell(ward, &event, quiet, -1);
}

/* Tells of the program that has ended. `last`: nothing is left of it, so another may start; true
 * if one has. */
static bool tell_ended(struct wardship *ward, bool last)
{
	if (!ward->has_ended)
		return false;
	ward->has_ended = false;
	buf_clear(&ward->taken);
	if (last && !ward->killing && !ward->agent_gone && spawn_cache_is_fresh(&ward->cache))
		ward->ended.next = start_ring_take(ward->ring, ward->taker, &ward->taken);
	tell(ward, &ward->ended, true, -1);
	if (!ward->ended.next)
		return false;
	/* An end does not wait for a start, which may take long on a slow file server. */
	wire_flush(&ward->wire);
	handle_spawn(ward, &(struct wire_frame){ .type = REQUEST_SPAWN,
						 .data = buf_data(&ward->taken),
						 .len = buf_len(&ward->taken) });
	return ward->main_count > 0;
}

/* Whether a child is alive that is not spared. Call it only when some child is alive. */
static bool others_live(struct wardship *ward)
{
	size_t aside = 0;
	for (size_t i = 0; i < ward->main_count; i++)
		aside += ward->mains[i].aside;
	if (aside == 0 || aside < ward->main_count || ward->agent_gone)
		return true;
	AUTO(pids_done) struct pids children = PIDS_INIT;
	procfs_children(getpid(), &children);
	for (size_t i = 0; i < children.count; i++)
		if (!is_spared(ward, children.items[i]))
			return true;
	return false;
}

/* Reaps every dead child; true while there are living ones. */
static bool reap(struct wardship *ward)
{
	for (;;) {
		int status;
		struct rusage usage;
		pid_t pid = wait4(-1, &status, WNOHANG, &usage);
		if (pid <= 0)
			return pid == 0 && others_live(ward);
		struct main_process *main = find_main_by_pid(ward, pid);
		if (main)
			tell_exit(ward, main, status, &usage);
	}
}

/* ---- adopting ---- */

/* Only an unreaped child of ours: then the number means that process and no other. */
static bool is_orphan(struct wardship *ward, pid_t pid)
{
	siginfo_t info;
	return pid > 0 && !find_main_by_pid(ward, pid) &&
	       waitid(P_PID, (id_t)pid, &info, WEXITED | WNOHANG | WNOWAIT) == 0;
}

static void handle_adopt(struct wardship *ward, const struct wire_frame *frame)
{
	struct request_adopt request;
	if (frame->len != sizeof(request))
		return;
	memcpy(&request, frame->data, sizeof(request));
	ward->empty_due = true;
	if (request.pid == 0 || ward->killing == KILL_ALL)
		return refuse(ward, request.id, SPAWN_REQUEST, ECANCELED);
	if (frame->fd_count == 0)
		return refuse(ward, request.id, SPAWN_REQUEST, EMFILE);
	if (!is_orphan(ward, request.pid))
		return refuse(ward, request.id, SPAWN_PARENT, ECHILD);
	struct main_process main = { .id = request.id,
				     .pid = request.pid,
				     .start_ns = clock_now_ns() };
	add_main(ward, &main);
	tell_spawned(ward, &main, -1);
	ssize_t ignored UNUSED =
		write(frame->fds[0], "", 1); /* if it is dead, its exit will be reported */
	pids_add(&ward->newcomers, request.pid);
}

/* Moving a process takes the kernel a while, half of a warm start (it waits until no processor can
 * be in the middle of a fork): so this comes last. What the process starts meanwhile is killed as a
 * descendant; the cgroup helps but is not required. Before the next reap(), so that the numbers
 * still mean these processes. */
static void move_newcomers(struct wardship *ward)
{
	if (ward->newcomers.count > 0 && !ward->agent_gone)
		wire_flush(&ward->wire); /* the next turn will meet a failure again */
	for (size_t i = 0; ward->cgroup.path && i < ward->newcomers.count; i++)
		cgroup_add(&ward->cgroup, ward->newcomers.items[i]);
	pids_done(&ward->newcomers);
}

/* ---- signals and killing ---- */

static void name_survivor(void *arg, pid_t pid, int error)
{
	struct wardship *ward = arg;
	if (pids_has(&ward->named, pid))
		return;
	pids_add(&ward->named, pid);
	struct proc_stat stat = { .comm = "?", .state = '?' };
	procfs_stat(pid, &stat);
	struct warden_event event = { .type = WARDEN_SURVIVOR,
				      .pid = pid,
				      .error = error,
				      .state = stat.state,
				      .ns = clock_now_ns() };
	snprintf(event.comm, sizeof(event.comm), "%s", stat.comm);
	tell(ward, &event, false, -1);
}

/* Skip a child that was killed before: the list keeps its order and the newest are at the end, so
 * one walk along both lists tells them apart. (The clock forgets the list, which covers a reused
 * number.) */
static bool killed_before(const struct pids *killed, size_t *at, pid_t pid)
{
	for (size_t i = *at; i < killed->count; i++)
		if (killed->items[i] == pid) {
			*at = i + 1;
			return true;
		}
	return false;
}

/* False if /proc cannot be read (it is not mounted, or a limit was reached): then we know only
 * the processes that we have started ourselves. */
static bool list_children(const struct wardship *ward, struct pids *ret_children)
{
	if (procfs_children(getpid(), ret_children) >= 0)
		return true;
	pids_done(ret_children);
	for (size_t i = 0; i < ward->main_count; i++)
		pids_add(ret_children, ward->mains[i].pid);
	return false;
}

/* Kills the direct children. When they die, their children become ours, and their exits bring us
 * back. False if there are none to kill. */
static bool kill_children(struct wardship *ward)
{
	AUTO(pids_done) struct pids children = PIDS_INIT;
	struct pids targets = PIDS_INIT;
	size_t at = 0;
	bool known = list_children(ward, &children);
	for (size_t i = 0; i < children.count; i++) {
		pid_t pid = children.items[i];
		if (is_spared(ward, pid) ||
		    (ward->killing == KILL_ORPHANS && find_main_by_pid(ward, pid)))
			continue;
		pids_add(&targets, pid);
		if (!killed_before(&ward->killed, &at, pid) && kill(pid, SIGKILL) < 0 &&
		    errno != ESRCH)
			name_survivor(ward, pid, errno);
	}
	bool any = targets.count > 0 || !known;
	pids_done(&ward->killed);
	ward->killed = targets;
	return any;
}

/* A worker leads its process group, unless it gave that up. */
static void signal_main(struct wardship *ward, pid_t pid, int sig, bool group)
{
	if (!group || kill(-pid, sig) < 0) {
		kill(pid, sig);
		return;
	}
	if (sig != ward->group_sig)
		pids_done(&ward->groups);
	ward->group_sig = sig;
	pids_add(&ward->groups, pid);
}

/* Orphans that had the signal already, as members of a worker's process group. */
static void add_signalled(const struct wardship *ward, int sig, struct pids *out)
{
	if (sig != ward->group_sig || ward->groups.count == 0)
		return;
	AUTO(pids_done) struct pids children = PIDS_INIT;
	procfs_children(getpid(), &children);
	for (size_t i = 0; i < children.count; i++)
		if (pids_has(&ward->groups, getpgid(children.items[i])))
			pids_add(out, children.items[i]);
}

/* The processes that a signal must skip; borrows nothing. */
static struct pids exempt_pids(const struct wardship *ward, bool orphans_only)
{
	struct pids pids = PIDS_INIT;
	for (size_t i = 0; i < ward->main_count; i++)
		if (orphans_only || (ward->mains[i].aside && !ward->agent_gone))
			pids_add(&pids, ward->mains[i].pid);
	return pids;
}

static void kill_cgroup(struct wardship *ward)
{
	if (ward->killing != KILL_ALL || !ward->cgroup.path)
		return;
	cgroup_kill(&ward->cgroup);
	ward->cgroup_spent = true;
}

/* A cgroup that was killed once cannot be reused: clone3(CLONE_INTO_CGROUP) compares its kill
 * counter with that of the parent's cgroup and kills the child if they differ. */
static void renew_cgroup(struct wardship *ward)
{
	cgroup_remove(&ward->cgroup);
	ward->cgroup = CGROUP_INIT;
	cgroup_make(ward->leaf, &ward->cgroup, NULL);
	ward->cgroup_spent = false;
}

static size_t signal_tree(struct wardship *ward, bool orphans_only, int sig)
{
	AUTO(pids_done) struct pids skip = exempt_pids(ward, orphans_only);
	if (orphans_only && sig != SIGKILL)
		add_signalled(ward, sig, &skip);
	return proctree_signal(sig, &skip, sig == SIGKILL ? name_survivor : NULL, ward);
}

static void stop_killing(struct wardship *ward)
{
	ward->killing = KILL_NOTHING;
	pids_done(&ward->killed);
	pids_done(&ward->named);
	if (ward->cgroup_spent && !ward->agent_gone)
		renew_cgroup(ward);
}

static void start_killing(struct wardship *ward, enum kill_scope scope)
{
	if (scope <= ward->killing)
		return;
	pids_done(&ward->killed);
	ward->killing = scope;
	ward->kill_since_ns = clock_now_ns();
	ward->kill_period_ns = KILL_PERIOD_MIN_NS;
	ward->kill_next_ns = ward->kill_since_ns + ward->kill_period_ns;
	kill_cgroup(ward);
}

/* Exits drive the killing, but a child that does not exit keeps its descendants out of reach: so
 * now and then kill the whole tree, and report what is still there after a while. */
static void kill_on_clock(struct wardship *ward, uint64_t now_ns)
{
	pids_done(&ward->killed);
	kill_cgroup(ward);
	signal_tree(ward, ward->killing == KILL_ORPHANS, SIGKILL);
	if (now_ns - ward->kill_since_ns >= SURVIVOR_AFTER_NS) {
		AUTO(pids_done) struct pids children = PIDS_INIT;
		procfs_children(getpid(), &children);
		for (size_t i = 0; i < children.count; i++)
			if (!is_spared(ward, children.items[i]) &&
			    (ward->killing == KILL_ALL ||
			     !find_main_by_pid(ward, children.items[i])))
				name_survivor(ward, children.items[i], EBUSY);
	}
	ward->kill_period_ns = MIN(ward->kill_period_ns * 2, KILL_PERIOD_MAX_NS);
	ward->kill_next_ns = now_ns + ward->kill_period_ns;
}

static void kill_round(struct wardship *ward, bool children)
{
	uint64_t now_ns = clock_now_ns();
	if (now_ns >= ward->kill_next_ns)
		kill_on_clock(ward, now_ns);
	if (!kill_children(ward) || !children)
		stop_killing(ward);
}

static void handle_signal(struct wardship *ward, const struct wire_frame *frame)
{
	struct request_signal request;
	if (frame->len != sizeof(request))
		return;
	memcpy(&request, frame->data, sizeof(request));
	if (request.scope == SCOPE_MAIN || request.scope == SCOPE_GROUP) {
		for (size_t i = 0; i < ward->main_count; i++)
			if (ward->mains[i].id == request.id)
				signal_main(ward, ward->mains[i].pid, request.sig,
					    request.scope == SCOPE_GROUP);
	} else if (request.sig == SIGKILL && request.scope == SCOPE_ALL && !reap(ward)) {
		/* Nothing to kill: answer at once, so that a start right behind it does not
		 * fail. */
		tell_ended(ward, false);
		tell_empty(ward);
	} else if (request.sig == SIGKILL) {
		start_killing(ward, request.scope == SCOPE_ALL ? KILL_ALL : KILL_ORPHANS);
		ward->empty_due |= request.scope == SCOPE_ALL;
	} else {
		signal_tree(ward, request.scope == SCOPE_ORPHANS, request.sig);
	}
}

/* ---- the loop ---- */

static void agent_is_gone(struct wardship *ward)
{
	if (ward->agent_gone)
		return;
	ward->agent_gone = true;
	wire_done(&ward->wire);
	fd_close(&ward->agent_fd);
	for (int i = 0; i < 3; i++)
		fd_close(&ward->stdio[i]);
	spawn_cache_close(&ward->cache);
	if (reap(ward))
		start_killing(ward, KILL_ALL);
}

/* What one system call receives; false if there is nothing to receive. */
static bool take_requests(struct wardship *ward)
{
	ssize_t n = wire_fill(&ward->wire);
	if (n == -EAGAIN)
		return false;
	if (n <= 0) {
		agent_is_gone(ward);
		return false;
	}
	struct wire_frame frame;
	while (wire_next(&ward->wire, &frame) > 0) {
		if (frame.type == REQUEST_SPAWN)
			handle_spawn(ward, &frame);
		else if (frame.type == REQUEST_ADOPT)
			handle_adopt(ward, &frame);
		else if (frame.type == REQUEST_SIGNAL)
			handle_signal(ward, &frame);
		else if (frame.type == REQUEST_SYNC)
			ward->sync_due = true;
		wire_frame_done(&frame);
	}
	return true;
}

/* Each answer wakes the agent, which has nothing to do but to note it while it starts a group. */
static void handle_requests(struct wardship *ward)
{
	uint64_t until_ns = clock_now_ns() + HOLD_MAX_NS;
	while (take_requests(ward) && wire_waits(&ward->wire) && clock_now_ns() < until_ns)
		;
}

/* Only processes are left that we may not signal: there is nothing more to do. */
static bool only_strangers_left(const struct wardship *ward)
{
	for (size_t i = 0; i < ward->killed.count; i++)
		if (kill(ward->killed.items[i], 0) == 0 || errno != EPERM)
			return false;
	return ward->killed.count > 0;
}

/* Sleeps until a request, an exit (SIGCHLD is unblocked only here) or the clock of the killing. */
static void wait_for_something(struct wardship *ward)
{
	struct pollfd fds[] = {
		{ .fd = ward->wire.fd, .events = POLLIN },
		{ .fd = ward->agent_fd, .events = POLLIN },
	};
	uint64_t wake_ns = ward->killing ? ward->kill_next_ns : NS_NEVER;
	if (!ward->agent_gone && wire_waits(&ward->wire)) {
		if (ward->wire.crowded)
			wake_ns = MIN(wake_ns, clock_now_ns() + CROWDED_RETRY_NS);
		else
			fds[0].events |= POLLOUT;
	}
	struct timespec left, *timeout = NULL;
	if (wake_ns != NS_NEVER) {
		uint64_t now_ns = clock_now_ns(), left_ns = wake_ns > now_ns ? wake_ns - now_ns : 0;
		left = (struct timespec){ (time_t)(left_ns / NS_PER_S),
					  (long)(left_ns % NS_PER_S) };
		timeout = &left;
	}
	sigset_t all_but_child;
	sigfillset(&all_but_child);
	sigdelset(&all_but_child, SIGCHLD);
	int ready = ppoll(fds, ARRAY_LEN(fds), timeout, &all_but_child);
	if (ready <= 0)
		return;
	if (fds[0].revents & POLLOUT)
		wire_flush(&ward->wire);
	if (fds[0].revents & (POLLIN | POLLHUP | POLLERR))
		handle_requests(ward);
	if (fds[1].revents)
		agent_is_gone(ward);
}

static void watch_over(struct wardship *ward)
{
	for (;;) {
		bool children = reap(ward);
		children |= tell_ended(ward, !children);
		if (ward->killing)
			kill_round(ward, children);
		if (!children && ward->empty_due)
			tell_empty(ward);
		if (ward->sync_due && !ward->killing)
			tell_synced(ward);
		if (ward->agent_gone && (!children || only_strangers_left(ward)))
			return;
		if (!ward->agent_gone && wire_flush(&ward->wire) < 0) {
			agent_is_gone(ward); /* perhaps the last reason to wait */
			continue;
		}
		wait_for_something(ward);
		move_newcomers(ward);
	}
}

/* ---- becoming the warden ---- */

static void on_child(int sig UNUSED)
{
	/* Its arrival ends ppoll(). */
}

/* All are blocked. */
static void set_signals(void)
{
	/* Workers inherit ignored signals, so ignore none. Directly by system call, because the C
	 * library reserves two signals, which are inherited too. */
	const unsigned long kernel_default[4] = { 0 };
	for (int sig = 1; sig < NSIG; sig++)
		syscall(SYS_rt_sigaction, sig, kernel_default, NULL, sizeof(unsigned long));
	struct sigaction action = { .sa_handler = on_child };
	sigaction(SIGCHLD, &action, NULL);
}

/* Numbers of the descriptors that are cache. */
enum {
	FIRST_FD = 3,
	LINK_FD = FIRST_FD,
	STDIO_FD, /* three */
	AGENT_FD = STDIO_FD + 3,
	FD_COUNT = AGENT_FD + 1 - FIRST_FD,
};

/* Moves it above all these numbers. */
static int lift(int fd)
{
	return fcntl(fd, F_DUPFD_CLOEXEC, FIRST_FD + FD_COUNT);
}

/* Keeps these `count` descriptors under the numbers from FIRST_FD on, and closes everything else.
 */
static void keep_descriptors(int *cache, int count)
{
	for (int i = 0; i < count; i++)
		cache[i] = lift(cache[i]);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (null < 0 || cache[0] < 0)
		_exit(1);
	for (int i = 0; i < 3; i++)
		dup2(null, i);
	for (int i = 0; i < count; i++)
		if (cache[i] < 0 || dup3(cache[i], FIRST_FD + i, O_CLOEXEC) < 0)
			close(FIRST_FD + i);
	close_range((unsigned)(FIRST_FD + count), ~0U, 0);
}

int warden_close_all_but(int fd)
{
	keep_descriptors(&fd, 1);
	return FIRST_FD;
}

static void set_descriptors(struct wardship *ward, int link, int agent_fd)
{
	int cache[FD_COUNT] = { link, 0, 1, 2, agent_fd };
	keep_descriptors(cache, FD_COUNT);
	wire_init(&ward->wire, LINK_FD);
	for (int i = 0; i < 3; i++)
		ward->stdio[i] = cache[1 + i] >= 0 ? STDIO_FD + i : SPAWN_NULL;
	ward->agent_fd = cache[AGENT_FD - FIRST_FD] >= 0 ? AGENT_FD : -1;
}

static void tell_born(struct wardship *ward)
{
	struct warden_reply reply;
	memset(&reply, 0, sizeof(reply));
	reply.event.pid = getpid();
	reply.born = true;
	AUTO(fd_close) int pidfd = pidfd_open(getpid(), 0);
	send_reply(ward, &reply, pidfd);
}

_Noreturn void warden_main(const struct warden_opts *opts, const char *leaf, int link, int agent_fd,
			   pid_t agent)
{
	process_title_take(opts->name ? opts->name : "warden");
	set_signals();

	struct wardship ward = {
		.agent = agent,
		.leaf = leaf,
		.cgroup = CGROUP_INIT,
		.cache = SPAWN_CACHE_INIT,
		.ring = opts->ring,
		.taker = opts->taker,
	};
	set_descriptors(&ward, link, agent_fd);
	tell_born(&ward);
	/* Optional. If the agent is process 1, the kernel kills everything with it, and no process
	 * is left to remove the leaf. */
	if (agent != 1)
		cgroup_make(leaf, &ward.cgroup, NULL);
	watch_over(&ward);
	cgroup_remove(&ward.cgroup);
	_exit(0);
}
