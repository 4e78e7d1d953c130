/* What shows that the workers of a host go on, and what the signs of all hosts mean. */
#include "unit.h"

#include "base/clock.h"
#include "core/worker/hang.h"

#define S NS_PER_S
#define T (100 * S) /* the time-out */

static const struct hang_policy policy = { .silent_ns = T };

enum { WORKERS = 2 };

static struct hang workers[WORKERS];
static struct hang_sample samples[WORKERS];
static struct hang_work works[WORKERS];
static uint64_t now_ns;

static void begin(void)
{
	now_ns = 1000 * S;
	for (size_t i = 0; i < WORKERS; i++) {
		samples[i] = (struct hang_sample){ 0 };
		works[i] = (struct hang_work){ .at_ns = now_ns };
		hang_begin(&workers[i], &works[i], now_ns);
	}
}

static struct hang_signs look(const struct hang_policy *with)
{
	struct hang_signs signs;
	for (size_t i = 0; i < WORKERS; i++) {
		hang_look(&workers[i], &samples[i], now_ns);
		if (!hang_wants_work(&workers[i], with, now_ns))
			continue;
		works[i].at_ns = now_ns;
		hang_add_work(&workers[i], with, &works[i]);
	}
	hang_signs_of(workers, WORKERS, with, now_ns, &signs);
	return signs;
}

/* What a worker does in each second. */
struct habit {
	uint64_t output, promised, arrived;
	uint64_t cpu_ns, bytes, waits;
};

static struct hang_signs pass(uint64_t seconds, const struct habit *one, const struct habit *two)
{
	const struct habit *const habits[WORKERS] = { one, two };
	struct hang_signs signs = { .silence = HANG_FINE };
	for (uint64_t second = 0; second < seconds; second++) {
		now_ns += S;
		for (size_t i = 0; i < WORKERS; i++) {
			const struct habit *habit = habits[i];
			samples[i].output += habit->output;
			samples[i].promised += habit->promised;
			samples[i].arrived += habit->arrived;
			works[i].cpu_ns += habit->cpu_ns;
			works[i].bytes += habit->bytes;
			works[i].waits += habit->waits;
		}
		signs = look(&policy);
	}
	return signs;
}

static const struct habit idle, prints = { .output = 20 }, steps = { .promised = 1 },
				computes = { .cpu_ns = S / 2 };

TEST(the_others_of_a_rank_that_prints_are_not_silent)
{
	begin();
	struct hang_signs signs = pass(1000, &prints, &idle);
	ck_assert_int_eq(signs.silence, HANG_FINE);
	signs = pass(99, &idle, &idle);
	ck_assert_int_eq(signs.silence, HANG_FINE);
	signs = pass(10, &idle, &idle);
	ck_assert_int_eq(signs.silence, HANG_SILENT);
	ck_assert(!signs.works && !signs.starting);
	ck_assert_int_eq(pass(400, &idle, &idle).silence, HANG_LONG);
}

TEST(one_that_has_ended_does_not_count)
{
	begin();
	pass(5, &prints, &prints);
	workers[0].runs = false;
	ck_assert_int_eq(pass(110, &prints, &idle).silence, HANG_SILENT);
	workers[1].runs = false;
	ck_assert_int_eq(pass(110, &idle, &idle).silence, HANG_FINE);
}

TEST(work_is_cpu_time_bytes_or_waits)
{
	static const struct {
		struct habit habit;
		bool works;
	} rows[] = {
		{ { .cpu_ns = S / 20 }, true }, /* 5 % of a CPU */
		{ { .cpu_ns = S / 200 }, false },
		{ { .bytes = 1 << 20 }, true },	 /* a checkpoint on slow storage */
		{ { .bytes = 8 << 10 }, false }, /* a thread that monitors */
		{ { .waits = 2 }, true },	 /* short steps, with a collective each */
		{ { .waits = 0 }, false },
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		begin();
		pass(3, &prints, &prints);
		struct hang_signs signs = pass(130, &idle, &rows[i].habit);
		ck_assert_int_eq(signs.silence, HANG_SILENT);
		ck_assert_msg(signs.works == rows[i].works, "row %zu", i);
	}
}

TEST(a_wait_that_looks_now_and_then_is_no_work)
{
	begin();
	pass(3, &prints, &prints);
	for (int i = 0; i < 30; i++) { /* every 5 seconds, as a data loader's queue does */
		static const struct habit wakes = { .waits = 1 };
		pass(4, &idle, &idle);
		pass(1, &wakes, &idle);
	}
	ck_assert(!pass(1, &idle, &idle).works);
}

