/* A plan to leave or to save in the page of a worker: its questions, and what its host sees. */
#include "unit.h"

#include <string.h>

#include "core/worker/stop_plan.h"

static struct worker_page page;
static uint64_t seen;

static void show(enum plan_phase phase, enum plan_kind kind, uint64_t step)
{
	atomic_store(&page.plan, plan_word(&(struct stop_plan){ 1, phase, kind, step }));
}

static struct plan_positions look_at(enum plan_phase phase, enum plan_kind kind, uint64_t step)
{
	struct plan_positions positions = { .pending = 0 };
	plan_look(&page, &(struct stop_plan){ 1, phase, kind, step }, true, &positions);
	return positions;
}

static void fresh_page(void)
{
	memset(&page, 0, sizeof(page));
	atomic_store(&page.asks, 1u << PLAN_LEAVE | 1u << PLAN_SAVE);
}

TEST(a_worker_that_nobody_asks_goes_on_and_writes_nothing)
{
	fresh_page();
	for (uint64_t step = 0; step < 10; step++)
		ck_assert_int_eq(plan_ask(&page, step, false, &seen), PLAN_GO_ON);
	ck_assert_uint_eq(page.at, 0);
	ck_assert_uint_eq(page.acted, 0);
}

TEST(a_worker_tells_where_it_is_once_somebody_asks)
{
	fresh_page();
	show(PLAN_ASKED, PLAN_LEAVE, 0);
	ck_assert_uint_eq(look_at(PLAN_ASKED, PLAN_LEAVE, 0).unknown, 1);
	ck_assert_int_eq(plan_ask(&page, 41, false, &seen), PLAN_GO_ON);
	ck_assert_uint_eq(look_at(PLAN_ASKED, PLAN_LEAVE, 0).unknown, 0);
	ck_assert_uint_eq(look_at(PLAN_ASKED, PLAN_LEAVE, 0).at, 42);
}

TEST(a_worker_waits_after_the_proposed_step_and_acts_when_it_is_agreed_on)
{
	fresh_page();
	show(PLAN_PROPOSED, PLAN_LEAVE, 7);
	ck_assert_int_eq(plan_ask(&page, 6, false, &seen), PLAN_GO_ON);
	ck_assert_int_eq(plan_ask(&page, 7, false, &seen), PLAN_WAIT);
	ck_assert_uint_eq(seen, page.plan);
	ck_assert_uint_eq(look_at(PLAN_PROPOSED, PLAN_LEAVE, 7).at, 7);
	uint64_t left_after;
	ck_assert(!plan_has_left(&page, &left_after));
	show(PLAN_COMMITTED, PLAN_LEAVE, 7);
	ck_assert_int_eq(plan_ask(&page, 7, true, &seen), PLAN_ACT); /* it saves first */
	ck_assert(!plan_has_left(&page, &left_after));
	ck_assert_int_eq(plan_ask(&page, 7, false, &seen), PLAN_ACT);
	ck_assert(plan_has_left(&page, &left_after));
	ck_assert_uint_eq(left_after, 7);
}

TEST(a_worker_that_asks_first_after_the_proposed_step_is_known_to_be_there)
{
	fresh_page();
	show(PLAN_PROPOSED, PLAN_LEAVE, 7);
	ck_assert_int_eq(plan_ask(&page, 9, false, &seen), PLAN_WAIT);
	ck_assert_uint_eq(look_at(PLAN_PROPOSED, PLAN_LEAVE, 7).unknown, 0);
	ck_assert_uint_eq(look_at(PLAN_PROPOSED, PLAN_LEAVE, 7).at, 9);
}

TEST(a_worker_saves_once_and_goes_on)
{
	fresh_page();
	show(PLAN_COMMITTED, PLAN_SAVE, 3);
	ck_assert_int_eq(plan_ask(&page, 2, true, &seen), PLAN_GO_ON);
	ck_assert_int_eq(plan_ask(&page, 3, true, &seen), PLAN_ACT);
	ck_assert_int_eq(plan_ask(&page, 3, false, &seen), PLAN_GO_ON);
	ck_assert_int_eq(plan_ask(&page, 4, true, &seen), PLAN_GO_ON);
	ck_assert_uint_eq(look_at(PLAN_COMMITTED, PLAN_SAVE, 3).pending, 0);
}

TEST(who_does_not_ask_keeps_a_save_but_nobody_who_leaves)
{
	fresh_page();
	atomic_store(&page.asks, 0);
	ck_assert_uint_eq(look_at(PLAN_ASKED, PLAN_SAVE, 0).unknown, 1);
	ck_assert_uint_eq(look_at(PLAN_ASKED, PLAN_LEAVE, 0).unknown, 0);
	struct plan_positions positions = { .pending = 0 };
	plan_look(NULL, &(struct stop_plan){ 1, PLAN_ASKED, PLAN_SAVE, 0 }, true, &positions);
	ck_assert_uint_eq(positions.unknown, 1);
}

TEST(any_bytes_in_a_page_are_only_wrong_numbers)
{
	uint64_t state = 1;
	for (int i = 0; i < 10000; i++) {
		for (size_t at = 0; at < sizeof(page) / 8; at++) {
			state = state * 6364136223846793005u + 1442695040888963407u;
			((uint64_t *)&page)[at] = state >> (state & 63);
		}
		struct plan_positions positions =
			look_at((enum plan_phase)(i & 3), (enum plan_kind)(i & 1), state);
		ck_assert_uint_le(positions.at, PLAN_STEP_MAX + 1);
		plan_ask(&page, state, i & 1, &seen);
	}
}

TEST(workers_have_left_if_all_saved_or_ended_well)
{
	struct worker_page other;
	memset(&other, 0, sizeof(other));
	fresh_page();
	struct plan_leavers leavers = { .left = 0 };
	plan_count(&page, true, &leavers);
	ck_assert(!plan_all_left(&leavers)); /* it is done, and nobody asked it to leave */

	show(PLAN_COMMITTED, PLAN_LEAVE, 7);
	ck_assert_int_eq(plan_ask(&page, 7, false, &seen), PLAN_ACT);
	plan_count(&page, true, &leavers);
	plan_count(&other, true, &leavers);
	ck_assert(plan_all_left(&leavers));
	atomic_store(&page.saved, 7); /* up to step 6 */
	struct plan_leavers lost = leavers;
	plan_count(&page, false, &lost);
	ck_assert(!plan_all_left(&lost));
	atomic_store(&page.saved, 8);
	plan_count(&page, false, &leavers);
	ck_assert(plan_all_left(&leavers));
	plan_count(NULL, false, &leavers);
	ck_assert(!plan_all_left(&leavers));
}

TEST(a_first_plan_to_save_is_not_one_that_was_carried_out)
{
	fresh_page();
	const struct stop_plan plan = { 0, PLAN_COMMITTED, PLAN_SAVE, 1 };
	atomic_store(&page.plan, plan_word(&plan));
	ck_assert_int_eq(plan_ask(&page, 5, true, &seen), PLAN_ACT);
	ck_assert_int_eq(plan_ask(&page, 6, true, &seen), PLAN_GO_ON);
}
