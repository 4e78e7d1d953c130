/* The hosts that a starter or a relay has reached itself: a child program each (ssh, as a rule)
 * with a relay at its other end, and the hosts behind that. */
#ifndef FLEET_BRANCHES_H
#define FLEET_BRANCHES_H

#include "base/err.h"
#include "base/map.h"
#include "proto/fleet/fleet_msg.h"

struct event_base;
struct branch;

#define BRANCH_TEXT_MAX 256

struct branches_handler {
	/* From a host of this branch, or one that it was asked to reach. Borrowed for the call. */
	void (*on_msg)(void *arg, const struct fleet_msg *msg);
	/* A host that was to be reached here, or was, is not: why, in the words of ssh. */
	void (*on_down)(void *arg, uint32_t host, const char *why);
};

struct branches {
	struct event_base *base;
	const struct branches_handler *handler;
	void *arg;
	struct map by_host; /* uint32_t -> struct branch: own hosts and those behind them */
	struct branch *first;
};

void branches_init(struct branches *branches, struct event_base *base,
		   const struct branches_handler *handler, void *arg);

/* Ends all connections; relays that see the end of theirs stop what they have started. */
void branches_done(struct branches *branches);

/* Starts a command whose input and output lead to a relay. on_down may follow, from the loop. */
int branches_reach(struct branches *branches, uint32_t host, char *const *argv, struct err *err);

/* Ends the connection to a host that was reached here. Nothing is heard of it any more. */
void branches_drop(struct branches *branches, uint32_t host);

/* The relay at `via` is asked to reach `host`, and speaks for it from now on; -1: no relay does.
 * What one says for any other host is dropped. */
void branches_set_way(struct branches *branches, uint32_t host, int64_t via);

void branches_send(struct branches *branches, uint32_t host, const void *data, size_t len);
void branches_send_all(struct branches *branches, const void *data, size_t len);

/* Pauses or resumes reading from all. */
void branches_hold(struct branches *branches, bool hold);

/* Asks all to end, by the end of their input, and waits for that at most until the deadline. */
void branches_leave(struct branches *branches, uint64_t deadline_ns);

#endif
