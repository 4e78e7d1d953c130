/* A coordinator at work: the machine of core/rounds/coordinator.h served over a listener.
 *
 * It begins in standby: probes are answered so, agents are told that nobody coordinates here. From
 * coordinating_start() on agents are let in, until the machine steps down or is stopped; then it is
 * in standby again and may be started anew.
 *
 * The agent of the same process is attached without a socket: its messages are handed over with
 * coordinating_local_send() and come back through on_local_msg. That link cannot fall silent; it
 * ends with coordinating_local_hang_up(), or from the other side with on_local_down.
 *
 * All callbacks but on_note come from the loop, never from inside a function of this module, and
 * may call every one of them but coordinating_free().
 */
#ifndef NODES_COORDINATING_H
#define NODES_COORDINATING_H

#include "core/rounds/coordinator.h"
#include "net/link.h"

struct coordinating;

/* What happened, for logs. */
enum coordinating_note {
	TOLD_JOINED,	  /* name: an agent has joined */
	TOLD_LOST,	  /* name, text: its link ended, or it fell silent */
	TOLD_LEFT,	  /* name, text: it said that it goes, and why */
	TOLD_REFUSED,	  /* name, text: its JOIN was refused */
	TOLD_TURNED_AWAY, /* name, text: it did not even get that far */
	TOLD_FORMED,	  /* text: a round was formed */
	TOLD_STOPPED,	  /* text: a round ends, and why */
	TOLD_CLOSED,	  /* text: the job is over */
	TOLD_SUPERSEDED,
	TOLD_COUNT,
};

struct coordinating_handler {
	/* The machine has stepped down: discovery must look again. */
	void (*on_step_down)(void *arg);
	/* The job is closed and everybody knows: the process may end. */
	void (*on_finished)(void *arg);
	/* For the local agent: a message (borrowed), and that it was hung up on. NULL if there is
	 * none. */
	void (*on_local_msg)(void *arg, const struct msg *msg);
	void (*on_local_down)(void *arg);
	/* May be NULL. The texts are borrowed, `name` may be empty. It may come from inside any
	 * function here and must not call one. */
	void (*on_note)(void *arg, enum coordinating_note note, const char *name, const char *text);
};

/* Serves on `listen_fd` (owned from now on; -1: none, others accept for it). `self` and
 * `handler` are borrowed. */
struct coordinating *coordinating_new(struct event_base *base, int listen_fd,
				      const struct link_self *self,
				      const struct coordinating_handler *handler, void *arg);
void coordinating_free(struct coordinating *coordinating); /* drops all links */

/* A connection that was accepted elsewhere, non-blocking; owned from now on. */
void coordinating_adopt(struct coordinating *coordinating, int fd, const struct addr *peer);

/* Only in standby. `id` and `salt` of the config may be 0: they are drawn. */
void coordinating_start(struct coordinating *coordinating, const struct coordinator_config *config);

/* Discovery knows a higher epoch: on_step_down follows, if it coordinates. */
void coordinating_supersede(struct coordinating *coordinating);

/* To standby at once: all links are hung up. No on_step_down. */
void coordinating_stop(struct coordinating *coordinating);

bool coordinating_active(const struct coordinating *coordinating);

/* As coordinator_settled() and coordinator_ballot(); false and none in standby. */
bool coordinating_settled(const struct coordinating *coordinating);
struct ballot coordinating_ballot(const struct coordinating *coordinating);

/* The machine, for display; NULL in standby. */
const struct coordinator *coordinating_machine(const struct coordinating *coordinating);

/* The local agent. A JOIN's node must stay as it is until the next turn of the loop. Attaching is
 * one new link; what was sent before is not delivered any more. Only while active. */
void coordinating_local_attach(struct coordinating *coordinating);
void coordinating_local_send(struct coordinating *coordinating, const struct msg *msg);
void coordinating_local_hang_up(struct coordinating *coordinating);

struct coordinating_stats {
	size_t links; /* agents linked now */
	struct link_listener_stats listener;
};
void coordinating_stats(const struct coordinating *coordinating,
			struct coordinating_stats *ret_stats);

#endif
