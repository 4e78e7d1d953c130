#include "core/pmi/pmi.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "core/lines/ranges.h"
#include "core/pmi/pmi_private.h"

/* In the first fence: a key for each host, whose value has the number of its ranks and its name.
 * Ranks cannot put keys that begin in this way. */
#define HOST_KEY "PMI_host."

/* ---- pairs ---- */

/* Its share: all hosts together put no more than the map holds. */
bool step_put(struct step *s, struct bytes key, struct bytes value)
{
	struct pmi *pmi = s->pmi;
	size_t share = (KEYVALS_SIZE_MAX - pmi->keyvals.size) / pmi->config.nodes;
	if (buf_len(&pmi->fresh) + key.len + value.len > share)
		return false;
	keyval_put(&pmi->fresh, key, value);
	return true;
}

/* ---- what a rank is told, and what is told of it ---- */

static struct pmi_action *act(struct step *s, enum pmi_action_type type)
{
	struct pmi_action *action = pmi_actions_add(s->actions);
	*action = (struct pmi_action){ .type = type, .rank = s->rank };
	return action;
}

void step_say(struct step *s, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	buf_vprintf(&step_rank(s)->out, fmt, args);
	va_end(args);
	act(s, PMI_DO_WRITE);
}

void step_blame(struct step *s, const char *fmt, ...)
{
	struct pmi_action *action = act(s, PMI_DO_BLAME);
	va_list args;
	va_start(args, fmt);
	vsnprintf(action->text, sizeof(action->text), fmt, args);
	va_end(args);
	str_make_printable(action->text);
	step_rank(s)->state = PMI_BANNED;
}

void step_abort(struct step *s, int code, struct bytes text)
{
	struct pmi_action *action = act(s, PMI_DO_ABORT);
	action->code = code;
	snprintf(action->text, sizeof(action->text), "%.*s",
		 (int)MIN(text.len, sizeof(action->text)), (const char *)text.data);
	str_make_printable(action->text);
	step_rank(s)->state = PMI_BANNED;
}

/* ---- questions to the coordinator ---- */

static void want(struct step *s, const struct want *want)
{
	act(s, PMI_DO_WANT)->want = *want;
}

void step_want(struct step *s, enum pmi_wait waits, enum want_kind kind, struct bytes key,
	       struct bytes value)
{
	struct pmi_rank *rank = step_rank(s);
	rank->waits = waits;
	buf_clear(&rank->wanted);
	keyval_put(&rank->wanted, key, value);
	const struct want wanted = { .kind = kind,
				     .serial = (uint32_t)s->rank,
				     .pair = bytes_of(buf_data(&rank->wanted),
						      buf_len(&rank->wanted)) };
	if (s->pmi->config.nodes > 1) {
		want(s, &wanted);
		return;
	}
	struct bytes found = bytes_of("", 0);
	bool good = keyvals_want(&s->pmi->keyvals, &wanted, &found);
	pmi_v1_answer(s, good, key, found);
}

/* ---- fences ---- */

static void begin_fence(struct step *s)
{
	struct pmi *pmi = s->pmi;
	struct buf spare = pmi->sent;
	pmi->sent = pmi->fresh;
	pmi->fresh = spare;
	buf_clear(&pmi->fresh);
	buf_clear(&pmi->received);
	pmi->requested = EXCHANGE_PIECE_MAX; /* the beginning arrives by itself */
	pmi->fencing = true;
	struct pmi_action *action = act(s, PMI_DO_PUT);
	action->seq = pmi->seq;
	action->pairs = bytes_of(buf_data(&pmi->sent), buf_len(&pmi->sent));
}

static void leave_barrier(struct step *s)
{
	struct pmi *pmi = s->pmi;
	pmi->waiting = 0;
	for (s->rank = 0; s->rank < pmi->config.count; s->rank++) {
		if (step_rank(s)->waits != PMI_WAITS_BARRIER)
			continue;
		step_rank(s)->waits = PMI_WAITS_NOT;
		step_say(s, "cmd=barrier_out rc=0\n");
	}
	s->rank = 0;
}

static void take_fresh(struct pmi *pmi)
{
	keyvals_take(&pmi->keyvals, bytes_of(buf_data(&pmi->fresh), buf_len(&pmi->fresh)));
	buf_clear(&pmi->fresh);
	pmi->seq++;
}

