#include "core/rounds/roster.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

void roster_init(struct roster *roster)
{
	memset(roster, 0, sizeof(*roster));
}

static void member_free(struct member *member)
{
	free(member->store_host);
	free(member->name);
	free(member->addrs);
	free(member->checks);
	free(member->why);
	free(member);
}

void roster_done(struct roster *roster)
{
	for (size_t i = 0; i < roster->count; i++)
		member_free(roster->members[i]);
	free(roster->members);
	map_foreach(entry, &roster->roles) free(entry->value);
	map_done(&roster->by_id);
	map_done(&roster->by_link);
	map_done(&roster->by_rank);
	map_done(&roster->roles);
	map_done(&roster->losses);
	heap_done(&roster->silences);
	memset(roster, 0, sizeof(*roster));
}

struct member *roster_by_link(const struct roster *roster, uint64_t link)
{
	return map_get(&roster->by_link, &link, sizeof(link));
}

struct member *roster_by_id(const struct roster *roster, struct agent_id id)
{
	return map_get(&roster->by_id, &id, sizeof(id));
}

struct member *roster_by_rank(const struct roster *roster, int32_t node_rank)
{
	return map_get(&roster->by_rank, &node_rank, sizeof(node_rank));
}

bool roster_in_heard(const struct roster *roster, const struct member *member)
{
	return memory_was_in(&member->memory, roster->heard.ballot);
}

bool roster_in_base(const struct roster *roster, const struct member *member)
{
	return memory_was_in(&member->memory, roster->base.ballot);
}

/* A round that the quorum counts had it as a member, whether FORMED reached it or not. */
static bool counts(const struct roster *roster, const struct member *member)
{
	return member->in_round || roster_in_heard(roster, member) ||
	       roster_in_base(roster, member);
}

static bool knows_heard(const struct roster *roster, const struct member *member)
{
	return ballot_eq(member->memory.heard.ballot, roster->heard.ballot);
}

/* Adds (1) or subtracts (-1) one member's contribution to the counts. */
static void tally_member(struct roster *roster, const struct member *member, int32_t sign)
{
	struct tally *tally = &roster->tally;
	uint32_t one = (uint32_t)sign;
	bool in_heard = roster_in_heard(roster, member), in_base = roster_in_base(roster, member);
	tally->count[member->status] += one;
	if (member->status != MEMBER_ABSENT && member->status != MEMBER_LEAVING) {
		tally->linked_heard += in_heard ? one : 0;
		tally->linked_base += in_base ? one : 0;
	}
	if (member->status == MEMBER_READY) {
		tally->ready_heard += in_heard ? one : 0;
		tally->ready_base += in_base ? one : 0;
		tally->ready_witness += in_heard && member->memory.coordinator_died ? one : 0;
		tally->ready_done += in_heard && member->memory.work == WORK_DONE ? one : 0;
		if (knows_heard(roster, member)) {
			struct presence *ruled = &tally->ready_ruled[member->memory.ruling];
			ruled->in_heard += in_heard ? one : 0;
			ruled->in_base += in_base ? one : 0;
			ruled->all += one;
		}
		tally->outside_own += !in_heard && member->in_round ? one : 0;
		tally->unaware +=
			!in_heard && ballot_is_none(member->memory.heard.ballot) ? one : 0;
		tally->ready_usable += member->excluded ? 0 : one;
		tally->ready_willing += member->excluded || roster_last_resort(member) ? 0 : one;
	} else if (member->status == MEMBER_ABSENT && member->left) {
		tally->left_heard += in_heard ? one : 0;
		tally->left_base += in_base ? one : 0;
	}
	bool settled = member->status == MEMBER_READY || member->left;
	tally->outside_heard += settled && in_base && !in_heard ? one : 0;
}

static char *intern_role(struct roster *roster, const char *role)
{
	char *known = map_get(&roster->roles, role, strlen(role));
	if (!known) {
		known = mem_strdup(role);
		map_put(&roster->roles, role, strlen(role), known);
	}
	return known;
}

