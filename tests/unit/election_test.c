#include "unit.h"

#include <string.h>

#include "core/rounds/election.h"

#define OWN "here:1 me"
#define OTHER "there:2 they"
#define TTL (10 * NS_PER_S)

static struct election election;
static struct election_actions actions;
static uint64_t now_ns;

static void step(struct election_event event)
{
	election_step(&election, &event, now_ns, &actions);
}

static void begin(uint32_t endpoints)
{
	const struct election_config config = { .own = OWN, .ttl_ns = TTL, .endpoints = endpoints };
	now_ns = NS_PER_S;
	election_init(&election, &config);
	step((struct election_event){ .type = ELECTION_START });
}

/* The action of that type in the last step; NULL: there was none. */
static const struct election_action *find(enum election_action_type type)
{
	for (size_t i = 0; i < actions.count; i++)
		if (actions.items[i].type == type)
			return &actions.items[i];
	return NULL;
}

static enum election_request asked(void)
{
	const struct election_action *action = find(ELECTION_ASK);
	return action ? action->request : ELECTION_NOTHING;
}

static void key(const char *value, uint64_t epoch)
{
	step((struct election_event){ .type = ELECTION_KEY,
				      .present = value != NULL,
				      .value = value,
				      .epoch = epoch,
				      .lease = 70,
				      .revision = epoch + 5 });
}

static void assert_announced(const char *value, uint64_t epoch)
{
	const struct election_action *action = find(ELECTION_ANNOUNCE);
	ck_assert_ptr_nonnull(action);
	ck_assert_str_eq(action->text, value);
	ck_assert_uint_eq(action->epoch, epoch);
}

static void win(uint64_t epoch)
{
	key(NULL, 0);
	step((struct election_event){ .type = ELECTION_GRANTED, .lease = 33, .ttl_ns = TTL });
	step((struct election_event){ .type = ELECTION_WON, .epoch = epoch });
}

static void wait(void)
{
	now_ns = election_deadline_ns(&election);
	ck_assert(now_ns != NS_NEVER);
	step((struct election_event){ .type = ELECTION_TIMER });
}

TEST(the_candidate_that_creates_the_key_leads_and_keeps_its_lease)
{
	begin(1);
	ck_assert_int_eq(asked(), ELECTION_READ);
	key(NULL, 0);
	ck_assert_int_eq(asked(), ELECTION_GRANT);
	step((struct election_event){ .type = ELECTION_GRANTED, .lease = 33, .ttl_ns = TTL });
	ck_assert_int_eq(asked(), ELECTION_CAMPAIGN);
	ck_assert_int_eq(find(ELECTION_ASK)->lease, 33);
	step((struct election_event){ .type = ELECTION_WON, .epoch = 8 });
	assert_announced(OWN, 8);
	ck_assert_uint_eq(find(ELECTION_WATCH)->from, 9);
	ck_assert_int_eq(asked(), ELECTION_NOTHING);
	for (int i = 0; i < 3; i++) {
		uint64_t before_ns = now_ns;
		wait();
		ck_assert_uint_eq(now_ns - before_ns, TTL / 3);
		ck_assert_int_eq(asked(), ELECTION_KEEP);
		ck_assert_int_eq(find(ELECTION_ASK)->lease, 33);
		step((struct election_event){ .type = ELECTION_KEPT, .alive = true });
		ck_assert_uint_eq(actions.count, 0);
	}
}

TEST(a_candidate_that_finds_the_key_follows_its_holder)
{
	begin(1);
	key(OTHER, 4);
	assert_announced(OTHER, 4);
	ck_assert_uint_eq(find(ELECTION_WATCH)->from, 10);
	wait();
	ck_assert_int_eq(asked(), ELECTION_READ);
	key(OTHER, 4);
	ck_assert_uint_eq(actions.count, 0);
}

