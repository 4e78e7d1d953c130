#include "proto/dash/roster.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "proto/dash/roster_private.h"
#include "proto/json_out.h"

static const char *const state_names[] = {
	[ROSTER_QUEUED] = "queued", [ROSTER_RUNNING] = "running", [ROSTER_WAITING] = "waiting",
	[ROSTER_OK] = "ok",	    [ROSTER_FAILED] = "failed",	  [ROSTER_SKIPPED] = "skipped",
};
static_assert(ARRAY_LEN(state_names) == ROSTER_STATE_COUNT, "every state needs a name");

const char *roster_state_name(enum roster_state state)
{
	return state_names[state];
}

struct roster *roster_new(size_t count, roster_order_fn *order, void *arg, uint64_t now_ns,
			  uint64_t wall_ms)
{
	struct roster *roster = NEW(struct roster);
	*roster = (struct roster){
		.count = count, .order = order, .arg = arg, .start_ns = now_ns, .start_ms = wall_ms
	};
	roster->rows = mem_alloc((count + 1) * sizeof(*roster->rows));
	roster->states[ROSTER_QUEUED] = count;
	return roster;
}

void roster_free(struct roster *roster)
{
	if (!roster)
		return;
	for (size_t i = 0; i < ROSTER_FAILURES; i++) {
		free(roster->failures[i].how);
		free(roster->failures[i].tail);
	}
	strv_done(&roster->hosts);
	buf_done(&roster->told_sum);
	free(roster->rows);
	free(roster);
}

/* ---- what happens ---- */

static void touch(struct roster *roster, size_t index)
{
	struct roster_row *row = &roster->rows[index];
	if (row->changed)
		return;
	if (roster->changed_count == ROSTER_ROWS) {
		roster->many = true;
		return;
	}
	row->changed = true;
	roster->changed[roster->changed_count++] = index;
}

static void set_state(struct roster *roster, size_t index, enum roster_state state)
{
	struct roster_row *row = &roster->rows[index];
	roster->states[row->state]--;
	roster->states[state]++;
	row->state = (uint8_t)state;
	touch(roster, index);
}

static uint16_t host_number(struct roster *roster, const char *host)
{
	if (!host)
		return 0;
	for (size_t i = 0; i < roster->hosts.count; i++)
		if (str_eq(roster->hosts.items[i], host))
			return (uint16_t)(i + 1);
	if (roster->hosts.count >= ROSTER_HOSTS_MAX)
		return 0;
	AUTO_FREE char *name = mem_strndup(host, strnlen(host, ROSTER_TEXT_MAX));
	strv_add(&roster->hosts, name);
	return (uint16_t)roster->hosts.count;
}

void roster_started(struct roster *roster, size_t index, const char *host, uint64_t now_ns)
{
	if (index >= roster->count)
		return;
	struct roster_row *row = &roster->rows[index];
	uint16_t number = host_number(roster, host);
	if (row->state == ROSTER_RUNNING && row->host == number)
		return; /* a command around it ran before */
	row->host = number;
	row->started_ms = (now_ns - MIN(now_ns, roster->start_ns)) / NS_PER_MS;
	set_state(roster, index, ROSTER_RUNNING);
}

static unsigned bin_of(uint64_t ns)
{
	uint64_t least = MAX(ns, (uint64_t)4);
	unsigned log = 63 - (unsigned)__builtin_clzll(least);
	return log * 4 + (unsigned)(least >> (log - 2) & 3);
}

static void add_time(struct roster *roster, uint64_t ns)
{
	unsigned bin = bin_of(ns);
	static_assert(ROSTER_BINS == 64 * 4, "a bin for each");
	roster->bins[bin]++;
	roster->bin_changed[bin] = true;
}

static void add_failure(struct roster *roster, size_t index, const char *how, const char *tail)
{
	struct roster_failure *failure =
		&roster->failures[roster->failure_count++ % ROSTER_FAILURES];
	size_t len = tail ? strlen(tail) : 0, cut = len - MIN(len, (size_t)ROSTER_TAIL_MAX);
	free(failure->how);
	free(failure->tail);
	failure->index = index;
	failure->how = mem_strndup(how, strnlen(how, ROSTER_TEXT_MAX));
	failure->tail = tail ? mem_strdup(tail + cut) : NULL;
}

static void count_end(struct roster *roster, uint64_t now_ns)
{
	uint64_t second = (now_ns - MIN(now_ns, roster->start_ns)) / NS_PER_S;
	struct roster_second *at = &roster->seconds[second % ROSTER_RATE_S];
	if (at->number != second)
		*at = (struct roster_second){ .number = second };
	at->ends++;
}

