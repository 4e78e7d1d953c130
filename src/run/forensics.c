#include "run/forensics.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"
#include "base/str.h"
#include "proto/flight.h"
#include "proto/json_value.h"
#include "watch/flight_dumps.h"
#include "watch/stack_kernel.h"

/* Who is asked about, and with a recorder their records. */
static void fetch_records(const struct forensics_question *question, struct forensics *f)
{
	uint64_t deadline_ns = ns_add(clock_now_ns(), FLIGHT_FETCH_NS);
	f->count = question->count;
	f->cap = f->count + 1;
	f->answers = mem_alloc(f->cap * sizeof(*f->answers));
	for (size_t i = 0; i < f->count; i++) {
		struct flight_answer *answer = &f->answers[i];
		answer->rank = (uint32_t)question->workers[i].rank;
		snprintf(answer->host, sizeof(answer->host), "%s",
			 question->host ? question->host : "");
		answer->works = question->workers[i].works;
		answer->prints = question->workers[i].prints;
	}
	if (question->flight.dir)
		flight_fetch(&question->flight, f->answers, f->count,
			     MIN(deadline_ns, question->deadline_ns), question->cancel_fd);
}

static void read_stacks(const struct forensics_question *question, struct forensics *f)
{
	AUTO_FREE struct stacks_worker *alive =
		mem_alloc((question->count + 1) * sizeof(*question->workers));
	size_t count = 0;
	for (size_t i = 0; i < question->count; i++)
		if (question->workers[i].pid)
			alive[count++] = question->workers[i];
	stacks_read(alive, count, question->deadline_ns, question->cancel_fd, &f->stacks);
}

static void find_places(struct forensics *f)
{
	for (size_t i = 0; i < f->count; i++) {
		struct flight_answer *answer = &f->answers[i];
		AUTO(buf_done) struct buf place = BUF_INIT;
		const struct stack_process *stack = stack_set_find(&f->stacks, answer->rank);
		if (stack)
			finding_place(stack, &place);
		snprintf(answer->place, sizeof(answer->place), "%s", buf_str(&place));
		str_make_printable(answer->place);
	}
}

/* What the kernel knows of them. Of one that is stopped it also tells why it gives no record. */
static void find_states(const struct forensics_question *question, struct forensics *f)
{
	for (size_t i = 0; i < f->count; i++) {
		struct flight_answer *answer = &f->answers[i];
		pid_t pid = question->workers[i].pid;
		bool odd = false;
		if (pid)
			stack_kernel_state(pid, answer->state, sizeof(answer->state), &odd);
		if (odd && !answer->given && question->flight.dir)
			snprintf(answer->why, sizeof(answer->why), "it is %s", answer->state);
		answer->odd = odd;
	}
}

void forensics_begin(struct forensics *f)
{
	*f = (struct forensics){ .findings = FINDINGS_INIT,
				 .laggards = LAGGARDS_INIT,
				 .stacks = STACK_SET_INIT,
				 .missed = BUF_INIT };
}

void forensics_collect(const struct forensics_question *question, struct forensics *ret_forensics)
{
	struct forensics *f = ret_forensics;
	forensics_begin(f);
	/* Records first: what reads the stack of a worker holds it still. */
	fetch_records(question, f);
	find_states(question, f);
	read_stacks(question, f);
	find_places(f);
	if (question->flight.dir && question->world_size)
		forensics_judge(f, question->world_size, question->patience_ns);
}

static int by_rank(const void *a, const void *b)
{
	uint32_t x = ((const struct flight_answer *)a)->rank;
	uint32_t y = ((const struct flight_answer *)b)->rank;
	return (x > y) - (x < y);
}

void forensics_judge(struct forensics *f, size_t world_size, uint64_t patience_ns)
{
	join_init(&f->join, world_size);
	if (f->count)
		qsort(f->answers, f->count, sizeof(*f->answers), by_rank);
	for (size_t i = 0; i < f->count; i++) {
		const struct flight_answer *answer = &f->answers[i];
		f->many_hosts |= !str_eq(answer->host, f->answers[0].host);
		if (answer->given)
			join_add(&f->join, answer->rank, &answer->record, answer->fetched_ns);
		else
			join_add_silent(&f->join, answer->rank, answer->why);
	}
	join_judge(&f->join, patience_ns, &f->findings);
}

void forensics_done(struct forensics *f)
{
	findings_done(&f->findings);
	laggards_done(&f->laggards);
	join_done(&f->join);
	flight_answers_done(f->answers, f->count);
	free(f->answers);
	stack_set_done(&f->stacks);
	buf_done(&f->missed);
}

void forensics_find_laggards(struct forensics *f)
{
	static const struct wall_offset same = { .offset_ns = 0, .error_ns = 1 };
	for (size_t i = 0; i < f->count; i++)
		join_set_clock(&f->join, f->answers[i].rank,
			       f->many_hosts ? &f->answers[i].clock : &same);
	laggards_done(&f->laggards);
	arrivals_judge(&f->join, &f->laggards);
}

/* ---- between hosts ---- */

