/* A discovery program at work: started, listened to, started again when it ends, and sent away.
 *
 * The program says on its standard output who coordinates the job, one line of JSON each time that
 * changes (proto/discovery_line.h); what it says on standard error is for people. Its standard input
 * never has anything, and ends when it is to leave. muster-discovery(7) is its side of the contract.
 *
 * It runs in a session of its own, so that a terminal's signals are not for it, and gets SIGTERM when
 * this process dies. Whatever happens to it, what it said last stays true until it says something
 * newer: losing it is no reason to do anything but to start it again.
 */
#ifndef NET_DISCOVERY_H
#define NET_DISCOVERY_H

#include "net/addr.h"

struct event_base;
struct discovery;

#define DISCOVERY_LEAVE_NS (2 * NS_PER_S)	 /* between the end of its input and SIGKILL */
#define DISCOVERY_RESTART_NS NS_PER_S		 /* before the first new start, then doubled ... */
#define DISCOVERY_RESTART_MAX_NS (30 * NS_PER_S) /* ... up to this; a good line starts over */
#define DISCOVERY_NOTES_PER_S 10

struct discovery_config {
	char *const *argv; /* as it is started; a name without a slash is looked for in PATH */
	char *const *envp;
};

struct discovery_handler {
	/* Somebody else coordinates now, or the same one anew: `epoch` is higher than in every call
	 * before. What is named may be this process itself. */
	void (*on_coordinator)(void *arg, const struct addr_name *coordinator, uint64_t epoch);
	/* Something for people: a line of its standard error, or what is wrong with it. At most
	 * DISCOVERY_NOTES_PER_S. Borrowed for the call. */
	void (*on_note)(void *arg, const char *text);
};

/* Starts it. -errno if that fails the first time; later it is tried again. Texts of `config` and
 * `handler` are borrowed until discovery_free(). Callbacks come from the loop alone; they must not free. */
int discovery_new(struct event_base *base, const struct discovery_config *config,
		  const struct discovery_handler *handler, void *arg, struct discovery **ret_discovery,
		  struct err *err);

/* Sends it away and waits until it is gone, at most DISCOVERY_LEAVE_NS: then it is killed. */
void discovery_free(struct discovery *discovery);

/* 0 while it does not run. */
pid_t discovery_pid(const struct discovery *discovery);

#endif
