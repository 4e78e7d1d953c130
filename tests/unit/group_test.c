#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>

#include "base/str.h"
#include "core/worker/group.h"

#define SECOND NS_PER_S
#define NOW (100 * SECOND)
#define GRACE (30 * SECOND)

static const struct exit_status exit_0 = { .kind = EXIT_CODE, .value = 0 };
static const struct exit_status exit_3 = { .kind = EXIT_CODE, .value = 3 };

/* The actions of a step as text, so that an expectation is one line: "tell-failed:1
 * signal:0=SIGTERM". */
static void step(struct group *group, const struct group_event *event, struct buf *out)
{
	static const char *const names[] = {
		[GROUP_DO_SPAWN] = "spawn",	      [GROUP_DO_SIGNAL] = "signal",
		[GROUP_DO_SIGNAL_MAIN] = "main",      [GROUP_DO_SIGNAL_ORPHANS] = "orphans",
		[GROUP_DO_KILL_ALL] = "kill-all",     [GROUP_DO_TELL_FAILED] = "tell-failed",
		[GROUP_DO_TELL_DONE] = "tell-done",   [GROUP_DO_TELL_GONE] = "tell-gone",
		[GROUP_DO_TELL_STUCK] = "tell-stuck",
	};
	struct group_actions actions = { 0 };
	group_step(group, event, NOW, &actions);
	for (size_t i = 0; i < actions.count; i++) {
		const struct group_action *action = &actions.items[i];
		buf_printf(out, "%s%s", buf_len(out) ? " " : "", names[action->type]);
		bool one = action->type == GROUP_DO_SIGNAL || action->type == GROUP_DO_SIGNAL_MAIN;
		if (one || action->type == GROUP_DO_SPAWN || action->type == GROUP_DO_TELL_FAILED)
			buf_printf(out, ":%zu", action->rank);
		if (one || action->type == GROUP_DO_SIGNAL_ORPHANS)
			buf_printf(out, "=%s", str_signal_name(action->signal));
	}
	group_actions_done(&actions);
}

#define STEP(group, expected, ...) \
	do { \
		AUTO(buf_done) struct buf text = BUF_INIT; \
		step(group, &(struct group_event){ __VA_ARGS__ }, &text); \
		ck_assert_str_eq(buf_str(&text), expected); \
	} while (0)

#define START(group, n) \
	STEP(group, (n) == 1 ? "spawn:0" : "spawn:0 spawn:1", GROUP_EV_START, .count = (n))
#define SPAWNED(group, i) STEP(group, "", GROUP_EV_SPAWNED, .rank = (i), .when_ns = NOW - SECOND)
#define EXITED(group, expected, i, how) \
	STEP(group, expected, GROUP_EV_EXITED, .rank = (i), .status = (how), .when_ns = NOW)
#define EMPTY(group, expected) STEP(group, expected, GROUP_EV_EMPTY)

/* A group of two running workers, brought into `state`. */
static void make(struct group *group, enum group_state state)
{
	group_init(group, SIGTERM, GRACE);
	if (state == GROUP_IDLE)
		return;
	START(group, 2);
	SPAWNED(group, 0);
	SPAWNED(group, 1);
	struct buf ignored = BUF_INIT;
	if (state == GROUP_STOPPING)
		step(group,
		     &(struct group_event){ GROUP_EV_STOP, .signal = SIGTERM, .grace_ns = GRACE },
		     &ignored);
	if (state == GROUP_KILLING)
		step(group, &(struct group_event){ GROUP_EV_KILL }, &ignored);
	if (state == GROUP_LINGERING)
		for (size_t i = 0; i < 2; i++)
			step(group,
			     &(struct group_event){ GROUP_EV_EXITED, .rank = i, .status = exit_0,
						    .when_ns = NOW },
			     &ignored);
	buf_done(&ignored);
	ck_assert_int_eq(group->state, state);
}