static struct member *member_add(struct roster *roster, struct agent_id id)
{
	struct member *member = NEW(struct member);
	member->id = id;
	member->arrival = roster->next_arrival++;
	member->wire = PAIR_FIGURES_NONE;
	member->pair_due = true;
	member->pos = roster->count;
	ARRAY_RESERVE(roster->members, roster->count, roster->cap);
	roster->members[roster->count++] = member;
	map_put(&roster->by_id, &id, sizeof(id), member);
	tally_member(roster, member, 1);
	return member;
}

static void member_remove(struct roster *roster, struct member *member)
{
	tally_member(roster, member, -1);
	struct member *last = roster->members[--roster->count];
	roster->members[member->pos] = last;
	last->pos = member->pos;
	map_remove(&roster->by_id, &member->id, sizeof(member->id));
	heap_remove(&roster->silences, &member->silence);
	member_free(member);
}

static void set_link(struct roster *roster, struct member *member, uint64_t link)
{
	if (member->link) {
		map_remove(&roster->by_link, &member->link, sizeof(member->link));
		map_remove(&roster->by_rank, &member->node_rank, sizeof(member->node_rank));
	}
	member->link = link;
	if (link)
		map_put(&roster->by_link, &link, sizeof(link), member);
	if (link && member->node_rank >= 0)
		map_put(&roster->by_rank, &member->node_rank, sizeof(member->node_rank), member);
}

static uintptr_t losses_of(const struct roster *roster, const char *host)
{
	return (uintptr_t)map_get(&roster->losses, host, strlen(host));
}

static void set_text(char **text, const char *value)
{
	free(*text);
	*text = mem_strdup(value);
}

uint64_t node_death_ns(const struct node_info *node)
{
	return node->period_ns * (node->lease_periods + 1);
}

static bool has_wire(const struct member *member)
{
	return isfinite(member->wire.bandwidth) || isfinite(member->wire.latency);
}

/* Checks that are told no more say nothing any more. */
static void copy_checks(struct roster *roster, struct member *member,
			const struct check_digest *checks)
{
	bool had = member->checks, has = !check_digest_is_empty(checks) || has_wire(member);
	roster->unjudged |= had || has;
	free(member->checks);
	member->checks = NULL;
	if (!has)
		return;
	member->checks = NEW(struct check_digest);
	*member->checks = *checks;
	check_digest_put(member->checks, PAIRS_BANDWIDTH, member->wire.bandwidth);
	check_digest_put(member->checks, PAIRS_LATENCY, member->wire.latency);
}

void roster_set_wire(struct roster *roster, struct member *member, const struct pair_figures *wire)
{
	struct check_digest told = { .bad = false };
	if (member->checks)
		told = *member->checks;
	check_digest_remove(&told, PAIRS_BANDWIDTH);
	check_digest_remove(&told, PAIRS_LATENCY);
	member->wire = *wire;
	copy_checks(roster, member, &told);
}

static void copy_node(struct roster *roster, struct member *member, const struct node_info *node)
{
	member->nproc = node->nproc;
	member->node_rank = node->node_rank;
	member->max_restarts = node->max_restarts;
	member->by_progress = node->by_progress;
	member->can = node->can;
	member->backoff_ns = node->backoff_ns;
	member->backoff_max_ns = node->backoff_max_ns;
	member->death_ns = node_death_ns(node);
	member->store_port = node->store_port;
	member->role = intern_role(roster, node->role);
	set_text(&member->store_host, node->store_host);
	set_text(&member->name, node->name);
	free(member->addrs);
	member->addr_count = node->addr_count;
	member->addrs = NEW_ARRAY(struct msg_addr, MAX(node->addr_count, 1));
	memcpy(member->addrs, node->addrs, node->addr_count * sizeof(*node->addrs));
	member->last_resort = losses_of(roster, node->name) >= ROSTER_LOSSES_MAX;
	member->strikes = node->strikes;
	member->cool_down_ns = node->cool_down_ns;
	member->excluded = node->excluded;
	member->pair_port = node->pair_port;
	member->pair_ms = node->pair_ms;
	member->lost_timeout_ns = node->lost_timeout_ns;
	copy_checks(roster, member, &node->checks);
}

static uint64_t silence_end_ns(const struct member *member)
{
	return ns_add(member->status == MEMBER_LEAVING ? member->heard_ns : member->fresh_ns,
		      member->death_ns);
}

