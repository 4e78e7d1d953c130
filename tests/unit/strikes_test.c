/* Failures by host and rank: whose fault they are. */
#include "unit.h"

#include "base/clock.h"
#include "core/rounds/strikes.h"

static const struct strikes_rule rule = { .limit = 3, .cool_down_ns = 600 * NS_PER_S };

static uint32_t against(const struct strikes *strikes, const char *host, uint64_t now_s)
{
	uint64_t until_ns;
	return strikes_against(strikes, host, &rule, now_s * NS_PER_S, &until_ns);
}

TEST(different_ranks_on_one_host_are_the_host)
{
	struct strikes strikes = { .count = 0 };
	uint64_t until_ns = 0;
	for (int i = 0; i < 3; i++) {
		ck_assert_uint_eq(against(&strikes, "a", 1000), 0);
		strikes_add(&strikes, "a", i, 1000 * NS_PER_S);
	}
	ck_assert_uint_eq(strikes_against(&strikes, "a", &rule, 1001 * NS_PER_S, &until_ns), 3);
	ck_assert_uint_eq(until_ns, 1600 * NS_PER_S);
	ck_assert_uint_eq(against(&strikes, "b", 1001), 0);
}

TEST(the_same_rank_on_different_hosts_is_the_code)
{
	struct strikes strikes = { .count = 0 };
	for (int i = 0; i < 4; i++)
		strikes_add(&strikes, "a", i % 2, 1000 * NS_PER_S);
	ck_assert_uint_eq(against(&strikes, "a", 1000), 4);
	strikes_add(&strikes, "b", 1, 1001 * NS_PER_S);
	ck_assert_uint_eq(against(&strikes, "a", 1001), 0);
	ck_assert_uint_eq(against(&strikes, "b", 1001), 0);
}

TEST(the_same_rank_on_the_same_host_decides_only_if_the_host_has_no_other)
{
	struct strikes strikes = { .count = 0 };
	struct strikes_rule alone = rule;
	uint64_t until_ns;
	alone.one_rank = true;
	for (int i = 0; i < 3; i++)
		strikes_add(&strikes, "a", 7, 1000 * NS_PER_S);
	ck_assert_uint_eq(against(&strikes, "a", 1000), 0);
	ck_assert_uint_eq(strikes_against(&strikes, "a", &alone, 1000 * NS_PER_S, &until_ns), 3);
	/* Moved to another host, it fails there, too: the first host is free again. */
	strikes_add(&strikes, "b", 7, 1100 * NS_PER_S);
	ck_assert_uint_eq(strikes_against(&strikes, "a", &alone, 1101 * NS_PER_S, &until_ns), 0);
}

TEST(strikes_are_forgotten_after_the_cool_down_and_off_means_never)
{
	struct strikes strikes = { .count = 0 };
	struct strikes_rule off = { .limit = 0, .cool_down_ns = 600 * NS_PER_S };
	uint64_t until_ns;
	for (int i = 0; i < 3 * STRIKES_KEPT; i++)
		strikes_add(&strikes, "a", i, 1000 * NS_PER_S);
	ck_assert_uint_eq(against(&strikes, "a", 1600), STRIKES_KEPT);
	ck_assert_uint_eq(against(&strikes, "a", 1601), 0);
	ck_assert_uint_eq(strikes_against(&strikes, "a", &off, 1000 * NS_PER_S, &until_ns), 0);
}