TEST(every_row_of_the_table_does_what_it_says)
{
	static const struct {
		enum group_state from;
		struct group_event event;
		enum group_state to;
		const char *actions;
	} rows[] = {
		{ GROUP_IDLE, { GROUP_EV_START, .count = 2 }, GROUP_ACTIVE, "spawn:0 spawn:1" },
		{ GROUP_IDLE, { GROUP_EV_SPAWNED }, GROUP_IDLE, "" },
		{ GROUP_IDLE, { GROUP_EV_SPAWN_FAILED }, GROUP_IDLE, "" },
		{ GROUP_IDLE, { GROUP_EV_EXITED }, GROUP_IDLE, "" },
		{ GROUP_IDLE, { GROUP_EV_EXPIRED }, GROUP_IDLE, "" },
		{ GROUP_IDLE, { GROUP_EV_SURVIVOR, .error = EBUSY }, GROUP_IDLE, "" },
		{ GROUP_IDLE, { GROUP_EV_EMPTY }, GROUP_IDLE, "" },
		{ GROUP_IDLE, { GROUP_EV_LOST }, GROUP_IDLE, "" },
		{ GROUP_IDLE, { GROUP_EV_STOP, .signal = SIGINT }, GROUP_IDLE, "" },
		{ GROUP_IDLE, { GROUP_EV_KILL }, GROUP_IDLE, "" },
		{ GROUP_IDLE, { GROUP_EV_TIMER }, GROUP_IDLE, "" },
		{ GROUP_IDLE, { GROUP_EV_PAUSED, .grace_ns = 5 }, GROUP_IDLE, "" },

		{ GROUP_ACTIVE, { GROUP_EV_START, .count = 3 }, GROUP_ACTIVE, "" },
		{ GROUP_ACTIVE, { GROUP_EV_SPAWNED, .when_ns = NOW }, GROUP_ACTIVE, "" },
		{ GROUP_ACTIVE,
		  { GROUP_EV_SPAWN_FAILED, .rank = 1, .error = ENOENT },
		  GROUP_STOPPING,
		  "tell-failed:1 orphans=SIGKILL signal:0=SIGTERM" },
		{ GROUP_ACTIVE,
		  { GROUP_EV_EXITED, .rank = 1, .status = { EXIT_SIGNAL, SIGSEGV, true } },
		  GROUP_STOPPING,
		  "tell-failed:1 orphans=SIGKILL signal:0=SIGTERM" },
		{ GROUP_ACTIVE,
		  { GROUP_EV_EXITED, .rank = 0, .status = { EXIT_UNKNOWN } },
		  GROUP_STOPPING,
		  "tell-failed:0 orphans=SIGKILL signal:1=SIGTERM" },
		{ GROUP_ACTIVE, { GROUP_EV_EXITED, .status = { EXIT_CODE, 0 } }, GROUP_ACTIVE, "" },
		{ GROUP_ACTIVE,
		  { GROUP_EV_EXITED, .rank = 1, .status = { EXIT_CODE, 0 },
		    .reason = FAILURE_UNFINALIZED },
		  GROUP_STOPPING,
		  "tell-failed:1 orphans=SIGKILL signal:0=SIGTERM" },
		{ GROUP_ACTIVE,
		  { GROUP_EV_EXPIRED, .rank = 1, .reason = FAILURE_TIMER, .signal = SIGUSR1 },
		  GROUP_STOPPING,
		  "tell-failed:1 orphans=SIGKILL signal:0=SIGTERM main:1=SIGUSR1" },
		{ GROUP_ACTIVE, { GROUP_EV_SURVIVOR, .error = EBUSY }, GROUP_ACTIVE, "" },
		{ GROUP_ACTIVE, { GROUP_EV_EMPTY }, GROUP_ACTIVE, "" },
		{ GROUP_ACTIVE, { GROUP_EV_LOST }, GROUP_IDLE, "tell-failed:0 tell-gone" },
		{ GROUP_ACTIVE,
		  { GROUP_EV_STOP, .signal = SIGINT, .grace_ns = 1 },
		  GROUP_STOPPING,
		  "orphans=SIGINT signal:0=SIGINT signal:1=SIGINT" },
		{ GROUP_ACTIVE, { GROUP_EV_KILL }, GROUP_KILLING, "kill-all" },
		{ GROUP_ACTIVE, { GROUP_EV_TIMER }, GROUP_ACTIVE, "" },
		{ GROUP_ACTIVE, { GROUP_EV_PAUSED, .grace_ns = 5 }, GROUP_ACTIVE, "" },

		{ GROUP_STOPPING, { GROUP_EV_START }, GROUP_STOPPING, "" },
		{ GROUP_STOPPING, { GROUP_EV_SPAWNED, .when_ns = NOW }, GROUP_STOPPING, "" },
		{ GROUP_STOPPING, { GROUP_EV_SPAWN_FAILED }, GROUP_STOPPING, "" },
		{ GROUP_STOPPING,
		  { GROUP_EV_EXITED, .status = { EXIT_CODE, 1 } },
		  GROUP_STOPPING,
		  "orphans=SIGTERM" },
		{ GROUP_STOPPING, { GROUP_EV_EXPIRED, .signal = SIGKILL }, GROUP_STOPPING, "" },
		{ GROUP_STOPPING, { GROUP_EV_SURVIVOR, .error = EBUSY }, GROUP_STOPPING, "" },
		{ GROUP_STOPPING, { GROUP_EV_EMPTY }, GROUP_STOPPING, "" },
		{ GROUP_STOPPING, { GROUP_EV_LOST }, GROUP_IDLE, "tell-gone" },
		{ GROUP_STOPPING,
		  { GROUP_EV_STOP, .signal = SIGINT, .grace_ns = 1 },
		  GROUP_STOPPING,
		  "orphans=SIGINT signal:0=SIGINT signal:1=SIGINT" },
		{ GROUP_STOPPING, { GROUP_EV_KILL }, GROUP_KILLING, "kill-all" },
		{ GROUP_STOPPING, { GROUP_EV_TIMER }, GROUP_KILLING, "kill-all" },
		{ GROUP_STOPPING, { GROUP_EV_PAUSED, .grace_ns = 5 }, GROUP_STOPPING, "" },

		{ GROUP_LINGERING, { GROUP_EV_START }, GROUP_LINGERING, "" },
		{ GROUP_LINGERING, { GROUP_EV_SPAWNED }, GROUP_LINGERING, "" },
		{ GROUP_LINGERING, { GROUP_EV_SPAWN_FAILED }, GROUP_LINGERING, "" },
		{ GROUP_LINGERING, { GROUP_EV_EXITED }, GROUP_LINGERING, "" },
		{ GROUP_LINGERING, { GROUP_EV_EXPIRED }, GROUP_LINGERING, "" },
		{ GROUP_LINGERING, { GROUP_EV_SURVIVOR, .error = EBUSY }, GROUP_LINGERING, "" },
		{ GROUP_LINGERING, { GROUP_EV_EMPTY }, GROUP_IDLE, "tell-gone" },
		{ GROUP_LINGERING, { GROUP_EV_LOST }, GROUP_IDLE, "tell-gone" },
		{ GROUP_LINGERING,
		  { GROUP_EV_STOP, .signal = SIGTERM },
		  GROUP_KILLING,
		  "kill-all" },
		{ GROUP_LINGERING, { GROUP_EV_KILL }, GROUP_KILLING, "kill-all" },
		{ GROUP_LINGERING, { GROUP_EV_TIMER }, GROUP_KILLING, "kill-all" },
		{ GROUP_LINGERING, { GROUP_EV_PAUSED, .grace_ns = 5 }, GROUP_LINGERING, "" },

		{ GROUP_KILLING, { GROUP_EV_START }, GROUP_KILLING, "" },
		{ GROUP_KILLING, { GROUP_EV_SPAWNED, .when_ns = NOW }, GROUP_KILLING, "" },
		{ GROUP_KILLING, { GROUP_EV_SPAWN_FAILED }, GROUP_KILLING, "" },
		{ GROUP_KILLING, { GROUP_EV_EXITED }, GROUP_KILLING, "" },
		{ GROUP_KILLING, { GROUP_EV_EXPIRED }, GROUP_KILLING, "" },
		{ GROUP_KILLING, { GROUP_EV_SURVIVOR, .error = EBUSY }, GROUP_KILLING, "" },
		{ GROUP_KILLING, { GROUP_EV_EMPTY }, GROUP_KILLING, "" },
		{ GROUP_KILLING, { GROUP_EV_LOST }, GROUP_IDLE, "tell-gone" },
		{ GROUP_KILLING, { GROUP_EV_STOP, .signal = SIGINT }, GROUP_KILLING, "" },
		{ GROUP_KILLING, { GROUP_EV_KILL }, GROUP_KILLING, "" },
		{ GROUP_KILLING, { GROUP_EV_TIMER }, GROUP_KILLING, "tell-stuck" },
		{ GROUP_KILLING, { GROUP_EV_PAUSED }, GROUP_KILLING, "" },
	};
	bool covered[GROUP_STATE_COUNT][GROUP_EVENT_COUNT] = { 0 };
	for (size_t i = 0; i < ARRAY_LEN(rows); i++) {
		struct group group;
		make(&group, rows[i].from);
		AUTO(buf_done) struct buf text = BUF_INIT;
		step(&group, &rows[i].event, &text);
		ck_assert_msg(str_eq(buf_str(&text), rows[i].actions) && group.state == rows[i].to,
			      "row %zu: got \"%s\" and state %d", i, buf_str(&text), group.state);
		covered[rows[i].from][rows[i].event.type] = true;
		group_done(&group);
	}
	for (size_t state = 0; state < GROUP_STATE_COUNT; state++)
		for (size_t event = 0; event < GROUP_EVENT_COUNT; event++)
			ck_assert_msg(covered[state][event], "no row for state %zu, event %zu",
				      state, event);
}

