/* The warden: a small process, the parent of all workers, that outlives the agent (the process that
 * calls this) just long enough to leave nothing behind.
 *
 *	agent  --  heir  --  warden  --  workers
 *
 * It starts programs, reaps them and everything they orphan, and reports. It is a child subreaper
 * in its own session, and neither its name nor its command line is that of the program, so a kill
 * of the agent's process group or by its name misses it. When the agent is gone, it kills all of
 * its descendants, again and again until none is left, and exits. When the warden is gone
 * (WARDEN_LOST), the workers die by their parent-death signal, and the heir, a subreaper that does
 * nothing else, kills what they leave, also when the agent was killed in the same moment. The agent
 * kills along (sys/sweeper.h), because the heir may be stopped or killed, too, and then makes a new
 * warden.
 *
 * Where it can make a cgroup v2 leaf, its programs are born in that, and it kills the cgroup as a
 * whole. That also reaches processes that we may not signal.
 *
 * Nothing here blocks. While idle, neither side makes a system call.
 *
 *	struct warden *warden;
 *	int r = warden_new(NULL, &warden, &err);
 *	warden_watch(warden, base, on_warden, arg);
 *	r = warden_spawn(warden, rank, &spec, 0, &err);
 *
 *	static void on_warden(struct warden *warden, void *arg)
 *	{
 *		struct warden_event event;
 *		while (warden_next(warden, &event))
 *			switch (event.type) { ... }
 *	}
 */
#ifndef SYS_WARDEN_H
#define SYS_WARDEN_H

#include <sys/resource.h>

#include "base/err.h"
#include "core/worker/exit_status.h"
#include "sys/spawn.h"

struct event_base;
struct start_ring;
struct warden;

enum warden_event_type {
	WARDEN_SPAWNED,	     /* the program was executed: id, pid, pidfd, start_ns, ns */
	WARDEN_SPAWN_FAILED, /* the start failed and left nothing behind: id, error, step */
	/* a main process ended: id, pid, start_ns, ns, status, usage; next: the one from the ring
	 * that is started in its place, of which nothing is left */
	WARDEN_EXITED,
	WARDEN_EMPTY,	 /* the last descendant is gone and no start is under way: ns */
	WARDEN_SYNCED,	 /* warden_sync(): all earlier requests are done */
	WARDEN_SURVIVOR, /* killed, and still there: pid, comm, error, state */
	WARDEN_LOST,	 /* the warden is gone; the last event */
	WARDEN_EVENT_COUNT,
};

struct warden_event {
	enum warden_event_type type;
	uint64_t id; /* as given to warden_spawn() */
	pid_t pid;
	int pidfd;	   /* SPAWNED with WARDEN_PIDFD: the caller closes it; otherwise -1 */
	uint64_t start_ns; /* monotonic: right before its execve(), already pinned */
	uint64_t ns;	   /* monotonic: executed; reaped; empty */
	struct exit_status status;
	struct rusage usage; /* of the main process and the children it waited for */
	uint64_t next;	     /* EXITED: number on the ring; 0: none */
	/* errno. SURVIVOR: EPERM we may not signal it, EBUSY it does not die */
	int error;
	enum spawn_step step; /* SPAWN_FAILED: what failed; "cannot <spawn_step_name()> <path>" */
	char comm[16];	      /* SURVIVOR: its name */
	char state;	      /* SURVIVOR: its state letter ('D': uninterruptible sleep) */
};

struct warden_opts {
	const char *name; /* of the process, for ps; NULL: "warden" */
	/* From here it takes what it starts next, as this taker, when its only program, a quiet
	 * one, has exited with 0, has left no process, and has written nothing to the files that
	 * are kept (WARDEN_KEEP). NULL: none. Must live as long as the warden. */
	struct start_ring *ring;
	int taker;
	void (*after_agent)(void); /* called when all is over and the agent was killed; or NULL */
};

/* Forks heir and warden and makes the calling process a child subreaper. Call it early: the warden
 * is a copy of the caller, and every worker's ru_maxrss includes that size. */
int warden_new(const struct warden_opts *opts, struct warden **ret_warden, struct err *err);

/* Closes the connection: the warden kills what it still has, and ends. */
void warden_close(struct warden *warden);

/* The same, unless that is done, and waits at most a second for the end, so that no zombie is left;
 * for what takes longer (D state) the warden continues alone. A stopped warden (SIGSTOP) is
 * continued or, if that does not help, killed together with its descendants. After LOST it waits as
 * long for the heir. A program that is about to exit need not call it. Not from inside
 * warden_next(). */
void warden_free(struct warden *warden);

