#include "core/pace/clock_offset.h"

uint64_t clock_offset_error_ns(const struct clock_offset *offset, uint64_t now_ns)
{
	if (!offset->known)
		return UINT64_MAX;
	uint64_t age_ns = now_ns - MIN(now_ns, offset->when_ns);
	return offset->half_ns + age_ns / (1000000 / CLOCK_DRIFT_PPM);
}

void clock_offset_add(struct clock_offset *offset, const struct clock_sample *sample)
{
	if (sample->received_ns < sample->sent_ns)
		return;
	uint64_t half_ns = (sample->received_ns - sample->sent_ns) / 2;
	offset->peer_wall_shift_ns = sample->peer_wall_shift_ns;
	if (half_ns > clock_offset_error_ns(offset, sample->received_ns))
		return;
	offset->known = true;
	offset->shift_ns = (int64_t)(sample->peer_ns - (sample->sent_ns + half_ns));
	offset->half_ns = half_ns;
	offset->when_ns = sample->received_ns;
}

struct wall_offset clock_offset_wall(const struct clock_offset *offset, int64_t wall_shift_ns,
				     uint64_t now_ns)
{
	if (!offset->known || !offset->peer_wall_shift_ns || !wall_shift_ns)
		return (struct wall_offset){ .error_ns = 0 };
	/* Unsigned: the peer may claim any time. */
	uint64_t apart = (uint64_t)offset->shift_ns + (uint64_t)offset->peer_wall_shift_ns -
			 (uint64_t)wall_shift_ns;
	return (struct wall_offset){ .offset_ns = (int64_t)apart,
				     .error_ns = clock_offset_error_ns(offset, now_ns) + 1 };
}
