#include "unit.h"

#include <errno.h>

#include "base/clock.h"
#include "sys/quiet.h"

static struct cpuset cpus_of(int a, int b)
{
	struct cpuset cpus = CPUSET_INIT;
	cpuset_add(&cpus, a);
	cpuset_add(&cpus, b);
	return cpus;
}

TEST(only_the_cpus_used_are_looked_at)
{
	static const char stat[] = "cpu  9 9 9 9 9 9 9 9 0 0\n"
				   "cpu0 1 2 3 1000 50 4 5 6 0 0\n"
				   "cpu1 900 0 0 0 0 0 0 0 0 0\n"
				   "cpu2 10 0 0 70 0 0 0 1 0 0\n"
				   "intr 5 6 7\nprocs_running 3\nprocs_blocked 0\n";
	struct cpuset cpus = cpus_of(0, 2);
	struct quiet_state state = { 0 };
	ck_assert_int_eq(quiet_parse_stat(stat, &cpus, &state), 0);
	ck_assert_int_eq(state.cpus, 2);
	ck_assert_uint_eq(state.busy_ns, (15 + 10) * QUIET_TICK_NS);
	ck_assert_uint_eq(state.steal_ns, 7 * QUIET_TICK_NS);
	ck_assert_uint_eq(state.running, 3);
	cpus = cpus_of(7, 8);
	state = (struct quiet_state){ 0 };
	ck_assert_int_eq(quiet_parse_stat(stat, &cpus, &state), -EINVAL);
	ck_assert_int_eq(quiet_parse_stat("cpu0 1 2\n", &(struct cpuset){ .words = { 1 } }, &state),
			 -EINVAL);
	ck_assert_int_eq(quiet_parse_stat("", &cpus, &state), -EINVAL);
}

TEST(the_programs_own_time_is_not_foreign)
{
	struct quiet_state before = { .ns = 0, .cpus = 1 };
	struct quiet_state after = { .ns = NS_PER_S, .busy_ns = 900 * NS_PER_MS, .cpus = 1 };
	ck_assert_uint_eq(quiet_faults(&before, &after, 890 * NS_PER_MS), 0);
	ck_assert_uint_eq(quiet_faults(&before, &after, 500 * NS_PER_MS), 1u << QUIET_LOAD);
	ck_assert_double_eq_tol(quiet_foreign_share(&before, &after, 500 * NS_PER_MS), 0.4, 1e-9);
	ck_assert_double_eq_tol(quiet_foreign_share(&before, &after, 2 * NS_PER_S), 0, 1e-9);
}

TEST(the_rounding_of_ticks_does_not_count_as_load)
{
	struct quiet_state before = { .ns = 0, .cpus = 1 };
	struct quiet_state after = { .ns = 30 * NS_PER_MS,
				     .busy_ns = 2 * QUIET_TICK_NS,
				     .cpus = 1 };
	ck_assert_uint_eq(quiet_faults(&before, &after, 1 * NS_PER_MS), 0);
}

/* Ticks are counted late, so that a short window may seem to hold more of them than it can. */
TEST(others_never_use_more_than_there_is)
{
	struct quiet_state before = { .ns = 0, .cpus = 2 };
	struct quiet_state after = { .ns = 100 * NS_PER_MS, .busy_ns = 210 * NS_PER_MS, .cpus = 2 };
	ck_assert_double_eq_tol(quiet_foreign_share(&before, &after, 0), 1, 1e-9);
}

TEST(swapping_throttling_stealing_and_a_falling_clock_are_told_apart)
{
	struct quiet_state before = { .ns = 0, .cpus = 1, .khz_min = 3000000 };
	struct quiet_state after = { .ns = NS_PER_S, .cpus = 1, .khz_min = 2900000 };
	ck_assert_uint_eq(quiet_faults(&before, &after, 0), 0);
	after.swapped = 1;
	after.throttled = 1;
	after.steal_ns = NS_PER_S / 10;
	after.khz_min = 2000000;
	ck_assert_uint_eq(quiet_faults(&before, &after, 0),
			  1u << QUIET_SWAP | 1u << QUIET_THROTTLE | 1u << QUIET_STEAL |
				  1u << QUIET_FREQUENCY);
	after.khz_min = 0; /* not known is not suspicious */
	ck_assert_uint_eq(quiet_faults(&before, &after, 0) & 1u << QUIET_FREQUENCY, 0);
}

TEST(this_host_can_be_read)
{
	struct cpuset cpus = CPUSET_INIT;
	cpuset_add(&cpus, 0);
	struct quiet_state state;
	struct err err = ERR_INIT;
	ck_assert_msg(quiet_read(&cpus, &state, &err) == 0, "%s", err.msg);
	ck_assert_int_eq(state.cpus, 1);
	ck_assert_uint_gt(state.running, 0);
}
