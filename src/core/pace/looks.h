/* Who is waited for, without a flight recorder: all workers are looked at in the same moment again
 * and again, on all hosts. A look at which every rank but one waits (in a system call, for a lock
 * or for a peer) counts against that one.
 *
 * Looks are numbered by the coordinator's clock and told as marks (core/pace/step_times.h) of a
 * group of their own, of all ranks: so core/pace/waits.h judges them. A rank that does not wait
 * comes STRAGGLER_LAG_MIN_NS after those that do, which is just enough to count if it is the only
 * one. Pure. */
#ifndef CORE_PACE_LOOKS_H
#define CORE_PACE_LOOKS_H

#include "core/pace/straggler.h"

#define LOOKS_GROUP 1		/* in place of the key of a process group */
#define LOOKS_APART_NS 20000000 /* from one to the next, in a burst */
#define LOOKS_BURST 64
#define LOOKS_EVERY 512			   /* from one burst to the next, counted in looks */
#define LOOKS_STEPS 64			   /* a wait is told apart from so many that follow */
#define LOOKS_FIRST 256			   /* without a pause, after the first */
#define LOOKS_UNIT_NS STRAGGLER_LAG_MIN_NS /* one look, as the time of marks */

/* The number of the look that is next, at this time of the coordinator's clock. `first`: the look
 * that this host began with, 0: this is the first. More nodes look more rarely. */
uint64_t looks_next(uint64_t there_ns, uint64_t first, uint32_t nodes);

/* `told`: how many steps it has told. */
struct step_mark look_mark(uint64_t look, uint32_t rank, bool waits, uint64_t told,
			   uint32_t world_size);

/* Fills in `wait`, which is in the time of a mark that another host has sent: looks in the same
 * step are of the same wait. */
void look_mark_complete(struct step_mark *mark, uint32_t world_size);

#endif