TEST(group_is_done_when_the_last_worker_ends_well_and_gone_when_its_leftovers_are)
{
	struct group group;
	make(&group, GROUP_ACTIVE);
	EXITED(&group, "", 1, exit_0);
	EXITED(&group, "tell-done orphans=SIGTERM", 0, exit_0);
	ck_assert_uint_eq(group_deadline_ns(&group), NOW + GROUP_LINGER_NS);
	EMPTY(&group, "tell-gone");
	ck_assert_uint_eq(group_deadline_ns(&group), NS_NEVER);
	group_done(&group);
}

TEST(group_kills_at_once_what_a_lone_failed_worker_left)
{
	struct group group;
	group_init(&group, SIGTERM, GRACE);
	START(&group, 1);
	SPAWNED(&group, 0);
	EXITED(&group, "tell-failed:0 kill-all", 0, exit_3);
	EMPTY(&group, "tell-gone");
	group_done(&group);
}

TEST(group_does_not_wait_for_the_end_of_workers_that_were_never_started)
{
	struct group group;
	group_init(&group, SIGTERM, GRACE);
	START(&group, 2);
	STEP(&group, "tell-failed:0 orphans=SIGKILL signal:1=SIGTERM", GROUP_EV_SPAWN_FAILED,
	     .error = EMFILE);
	STEP(&group, "kill-all", GROUP_EV_SPAWN_FAILED, .rank = 1, .error = EMFILE);
	EMPTY(&group, "tell-gone");
	group_done(&group);
}