void forensics_write(const struct forensics *f, const struct wall_offset *clock, struct buf *out)
{
	struct json_out json = JSON_OUT(out);
	json_out_open(&json, NULL, '[');
	for (size_t i = 0; i < f->count; i++) {
		const struct flight_answer *answer = &f->answers[i];
		json_out_open(&json, NULL, '{');
		json_out_int(&json, "rank", answer->rank);
		json_out_text_if(&json, "place", answer->place);
		json_out_text_if(&json, "state", answer->state);
		if (answer->odd)
			json_out_bool(&json, "odd", true);
		if (answer->works)
			json_out_bool(&json, "works", true);
		if (answer->prints)
			json_out_bool(&json, "prints", true);
		if (answer->given) {
			json_out_int(&json, "fetched_ns", (int64_t)answer->fetched_ns);
			json_out_int(&json, "clock_ns", clock->offset_ns);
			json_out_int(&json, "clock_error_ns",
				     (int64_t)MIN(clock->error_ns, (uint64_t)INT64_MAX));
			flight_write(&json, "record", &answer->record);
		} else {
			json_out_text(&json, "why", answer->why);
		}
		json_out_close(&json, '}');
	}
	json_out_close(&json, ']');
}

static void copy_text(struct json_value value, char *text, size_t size)
{
	AUTO_FREE char *copy = json_value_text(value);
	snprintf(text, size, "%s", copy ? copy : "");
	str_make_printable(text);
}

/* As large as makes no sense: it is not known. */
static void read_clock(struct json_value item, struct wall_offset *ret_clock)
{
	int64_t error_ns = 0;
	json_value_int(json_value_get(item, "clock_ns"), &ret_clock->offset_ns);
	json_value_int(json_value_get(item, "clock_error_ns"), &error_ns);
	ret_clock->error_ns = error_ns > 0 && error_ns < (int64_t)NS_PER_S ? (uint64_t)error_ns : 0;
}

static int read_answer(struct forensics *f, const char *host, struct json_value item,
		       struct err *err)
{
	int64_t rank, fetched_ns = 0;
	struct json_value record = json_value_get(item, "record");
	if (!json_value_int(json_value_get(item, "rank"), &rank) || rank < 0 || rank > INT32_MAX)
		return err_set(err, EPROTO, "a record without a rank");
	ARRAY_RESERVE(f->answers, f->count, f->cap);
	struct flight_answer *answer = &f->answers[f->count++];
	*answer = (struct flight_answer){ .rank = (uint32_t)rank, .record = RECORD_INIT };
	snprintf(answer->host, sizeof(answer->host), "%s", host);
	copy_text(json_value_get(item, "place"), answer->place, sizeof(answer->place));
	copy_text(json_value_get(item, "why"), answer->why, sizeof(answer->why));
	copy_text(json_value_get(item, "state"), answer->state, sizeof(answer->state));
	answer->odd = json_value_is_true(json_value_get(item, "odd"));
	answer->prints = json_value_is_true(json_value_get(item, "prints"));
	answer->works = json_value_is_true(json_value_get(item, "works"));
	if (record.kind == JSON_NONE)
		return 0;
	json_value_int(json_value_get(item, "fetched_ns"), &fetched_ns);
	answer->fetched_ns = (uint64_t)MAX(fetched_ns, 0);
	read_clock(item, &answer->clock);
	answer->given = true;
	return flight_read_json(record.text, record.len, &answer->record, err);
}

int forensics_read(struct forensics *f, const char *host, const char *text, size_t len,
		   struct err *err)
{
	struct json_value all, item;
	struct json_in in;
	int r = 0;
	if (json_value_parse(text, len, &all) < 0 || all.kind != JSON_ARRAY)
		return err_set(err, EPROTO, "not a list of flight records");
	for (json_value_enter(all, &in); r == 0 && json_value_next(&in, &item);)
		r = read_answer(f, host, item, err);
	return r;
}

int forensics_read_dumps(struct forensics *f, const char *path, struct err *err)
{
	int r = flight_dumps_read(path, &f->answers, &f->count, err);
	f->cap = f->count;
	return r;
}

void forensics_miss(struct forensics *f, const char *host, const char *why)
{
	buf_printf(&f->missed, "no answer from %s: %s\n", host, why);
}

/* ---- as text ---- */

static const struct flight_answer *answer_of(const struct forensics *f, uint32_t rank)
{
	const struct flight_answer key = { .rank = rank };
	return f->count ? bsearch(&key, f->answers, f->count, sizeof(key), by_rank) : NULL;
}

static struct finding_spot where(void *arg, uint32_t rank)
{
	const struct forensics *f = arg;
	const struct flight_answer *answer = answer_of(f, rank);
	struct finding_spot spot = { .place = NULL };
	if (answer && answer->state[0])
		spot.state = answer->state;
	if (answer && answer->place[0])
		spot.place = answer->place;
	if (answer && answer->host[0] && f->many_hosts)
		spot.host = answer->host;
	return spot;
}

