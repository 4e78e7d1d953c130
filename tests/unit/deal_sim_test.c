/* core/deal in simulated worlds. DEAL_WORLDS=N DEAL_SEED=S plays as many, from that seed on:
 *
 *     CK_FORK=no DEAL_WORLDS=250000 build/unit/deal_sim
 */
#include "unit.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/str.h"
#include "deal_world.h"

#define WORLDS 400

static uint64_t number_from(const char *variable, uint64_t otherwise)
{
	const char *text = getenv(variable);
	uint64_t number;
	return text && str_to_u64(text, &number) == 0 ? number : otherwise;
}

static void play(const struct world_rules *rules, struct world_outcome *ret_sum)
{
	uint64_t first = number_from("DEAL_SEED", 1), count = number_from("DEAL_WORLDS", WORLDS);
	*ret_sum = (struct world_outcome){ .losses = 0 };
	for (uint64_t seed = first; seed < first + count; seed++) {
		struct world_outcome outcome;
		world_play(seed, rules, &outcome);
		ck_assert_msg(!*outcome.wrong, "DEAL_SEED=%llu: %s", (unsigned long long)seed,
			      outcome.wrong);
		ret_sum->losses += outcome.losses;
		ret_sum->late += outcome.late;
		ret_sum->takeovers += outcome.takeovers;
		ret_sum->recalls += outcome.recalls;
		ret_sum->drops += outcome.drops;
	}
}

TEST(each_order_has_one_result_whatever_dies)
{
	struct world_outcome sum;
	play(&(struct world_rules){ .faults = true }, &sum);
	/* The worlds have in them what they are about. */
	ck_assert_uint_gt(sum.losses, 0);
	ck_assert_uint_gt(sum.late, 0);
	ck_assert_uint_gt(sum.recalls, 0);
	ck_assert_uint_gt(sum.drops, 0);
}

TEST(each_order_has_one_result_when_the_coordinator_is_replaced)
{
	struct world_outcome sum;
	play(&(struct world_rules){ .faults = true, .takeover = true }, &sum);
	ck_assert_uint_gt(sum.takeovers, 0);
}

TEST(a_batch_that_is_stopped_ends)
{
	struct world_outcome sum;
	play(&(struct world_rules){ .faults = true, .stop = true }, &sum);
}

TEST(without_faults_no_host_waits_for_long)
{
	struct world_outcome sum;
	play(&(struct world_rules){ .efficient = true }, &sum);
	ck_assert_uint_eq(sum.losses, 0);
	ck_assert_uint_eq(sum.late, 0);
}