TEST(group_names_one_cause_and_marks_the_others_as_collateral)
{
	struct group group;
	make(&group, GROUP_ACTIVE);
	EXITED(&group, "tell-failed:1 orphans=SIGKILL signal:0=SIGTERM", 1, exit_3);
	EXITED(&group, "orphans=SIGTERM", 0, ((struct exit_status){ EXIT_SIGNAL, SIGTERM, false }));
	ck_assert(group.failed && group.first == 1);
	ck_assert(!group.workers[1].stopped && group.workers[0].stopped);
	EMPTY(&group, "tell-gone");
	group_done(&group);
}

TEST(group_names_all_that_had_failed_before_the_first_failure_was_seen)
{
	struct group group;
	make(&group, GROUP_ACTIVE);
	EXITED(&group, "tell-failed:1 orphans=SIGKILL signal:0=SIGTERM", 1, exit_3);
	STEP(&group, "orphans=SIGTERM", GROUP_EV_EXITED, .rank = 0, .status = exit_3,
	     .when_ns = NOW - 1);
	ck_assert(group.failed && group.first == 1);
	ck_assert(!group.workers[0].stopped);
	EMPTY(&group, "tell-gone");
	/* A user's stop is the cause of all that ends after it, whatever the clock says. */
	START(&group, 2);
	SPAWNED(&group, 0);
	STEP(&group, "orphans=SIGINT signal:0=SIGINT signal:1=SIGINT", GROUP_EV_STOP,
	     .signal = SIGINT, .grace_ns = GRACE);
	STEP(&group, "orphans=SIGINT", GROUP_EV_EXITED, .rank = 0, .status = exit_3,
	     .when_ns = NOW - 1);
	ck_assert(group.workers[0].stopped);
	group_done(&group);
}

