#include "unit.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "core/worker/deadlines.h"

static void acquire(struct deadlines *d, uint64_t process, const char *scope, uint64_t deadline_ns)
{
	ck_assert(deadlines_acquire(d, process, scope, DEADLINE_RENEW, SIGKILL, deadline_ns, 1));
}

static void nest(struct deadlines *d, uint64_t process, const char *scope, uint64_t deadline_ns)
{
	ck_assert(deadlines_acquire(d, process, scope, DEADLINE_NEST, SIGKILL, deadline_ns, 1));
}

/* Expires one timer and compares; process 0: nothing must be due. */
static void expect_expired(struct deadlines *d, uint64_t now_ns, uint64_t process,
			   const char *scope)
{
	struct deadline *deadline = deadlines_expire(d, now_ns);
	if (process == 0) {
		ck_assert_ptr_null(deadline);
		return;
	}
	ck_assert_ptr_nonnull(deadline);
	ck_assert_uint_eq(deadline->process, process);
	ck_assert_str_eq(deadline->scope, scope);
	deadline_free(deadline);
}

TEST(a_pause_moves_every_deadline)
{
	AUTO(deadlines_done) struct deadlines d = DEADLINES_INIT;
	acquire(&d, 7, "late", 300);
	nest(&d, 8, "early", 100);
	nest(&d, 8, "early", 200);
	deadlines_pause(&d, 1000);
	ck_assert_uint_eq(deadlines_next(&d), 1100);
	expect_expired(&d, 1099, 0, NULL);
	expect_expired(&d, 1100, 8, "early");
	acquire(&d, 9, "new", 1250);
	expect_expired(&d, 1300, 8, "early");
	expect_expired(&d, 1300, 9, "new");
	expect_expired(&d, 1300, 7, "late");
}

TEST(timers_expire_in_order_of_deadline_and_not_before)
{
	AUTO(deadlines_done) struct deadlines d = DEADLINES_INIT;
	acquire(&d, 7, "late", 300);
	acquire(&d, 8, "early", 100);
	acquire(&d, 7, "middle", 200);
	ck_assert_uint_eq(deadlines_next(&d), 100);
	expect_expired(&d, 99, 0, NULL);
	expect_expired(&d, 250, 8, "early");
	expect_expired(&d, 250, 7, "middle");
	expect_expired(&d, 250, 0, NULL);
	ck_assert_uint_eq(deadlines_next(&d), 300);
	ck_assert_uint_eq(deadlines_count(&d), 1);
}

TEST(the_same_scope_of_two_processes_is_two_timers)
{
	AUTO(deadlines_done) struct deadlines d = DEADLINES_INIT;
	acquire(&d, 1, "step", 10);
	acquire(&d, 2, "step", 20);
	ck_assert(deadlines_release(&d, 1, "step"));
	ck_assert(!deadlines_release(&d, 1, "step"));
	expect_expired(&d, 100, 2, "step");
}

TEST(a_second_acquire_renews)
{
	AUTO(deadlines_done) struct deadlines d = DEADLINES_INIT;
	acquire(&d, 1, "step", 10);
	acquire(&d, 1, "step", 50);
	ck_assert_uint_eq(deadlines_count(&d), 1);
	expect_expired(&d, 49, 0, NULL);
	ck_assert(deadlines_release(&d, 1, "step"));
	ck_assert_uint_eq(deadlines_next(&d), NS_NEVER);
}

TEST(nested_equal_scopes_keep_the_outer_timer)
{
	AUTO(deadlines_done) struct deadlines d = DEADLINES_INIT;
	nest(&d, 1, "step", 100);
	nest(&d, 1, "step", 20);
	ck_assert_uint_eq(deadlines_next(&d), 20);
	ck_assert(deadlines_release(&d, 1, "step"));
	ck_assert_uint_eq(deadlines_next(&d), 100);
	expect_expired(&d, 100, 1, "step");
	ck_assert(!deadlines_release(&d, 1, "step"));
}

TEST(the_outer_of_two_nested_timers_may_expire_first)
{
	AUTO(deadlines_done) struct deadlines d = DEADLINES_INIT;
	nest(&d, 1, "step", 10);
	nest(&d, 1, "step", 20);
	nest(&d, 1, "step", 30);
	expect_expired(&d, 15, 1, "step");
	ck_assert(deadlines_release(&d, 1, "step"));
	expect_expired(&d, 25, 1, "step");
	ck_assert_uint_eq(deadlines_count(&d), 0);
}

TEST(a_dead_process_takes_its_timers_along)
{
	AUTO(deadlines_done) struct deadlines d = DEADLINES_INIT;
	acquire(&d, 1, "a", 10);
	nest(&d, 1, "a", 11);
	acquire(&d, 1, "b", 12);
	acquire(&d, 2, "a", 13);
	ck_assert_uint_eq(deadlines_forget(&d, 1), 3);
	ck_assert_uint_eq(deadlines_forget(&d, 1), 0);
	ck_assert_ptr_null(deadlines_of(&d, 1));
	expect_expired(&d, 100, 2, "a");
}