TEST(a_lost_campaign_makes_a_follower)
{
	begin(1);
	key(NULL, 0);
	step((struct election_event){ .type = ELECTION_GRANTED, .lease = 33, .ttl_ns = TTL });
	key(OTHER, 4);
	assert_announced(OTHER, 4);
	step((struct election_event){ .type = ELECTION_RESIGN });
	ck_assert_ptr_nonnull(find(ELECTION_EXIT));
}

TEST(a_follower_stands_as_soon_as_the_key_is_gone)
{
	begin(1);
	key(OTHER, 4);
	step((struct election_event){ .type = ELECTION_CHANGED });
	ck_assert_int_eq(asked(), ELECTION_READ);
	win(12);
	assert_announced(OWN, 12);
}

TEST(a_change_while_the_key_is_being_read_is_not_lost)
{
	begin(1);
	key(OTHER, 4);
	wait();
	ck_assert_int_eq(asked(), ELECTION_READ);
	step((struct election_event){ .type = ELECTION_CHANGED });
	ck_assert_uint_eq(actions.count, 0);
	key(OTHER, 4); /* as it was before the change */
	ck_assert_int_eq(asked(), ELECTION_READ);
}

TEST(a_process_with_the_same_id_keeps_the_key_of_the_one_before)
{
	begin(1);
	key(OWN, 4);
	assert_announced(OWN, 4);
	ck_assert_int_eq(asked(), ELECTION_KEEP);
	ck_assert_int_eq(find(ELECTION_ASK)->lease, 70);
}

TEST(a_leader_whose_lease_is_gone_looks_who_leads)
{
	begin(1);
	win(8);
	wait();
	step((struct election_event){ .type = ELECTION_KEPT, .alive = false });
	ck_assert_int_eq(asked(), ELECTION_READ);
	key(OTHER, 11);
	assert_announced(OTHER, 11);
	ck_assert_ptr_nonnull(find(ELECTION_WATCH));
}

TEST(a_leader_whose_key_was_deleted_stands_again)
{
	begin(1);
	win(8);
	step((struct election_event){ .type = ELECTION_CHANGED });
	ck_assert_int_eq(asked(), ELECTION_READ);
	win(15);
	assert_announced(OWN, 15);
}

TEST(a_failure_goes_to_the_next_endpoint_at_once)
{
	begin(3);
	ck_assert_uint_eq(find(ELECTION_ASK)->endpoint, 0);
	step((struct election_event){ .type = ELECTION_FAILED });
	ck_assert_int_eq(asked(), ELECTION_READ);
	ck_assert_uint_eq(find(ELECTION_ASK)->endpoint, 1);
	ck_assert_ptr_null(find(ELECTION_COMPLAIN));
	key(OTHER, 4);
	ck_assert_uint_eq(find(ELECTION_WATCH)->endpoint, 1);
	ck_assert_ptr_null(find(ELECTION_ANSWERS));
}

TEST(when_all_fail_it_says_so_every_ten_seconds_and_keeps_trying)
{
	begin(2);
	unsigned complaints = 0, requests = 0;
	uint64_t start_ns = now_ns;
	while (now_ns < start_ns + 60 * NS_PER_S) {
		step((struct election_event){ .type = ELECTION_FAILED });
		if (find(ELECTION_COMPLAIN)) {
			complaints++;
			ck_assert_uint_eq(find(ELECTION_COMPLAIN)->since_ns, now_ns - start_ns);
		}
		if (asked() == ELECTION_NOTHING)
			wait();
		ck_assert_int_eq(asked(), ELECTION_READ);
		requests++;
	}
	ck_assert_uint_eq(complaints, 6);
	ck_assert_uint_eq(requests, 2 * 60);
	key(OTHER, 4);
	ck_assert_ptr_nonnull(find(ELECTION_ANSWERS));
	assert_announced(OTHER, 4);
}