/* All ranks of this host are in the barrier, and no other fence is under way. */
static void advance(struct step *s)
{
	struct pmi *pmi = s->pmi;
	if (pmi->waiting < pmi->config.count || pmi->fencing)
		return;
	if (pmi->config.nodes > 1) {
		begin_fence(s);
		return;
	}
	take_fresh(pmi);
	leave_barrier(s);
}

void step_enter_barrier(struct step *s)
{
	step_rank(s)->waits = PMI_WAITS_BARRIER;
	s->pmi->waiting++;
	advance(s);
}

/* ---- which ranks share a host ---- */

struct block {
	uint32_t rank_base, count;
};

static int by_base(const void *a, const void *b)
{
	const struct block *x = a, *y = b;
	return x->rank_base < y->rank_base ? -1 : x->rank_base > y->rank_base;
}

/* "(vector,(FIRST NODE,NODES,RANKS ON EACH),...)" */
static void write_mapping(struct pmi *pmi, const struct block *blocks, size_t count)
{
	buf_clear(&pmi->mapping);
	buf_append_str(&pmi->mapping, "(vector");
	for (size_t i = 0, next; i < count; i = next) {
		for (next = i + 1; next < count && blocks[next].count == blocks[i].count;)
			next++;
		buf_printf(&pmi->mapping, ",(%zu,%zu,%u)", i, next - i, blocks[i].count);
	}
	buf_append_char(&pmi->mapping, ')');
	if (buf_len(&pmi->mapping) >= PMI_VALUE_MAX)
		buf_clear(&pmi->mapping); /* MPI finds out by itself then, from the hosts' names */
}

static bool read_block(const struct map_entry *entry, struct block *ret_block)
{
	const struct bytes *value = entry->value;
	size_t head = strlen(HOST_KEY);
	uint64_t base, count;
	if (entry->key_len <= head || memcmp(entry->key, HOST_KEY, head) != 0)
		return false;
	char text[16] = "";
	memcpy(text, value->data, MIN(value->len, sizeof(text) - 1));
	if (str_to_u64(entry->key + head, &base) < 0 || str_to_u64(text, &count) < 0)
		return false;
	*ret_block = (struct block){ (uint32_t)base, (uint32_t)count };
	return true;
}

static void make_mapping(struct pmi *pmi)
{
	struct map *map = &pmi->keyvals.map;
	struct block *blocks = NEW_ARRAY(struct block, map->count + 1);
	size_t count = 0;
	map_foreach(entry, map) count += read_block(entry, &blocks[count]);
	qsort(blocks, count, sizeof(*blocks), by_base);
	if (count == pmi->config.nodes)
		write_mapping(pmi, blocks, count);
	free(blocks);
	pmi->mapped = true;
}

static void name_host(struct pmi *pmi)
{
	char key[PMI_KEY_MAX], value[16];
	snprintf(key, sizeof(key), HOST_KEY "%u", pmi->config.rank_base);
	snprintf(value, sizeof(value), "%u", pmi->config.count);
	keyval_put(&pmi->fresh, bytes_str(key), bytes_str(value));
}

static void answer_about_mapping(struct step *s)
{
	for (s->rank = 0; s->rank < s->pmi->config.count; s->rank++) {
		if (step_rank(s)->waits == PMI_WAITS_MAPPING)
			pmi_v1_answer(s, true, bytes_of("", 0), bytes_of("", 0));
	}
	s->rank = 0;
}

/* ---- life ---- */

void pmi_begin(struct pmi *pmi, const struct pmi_config *config, struct pmi_actions *actions)
{
	struct step s = { pmi, 0, actions };
	pmi_done(pmi);
	*pmi = (struct pmi){ .config = *config };
	pmi->ranks = NEW_ARRAY(struct pmi_rank, config->count);
	name_host(pmi);
	if (config->nodes > 1) {
		begin_fence(&s);
		return;
	}
	take_fresh(pmi);
	make_mapping(pmi);
}

void pmi_done(struct pmi *pmi)
{
	for (size_t i = 0; pmi->ranks && i < pmi->config.count; i++) {
		buf_done(&pmi->ranks[i].in);
		buf_done(&pmi->ranks[i].out);
		buf_done(&pmi->ranks[i].wanted);
	}
	free(pmi->ranks);
	keyvals_done(&pmi->keyvals);
	buf_done(&pmi->fresh);
	buf_done(&pmi->sent);
	buf_done(&pmi->received);
	buf_done(&pmi->mapping);
	*pmi = (struct pmi){ .ranks = NULL };
}

