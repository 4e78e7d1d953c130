/* A warden, its heir or its agent is killed, is stopped or hangs; and the sweep after that. */
#include "unit.h"

#include "loop.h"
#include "warden_rig.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/pidfd.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/child.h"
#include "base/fd.h"
#include "base/procfs.h"
#include "sys/proctree.h"
#include "sys/warden_proto.h"

TEST(a_killed_warden_is_told_and_what_it_leaves_can_be_swept)
{
	struct warden *warden = new_warden(), *other = new_warden();
	start(other, 2, "exec sleep 1000");
	pid_t bystander = await(other, WARDEN_SPAWNED).pid;
	pid_t escaped = first_pid(warden, "setsid sh -c 'echo $$; exec sleep 1000' & wait");
	kill_warden(warden);
	struct warden_event event;
	ck_assert_int_eq(warden_next(warden, &event), 0);
	struct err err;
	char *argv[] = { (char *)"x", NULL };
	struct spawn_spec spec = { .path = "/bin/true", .argv = argv, .envp = no_env };
	ck_assert_int_eq(warden_spawn(warden, 1, &spec, 0, &err), -EPIPE);

	sweep_after(warden);
	ck_assert(!exists(escaped));
	ck_assert(exists(bystander));
	warden_free(other);
	ck_assert(!exists(bystander));
}

static void stop(pid_t pid)
{
	struct proc_stat stat;
	kill(pid, SIGSTOP);
	do
		ck_assert_int_eq(procfs_stat(pid, &stat), 0);
	while (stat.state != 'T');
}

TEST(a_stopped_warden_is_continued_when_its_agent_lets_go)
{
	struct warden *warden = new_warden();
	pid_t escaped = first_pid(warden, "setsid sh -c 'echo $$; exec sleep 1000' & wait");
	stop(warden_pid(warden));
	warden_free(warden);
	ck_assert(!exists(escaped));
}

TEST(a_stopped_warden_kills_when_it_is_asked_to)
{
	struct warden *warden = new_warden();
	start(warden, 1, "trap '' TERM; exec sleep 1000");
	await(warden, WARDEN_SPAWNED);
	stop(warden_pid(warden));
	warden_kill_all(warden);
	await(warden, WARDEN_EMPTY);
	warden_free(warden);
}

static pid_t first_child(pid_t parent)
{
	AUTO(pids_done) struct pids found = PIDS_INIT;
	while (found.count == 0)
		procfs_children(parent, &found);
	return found.items[0];
}

TEST(a_warden_that_is_stopped_at_its_birth_is_continued)
{
	struct warden *warden = new_warden();
	stop(first_child(first_child(getpid())));
	start(warden, 1, "trap '' TERM; exec sleep 1000");
	warden_kill_all(warden);
	await(warden, WARDEN_EMPTY);
	warden_free(warden);
}