TEST(a_leader_that_cannot_ask_keeps_trying_and_says_nothing_new)
{
	begin(1);
	win(8);
	wait();
	for (int i = 0; i < 30; i++) {
		step((struct election_event){ .type = ELECTION_FAILED });
		ck_assert_ptr_null(find(ELECTION_ANNOUNCE));
		wait();
		ck_assert_int_eq(asked(), ELECTION_KEEP);
	}
	step((struct election_event){ .type = ELECTION_KEPT, .alive = true });
	ck_assert_int_eq(asked(), ELECTION_READ); /* and the watch goes on, where it can */
	key(OWN, 8);
	ck_assert_ptr_nonnull(find(ELECTION_WATCH));
	ck_assert_ptr_null(find(ELECTION_ANNOUNCE));
}

TEST(a_campaign_of_unknown_outcome_is_settled_by_a_look_at_the_key)
{
	begin(2);
	key(NULL, 0);
	step((struct election_event){ .type = ELECTION_GRANTED, .lease = 70, .ttl_ns = TTL });
	step((struct election_event){ .type = ELECTION_FAILED });
	ck_assert_int_eq(asked(), ELECTION_READ);
	key(OWN, 6);
	assert_announced(OWN, 6);
}

TEST(a_watch_that_breaks_at_once_does_not_keep_etcd_busy)
{
	begin(1);
	key(OTHER, 4);
	uint64_t start_ns = now_ns;
	for (int i = 0; i < 10; i++) {
		step((struct election_event){ .type = ELECTION_WATCH_DOWN });
		ck_assert_int_eq(asked(), ELECTION_NOTHING);
		wait();
		ck_assert_int_eq(asked(), ELECTION_READ);
		key(OTHER, 4);
		ck_assert_ptr_nonnull(find(ELECTION_WATCH));
	}
	ck_assert_uint_ge(now_ns - start_ns, 10 * ELECTION_RETRY_NS);
}

TEST(a_watch_that_breaks_late_is_replaced_at_once)
{
	begin(1);
	key(OTHER, 4);
	now_ns += 2 * ELECTION_RETRY_NS;
	step((struct election_event){ .type = ELECTION_WATCH_DOWN });
	ck_assert_int_eq(asked(), ELECTION_READ);
}

TEST(a_leader_that_resigns_revokes_its_lease)
{
	begin(1);
	win(8);
	step((struct election_event){ .type = ELECTION_RESIGN });
	ck_assert_int_eq(asked(), ELECTION_REVOKE);
	ck_assert_int_eq(find(ELECTION_ASK)->lease, 33);
	step((struct election_event){ .type = ELECTION_REVOKED });
	ck_assert_ptr_nonnull(find(ELECTION_EXIT));
	ck_assert_uint_eq(election_deadline_ns(&election), NS_NEVER);
}

TEST(resigning_replaces_the_request_under_way_and_tries_every_endpoint_once)
{
	begin(3);
	win(8);
	wait();
	ck_assert_int_eq(asked(), ELECTION_KEEP);
	step((struct election_event){ .type = ELECTION_RESIGN });
	for (int i = 0; i < 3; i++) {
		ck_assert_int_eq(asked(), ELECTION_REVOKE);
		ck_assert_ptr_null(find(ELECTION_EXIT));
		step((struct election_event){ .type = ELECTION_FAILED });
	}
	ck_assert_ptr_nonnull(find(ELECTION_EXIT));
	ck_assert_int_eq(asked(), ELECTION_NOTHING);
}

TEST(a_candidate_without_a_lease_may_leave_at_once)
{
	begin(1);
	step((struct election_event){ .type = ELECTION_RESIGN });
	ck_assert_ptr_nonnull(find(ELECTION_EXIT));
}

/* ---- a lease that fences ---- */

static void begin_fencing(void)
{
	const struct election_config config = {
		.own = OWN, .ttl_ns = TTL, .endpoints = 1, .fences = true
	};
	now_ns = NS_PER_S;
	election_init(&election, &config);
	step((struct election_event){ .type = ELECTION_START });
}

static void lead_with(struct recorded_end past)
{
	begin_fencing();
	win(9);
	ck_assert_int_eq(asked(), ELECTION_READ_PAST);
	step((struct election_event){ .type = ELECTION_PAST, .past = past });
}

