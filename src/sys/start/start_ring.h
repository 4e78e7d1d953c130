/* The ring: what is to be started next, in memory that an agent shares with its wardens. The agent
 * lays requests on it, numbered 1, 2, …; a warden whose program has ended takes the first that lies
 * there, and starts it without waiting for the agent. The agent may take back what no warden has
 * taken. Each request goes to exactly one taker, whoever comes first, also when a process is killed
 * in the middle. No call blocks or makes a system call. */
#ifndef SYS_START_START_RING_H
#define SYS_START_START_RING_H

#include "base/buf.h"

#define START_RING_PLACES 64
#define START_RING_REQUEST_MAX 1024

struct start_ring;

/* Before the wardens are made. NULL: there is no memory. */
struct start_ring *start_ring_new(void);
void start_ring_free(struct start_ring *ring);

/* ---- the agent ---- */

/* Lays a request down. Number n takes the place of n - START_RING_PLACES: that one must have been
 * taken, and its taker must have told so. False if it is too long. */
bool start_ring_lay(struct start_ring *ring, uint64_t number, const struct buf *request);

/* True if no warden has it nor will have it. */
bool start_ring_take_back(struct start_ring *ring, uint64_t number);

/* Whether this warden has taken it. */
bool start_ring_is_taken_by(const struct start_ring *ring, uint64_t number, int taker);

/* ---- a warden ---- */

/* Takes the first that lies there; its number, or 0. `taker`: from 0. */
uint64_t start_ring_take(struct start_ring *ring, int taker, struct buf *ret_request);

#endif
