/* The coordinator: who holds the others up, and whose host gives way. */
#include "unit.h"

#include <stdio.h>

#include "coordinator_rig.h"
#include "core/pace/looks.h"

static void pace(uint64_t link, uint64_t group, const struct step_mark *mark)
{
	receive(link, &(struct msg){ .type = MSG_PACE,
				     .ballot = c.roster.heard.ballot,
				     .pace = { .group = group,
					       .size = group ? 4 : 0,
					       .count = 1,
					       .marks = { *mark } } });
}

/* A host of two ranks tells of a step; the last of them did so at that time. */
static void tell_step(uint64_t link, uint64_t number, uint32_t rank, uint64_t at_ns)
{
	pace(link, 0,
	     &(struct step_mark){ number, at_ns, at_ns, .error_ns = 0, .rank = rank, .ranks = 2 });
}

/* What the ranks of a host did at a look. */
static void tell_look(uint64_t link, uint64_t look, bool one_waits, bool two_waits)
{
	struct step_marks marks = { .items[0].ranks = 0 };
	uint32_t base = (uint32_t)(2 * (link - 1));
	struct step_mark one = look_mark(look, base, one_waits, look, 4),
			 two = look_mark(look, base + 1, two_waits, look, 4);
	step_marks_add(&marks, &one, 2);
	pace(link, LOOKS_GROUP, step_marks_add(&marks, &two, 2));
}

/* Two hosts of two ranks each; the second is so far behind in each step, and its last rank waits
 * for nobody, while the others do. Returns after how many looks its host is told. */
static uint64_t told_after(uint64_t behind_ns, uint64_t drift_ns, bool all_work)
{
	enter(COORDINATOR_RUNNING);
	for (size_t i = 0; i < c.roster.count; i++)
		c.roster.members[i]->can = CAN_PACE;
	ck_assert_uint_eq(c.world_size, 4);
	for (uint64_t i = 1; i < 200; i++) {
		uint64_t at_ns = i * 20 * NS_PER_MS;
		tell_step(1, i, 1, at_ns);
		tell_step(2, i, 3, at_ns + behind_ns + i * drift_ns);
		tell_look(1, i, !all_work, !all_work);
		tell_look(2, i, !all_work, false);
		if (sent(MSG_LATE))
			return i;
	}
	return UINT64_MAX;
}

TEST(the_host_of_a_rank_that_all_others_wait_for_is_told)
{
	ck_assert_uint_lt(told_after(6 * NS_PER_MS, 0, false), 30);
	ck_assert_uint_eq(actions.items[0].link, 2);
	ck_assert_uint_eq(actions.items[0].msg.late.news.rank, 3);
	ck_assert(actions.items[0].msg.late.news.begins);
	ck_assert_uint_eq(actions.items[0].msg.late.news.group, 0);
	ck_assert_uint_eq(notes[0].kind, NOTE_LATE);
	ck_assert_str_eq(notes[0].name, "h2");
}

TEST(one_that_is_behind_though_nobody_waits_is_not_named)
{
	ck_assert_uint_eq(told_after(6 * NS_PER_MS, 0, true), UINT64_MAX);
}

TEST(who_waits_where_steps_drift_apart_does_not_wait_for_others)
{
	ck_assert_uint_eq(told_after(30 * NS_PER_MS, 5 * NS_PER_MS, false), UINT64_MAX);
}

TEST(a_host_that_does_not_know_of_steps_is_told_nothing)
{
	static const uint32_t cannot[] = { 0, CAN_PLAN, CAN_ASK | CAN_PLAN };
	for (size_t version = 0; version < ARRAY_LEN(cannot); version++) {
		enter(COORDINATOR_RUNNING);
		for (size_t i = 0; i < c.roster.count; i++)
			c.roster.members[i]->can = cannot[version];
		for (uint64_t i = 1; i < 100; i++) {
			uint64_t at_ns = i * 20 * NS_PER_MS;
			tell_step(1, i, 1, at_ns);
			tell_step(2, i, 3, at_ns + 6 * NS_PER_MS);
			tell_look(1, i, true, true);
			tell_look(2, i, true, false);
			ck_assert_uint_eq(sent(MSG_LATE), 0);
		}
	}
}

