/* Runs a discovery program: starts it, reads its output, restarts it when it ends, and stops it.
 *
 * The program names the job's coordinator on its standard output, one line of JSON each time that
 * changes (proto/discovery_line.h); its standard error is for users. Its standard input delivers
 * data only to a program that gives leases, and end of file means that it must leave.
 * muster-discovery(7) is its side of the contract.
 *
 * It runs in its own session, so that it gets no signals from a terminal, and gets SIGTERM when
 * this process dies. When it ends, its last line stays valid until a newer one: the only reaction
 * is to start it again. */
#ifndef NET_DISCOVER_EXEC_H
#define NET_DISCOVER_EXEC_H

#include "net/addr.h"
#include "proto/discovery_line.h"

struct event_base;
struct discover_exec;

#define DISCOVER_EXEC_LEAVE_NS (2 * NS_PER_S) /* between the end of its input and SIGKILL */
#define DISCOVER_EXEC_RESTART_NS NS_PER_S     /* before the first new start, then doubled ... */
#define DISCOVER_EXEC_RESTART_MAX_NS (30 * NS_PER_S) /* ... up to this; a valid line resets it */
#define DISCOVER_EXEC_NOTES_PER_S 10

struct discover_exec_config {
	char *const *argv; /* a name without a slash is searched in PATH */
	char *const *envp;
};

struct discover_exec_handler {
	/* There is a new coordinator, or the same one again: the epoch is higher than in every call
	 * before. It may be this process itself. */
	void (*on_coordinator)(void *arg, const struct addr_name *coordinator,
			       const struct discovery_line *line);
	/* The same coordinator and epoch again: its lease may be a new one. */
	void (*on_again)(void *arg, const struct discovery_line *line);
	/* A line for the user: from its standard error, or about a failure. At most
	 * DISCOVER_EXEC_NOTES_PER_S. Borrowed for the call. */
	void (*on_note)(void *arg, const char *text);
};

/* Starts it. -errno if the first start fails; later ones are retried. Texts of `config` and
 * `handler` are borrowed until discover_exec_free(). Callbacks come only from the loop; they must
 * not free. */
int discover_exec_new(struct event_base *base, const struct discover_exec_config *config,
		      const struct discover_exec_handler *handler, void *arg,
		      struct discover_exec **ret_exec, struct err *err);

/* Writes a line to its standard input, if it runs and takes it. */
void discover_exec_tell(struct discover_exec *discovery, const char *word);

/* Asks it to leave and waits at most DISCOVER_EXEC_LEAVE_NS; then kills it. */
void discover_exec_free(struct discover_exec *discovery);

#endif
