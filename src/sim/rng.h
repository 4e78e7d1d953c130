/* Random numbers that are the same everywhere for the same seed (splitmix64). */
#ifndef SIM_RNG_H
#define SIM_RNG_H

#include "base/util.h"

struct rng {
	uint64_t state;
};

static inline uint64_t rng_next(struct rng *rng)
{
	uint64_t z = (rng->state += 0x9e3779b97f4a7c15u);
	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
	return z ^ (z >> 31);
}

/* From low to high, both included. */
static inline uint64_t rng_range(struct rng *rng, uint64_t low, uint64_t high)
{
	return low + rng_next(rng) % (high - low + 1);
}

static inline bool rng_chance(struct rng *rng, uint32_t percent)
{
	return rng_next(rng) % 100 < percent;
}

#endif
