#include "core/rounds/exchange.h"

void exchange_done(struct exchange *exchange)
{
	buf_done(&exchange->gathered);
	buf_done(&exchange->whole);
	keyvals_done(&exchange->keyvals);
	*exchange = (struct exchange){ .seq = 0 };
}

void exchange_begin(struct coordinator *c)
{
	exchange_done(&c->exchange);
	for (size_t i = 0; i < c->roster.count; i++)
		c->roster.members[i]->fences = 0;
}

/* The sender, if it takes part in the round that its message names. */
static struct member *sender(const struct step *s)
{
	struct member *member = roster_by_link(&s->c->roster, s->event->link);
	if (!member || !step_is_active(member) ||
	    !ballot_eq(s->event->msg->ballot, s->c->roster.heard.ballot))
		return NULL;
	member->heard_ns = s->now_ns;
	return member;
}

/* Pieces from `at` on. They are borrowed until the next union is whole, which takes a PUT of every
 * host, and each of them has taken this one by then. */
static void send_pieces(struct step *s, const struct member *member, size_t at, size_t pieces)
{
	const struct exchange *exchange = &s->c->exchange;
	size_t size = buf_len(&exchange->whole);
	do {
		size_t len = MIN(size - at, (size_t)EXCHANGE_PIECE_MAX);
		step_send(s, member->link, MSG_UNION)->all = (struct msg_union){
			.seq = exchange->seq - 1,
			.size = (uint32_t)size,
			.at = (uint32_t)at,
			.piece = bytes_of(buf_data(&exchange->whole) + at, len),
		};
		at += len;
	} while (--pieces > 0 && at < size);
}

/* Every host has put what it has for this fence. */
static void complete(struct step *s)
{
	struct exchange *exchange = &s->c->exchange;
	struct buf spare = exchange->whole;
	exchange->whole = exchange->gathered;
	exchange->gathered = spare;
	buf_clear(&exchange->gathered);
	exchange->entered = 0;
	exchange->seq++;
	keyvals_take(&exchange->keyvals,
		     bytes_of(buf_data(&exchange->whole), buf_len(&exchange->whole)));
	for (size_t i = 0; i < s->c->roster.count; i++)
		if (step_is_active(s->c->roster.members[i]))
			send_pieces(s, s->c->roster.members[i], 0, 1);
}

void exchange_put(struct step *s)
{
	struct exchange *exchange = &s->c->exchange;
	const struct msg_put *put = &s->event->msg->put;
	struct member *member = sender(s);
	if (!member || put->seq != exchange->seq || member->fences != put->seq)
		return;
	if (buf_len(&exchange->gathered) + put->pairs.len <= EXCHANGE_SIZE_MAX)
		buf_append(&exchange->gathered, put->pairs.data, put->pairs.len);
	if (!put->last)
		return;
	member->fences++;
	if (++exchange->entered == s->c->roster.heard.nodes)
		complete(s);
}

void exchange_want(struct step *s)
{
	struct exchange *exchange = &s->c->exchange;
	const struct want *want = &s->event->msg->want;
	const struct member *member = sender(s);
	if (!member)
		return;
	if (want->kind == WANT_REST) {
		if (want->seq + 1 == exchange->seq && want->at < buf_len(&exchange->whole))
			send_pieces(s, member, want->at, EXCHANGE_AHEAD);
		return;
	}
	struct bytes value = bytes_of("", 0);
	bool found = keyvals_want(&exchange->keyvals, want, &value);
	step_send(s, member->link, MSG_VALUE)->value =
		(struct msg_value){ .serial = want->serial, .found = found, .value = value };
}
