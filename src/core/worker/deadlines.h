/* Timers of processes, keyed by (process, scope).
 *
 * A process says "I will be done with SCOPE by then"; deadlines_expire() returns expired timers in
 * the order of their deadlines. Time is monotonic and comes from the caller. Arming, releasing and
 * expiring cost O(log n), the next deadline costs O(1).
 *
 * A key may be armed several times (nested blocks that share a scope name): DEADLINE_NEST puts a
 * new timer on top, a release removes the top one. Without it, arming again renews the timer, which
 * is what torch's clients mean by a second acquire. */
#ifndef CORE_WORKER_DEADLINES_H
#define CORE_WORKER_DEADLINES_H

#include "base/heap.h"
#include "base/map.h"

struct deadline_owner; /* private: the timers of one process */

struct deadline {
	struct heap_node node; /* private, and the five below too */
	struct deadline *outer;
	struct deadline *inner; /* and that is nested in this one; NULL: the innermost */
	struct deadline *prev, *next;
	struct deadline_owner *owner;
	struct map_entry *entry;
	uint64_t process;  /* who armed it */
	const char *scope; /* borrowed, NUL-terminated */
	uint64_t armed_ns; /* when it was armed or last renewed */
	uint64_t deadline_ns;
	uint64_t cpu_ns; /* CPU time of the process then; for the caller to fill and to read */
	int signal;	 /* sent at expiry; <= 0: only report */
};

struct deadlines {
	struct heap heap;
	struct map by_key;     /* (process, scope) -> innermost timer */
	struct map by_process; /* process -> struct deadline_owner */
	uint64_t armed_total;  /* counters for reports: arms and renewals */
	uint64_t released_total;
	uint64_t expired_total;
};

/* Keys come from workers: make by_key.hash_key random where you do not trust them. */
#define DEADLINES_INIT ((struct deadlines){ .heap = HEAP_INIT })

void deadlines_done(struct deadlines *deadlines);

enum deadline_mode {
	DEADLINE_RENEW,
	DEADLINE_NEST,
};

#define DEADLINES_PER_PROCESS_MAX 65536

/* The armed timer, borrowed; NULL when the process has too many. */
struct deadline *deadlines_acquire(struct deadlines *deadlines, uint64_t process, const char *scope,
				   enum deadline_mode mode, int signal, uint64_t deadline_ns,
				   uint64_t now_ns);

/* All processes stood still for that long: every deadline is that much later. */
void deadlines_pause(struct deadlines *deadlines, uint64_t pause_ns);

/* Removes the innermost timer of the key; false if there was none. */
bool deadlines_release(struct deadlines *deadlines, uint64_t process, const char *scope);

/* Forgets every timer of a process that ended; returns how many there were. */
size_t deadlines_forget(struct deadlines *deadlines, uint64_t process);

/* The next time at which deadlines_expire() returns a timer; NS_NEVER when none is armed. */
uint64_t deadlines_next(const struct deadlines *deadlines);

/* Removes the expired timer with the earliest deadline, NULL when there is none. The caller frees
 * it with deadline_free(). After one with a signal the caller forgets the process, so the earliest
 * expired timer with a signal decides. */
struct deadline *deadlines_expire(struct deadlines *deadlines, uint64_t now_ns);
void deadline_free(struct deadline *deadline);

size_t deadlines_count(const struct deadlines *deadlines);

/* The timers of one process, in any order, and their number: for reports. */
const struct deadline *deadlines_of(const struct deadlines *deadlines, uint64_t process);
const struct deadline *deadlines_of_next(const struct deadline *deadline);

#endif
