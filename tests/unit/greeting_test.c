/* The greeting with munge, byte by byte, between two sides and with a third one between them. The
 * munge here vouches for a digest by writing it down. */
#include "net/greeting.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "unit.h"

static const struct link_self self = { .run_id = "job",
				       .munge = (struct munge_client *)"there is one" };

struct side {
	struct greeting *greeting;
	struct buf in, out;
};

static struct side side_new(bool accepting, const struct link_self *of)
{
	struct side side = { .greeting = NEW(struct greeting), .in = BUF_INIT, .out = BUF_INIT };
	if (accepting)
		greeting_accept(side.greeting, of);
	else
		greeting_connect(side.greeting, of, ROLE_AGENT, &side.out);
	return side;
}

static void side_done(struct side *side)
{
	greeting_free(side->greeting);
	buf_done(&side->in);
	buf_done(&side->out);
}

static void vouch(const unsigned char *digest, char ret_text[FRAME_CREDENTIAL_MAX])
{
	for (size_t i = 0; i < FRAME_PROOF_SIZE; i++)
		sprintf(ret_text + 2 * i, "%02x", digest[i]);
}

static void ask_notary(struct side *side)
{
	struct greeting *greeting = side->greeting;
	char text[FRAME_CREDENTIAL_MAX];
	vouch(greeting->digest, text);
	if (greeting->ask == GREETING_SIGN)
		greeting_answer(greeting, true, text, &side->out);
	else
		greeting_answer(greeting, strcmp(text, greeting->credential.text) == 0,
				"its credential is for another connection", &side->out);
}

/* Lets a side work on what it has; true: it did something. */
static bool work(struct side *side)
{
	size_t before = buf_len(&side->out) + (size_t)side->greeting->state;
	if (buf_len(&side->in) > 0)
		buf_consume(&side->in, greeting_feed(side->greeting, buf_data(&side->in),
						     buf_len(&side->in), &side->out));
	if (side->greeting->state == GREETING_ASKS)
		ask_notary(side);
	if (side->greeting->accepting && side->greeting->state == GREETING_KNOWN &&
	    buf_len(&side->out) == 0)
		greeting_welcome(side->greeting, &side->out);
	return buf_len(&side->out) + (size_t)side->greeting->state != before;
}

static bool carry(struct side *from, struct side *to)
{
	size_t len = buf_len(&from->out);
	if (len == 0)
		return false;
	buf_append(&to->in, buf_data(&from->out), len);
	buf_clear(&from->out);
	return true;
}

static void greet(struct side *a, struct side *b)
{
	for (bool moved = true; moved;) {
		moved = carry(a, b);
		moved |= work(b);
		if (b->greeting->accepting && b->greeting->state == GREETING_KNOWN &&
		    a->greeting->state == GREETING_KNOWN)
			return;
		moved |= carry(b, a);
		moved |= work(a);
	}
}

/* Up to the agent's HELLO and KEY. */
static void exchange_openings(struct side *agent, struct side *coordinator)
{
	carry(agent, coordinator);
	work(coordinator);
	carry(coordinator, agent);
	work(agent);
}

TEST(both_sides_agree_on_keys_that_munge_vouched_for)
{
	AUTO(side_done)
	struct side agent = side_new(false, &self), coordinator = side_new(true, &self);
	greet(&agent, &coordinator);
	ck_assert_int_eq(agent.greeting->state, GREETING_KNOWN);
	ck_assert_int_eq(coordinator.greeting->state, GREETING_KNOWN);
	struct session *ours = greeting_session(agent.greeting);
	struct session *theirs = greeting_session(coordinator.greeting);
	ck_assert_mem_eq(ours->out.key, theirs->in.key, TOKEN_KEY_SIZE);
	ck_assert_mem_eq(ours->in.key, theirs->out.key, TOKEN_KEY_SIZE);
	ck_assert_mem_ne(ours->in.key, ours->out.key, TOKEN_KEY_SIZE);
	session_free(ours);
	session_free(theirs);
}