TEST(a_broken_promise_is_of_its_rank_whatever_others_print)
{
	begin();
	pass(10, &prints, &steps);
	struct hang_signs signs = pass(125, &prints, &idle);
	ck_assert_int_eq(signs.broken, HANG_SILENT);
	ck_assert_uint_eq(signs.rank, 1);
	ck_assert(!signs.excuse);
}

TEST(one_that_breaks_its_promise_but_works_has_more_time)
{
	begin();
	pass(10, &steps, &steps);
	struct hang_signs signs = pass(250, &steps, &computes);
	ck_assert_int_eq(signs.broken, HANG_FINE);
	signs = pass(260, &steps, &computes);
	ck_assert_int_eq(signs.broken, HANG_LONG);
	ck_assert_uint_eq(signs.rank, 1);
}

TEST(those_who_wait_for_a_rank_that_works_have_an_excuse)
{
	static const struct habit *const busy[] = { &prints, &computes };
	for (size_t i = 0; i < ARRAY_LEN(busy); i++) {
		begin();
		pass(10, &steps, &steps);
		/* rank 0 validates, rank 1 waits in a barrier */
		struct hang_signs signs = pass(60, busy[i], &idle);
		ck_assert(signs.excuse); /* in time: before rank 1 is late */
		signs = pass(120, busy[i], &idle);
		ck_assert_int_eq(signs.broken, HANG_SILENT);
		ck_assert(signs.excuse);
		ck_assert_int_eq(pass(400, busy[i], &idle).broken, HANG_LONG);
	}
}

TEST(a_start_has_a_time_of_its_own)
{
	static const struct hang_policy both = { .silent_ns = T, .start_ns = 5 * T };
	begin();
	now_ns += T + S;
	struct hang_signs signs = look(&both);
	ck_assert_int_eq(signs.silence, HANG_SILENT);
	ck_assert(signs.starting);
	now_ns += 4 * T;
	ck_assert_int_eq(look(&both).silence, HANG_LONG);
	samples[0].output++;
	signs = look(&both);
	ck_assert_int_eq(signs.silence, HANG_FINE);
	now_ns += T;
	signs = look(&both);
	ck_assert_int_eq(signs.silence, HANG_SILENT);
	ck_assert(!signs.starting);
}

TEST(collectives_that_cease_are_told_apart)
{
	static const struct habit arrives = { .output = 1, .arrived = 3 };
	begin();
	pass(20, &arrives, &arrives);
	struct hang_signs signs = pass(110, &prints, &computes);
	ck_assert_int_eq(signs.stalled, HANG_SILENT);
	ck_assert_int_eq(signs.silence, HANG_FINE);
	ck_assert_int_eq(pass(1, &idle, &arrives).stalled, HANG_FINE);
}

TEST(a_debugger_looks_after_its_worker)
{
	begin();
	pass(3, &prints, &steps);
	works[1].traced = true;
	struct hang_signs signs = pass(1000, &idle, &idle);
	ck_assert_int_eq(signs.silence, HANG_FINE);
	ck_assert_int_eq(signs.broken, HANG_FINE);
	works[1].traced = false;
	ck_assert_int_eq(pass(120, &idle, &idle).silence, HANG_SILENT);
}

TEST(a_pause_is_not_silence)
{
	begin();
	pass(3, &prints, &steps);
	for (size_t i = 0; i < WORKERS; i++)
		hang_pause(&workers[i], 50 * T);
	now_ns += 50 * T;
	ck_assert_int_eq(pass(90, &idle, &idle).silence, HANG_FINE);
	ck_assert_int_eq(pass(30, &idle, &idle).silence, HANG_SILENT);
}

TEST(uninterruptible_sleep_must_last_without_a_break)
{
	static const struct hang_policy stuck = { .uninterruptible_ns = 10 * S };
	struct hang hang;
	hang_begin(&hang, &(struct hang_work){ .at_ns = 0 }, 0);
	ck_assert(!hang_is_stuck(&hang, &stuck, true, 1 * S));
	ck_assert(!hang_is_stuck(&hang, &stuck, false, 5 * S));
	ck_assert(!hang_is_stuck(&hang, &stuck, true, 6 * S));
	ck_assert(!hang_is_stuck(&hang, &stuck, true, 15 * S));
	hang_pause(&hang, 100 * S);
	ck_assert(!hang_is_stuck(&hang, &stuck, true, 115 * S));
	ck_assert(hang_is_stuck(&hang, &stuck, true, 116 * S));
	ck_assert(!hang_is_stuck(&hang, &stuck, true, 130 * S)); /* once */
}