/* After LOST: the process that kills what the warden left; our child. */
pid_t warden_heir(const struct warden *warden);

/* After LOST, without waiting: true if the heir has ended, and then frees the warden. `idle` says
 * that the caller has found nothing alive below the heir; one that does not end all the same (it is
 * stopped again and again, or traced) is killed after a while. */
bool warden_try_free(struct warden *warden, bool idle);

/* Right after warden_new() it waits for the moment that the warden takes to be born. */
pid_t warden_pid(struct warden *warden);

/* Calls on_ready from the loop when warden_next() has an event. */
typedef void warden_ready_fn(struct warden *warden, void *arg);
int warden_watch(struct warden *warden, struct event_base *base, warden_ready_fn *on_ready,
		 void *arg);

/* Without a loop: waits until warden_next() may have an event. 0, or -ETIMEDOUT. */
int warden_wait(struct warden *warden, uint64_t deadline_ns);

/* 1 with the next event, 0 when there is none now. Answers come in the order of the requests, exits
 * of all workers in the order in which they were reaped. */
int warden_next(struct warden *warden, struct warden_event *ret_event);

enum warden_spawn_flags {
	WARDEN_PIDFD = 1 << 0, /* SPAWNED brings a pidfd */
	WARDEN_QUIET = 1 << 1, /* no SPAWNED, only its EXITED or SPAWN_FAILED */
	/* It is not part of the group: not in the workers' cgroup; EMPTY ignores it and its
	 * descendants, and so do all signals but warden_signal(), and warden_kill_all(). It ends
	 * with the warden. */
	WARDEN_ASIDE = 1 << 2,
	/* The warden keeps the environment and the descriptors of stdio, open, until the next
	 * request with this flag. */
	WARDEN_KEEP = 1 << 3,
	/* Takes those that it has kept: `envp` and `stdio` of the spec are not sent. */
	WARDEN_SAME = 1 << 4,
	/* Takes id, CPUs and memory nodes of the one before. */
	WARDEN_STAY = 1 << 5,
	/* The warden itself goes to the CPUs first: then nothing moves at the start, and no other
	 * CPU is woken. It stays there, so the next ones must have CPUs, too. */
	WARDEN_ALONG = 1 << 6,
};

/* Asks to start a program; the outcome comes as an event with `id`, unique among the living. Takes
 * arguments of any size; the kernel rejects too many (SPAWN_FAILED, E2BIG). The spec and its
 * descriptors are borrowed for the call. Fails with EMFILE, if the request has to wait and its
 * descriptors cannot be duplicated, or EPIPE (LOST follows). */
int warden_spawn(struct warden *warden, uint64_t id, const struct spawn_spec *spec, unsigned flags,
		 struct err *err);

/* Lays a start on the ring: a quiet one that takes everything from the one before but what is to
 * be executed, in which directory and with which priority. False if it is too long for that. */
bool warden_lay(struct start_ring *ring, uint64_t number, const struct spawn_spec *spec);

/* Makes an orphan that the warden has inherited the main process of a worker, as if it had been
 * started with `id`: SPAWNED (without a pidfd) and later EXITED; SPAWN_FAILED (ECHILD) if there is
 * no such child. `gate` (borrowed) is the writing end of a pipe on which the process waits: it gets
 * one byte when the warden has adopted it. Pid 0: there is no process, which is reported as a
 * failed start (ECANCELED) in its turn. Fails as warden_spawn(). */
int warden_adopt(struct warden *warden, uint64_t id, pid_t pid, int gate, struct err *err);

/* Asks for WARDEN_SYNCED, which comes once every earlier request has been carried out and no
 * killing is under way: no earlier signal hits what becomes an orphan from then on. */
void warden_sync(struct warden *warden);

/* Signals the main process of one worker; does nothing if it has ended. */
void warden_signal(struct warden *warden, uint64_t id, int sig);

/* Signals the process group that the main process leads, as a terminal does with Ctrl-C. What is in
 * it does not get the same signal again by warden_signal_orphans(). */
void warden_signal_group(struct warden *warden, uint64_t id, int sig);

/* Signals all descendants without a living main process. SIGKILL: again and again until none is
 * left. */
void warden_signal_orphans(struct warden *warden, int sig);

/* Signals every descendant. Not for SIGKILL. */
void warden_signal_all(struct warden *warden, int sig);

/* Kills every descendant, again and again until none is left; EMPTY reports that, at once if there
 * is none. Requests to start that reach the warden before that fail (ECANCELED). A watched warden
 * that does not answer for some seconds is killed, and LOST follows. */
void warden_kill_all(struct warden *warden);

#endif