void roster_ended(struct roster *roster, size_t index, const struct result *result, bool final,
		  bool again, const char *how, uint64_t now_ns)
{
	if (index >= roster->count)
		return;
	struct roster_row *row = &roster->rows[index];
	bool ok = result->reason == REASON_OK;
	row->attempts = (uint16_t)MIN(MAX(result->attempt, 0), UINT16_MAX);
	if (result->node)
		row->host = host_number(roster, result->node);
	if (result->has[RESULT_WALL_NS]) {
		uint64_t wall_ns = (uint64_t)MAX(result->value[RESULT_WALL_NS], (int64_t)0);
		row->wall_us = wall_ns / NS_PER_US;
		row->timed = true;
		row->runs += ok && !result->warmup;
		if (ok && !result->warmup)
			add_time(roster, wall_ns);
	}
	if (final && !again)
		count_end(roster, now_ns);
	if (final && !again && !ok)
		add_failure(roster, index, how, result->tail);
	set_state(roster, index,
		  again	   ? ROSTER_QUEUED
		  : !final ? ROSTER_WAITING
		  : ok	   ? ROSTER_OK
			   : ROSTER_FAILED);
}

void roster_skipped(struct roster *roster, size_t index)
{
	if (index < roster->count && roster->rows[index].state != ROSTER_SKIPPED)
		set_state(roster, index, ROSTER_SKIPPED);
}

uint64_t roster_count(const struct roster *roster, enum roster_state state)
{
	return roster->states[state];
}

double roster_rate(const struct roster *roster, uint64_t now_ns)
{
	uint64_t elapsed_ns = now_ns - MIN(now_ns, roster->start_ns), ends = 0;
	uint64_t now_s = elapsed_ns / NS_PER_S;
	for (size_t i = 0; i < ROSTER_RATE_S; i++)
		if (roster->seconds[i].number + ROSTER_RATE_S > now_s)
			ends += roster->seconds[i].ends;
	/* The second under way has only begun. */
	uint64_t span_ns = now_s < ROSTER_RATE_S
				   ? elapsed_ns
				   : (ROSTER_RATE_S - 1) * NS_PER_S + elapsed_ns % NS_PER_S;
	return span_ns ? (double)ends * (double)NS_PER_S / (double)span_ns : 0;
}

/* ---- what pages are told ---- */

static void put_sum(const struct roster *roster, const struct roster_sum *sum, uint64_t now_ns,
		    struct buf *text)
{
	struct json_out out = JSON_OUT(text, .ascii = true);
	uint64_t elapsed_ns = now_ns - MIN(now_ns, roster->start_ns);
	json_out_open(&out, NULL, '{');
	json_out_text(&out, "state", sum->state);
	for (int i = 0; i < ROSTER_STATE_COUNT; i++)
		json_out_int(&out, state_names[i], (int64_t)roster->states[i]);
	json_out_int(&out, "failures", (int64_t)roster->failure_count);
	json_out_int(&out, "started_ms", (int64_t)roster->start_ms);
	json_out_int(&out, "rate_m", (int64_t)(roster_rate(roster, now_ns) * 1000));
	if (sum->left_ns != NS_NEVER && sum->exit_code < 0)
		json_out_int(&out, "left_s", (int64_t)((sum->left_ns + NS_PER_S - 1) / NS_PER_S));
	if (sum->before)
		json_out_int(&out, "before", (int64_t)sum->before);
	if (sum->jobs)
		json_out_int(&out, "jobs", (int64_t)sum->jobs);
	if (sum->hosts)
		json_out_int(&out, "hosts", (int64_t)sum->hosts);
	if (sum->exit_code >= 0) {
		json_out_int(&out, "exit_code", sum->exit_code);
		json_out_int(&out, "ended_ms",
			     (int64_t)(roster->start_ms + elapsed_ns / NS_PER_MS));
	}
	json_out_close(&out, '}');
}

static void put_text(struct json_out *out, const char *key, const char *text)
{
	AUTO_FREE char *cut = mem_strndup(text, strnlen(text, ROSTER_TEXT_MAX));
	json_out_text(out, key, cut);
}

void roster_put_row(const struct roster *roster, size_t index, struct json_out *out)
{
	const struct roster_row *row = &roster->rows[index];
	json_out_int(out, NULL, (int64_t)index);
	json_out_int(out, NULL, row->state);
	json_out_int(out, NULL, row->attempts);
	json_out_int(out, NULL, row->runs);
	json_out_int(out, NULL, row->timed ? (int64_t)row->wall_us : -1);
	json_out_text(out, NULL, row->host ? roster->hosts.items[row->host - 1] : "");
	json_out_int(out, NULL, (int64_t)(roster->start_ms + row->started_ms));
}