TEST(the_host_of_a_rank_that_comes_last_to_collectives_is_told)
{
	enter(COORDINATOR_RUNNING);
	for (size_t i = 0; i < c.roster.count; i++)
		c.roster.members[i]->can = CAN_PACE;
	uint64_t told = 0;
	for (uint64_t i = 1; i < 100 && !told; i++)
		for (uint64_t link = 1; link <= 2; link++) {
			uint64_t at_ns = i * 20 * NS_PER_MS + link * 6 * NS_PER_MS;
			receive(link,
				&(struct msg){
					.type = MSG_PACE,
					.ballot = c.roster.heard.ballot,
					.pace = { .group = 9,
						  .size = 2,
						  .count = 1,
						  .marks = { { .step = i,
							       .last_ns = at_ns,
							       .mean_ns = at_ns,
							       .rank = (uint32_t)(2 * link - 1),
							       .ranks = 1 } } } });
			told = sent(MSG_LATE) ? i : told;
		}
	ck_assert_uint_gt(told, 0);
	ck_assert_uint_eq(actions.items[0].link, 2);
	ck_assert_uint_eq(actions.items[0].msg.late.news.rank, 3);
	ck_assert_uint_eq(actions.items[0].msg.late.news.group, 9);
	ck_assert_uint_eq(notes[0].late.group, 9);
	coordinator_done(&c);
}

TEST(a_host_lost_three_times_is_used_only_when_needed)
{
	enter(COORDINATOR_RUNNING);
	for (int i = 0; i < 3; i++) {
		ck_assert_uint_eq(c.roster.heard.nodes, 2);
		link_down(1, true);
		join(2);
		join(1);
		if (c.scale_up_ns != NS_NEVER)
			wait_until(c.scale_up_ns + NS_PER_S, 2);
		if (c.state == COORDINATOR_STOPPING)
			join(2);
	}
	struct node_info node = node_of(1);
	ck_assert(roster_by_id(&c.roster, node.id)->last_resort);
	ck_assert_uint_eq(c.roster.heard.nodes, 1);
}

/* The first member's report of a hang that a worker of the second one causes. */
static void report_hang(bool exclude)
{
	struct msg failed = { .type = MSG_FAILED, .ballot = c.roster.heard.ballot };
	struct node_info culprit = node_of(2);
	const struct member *member = roster_by_id(&c.roster, culprit.id);
	failed.failed.cause.blame = (struct blame){ .named = true,
						    .rank = member->rank_base + 1,
						    .exclude = exclude,
						    .text = "rank 3 never came" };
	receive(1, &failed);
}

TEST(all_members_are_told_who_held_the_others_up)
{
	enter(COORDINATOR_RUNNING);
	report_hang(false);
	ck_assert_uint_eq(sent(MSG_STOP), 1);
	ck_assert_str_eq(actions.items[0].msg.stop.cause.blame.text, "rank 3 never came");
	join(1);
	join(2);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	ck_assert_str_eq(c.cause.blame.text, "");
}

TEST(a_spare_replaces_the_host_of_the_culprit_if_that_is_asked_for)
{
	for (int exclude = 0; exclude < 2; exclude++) {
		enter(COORDINATOR_RUNNING);
		join(3);
		report_hang(exclude);
		join(1);
		join(2);
		ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
		ck_assert_uint_eq(c.roster.heard.nodes, 2);
		ck_assert(roster_by_link(&c.roster, 1)->in_round);
		ck_assert_int_eq(roster_by_link(&c.roster, 2)->in_round, !exclude);
		ck_assert_int_eq(roster_by_link(&c.roster, 3)->in_round, exclude);
		coordinator_done(&c);
	}
}