TEST(a_leader_says_how_the_job_ended_before_and_how_long_it_leads)
{
	lead_with((struct recorded_end){ 4, RULING_FAILED });
	assert_announced(OWN, 9);
	ck_assert_uint_eq(find(ELECTION_ANNOUNCE)->past.epoch, 4);
	ck_assert_uint_eq(find(ELECTION_ANNOUNCE)->until_ns, NS_PER_S + TTL);
	wait();
	ck_assert_int_eq(asked(), ELECTION_KEEP);
	uint64_t sent_ns = now_ns;
	now_ns += NS_PER_S; /* the answer takes its time */
	step((struct election_event){ .type = ELECTION_KEPT, .alive = true });
	ck_assert_uint_eq(find(ELECTION_ANNOUNCE)->until_ns, sent_ns + TTL);
}

TEST(a_lease_that_a_process_before_us_kept_counts_once_we_have_kept_it)
{
	begin_fencing();
	key(OWN, 9);
	ck_assert_ptr_null(find(ELECTION_ANNOUNCE));
	ck_assert_int_eq(asked(), ELECTION_KEEP);
	step((struct election_event){ .type = ELECTION_KEPT, .alive = true });
	ck_assert_ptr_null(find(ELECTION_ANNOUNCE));
	step((struct election_event){ .type = ELECTION_PAST });
	assert_announced(OWN, 9);
	ck_assert_uint_eq(find(ELECTION_ANNOUNCE)->until_ns, now_ns + TTL);
}

TEST(the_end_of_the_job_is_recorded_and_then_the_lease_is_given_up)
{
	lead_with((struct recorded_end){ .epoch = 0 });
	step((struct election_event){ .type = ELECTION_END, .ruling = RULING_DONE });
	ck_assert_int_eq(asked(), ELECTION_GRANT_PAST);
	step((struct election_event){ .type = ELECTION_GRANTED, .lease = 44, .ttl_ns = 2 * TTL });
	ck_assert_int_eq(asked(), ELECTION_RECORD);
	ck_assert_int_eq(find(ELECTION_ASK)->lease, 44);
	ck_assert_uint_eq(find(ELECTION_ASK)->epoch, 9);
	ck_assert_int_eq(find(ELECTION_ASK)->ruling, RULING_DONE);
	step((struct election_event){ .type = ELECTION_RECORDED, .alive = true });
	ck_assert_uint_eq(find(ELECTION_ANNOUNCE)->past.epoch, 9);
	step((struct election_event){ .type = ELECTION_RESIGN });
	ck_assert_int_eq(asked(), ELECTION_REVOKE);
	ck_assert_int_eq(find(ELECTION_ASK)->lease, 33);
}

TEST(a_record_that_fails_is_tried_again_and_one_of_a_past_leader_is_not)
{
	lead_with((struct recorded_end){ .epoch = 0 });
	step((struct election_event){ .type = ELECTION_END, .ruling = RULING_FAILED });
	step((struct election_event){ .type = ELECTION_FAILED });
	wait();
	ck_assert_int_eq(asked(), ELECTION_READ);
	key(OWN, 9);
	ck_assert_int_eq(asked(), ELECTION_GRANT_PAST);
	step((struct election_event){ .type = ELECTION_GRANTED, .lease = 44, .ttl_ns = TTL });
	step((struct election_event){ .type = ELECTION_RECORDED, .alive = false });
	ck_assert_int_eq(asked(), ELECTION_READ);
	ck_assert_ptr_null(find(ELECTION_ANNOUNCE));
}

TEST(a_leader_that_leaves_before_the_end_keeps_its_lease_for_its_workers)
{
	lead_with((struct recorded_end){ 4, RULING_DONE });
	step((struct election_event){ .type = ELECTION_RESIGN });
	ck_assert_ptr_nonnull(find(ELECTION_EXIT));
	ck_assert_int_eq(asked(), ELECTION_NOTHING);
}
