/* How far the clocks of a peer are from ours, estimated from messages that it answers.
 *
 * Each answered message is a sample: sent and received on our clock, answered in between on the
 * peer's. The peer's clock then showed its time at some moment of the round trip, so the middle of
 * it is wrong by at most half of it. The sample of the shortest round trip is kept until clocks
 * that drift apart may have made it worse than a new one: a message that waited in a queue changes
 * nothing.
 *
 * Times are monotonic. The wall clock, which may be set at any time, is known by its distance from
 * that: the wall shift. Pure. */
#ifndef CORE_PACE_CLOCK_OFFSET_H
#define CORE_PACE_CLOCK_OFFSET_H

#include "base/util.h"

#define CLOCK_DRIFT_PPM 100 /* how fast two hosts' monotonic clocks drift apart, at most */

struct clock_sample {
	uint64_t sent_ns, received_ns; /* our clock */
	uint64_t peer_ns;	       /* the peer's, when it answered */
	int64_t peer_wall_shift_ns;    /* 0: not known */
};

/* All 0: nothing is known. */
struct clock_offset {
	bool known;
	int64_t shift_ns; /* the peer's clock minus ours */
	uint64_t half_ns; /* half the round trip of the sample that says so */
	uint64_t when_ns; /* when that was received */
	int64_t peer_wall_shift_ns;
};

/* The peer's wall clock minus ours. */
struct wall_offset {
	int64_t offset_ns;
	uint64_t error_ns; /* at most this much in either direction; 0: nothing is known */
};

/* Ignores a sample that cannot be: received before it was sent. */
void clock_offset_add(struct clock_offset *offset, const struct clock_sample *sample);

/* How wrong shift_ns can be, in either direction; UINT64_MAX: nothing is known. */
uint64_t clock_offset_error_ns(const struct clock_offset *offset, uint64_t now_ns);

/* A time of our clock on the peer's. */
static inline uint64_t clock_offset_there(const struct clock_offset *offset, uint64_t here_ns)
{
	return here_ns + (uint64_t)offset->shift_ns;
}

static inline int64_t clock_wall_shift(uint64_t wall_ns, uint64_t now_ns)
{
	return (int64_t)(wall_ns - now_ns);
}

/* wall_shift_ns: of this host; 0: not known. */
struct wall_offset clock_offset_wall(const struct clock_offset *offset, int64_t wall_shift_ns,
				     uint64_t now_ns);

#endif