TEST(without_a_spare_the_host_of_the_culprit_stays)
{
	max_restarts = 1;
	begin_plain(2, 2);
	join_up_to(2);
	report_hang(true);
	join(1);
	join(2);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	ck_assert_uint_eq(c.roster.heard.nodes, 2);
}

TEST(an_excluded_host_waits_and_never_gets_workers)
{
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	config.last_call_ns = 0;
	begin(&config, 1, 2);
	struct node_info node = node_of(1);
	struct memory memory = memory_of(1);
	node.excluded = true;
	receive(1, &(struct msg){ .type = MSG_JOIN, .join = { .node = &node, .memory = memory } });
	wait_until(now_ns + 60 * NS_PER_S, 1);
	ck_assert_int_eq(c.state, COORDINATOR_GATHERING);
	join(2);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	wait_until(now_ns + 60 * NS_PER_S, 2);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
	ck_assert_uint_eq(c.roster.heard.nodes, 1);
	ck_assert(!roster_by_link(&c.roster, 1)->in_round);
}

/* The first member's worker of `rank` has failed; both join again. */
static void strike(const char *host, int32_t rank)
{
	struct msg failed = { .type = MSG_FAILED, .ballot = c.roster.heard.ballot };
	failed.failed.cause.rank = rank;
	snprintf(failed.failed.cause.name, MSG_NAME_MAX, "%s", host);
	receive(host[1] - '0', &failed);
	bool was_in[4];
	for (uint64_t link = 1; link <= 3; link++)
		was_in[link] = roster_by_link(&c.roster, link)->in_round;
	for (uint64_t link = 1; link <= 3; link++) {
		struct node_info node = node_of(link);
		struct memory memory = memory_of(link);
		if (!was_in[link])
			continue;
		node.strikes = 2;
		node.cool_down_ns = 600 * NS_PER_S;
		receive(link, &(struct msg){ .type = MSG_JOIN,
					     .ballot = memory.heard.ballot,
					     .join = { .node = &node, .memory = memory } });
	}
}

TEST(a_host_whose_workers_keep_dying_gives_way_to_a_spare)
{
	max_restarts = 9;
	begin_plain(2, 2);
	join_up_to(3);
	strike("h2", 2);
	ck_assert(roster_by_link(&c.roster, 2)->in_round);
	strike("h2", 3);
	ck_assert_ptr_nonnull(noted(NOTE_UNFIT));
	ck_assert(!roster_by_link(&c.roster, 2)->in_round);
	ck_assert(roster_by_link(&c.roster, 3)->in_round);
	ck_assert_int_eq(c.state, COORDINATOR_RUNNING);
}

/* The host that holds the rank, whichever of its ranks that is. */
TEST(the_host_of_each_rank_is_found)
{
	for (uint32_t rank = 0; rank < 4; rank++) {
		enter(COORDINATOR_RUNNING);
		join(3);
		struct msg failed = { .type = MSG_FAILED, .ballot = c.roster.heard.ballot };
		failed.failed.cause.blame =
			(struct blame){ .named = true, .rank = rank, .exclude = true };
		receive(1, &failed);
		uint32_t excluded = 0;
		for (size_t i = 0; i < c.roster.count; i++) {
			const struct member *member = c.roster.members[i];
			bool holds = member->in_round && rank >= member->rank_base &&
				     rank < member->rank_base + 2;
			excluded += holds;
			if (holds)
				ck_assert_str_eq(noted(NOTE_EXCLUDED)->name, member->name);
		}
		ck_assert_uint_eq(excluded, 1);
		uint32_t told = 0;
		for (size_t i = 0; i < note_count; i++)
			told += notes[i].kind == NOTE_EXCLUDED;
		ck_assert_uint_eq(told, 1);
	}
	enter(COORDINATOR_RUNNING);
	struct msg failed = { .type = MSG_FAILED, .ballot = c.roster.heard.ballot };
	failed.failed.cause.blame = (struct blame){ .named = true, .rank = 9, .exclude = true };
	receive(1, &failed);
	ck_assert_ptr_null(noted(NOTE_EXCLUDED));
}