/* A relay greets both sides with keys of its own and passes the credentials on. */
TEST(a_credential_that_was_relayed_is_for_another_connection)
{
	AUTO(side_done)
	struct side agent = side_new(false, &self), coordinator = side_new(true, &self);
	AUTO(side_done) struct side to_agent = side_new(true, &self);
	AUTO(side_done) struct side to_coordinator = side_new(false, &self);
	/* The agent takes the relay for the coordinator, and gives it a credential. */
	while (to_agent.greeting->state != GREETING_ASKS) {
		carry(&agent, &to_agent);
		buf_consume(&to_agent.in, greeting_feed(to_agent.greeting, buf_data(&to_agent.in),
							buf_len(&to_agent.in), &to_agent.out));
		carry(&to_agent, &agent);
		work(&agent);
	}
	/* The relay shows it to the coordinator as its own. */
	while (to_coordinator.greeting->state != GREETING_ASKS) {
		carry(&to_coordinator, &coordinator);
		work(&coordinator);
		carry(&coordinator, &to_coordinator);
		buf_consume(&to_coordinator.in,
			    greeting_feed(to_coordinator.greeting, buf_data(&to_coordinator.in),
					  buf_len(&to_coordinator.in), &to_coordinator.out));
	}
	greeting_answer(to_coordinator.greeting, true, to_agent.greeting->credential.text,
			&to_coordinator.out);
	carry(&to_coordinator, &coordinator);
	work(&coordinator);
	ck_assert_int_eq(coordinator.greeting->state, GREETING_FAILED);
	ck_assert_str_eq(coordinator.greeting->why, "its credential is for another connection");
}

TEST(different_authentication_is_refused_with_both_names)
{
	const struct link_self bare = { .run_id = "job" };
	AUTO(side_done)
	struct side agent = side_new(false, &bare), coordinator = side_new(true, &self);
	greet(&agent, &coordinator);
	ck_assert_int_eq(agent.greeting->state, GREETING_FAILED);
	ck_assert_str_eq(agent.greeting->why,
			 "it authenticates with munge and this side with none: munge does not work "
			 "on one of the two hosts, or "
			 "--rdzv-conf auth= was not given to all");
	ck_assert_str_eq(coordinator.greeting->why,
			 "it authenticates with none and this side with munge: munge does not work "
			 "on one of the two hosts, or "
			 "--rdzv-conf auth= was not given to all");
}

TEST(a_key_that_agrees_with_every_other_is_invalid)
{
	AUTO(side_done)
	struct side agent = side_new(false, &self), coordinator = side_new(true, &self);
	const struct frame_key zero = { { 0 } };
	exchange_openings(&agent, &coordinator);
	carry(&agent, &coordinator);
	/* KEY is the last frame */
	buf_done(&agent.out);
	struct buf whole = coordinator.in;
	coordinator.in = BUF_INIT;
	buf_append(&coordinator.in, buf_data(&whole),
		   buf_len(&whole) - FRAME_HEADER_SIZE - FRAME_KEY_SIZE);
	buf_done(&whole);
	frame_put_key(&coordinator.in, &zero);
	work(&coordinator);
	ck_assert_int_eq(coordinator.greeting->state, GREETING_FAILED);
	ck_assert_str_eq(coordinator.greeting->why, "it sent an invalid key");
}

TEST(a_notary_that_cannot_vouch_ends_the_greeting_with_its_reason)
{
	AUTO(side_done)
	struct side agent = side_new(false, &self), coordinator = side_new(true, &self);
	exchange_openings(&agent, &coordinator);
	carry(&agent, &coordinator);
	work(&coordinator);
	carry(&coordinator, &agent);
	buf_consume(&agent.in, greeting_feed(agent.greeting, buf_data(&agent.in),
					     buf_len(&agent.in), &agent.out));
	ck_assert_int_eq(agent.greeting->state, GREETING_ASKS);
	greeting_answer(agent.greeting, false, "munge: no daemon", &agent.out);
	ck_assert_int_eq(agent.greeting->state, GREETING_FAILED);
	ck_assert_str_eq(agent.greeting->why, "no credential for it: munge: no daemon");
}