TEST(group_kills_when_the_grace_is_over_and_a_pause_does_not_use_it_up)
{
	struct group group;
	make(&group, GROUP_STOPPING);
	ck_assert_uint_eq(group_deadline_ns(&group), NOW + GRACE);
	STEP(&group, "", GROUP_EV_PAUSED, .grace_ns = 7 * SECOND);
	ck_assert_uint_eq(group_deadline_ns(&group), NOW + GRACE + 7 * SECOND);
	STEP(&group, "kill-all", GROUP_EV_TIMER);
	group_done(&group);
}

TEST(second_interrupt_kills_but_a_second_terminate_does_not)
{
	struct group group;
	make(&group, GROUP_ACTIVE);
	STEP(&group, "orphans=SIGINT signal:0=SIGINT signal:1=SIGINT", GROUP_EV_STOP,
	     .signal = SIGINT, .grace_ns = GRACE);
	STEP(&group, "kill-all", GROUP_EV_STOP, .signal = SIGINT, .grace_ns = GRACE);
	group_done(&group);

	make(&group, GROUP_STOPPING);
	STEP(&group, "", GROUP_EV_STOP, .signal = SIGTERM, .grace_ns = 10 * GRACE);
	ck_assert_int_eq(group.state, GROUP_STOPPING);
	ck_assert_uint_eq(group_deadline_ns(&group), NOW + GRACE);
	group_done(&group);
}

TEST(empty_that_overtakes_a_start_does_not_end_the_group)
{
	struct group group;
	group_init(&group, SIGTERM, GRACE);
	START(&group, 2);
	SPAWNED(&group, 0);
	EXITED(&group, "", 0, exit_0);
	EMPTY(&group, "");
	SPAWNED(&group, 1);
	EXITED(&group, "tell-done orphans=SIGTERM", 1, exit_0);
	EMPTY(&group, "tell-gone");
	group_done(&group);
}

TEST(lost_warden_makes_unknown_ends_but_keeps_known_ones)
{
	struct group group;
	make(&group, GROUP_ACTIVE);
	EXITED(&group, "", 0, exit_0);
	STEP(&group, "tell-failed:1 tell-gone", GROUP_EV_LOST);
	ck_assert_int_eq(group.workers[1].status.kind, EXIT_UNKNOWN);
	ck_assert_int_eq(group.workers[1].reason, FAILURE_WARDEN);
	ck_assert(!group.workers[1].stopped);
	ck_assert_uint_eq(group.workers[1].started_ns, NOW - SECOND);
	ck_assert(group.failed);
	ck_assert_uint_eq(group.first, 1);
	ck_assert(exit_status_ok(&group.workers[0].status));
	group_done(&group);
}

TEST(group_starts_again_with_a_clean_sheet)
{
	struct group group;
	make(&group, GROUP_ACTIVE);
	EXITED(&group, "tell-failed:1 orphans=SIGKILL signal:0=SIGTERM", 1, exit_3);
	EXITED(&group, "orphans=SIGTERM", 0, exit_0);
	EMPTY(&group, "tell-gone");
	START(&group, 2);
	ck_assert(!group.failed);
	ck_assert_int_eq(group.workers[1].state, WORKER_NEW);
	EXITED(&group, "tell-failed:0 orphans=SIGKILL signal:1=SIGTERM", 0, exit_3);
	group_done(&group);
}

TEST(what_may_not_be_killed_is_given_up_sooner_than_what_does_not_die)
{
	struct group group;
	make(&group, GROUP_KILLING);
	ck_assert_uint_eq(group_deadline_ns(&group), NOW + GROUP_STUCK_NS);
	STEP(&group, "", GROUP_EV_SURVIVOR, .error = EBUSY);
	ck_assert_uint_eq(group_deadline_ns(&group), NOW + GROUP_STUCK_NS);
	STEP(&group, "", GROUP_EV_SURVIVOR, .error = EPERM);
	ck_assert_uint_eq(group_deadline_ns(&group), NOW + GROUP_FOREIGN_NS);
	STEP(&group, "tell-stuck", GROUP_EV_TIMER);
	ck_assert_uint_eq(group_deadline_ns(&group), NS_NEVER);
	group_done(&group);
}

