/* A discovery program at work: started, listened to, started again when it ends, and sent away.
 *
 * The program says on its standard output who coordinates the job, one line of JSON each time that
 * changes (proto/discovery_line.h); what it says on standard error is for people. Its standard
 * input never has anything, and ends when it is to leave. muster-discovery(7) is its side of the
 * contract.
 *
 * It runs in a session of its own, so that a terminal's signals are not for it, and gets SIGTERM
 * when this process dies. Whatever happens to it, what it said last stays true until it says
 * something newer: losing it is no reason to do anything but to start it again.
 */
#ifndef NET_DISCOVER_EXEC_H
#define NET_DISCOVER_EXEC_H

#include "net/addr.h"

struct event_base;
struct discover_exec;

#define DISCOVER_EXEC_LEAVE_NS (2 * NS_PER_S) /* between the end of its input and SIGKILL */
#define DISCOVER_EXEC_RESTART_NS NS_PER_S     /* before the first new start, then doubled ... */
#define DISCOVER_EXEC_RESTART_MAX_NS (30 * NS_PER_S) /* ... up to this; a good line starts over */
#define DISCOVER_EXEC_NOTES_PER_S 10

struct discover_exec_config {
	char *const *argv; /* as it is started; a name without a slash is looked for in PATH */
	char *const *envp;
};

struct discover_exec_handler {
	/* Somebody else coordinates now, or the same one anew: `epoch` is higher than in every call
	 * before. What is named may be this process itself. */
	void (*on_coordinator)(void *arg, const struct addr_name *coordinator, uint64_t epoch);
	/* Something for people: a line of its standard error, or what is wrong with it. At most
	 * DISCOVER_EXEC_NOTES_PER_S. Borrowed for the call. */
	void (*on_note)(void *arg, const char *text);
};

/* Starts it. -errno if that fails the first time; later it is tried again. Texts of `config` and
 * `handler` are borrowed until discover_exec_free(). Callbacks come from the loop alone; they must
 * not free. */
int discover_exec_new(struct event_base *base, const struct discover_exec_config *config,
		      const struct discover_exec_handler *handler, void *arg,
		      struct discover_exec **ret_exec, struct err *err);

/* Sends it away and waits until it is gone, at most DISCOVER_EXEC_LEAVE_NS: then it is killed. */
void discover_exec_free(struct discover_exec *discovery);

/* 0 while it does not run. */
pid_t discover_exec_pid(const struct discover_exec *discovery);

#endif