TEST(a_warden_whose_agent_left_before_its_first_word_exits)
{
	int ends[2], life[2];
	ck_assert_int_eq(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends),
			 0);
	ck_assert_int_eq(pipe2(life, O_CLOEXEC), 0);
	close(ends[0]);
	pid_t warden = fork();
	if (warden == 0)
		warden_main(&(struct warden_opts){ 0 }, "muster-test", ends[1], life[0], getppid());
	int status;
	ck_assert_int_eq(waitpid(warden, &status, 0), warden); /* its agent's pipe stays open */
	ck_assert(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

TEST(a_warden_that_is_stopped_again_and_again_is_replaced_by_its_heir)
{
	struct warden *warden = new_warden();
	pid_t escaped = first_pid(warden, "setsid sh -c 'echo $$; exec sleep 1000' & wait");
	pid_t pid = warden_pid(warden), stopper = fork();
	if (stopper == 0)
		for (;;)
			kill(pid, SIGSTOP);
	warden_free(warden);
	kill(stopper, SIGKILL);
	ck_assert_int_eq(waitpid(stopper, NULL, 0), stopper);
	ck_assert(!exists(escaped));
}

static pid_t parent_of(pid_t pid)
{
	struct proc_stat stat;
	ck_assert_int_eq(procfs_stat(pid, &stat), 0);
	return stat.ppid;
}

/* An agent in a process of its own: its escaped process, and its warden. SIGUSR1 makes it ask for
 * another program. */
static pid_t fork_agent(pid_t *ret_escaped, pid_t *ret_warden)
{
	sigset_t usr1;
	sigemptyset(&usr1);
	sigaddset(&usr1, SIGUSR1);
	sigprocmask(SIG_BLOCK, &usr1, NULL);
	int ends[2];
	ck_assert_int_eq(pipe2(ends, O_CLOEXEC), 0);
	pid_t agent = fork();
	if (agent == 0) {
		struct warden *warden = new_warden();
		pid_t pids[] = { first_pid(warden,
					   "setsid sh -c 'echo $$; exec sleep 1000' & wait"),
				 warden_pid(warden) };
		ck_assert_int_eq(write(ends[1], pids, sizeof(pids)), sizeof(pids));
		sigwaitinfo(&usr1, NULL);
		start(warden, 2, "exec sleep 1000");
		pause();
		_exit(0);
	}
	pid_t pids[2];
	ck_assert_int_eq(read(ends[0], pids, sizeof(pids)), sizeof(pids));
	close(ends[0]);
	close(ends[1]);
	*ret_escaped = pids[0];
	*ret_warden = pids[1];
	return agent;
}

/* Agent and warden die at once; returns when the heir has ended. */
static void lose_both(pid_t agent, pid_t warden, int heir_fd)
{
	kill(warden, SIGKILL);
	kill(agent, SIGKILL);
	ck_assert_int_eq(waitpid(agent, NULL, 0), agent);
	struct pollfd ended = { .fd = heir_fd, .events = POLLIN };
	ck_assert_int_eq(poll(&ended, 1, -1), 1);
}

TEST(nothing_survives_when_agent_and_warden_are_killed_at_once)
{
	pid_t escaped, warden;
	pid_t agent = fork_agent(&escaped, &warden);
	pid_t heir = parent_of(warden);
	ck_assert_int_eq(parent_of(heir), agent);
	AUTO(fd_close) int heir_fd = pidfd_open(heir, 0);
	lose_both(agent, warden, heir_fd);
	ck_assert(!exists(escaped));
}

/* Stops the next program of the warden at its birth: the warden hangs in its start. */
static void hang_next_start(pid_t warden, pid_t agent)
{
	ck_assert_int_eq(ptrace(PTRACE_SEIZE, warden, NULL, PTRACE_O_TRACEVFORK), 0);
	kill(agent, SIGUSR1);
	int status;
	do {
		ck_assert_int_eq(waitpid(warden, &status, __WALL), warden);
		ck_assert(WIFSTOPPED(status));
		ck_assert_int_eq(ptrace(PTRACE_CONT, warden, NULL, NULL), 0);
	} while (status >> 16 != PTRACE_EVENT_VFORK);
}

TEST(nothing_survives_an_agent_whose_warden_hangs_in_the_start_of_a_program)
{
	pid_t escaped, warden;
	pid_t agent = fork_agent(&escaped, &warden);
	hang_next_start(warden, agent);
	kill(agent, SIGKILL);
	while (waitpid(-1, NULL, __WALL) > 0 || errno != ECHILD)
		; /* the agent, and what we trace */
	while (exists(escaped))
		poll(NULL, 0, 1);
}

/* Where SIGCONT does not help. */
static void hold(pid_t pid)
{
	ck_assert_int_eq(ptrace(PTRACE_SEIZE, pid, NULL, NULL), 0);
	ck_assert_int_eq(ptrace(PTRACE_INTERRUPT, pid, NULL, NULL), 0);
	int status;
	ck_assert_int_eq(waitpid(pid, &status, __WALL), pid);
	ck_assert(WIFSTOPPED(status));
}

static void note_loss(struct warden *warden, void *arg)
{
	struct warden_event event;
	while (warden_next(warden, &event))
		*(bool *)arg |= event.type == WARDEN_LOST;
}

TEST(a_warden_that_does_not_answer_a_kill_is_replaced_by_its_heir)
{
	struct warden *warden = new_warden();
	struct {
		struct event_base *base;
	} loop = { event_base_new() };
	bool lost = false;
	pid_t escaped = first_pid(warden, "setsid sh -c 'echo $$; exec sleep 1000' & wait");
	pid_t pid = warden_pid(warden);
	ck_assert_int_eq(warden_watch(warden, loop.base, note_loss, &lost), 0);
	hold(pid);
	warden_kill_all(warden);
	WAIT_FOR(&loop, lost);
	ck_assert_int_eq(waitpid(pid, NULL, __WALL), pid); /* we trace it */
	sweep_after(warden);
	ck_assert(!exists(escaped));
	event_base_free(loop.base);
}

TEST(an_heir_is_not_killed_while_anything_below_it_lives)
{
	struct warden *warden = new_warden();
	pid_t escaped = first_pid(warden, "setsid sh -c 'echo $$; exec sleep 1000' & wait");
	pid_t heir = parent_of(warden_pid(warden));
	AUTO(fd_close) int escaped_fd = pidfd_open(escaped, 0);
	hold(heir);
	kill_warden(warden);

	AUTO(pids_done) struct pids heirs = PIDS_INIT;
	pids_add(&heirs, heir);
	while (proctree_sweep(&heirs) > 0)
		ck_assert(!warden_try_free(warden, false));
	struct pollfd dead = { .fd = escaped_fd, .events = POLLIN };
	ck_assert_int_eq(poll(&dead, 1, -1), 1);
	ck_assert(exists(heir));

	sweep_after(warden);
	ck_assert(!exists(heir));
	ck_assert(!exists(escaped));
}

TEST(what_a_killed_heir_had_is_swept)
{
	struct warden *warden = new_warden();
	pid_t escaped = first_pid(warden, "setsid sh -c 'echo $$; exec sleep 1000' & wait");
	pid_t heir = parent_of(warden_pid(warden));
	hold(heir);
	kill_warden(warden);
	kill(heir, SIGKILL);
	sweep_after(warden);
	ck_assert(!exists(escaped));
}

TEST(a_stopped_heir_goes_on_when_agent_and_warden_are_killed)
{
	pid_t escaped, warden;
	pid_t agent = fork_agent(&escaped, &warden);
	pid_t heir = parent_of(warden);
	AUTO(fd_close) int heir_fd = pidfd_open(heir, 0);
	stop(heir);
	lose_both(agent, warden, heir_fd);
	ck_assert(!exists(escaped));
}

TEST(a_killed_heir_costs_nothing)
{
	struct warden *warden = new_warden();
	kill(parent_of(warden_pid(warden)), SIGKILL);
	pid_t escaped = first_pid(warden, "setsid sh -c 'echo $$; exec sleep 1000' & wait");
	warden_kill_all(warden);
	await(warden, WARDEN_EMPTY);
	ck_assert(!exists(escaped));
	warden_free(warden);
}

TEST(a_sweep_leaves_the_children_that_we_have_started_ourselves)
{
	pid_t own = child_fork();
	if (own == 0) {
		pause();
		_exit(0);
	}
	while (proctree_sweep(NULL) > 0)
		;
	int status;
	ck_assert_int_eq(child_try_wait(own, &status), 0);
	kill(own, SIGUSR1);
	status = child_wait(own);
	ck_assert(WIFSIGNALED(status) && WTERMSIG(status) == SIGUSR1);
	ck_assert_int_eq(child_wait(own), -ECHILD);
}

TEST(orphans_are_reaped_also_behind_a_dead_child_of_our_own)
{
	struct warden *warden = new_warden(); /* makes us a subreaper */
	pid_t own = child_fork();
	if (own == 0)
		_exit(3);
	siginfo_t info;
	ck_assert_int_eq(waitid(P_PID, (id_t)own, &info, WEXITED | WNOWAIT), 0);
	int ready[2];
	ck_assert_int_eq(pipe(ready), 0);
	pid_t parent = child_fork();
	if (parent == 0) {
		pid_t orphan = fork();
		if (orphan == 0)
			_exit(0);
		_exit(write(ready[1], &orphan, sizeof(orphan)) != sizeof(orphan));
	}
	pid_t orphan;
	ck_assert_int_eq(read(ready[0], &orphan, sizeof(orphan)), sizeof(orphan));
	ck_assert_int_eq(WEXITSTATUS(child_wait(parent)), 0);
	ck_assert_int_eq(waitid(P_PID, (id_t)orphan, &info, WEXITED | WNOWAIT), 0);
	proctree_reap_orphans();
	ck_assert(!exists(orphan));
	ck_assert_int_eq(WEXITSTATUS(child_wait(own)), 3);
	close(ready[0]);
	close(ready[1]);
	warden_free(warden);
}
