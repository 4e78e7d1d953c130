/* The shelf: what is to be started next, in memory that an agent shares with its wardens. The agent
 * lays requests on it, numbered 1, 2, …; a warden whose program has ended takes the first that lies
 * there, and starts it without waiting for the agent. The agent may take back what no warden has
 * taken. Each request goes to exactly one taker, whoever comes first, also when a process is killed
 * in the middle. No call blocks or makes a system call. */
#ifndef SYS_START_SHELF_H
#define SYS_START_SHELF_H

#include "base/buf.h"

#define SHELF_PLACES 64
#define SHELF_REQUEST_MAX 1024

struct shelf;

/* Before the wardens are made. NULL: there is no memory. */
struct shelf *shelf_new(void);
void shelf_free(struct shelf *shelf);

/* ---- the agent ---- */

/* Lays a request down. Number n takes the place of n - SHELF_PLACES: that one must have been taken,
 * and its taker must have told so. False if it is too long. */
bool shelf_lay(struct shelf *shelf, uint64_t number, const struct buf *request);

/* True if no warden has it nor will have it. */
bool shelf_take_back(struct shelf *shelf, uint64_t number);

/* Whether this warden has taken it. */
bool shelf_is_taken_by(const struct shelf *shelf, uint64_t number, int taker);

/* ---- a warden ---- */

/* Takes the first that lies there; its number, or 0. `taker`: from 0. */
uint64_t shelf_take(struct shelf *shelf, int taker, struct buf *ret_request);

#endif