TEST(a_timer_that_comes_late_after_a_standstill_gives_up_nothing_yet)
{
	struct group group;
	struct group_actions actions = { 0 };
	uint64_t thawed_ns = NOW + GROUP_STUCK_NS + 400 * NS_PER_MS;
	make(&group, GROUP_KILLING);
	group_step(&group, &(struct group_event){ GROUP_EV_TIMER }, thawed_ns, &actions);
	ck_assert_uint_eq(actions.count, 0);
	thawed_ns += 5 * SECOND;
	group_step(&group, &(struct group_event){ GROUP_EV_TIMER }, thawed_ns, &actions);
	ck_assert_uint_eq(actions.count, 0);
	ck_assert_uint_eq(group_deadline_ns(&group), thawed_ns + GROUP_FOREIGN_NS);
	group_step(&group, &(struct group_event){ GROUP_EV_TIMER }, thawed_ns + GROUP_FOREIGN_NS,
		   &actions);
	ck_assert_uint_eq(actions.count, 1);
	ck_assert_int_eq(actions.items[0].type, GROUP_DO_TELL_STUCK);
	group_actions_done(&actions);
	group_done(&group);
}

TEST(watchdog_condemns_one_worker_and_it_stays_the_cause)
{
	struct group group;
	make(&group, GROUP_ACTIVE);
	STEP(&group, "tell-failed:0 orphans=SIGKILL signal:1=SIGTERM main:0=SIGKILL",
	     GROUP_EV_EXPIRED, .rank = 0, .reason = FAILURE_TIMER, .signal = SIGKILL);
	EXITED(&group, "orphans=SIGTERM", 0, ((struct exit_status){ EXIT_SIGNAL, SIGKILL, false }));
	ck_assert(!group.workers[0].stopped);
	ck_assert_int_eq(group.workers[0].reason, FAILURE_TIMER);
	group_done(&group);
}

TEST(workers_that_a_lost_warden_had_stopped_are_no_cause)
{
	struct group group;
	make(&group, GROUP_STOPPING);
	STEP(&group, "tell-gone", GROUP_EV_LOST);
	ck_assert(!group.failed);
	for (size_t i = 0; i < 2; i++)
		ck_assert(group.workers[i].stopped);
	group_done(&group);
}

TEST(a_worker_that_could_not_be_started_has_no_exit_status)
{
	struct group group;
	group_init(&group, SIGTERM, GRACE);
	START(&group, 1);
	STEP(&group, "tell-failed:0 kill-all", GROUP_EV_SPAWN_FAILED, .rank = 0, .error = ENOENT,
	     .status = exit_3);
	ck_assert_int_eq(group.workers[0].status.kind, EXIT_UNKNOWN);
	ck_assert_int_eq(group.workers[0].reason, FAILURE_SPAWN);
	ck_assert_int_eq(group.workers[0].spawn_errno, ENOENT);
	group_done(&group);
}

TEST(a_watchdog_cannot_condemn_a_worker_that_has_ended)
{
	struct group group;
	make(&group, GROUP_ACTIVE);
	EXITED(&group, "", 0, exit_0);
	STEP(&group, "", GROUP_EV_EXPIRED, .rank = 0, .reason = FAILURE_TIMER, .signal = SIGKILL);
	ck_assert_int_eq(group.state, GROUP_ACTIVE);
	group_done(&group);
}

TEST(a_failed_start_during_the_kill_asks_for_no_second_one)
{
	struct group group;
	group_init(&group, SIGTERM, GRACE);
	START(&group, 1);
	STEP(&group, "kill-all", GROUP_EV_KILL);
	STEP(&group, "", GROUP_EV_SPAWN_FAILED, .rank = 0, .error = ENOENT);
	group_done(&group);
}

TEST(every_reason_of_a_failure_has_a_name)
{
	for (int i = 0; i < FAILURE_REASON_COUNT; i++) {
		ck_assert_ptr_nonnull(failure_reason_name((enum failure_reason)i));
		for (int j = 0; j < i; j++)
			ck_assert_str_ne(failure_reason_name((enum failure_reason)i),
					 failure_reason_name((enum failure_reason)j));
	}
	ck_assert_str_eq(failure_reason_name(FAILURE_EXIT), "exit");
	ck_assert_str_eq(failure_reason_name(FAILURE_ABORT), "abort");
}