/* ---- events ---- */

/* Its first line and the length of that, without the end; false: it is not complete. */
static bool next_line(const struct pmi_rank *rank, struct bytes *ret_line)
{
	const unsigned char *data = buf_data(&rank->in);
	const unsigned char *end = data ? memchr(data, '\n', buf_len(&rank->in)) : NULL;
	if (end)
		*ret_line = bytes_of(data, (size_t)(end - data));
	return end;
}

void pmi_take(struct pmi *pmi, size_t index, struct bytes data, struct pmi_actions *actions)
{
	struct step s = { pmi, index, actions };
	struct pmi_rank *rank = step_rank(&s);
	struct bytes line;
	if (rank->state == PMI_BANNED)
		return;
	buf_append(&rank->in, data.data, data.len);
	while (rank->state != PMI_BANNED && next_line(rank, &line)) {
		size_t len = line.len + 1;
		if (line.len > PMI_LINE_MAX)
			step_blame(&s, "it sent a line of %zu bytes; the limit is %d", line.len,
				   PMI_LINE_MAX);
		else
			pmi_v1_take(&s, line);
		s.rank = index;
		buf_consume(&rank->in, len);
	}
	if (rank->state != PMI_BANNED && buf_len(&rank->in) > PMI_LINE_MAX)
		step_blame(&s, "it sent %d bytes without the end of a line", PMI_LINE_MAX);
}

static void end_fence(struct step *s)
{
	struct pmi *pmi = s->pmi;
	keyvals_take(&pmi->keyvals, bytes_of(buf_data(&pmi->received), buf_len(&pmi->received)));
	buf_done(&pmi->received);
	pmi->fencing = false;
	pmi->seq++;
	if (pmi->mapped) {
		leave_barrier(s);
		return;
	}
	make_mapping(pmi);
	answer_about_mapping(s);
	advance(s);
}

/* Asks for more once all that was asked for has arrived. */
static void request_rest(struct step *s, uint32_t size)
{
	struct pmi *pmi = s->pmi;
	if (buf_len(&pmi->received) < MIN(pmi->requested, (size_t)size))
		return;
	uint32_t at = (uint32_t)buf_len(&pmi->received);
	pmi->requested = at + EXCHANGE_AHEAD * EXCHANGE_PIECE_MAX;
	want(s, &(struct want){ .kind = WANT_REST, .seq = pmi->seq, .at = at });
}

void pmi_union(struct pmi *pmi, uint32_t seq, uint32_t size, uint32_t at, struct bytes piece,
	       struct pmi_actions *actions)
{
	struct step s = { pmi, 0, actions };
	if (!pmi->fencing || seq != pmi->seq || at != buf_len(&pmi->received))
		return;
	if (size > EXCHANGE_PUSH_MAX) {
		pmi->withheld = true;
		end_fence(&s);
		return;
	}
	buf_append(&pmi->received, piece.data, piece.len);
	if (buf_len(&pmi->received) >= size)
		end_fence(&s);
	else
		request_rest(&s, size);
}

void pmi_value(struct pmi *pmi, uint32_t serial, bool found, struct bytes value,
	       struct pmi_actions *actions)
{
	struct step s = { pmi, serial, actions };
	struct bytes wanted, key, old;
	if (serial >= pmi->config.count || step_rank(&s)->waits < PMI_WAITS_GET)
		return;
	wanted = bytes_of(buf_data(&step_rank(&s)->wanted), buf_len(&step_rank(&s)->wanted));
	if (keyval_next(&wanted, &key, &old) > 0)
		pmi_v1_answer(&s, found, key, value);
}

void pmi_missing(const struct pmi *pmi, struct buf *ret_ranks)
{
	struct ranges ranges = RANGES(ret_ranks, ", ", 3);
	if (!pmi->waiting)
		return;
	for (uint32_t i = 0; i < pmi->config.count; i++)
		if (pmi->ranks[i].waits != PMI_WAITS_BARRIER)
			ranges_add(&ranges, pmi->config.rank_base + i);
	ranges_end(&ranges);
}