TEST(the_earliest_expired_timer_with_a_signal_decides)
{
	AUTO(deadlines_done) struct deadlines d = DEADLINES_INIT;
	static const int signals[] = { 0, SIGTERM, SIGKILL };
	for (int i = 0; i < 3; i++) {
		char scope[2] = { (char)('a' + i), '\0' };
		deadlines_acquire(&d, 1, scope, DEADLINE_RENEW, signals[i], 10 + (uint64_t)i, 1);
	}
	int told = 0, sent = 0;
	for (struct deadline *deadline; (deadline = deadlines_expire(&d, 100));
	     deadline_free(deadline)) {
		told++;
		if (deadline->signal > 0) {
			sent = deadline->signal;
			deadlines_forget(&d, deadline->process);
		}
	}
	ck_assert_int_eq(told, 2);
	ck_assert_int_eq(sent, SIGTERM);
}

TEST(a_timer_without_end_is_kept_and_never_expires)
{
	AUTO(deadlines_done) struct deadlines d = DEADLINES_INIT;
	acquire(&d, 1, "forever", NS_NEVER);
	expect_expired(&d, NS_NEVER, 0, NULL);
	ck_assert_uint_eq(deadlines_next(&d), NS_NEVER);
	ck_assert(deadlines_release(&d, 1, "forever"));
}

TEST(one_process_cannot_arm_without_bound)
{
	AUTO(deadlines_done) struct deadlines d = DEADLINES_INIT;
	for (int i = 0; i < DEADLINES_PER_PROCESS_MAX; i++)
		nest(&d, 1, "x", 10);
	ck_assert_ptr_null(deadlines_acquire(&d, 1, "x", DEADLINE_NEST, 9, 10, 1));
	ck_assert_ptr_null(deadlines_acquire(&d, 1, "y", DEADLINE_RENEW, 9, 10, 1));
	ck_assert_ptr_nonnull(deadlines_acquire(&d, 1, "x", DEADLINE_RENEW, 9, 10, 1));
	ck_assert_ptr_nonnull(deadlines_acquire(&d, 2, "x", DEADLINE_NEST, 9, 10, 1));
}

/* A plain array is the model: same random operations, same answers. */
TEST(agrees_with_a_plain_list_under_random_operations)
{
	AUTO(deadlines_done) struct deadlines d = DEADLINES_INIT;
	enum { PROCESSES = 5, SCOPES = 7 };
	uint64_t model[PROCESSES][SCOPES] = { 0 }; /* 0: not armed */
	unsigned seed = 42;
	for (uint64_t now = 1; now < 20000; now++) {
		unsigned process = (unsigned)rand_r(&seed) % PROCESSES,
			 scope = (unsigned)rand_r(&seed) % SCOPES;
		char name[200];
		snprintf(name, sizeof(name), "scope-%0*u", scope == 0 ? 150 : 1, scope);
		switch (rand_r(&seed) % 5) {
		case 0:
		case 1:
			model[process][scope] = now + 1 + (uint64_t)rand_r(&seed) % 60;
			acquire(&d, process, name, model[process][scope]);
			break;
		case 2:
			ck_assert_int_eq(deadlines_release(&d, process, name),
					 model[process][scope] != 0);
			model[process][scope] = 0;
			break;
		case 3:
			if (rand_r(&seed) % 10)
				break;
			deadlines_forget(&d, process);
			for (int i = 0; i < SCOPES; i++)
				model[process][i] = 0;
			break;
		default:
			break;
		}
		for (struct deadline *deadline; (deadline = deadlines_expire(&d, now));
		     deadline_free(deadline)) {
			unsigned which =
				(unsigned)(deadline->scope[strlen(deadline->scope) - 1] - '0');
			ck_assert_uint_eq(model[deadline->process][which], deadline->deadline_ns);
			model[deadline->process][which] = 0;
		}
		uint64_t next = NS_NEVER;
		for (int p = 0; p < PROCESSES; p++)
			for (int s = 0; s < SCOPES; s++)
				if (model[p][s])
					next = MIN(next, model[p][s]);
		ck_assert_uint_eq(deadlines_next(&d), next);
	}
}

TEST(arms_renewals_and_releases_are_counted)
{
	AUTO(deadlines_done) struct deadlines d = DEADLINES_INIT;
	acquire(&d, 7, "a", 100);
	struct deadline *again = deadlines_acquire(&d, 7, "a", DEADLINE_RENEW, SIGKILL, 300, 42);
	ck_assert_uint_eq(again->armed_ns, 42); /* since when a report counts */
	ck_assert(deadlines_release(&d, 7, "a"));
	ck_assert(!deadlines_release(&d, 7, "a"));
	ck_assert_uint_eq(d.armed_total, 2);
	ck_assert_uint_eq(d.released_total, 1);
}
