/* Simulated worlds as tests that mutants of core are run against, in pieces: a mutant ends with the
 * first that fails. */
#include "unit.h"

#include "sim/sim.h"

static void play(const struct sim_options *options, uint64_t first, uint64_t count)
{
	for (uint64_t seed = first; seed < first + count; seed++) {
		struct sim_options one = *options;
		struct sim_result result;
		one.seed = seed;
		sim_run(&one, NULL, &result);
		ck_assert_msg(!result.broken, "%s", result.why);
	}
}

#define WORLDS(name, first, count, ...) \
	TEST(name) \
	{ \
		play(&(struct sim_options){ __VA_ARGS__ }, first, count); \
	}

WORLDS(worlds_without_faults, 1, 20, .faults = false)
WORLDS(worlds_with_faults, 1, 100, .faults = true)
WORLDS(more_worlds_with_faults, 101, 2000, .faults = true)
WORLDS(worlds_with_notices, 1, 100, .faults = true, .notices = true)
WORLDS(more_worlds_with_notices, 101, 500, .faults = true, .notices = true)
WORLDS(worlds_with_checks, 1, 50, .checks = true)
WORLDS(more_worlds_with_checks, 51, 300, .faults = true, .checks = true)
WORLDS(worlds_with_pace, 1, 100, .faults = true, .pace = true)
WORLDS(more_worlds_with_pace, 101, 300, .faults = true, .pace = true)