/* Nothing was found: because there is nothing, or because no worker gave its record. */
static void say_nothing_found(const struct forensics *f, struct buf *out)
{
	for (size_t i = 0; i < f->count; i++)
		if (f->answers[i].given) {
			buf_append_str(out, "no rank waits in a collective\n");
			return;
		}
	if (f->count && *f->answers[0].why) /* else there is no recorder */
		buf_printf(out, "no flight record: rank %u: %s\n", f->answers[0].rank,
			   f->answers[0].why);
}

void forensics_collectives(const struct forensics *f, struct buf *out)
{
	if (f->answers && f->findings.count == 0)
		say_nothing_found(f, out);
	else
		findings_text(&f->findings, &f->join, where, (void *)f, out);
	buf_append(out, buf_data(&f->missed), buf_len(&f->missed));
}

void forensics_laggards(const struct forensics *f, struct buf *out)
{
	for (size_t i = 0; i < f->laggards.count; i++)
		laggard_text(&f->laggards.items[i], where, (void *)f, out);
}

/* Whether all of them are on one host, as far as their hosts are known. */
static bool on_one_host(const struct forensics *f, const struct rank_list *ranks)
{
	const struct flight_answer *first = answer_of(f, ranks->items[0]);
	for (size_t i = 1; first && i < ranks->count; i++) {
		const struct flight_answer *answer = answer_of(f, ranks->items[i]);
		if (!answer || !str_eq(answer->host, first->host))
			return false;
	}
	return first;
}

void forensics_blame(const struct forensics *f, bool exclude, struct blame *ret_blame)
{
	*ret_blame = (struct blame){ .named = false };
	if (f->findings.count == 0)
		return;
	const struct finding *finding = &f->findings.items[0];
	AUTO(buf_done) struct buf text = BUF_INIT;
	finding_text(finding, &f->join, where, (void *)f, &text);
	snprintf(ret_blame->text, sizeof(ret_blame->text), "%s", buf_str(&text));
	str_make_printable(ret_blame->text);
	if (finding->culprits.count == 0)
		return;
	ret_blame->named = true;
	ret_blame->rank = finding->culprits.items[0];
	ret_blame->exclude =
		exclude && finding->kind == FINDING_WAITS && on_one_host(f, &finding->culprits);
}

bool forensics_cannot_end(const struct forensics *f, bool long_since)
{
	const struct finding *finding = f->findings.count ? &f->findings.items[0] : NULL;
	if (!finding || finding->early || finding->came.count == 0)
		return false;
	if (finding->kind == FINDING_DIFFERS || finding->cycle)
		return true;
	for (size_t i = 0; i < finding->culprits.count; i++) {
		const struct flight_answer *answer = answer_of(f, finding->culprits.items[i]);
		if (answer && (answer->prints || (answer->works && !long_since)))
			return false;
	}
	return finding->culprits.count > 0;
}

/* ---- without records ---- */

/* Where it stands, or what it does. */
static const char *spot_of(const struct flight_answer *answer)
{
	return *answer->place ? answer->place : answer->state;
}

static size_t count_alike(const struct forensics *f, const struct flight_answer *like)
{
	size_t count = 0;
	for (size_t i = 0; i < f->count; i++)
		count += str_eq(spot_of(&f->answers[i]), spot_of(like));
	return count;
}

/* One that is stopped or the like; else one that is elsewhere while all others are in one place. */
static const struct flight_answer *find_suspect(const struct forensics *f, bool *ret_apart)
{
	*ret_apart = false;
	for (size_t i = 0; i < f->count; i++)
		if (f->answers[i].odd)
			return &f->answers[i];
	*ret_apart = true;
	for (size_t i = 0; f->count > 2 && i < f->count; i++)
		if (!f->answers[i].prints && *spot_of(&f->answers[i]) &&
		    count_alike(f, &f->answers[i]) == 1 &&
		    count_alike(f, &f->answers[i ? 0 : 1]) == f->count - 1)
			return &f->answers[i];
	return NULL;
}

void forensics_suspect(const struct forensics *f, struct blame *ret_blame)
{
	bool apart;
	const struct flight_answer *suspect = find_suspect(f, &apart);
	AUTO(buf_done) struct buf text = BUF_INIT;
	*ret_blame = (struct blame){ .named = false };
	if (!suspect)
		return;
	buf_printf(&text, "rank %u", suspect->rank);
	if (f->many_hosts && *suspect->host)
		buf_printf(&text, " on %s", suspect->host);
	if (*suspect->place)
		buf_printf(&text, " is at %s%s%s%s", suspect->place, *suspect->state ? " (" : "",
			   suspect->state, *suspect->state ? ")" : "");
	else
		buf_printf(&text, " is %s", suspect->state);
	if (apart)
		buf_printf(&text, ", the others: %s",
			   spot_of(&f->answers[suspect == &f->answers[0]]));
	ret_blame->named = true;
	ret_blame->rank = suspect->rank;
	snprintf(ret_blame->text, sizeof(ret_blame->text), "%s", buf_str(&text));
	str_make_printable(ret_blame->text);
}