void roster_put_order(const struct order *order, bool elements, struct json_out *out)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	order_append_id(order, &text);
	put_text(out, elements ? NULL : "id", buf_str(&text));
	buf_clear(&text);
	order_append_command(order, 0, &text);
	put_text(out, elements ? NULL : "command", buf_str(&text));
	if (!elements)
		return;
	buf_clear(&text);
	if (order->extra)
		label_format(&order->extra->labels, &text);
	put_text(out, NULL, buf_str(&text));
}

static void put_failures(const struct roster *roster, uint64_t since, struct json_out *out)
{
	uint64_t kept = MIN(roster->failure_count, (uint64_t)ROSTER_FAILURES);
	json_out_open(out, "failures", '[');
	for (uint64_t i = MAX(since, roster->failure_count - kept); i < roster->failure_count;
	     i++) {
		const struct roster_failure *failure = &roster->failures[i % ROSTER_FAILURES];
		const struct roster_row *row = &roster->rows[failure->index];
		json_out_open(out, NULL, '{');
		json_out_int(out, "order", (int64_t)failure->index);
		roster_put_order(roster->order(roster->arg, failure->index), false, out);
		json_out_text(out, "how", failure->how);
		if (row->host)
			json_out_text(out, "host", roster->hosts.items[row->host - 1]);
		json_out_text_if(out, "tail", failure->tail);
		json_out_close(out, '}');
	}
	json_out_close(out, ']');
}

static bool put_times(const struct roster *roster, bool all, struct json_out *out)
{
	bool any = false;
	for (int i = 0; i < ROSTER_BINS; i++) {
		if (!(all ? roster->bins[i] > 0 : roster->bin_changed[i]))
			continue;
		if (!any)
			json_out_open(out, "times", '[');
		any = true;
		json_out_int(out, NULL, i);
		json_out_int(out, NULL, (int64_t)roster->bins[i]);
	}
	if (any)
		json_out_close(out, ']');
	return any;
}

static void put_now(const struct roster *roster, uint64_t now_ns, struct json_out *out)
{
	uint64_t elapsed_ns = now_ns - MIN(now_ns, roster->start_ns);
	json_out_int(out, "now", (int64_t)(roster->start_ms + elapsed_ns / NS_PER_MS));
}

void roster_put_all(const struct roster *roster, const struct roster_sum *sum, uint64_t now_ns,
		    struct buf *text)
{
	AUTO(buf_done) struct buf part = BUF_INIT;
	struct json_out out = JSON_OUT(text, .ascii = true);
	put_sum(roster, sum, now_ns, &part);
	json_out_open(&out, NULL, '{');
	json_out_bool(&out, "all", true);
	put_now(roster, now_ns, &out);
	json_out_int(&out, "n", (int64_t)roster->count);
	json_out_raw(&out, "sum", buf_str(&part), buf_len(&part));
	put_times(roster, true, &out);
	put_failures(roster, 0, &out);
	json_out_close(&out, '}');
}

static bool put_changed_rows(struct roster *roster, struct json_out *out)
{
	bool many = roster->many, any = roster->changed_count > 0;
	if (many)
		json_out_bool(out, "many", true);
	else if (any)
		json_out_open(out, "rows", '[');
	for (size_t i = 0; i < roster->changed_count; i++) {
		size_t index = roster->changed[i];
		roster->rows[index].changed = false;
		if (many)
			continue;
		json_out_open(out, NULL, '[');
		roster_put_row(roster, index, out);
		json_out_close(out, ']');
	}
	if (!many && any)
		json_out_close(out, ']');
	roster->changed_count = 0;
	roster->many = false;
	return any;
}

bool roster_put_changes(struct roster *roster, const struct roster_sum *sum, uint64_t now_ns,
			struct buf *text)
{
	AUTO(buf_done) struct buf part = BUF_INIT;
	struct json_out out = JSON_OUT(text, .ascii = true);
	bool any = false;
	json_out_open(&out, NULL, '{');
	put_now(roster, now_ns, &out);
	put_sum(roster, sum, now_ns, &part);
	if (!str_eq(buf_str(&part), buf_str(&roster->told_sum))) {
		any = true;
		json_out_raw(&out, "sum", buf_str(&part), buf_len(&part));
		buf_clear(&roster->told_sum);
		buf_append(&roster->told_sum, buf_data(&part), buf_len(&part));
	}
	any |= put_times(roster, false, &out);
	memset(roster->bin_changed, 0, sizeof(roster->bin_changed));
	if (roster->failures_told < roster->failure_count) {
		any = true;
		put_failures(roster, roster->failures_told, &out);
		roster->failures_told = roster->failure_count;
	}
	any |= put_changed_rows(roster, &out);
	json_out_close(&out, '}');
	return any;
}