TEST(nothing_asked_for_means_no_looking)
{
	ck_assert_uint_eq(hang_period_ns(&(struct hang_policy){ 0 }), 0);
	ck_assert_uint_eq(
		hang_period_ns(&(struct hang_policy){ .start_ns = 5 * S, .silent_ns = 600 * S }),
		S / 2);
	ck_assert_uint_eq(hang_period_ns(&(struct hang_policy){ .silent_ns = 3600 * S }), S);
}

TEST(a_worker_that_is_not_stuck_is_never_said_to_be)
{
	static const struct hang_policy stuck = { .uninterruptible_ns = 10 * S };
	struct hang hang;
	hang_begin(&hang, &(struct hang_work){ .at_ns = 100 * S }, 100 * S);
	ck_assert(!hang_is_stuck(&hang, &stuck, false, 200 * S));
}

/* ---- all hosts ---- */

#define FINE_ONE \
	{ \
		.silence = HANG_FINE \
	}
#define SILENT_ONE \
	{ \
		.silence = HANG_SILENT \
	}
#define BUSY_ONE \
	{ \
		.silence = HANG_SILENT, .works = true \
	}
#define NEW_ONE \
	{ \
		.silence = HANG_SILENT, .starting = true \
	}
#define LATE_ONE \
	{ \
		.silence = HANG_LONG, .starting = true \
	}
#define BROKEN_ONE \
	{ \
		.silence = HANG_SILENT, .broken = HANG_SILENT \
	}
#define EXCUSED_ONE \
	{ \
		.excuse = true, .works = true \
	}

TEST(what_the_signs_of_two_hosts_mean)
{
	static const struct {
		struct hang_signs one, two;
		enum hang_kind kind;
	} rows[] = {
		{ SILENT_ONE, SILENT_ONE, HANG_GROUP },
		{ SILENT_ONE, FINE_ONE, HANG_NONE }, /* a rank of the other host prints */
		{ SILENT_ONE, BUSY_ONE, HANG_NONE }, /* nobody prints, but one works */
		{ NEW_ONE, NEW_ONE, HANG_NONE },     /* a start may take longer, */
		{ NEW_ONE, LATE_ONE, HANG_NONE },
		{ LATE_ONE, LATE_ONE, HANG_START },  /* but not for ever, */
		{ SILENT_ONE, NEW_ONE, HANG_GROUP }, /* and is over when one has begun */
		{ BROKEN_ONE, FINE_ONE, HANG_PROMISE },
		{ BROKEN_ONE, EXCUSED_ONE, HANG_NONE },
		{ { .broken = HANG_LONG }, EXCUSED_ONE, HANG_PROMISE },
		{ { .stalled = HANG_SILENT }, { .stalled = HANG_LONG }, HANG_RECORDS },
		{ { .stalled = HANG_SILENT }, FINE_ONE, HANG_NONE },
		{ { .silence = HANG_SILENT, .stalled = HANG_SILENT },
		  { .silence = HANG_SILENT, .stalled = HANG_SILENT },
		  HANG_GROUP },
	};
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct hang_tally tally = { 0 };
		bool long_since;
		hang_tally_add(&tally, &rows[i].one);
		hang_tally_add(&tally, &rows[i].two);
		ck_assert_msg(hang_judge(&tally, 2, &long_since) == rows[i].kind, "row %zu", i);
		/* A third one that tells nothing goes on. */
		ck_assert_msg(hang_judge(&tally, 3, &long_since) ==
				      (rows[i].kind == HANG_PROMISE ? HANG_PROMISE : HANG_NONE),
			      "row %zu with a third host", i);
		hang_tally_remove(&tally, &rows[i].one);
		hang_tally_remove(&tally, &rows[i].two);
		ck_assert_uint_eq(tally.silent + tally.works + tally.broken + tally.excuse, 0);
	}
}

TEST(nobody_hangs_where_nobody_works)
{
	bool long_since;
	ck_assert_int_eq(hang_judge(&(struct hang_tally){ 0 }, 0, &long_since), HANG_NONE);
}