struct member *roster_join(struct roster *roster, uint64_t link, const struct msg_join *join,
			   uint64_t greeted_ns, uint64_t now_ns)
{
	struct member *member = roster_by_id(roster, join->node->id);
	if (!member)
		member = member_add(roster, join->node->id);
	tally_member(roster, member, -1);
	if (member->link != link)
		member->fresh_ns = greeted_ns;
	set_link(roster, member, 0);
	copy_node(roster, member, join->node);
	set_link(roster, member, link);
	member->memory = join->memory;
	member->attempt = join->attempt;
	member->status = MEMBER_READY;
	member->left = false;
	member->loss = LOSS_NONE;
	member->elsewhere = false;
	member->heard_ns = now_ns;
	tally_member(roster, member, 1);
	if (member->death_ns)
		heap_update(&roster->silences, &member->silence, silence_end_ns(member));
	return member;
}

void roster_set_status(struct roster *roster, struct member *member, enum member_status status)
{
	tally_member(roster, member, -1);
	member->status = status;
	tally_member(roster, member, 1);
}

void roster_doubt(struct roster *roster, struct member *member)
{
	set_link(roster, member, 0);
	member->elsewhere |= member->status != MEMBER_LEAVING;
	roster_set_status(roster, member, MEMBER_LEAVING);
}

bool roster_part(struct roster *roster, struct member *member, bool left)
{
	set_link(roster, member, 0);
	heap_remove(&roster->silences, &member->silence);
	if (!counts(roster, member)) {
		member_remove(roster, member);
		return false;
	}
	tally_member(roster, member, -1);
	member->status = MEMBER_ABSENT;
	member->left = left;
	tally_member(roster, member, 1);
	return true;
}

static void recount(struct roster *roster)
{
	memset(&roster->tally, 0, sizeof(roster->tally));
	for (size_t i = 0; i < roster->count; i++)
		tally_member(roster, roster->members[i], 1);
}

void roster_set_rounds(struct roster *roster, const struct round_ref *heard,
		       const struct round_ref *base)
{
	roster->heard = *heard;
	roster->base = *base;
	recount(roster);
	for (size_t i = roster->count; i-- > 0;) {
		struct member *member = roster->members[i];
		if (member->status == MEMBER_ABSENT && !counts(roster, member))
			member_remove(roster, member);
	}
}

void roster_hears(struct roster *roster, struct member *member)
{
	if (knows_heard(roster, member))
		return;
	tally_member(roster, member, -1);
	memory_hear(&member->memory, &roster->heard);
	tally_member(roster, member, 1);
}

void roster_enter_round(struct roster *roster, struct member *member)
{
	tally_member(roster, member, -1);
	member->in_round = true;
	member->signs = (struct hang_signs){ .silence = HANG_FINE };
	memory_enter(&member->memory, &roster->heard, &roster->base);
	member->memory.group_rank = (int32_t)member->group_rank;
	tally_member(roster, member, 1);
}

void roster_count_loss(struct roster *roster, const struct member *member)
{
	uintptr_t losses = losses_of(roster, member->name);
	map_put(&roster->losses, member->name, strlen(member->name), (void *)(losses + 1));
}

void roster_set_bad(struct roster *roster, struct member *member, const char *why)
{
	free(member->why);
	member->why = why ? mem_strdup(why) : NULL;
	tally_member(roster, member, -1);
	member->bad = why;
	tally_member(roster, member, 1);
}

void roster_shun(struct roster *roster, const struct member *member)
{
	map_put(&roster->losses, member->name, strlen(member->name),
		(void *)(uintptr_t)ROSTER_LOSSES_MAX);
}

struct member *roster_next_silent(struct roster *roster, uint64_t now_ns)
{
	for (;;) {
		struct heap_node *node = heap_top(&roster->silences);
		if (!node || node->key > now_ns)
			return NULL;
		struct member *member = container_of(node, struct member, silence);
		uint64_t end_ns = silence_end_ns(member);
		if (end_ns <= now_ns)
			return member;
		heap_update(&roster->silences, node, end_ns);
	}
}

uint64_t roster_deadline_ns(const struct roster *roster)
{
	struct heap_node *node = heap_top(&roster->silences);
	return node ? node->key : NS_NEVER;
}
