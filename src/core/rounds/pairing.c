#include "core/rounds/pairing.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define BYTES_PER_MB 1e6

static bool takes_part(const struct member *member)
{
	return member->status == MEMBER_READY && member->pair_port && !member->excluded;
}

void pairing_done(struct pairing *pairing)
{
	pairs_done(&pairing->pairs);
	free(pairing->ids);
	*pairing = (struct pairing){ .serial = pairing->serial };
}

void pairing_expire(struct coordinator *c)
{
	for (size_t i = 0; i < c->roster.count; i++)
		c->roster.members[i]->pair_due = true;
}

/* NULL: it has gone, or its process has. */
static struct member *participant(const struct coordinator *c, uint32_t index)
{
	struct member *member = roster_by_id(&c->roster, c->pairing.ids[index]);
	return member && takes_part(member) ? member : NULL;
}

static void send_pair(struct step *s, const struct member *to, const struct member *other,
		      bool calls)
{
	const struct pairing *pairing = &s->c->pairing;
	struct msg_pair *pair = &step_send(s, to->link, MSG_PAIR)->pair;
	*pair = (struct msg_pair){ .serial = pairing->serial,
				   .secret = s->c->config.id,
				   .calls = calls,
				   .port = other->pair_port,
				   .ms = pairing->ms };
	pair->addr_count = (uint8_t)MIN(other->addr_count, MSG_PAIR_ADDRS_MAX);
	memcpy(pair->addrs, other->addrs, pair->addr_count * sizeof(*pair->addrs));
}

/* A pair of which one has gone is left out. */
static void send_pairs(struct step *s)
{
	struct pairing *pairing = &s->c->pairing;
	uint32_t round = pairing->pairs.rounds - 1;
	pairing->serial++;
	pairing->waiting = 0;
	for (uint32_t i = 0; i < pairing->pairs.count; i++) {
		const struct pairs_node *node = &pairing->pairs.nodes[i];
		if (!node->calls[round])
			continue;
		const struct member *caller = participant(s->c, i);
		const struct member *other = participant(s->c, node->partner[round]);
		if (!caller || !other)
			continue;
		send_pair(s, other, caller, false);
		send_pair(s, caller, other, true);
		pairing->waiting++;
	}
	pairing->deadline_ns =
		ns_add(s->now_ns, PAIRING_SLACK_NS + PAIRING_SHARES * pairing->ms * NS_PER_MS);
}

static void begin(struct step *s, uint32_t count)
{
	struct coordinator *c = s->c;
	struct pairing *pairing = &c->pairing;
	uint32_t index = 0;
	pairing->active = true;
	pairing->ids = NEW_ARRAY(struct agent_id, count);
	pairs_init(&pairing->pairs, count);
	for (size_t i = 0; i < c->roster.count; i++) {
		struct member *member = c->roster.members[i];
		if (!takes_part(member))
			continue;
		member->pair_due = false;
		member->pair_index = index;
		pairing->ms = MAX(pairing->ms, MIN(member->pair_ms, MSG_PAIR_MS_MAX));
		pairing->ids[index++] = member->id;
	}
}

static bool was_here(const struct pairing *pairing, const struct member *member)
{
	return member->pair_index < pairing->pairs.count &&
	       agent_id_eq(pairing->ids[member->pair_index], member->id);
}

static void conclude(struct step *s)
{
	const struct pair_figures none = PAIR_FIGURES_NONE;
	struct coordinator *c = s->c;
	struct pairing *pairing = &c->pairing;
	AUTO_FREE struct pair_figures *all =
		NEW_ARRAY(struct pair_figures, pairing->pairs.count + 1);
	pairs_conclude(&pairing->pairs, all);
	/* Figures of another time are not compared with these. */
	for (size_t i = 0; i < c->roster.count; i++) {
		struct member *member = c->roster.members[i];
		bool here = was_here(pairing, member);
		member->pair_due |= !here;
		roster_set_wire(&c->roster, member, here ? &all[member->pair_index] : &none);
	}
	pairing_done(pairing);
}

/* How many take part, if somebody is due; 0: nobody is, or too few are here. */
static uint32_t count_due(const struct coordinator *c)
{
	uint32_t count = 0;
	bool due = false;
	for (size_t i = 0; i < c->roster.count; i++) {
		count += takes_part(c->roster.members[i]);
		due |= takes_part(c->roster.members[i]) && c->roster.members[i]->pair_due;
	}
	return due && count >= PAIRS_LEAST ? count : 0;
}

bool pairing_holds(struct step *s)
{
	struct pairing *pairing = &s->c->pairing;
	if (!pairing->active) {
		uint32_t count = count_due(s->c);
		if (!count)
			return false;
		begin(s, count);
	} else if (pairing->waiting && s->now_ns < pairing->deadline_ns) {
		return true;
	}
	if (pairs_next(&pairing->pairs)) {
		send_pairs(s);
		return true;
	}
	conclude(s);
	return false;
}

void pairing_take(struct step *s)
{
	struct pairing *pairing = &s->c->pairing;
	const struct msg_paired *paired = &s->event->msg->paired;
	struct member *member = roster_by_link(&s->c->roster, s->event->link);
	if (!member || !pairing->active || paired->serial != pairing->serial ||
	    !was_here(pairing, member))
		return;
	member->heard_ns = s->now_ns;
	struct pair_figures found = PAIR_FIGURES_NONE;
	if (paired->known)
		found.bandwidth = (double)paired->bandwidth / BYTES_PER_MB;
	if (paired->known && paired->latency_ns)
		found.latency = (double)paired->latency_ns / (double)NS_PER_US;
	/* Those that were called have nothing to tell. */
	if (pairs_note(&pairing->pairs, member->pair_index, &found))
		pairing->waiting -= pairing->waiting > 0;
}
