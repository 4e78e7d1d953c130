#include "run/dash/dash_answer.h"

#include <stdlib.h>

#include "core/collectives/join.h"
#include "proto/json_value.h"
#include "proto/stacks/stack_json.h"
#include "run/forensics.h"

static void put_stacks(struct json_out *out, struct host_answers *answers)
{
	AUTO(stack_set_done) struct stack_set set = STACK_SET_INIT;
	AUTO(buf_done) struct buf text = BUF_INIT, folded = BUF_INIT;
	for (size_t i = 0; i < answers->count; i++) {
		struct host_answer *answer = &answers->items[i];
		if (!answer->failed && buf_len(&answer->text))
			stack_json_read(buf_str(&answer->text), buf_len(&answer->text),
					answers->count > 1 ? answer->name : NULL, &set, NULL);
	}
	stack_set_print(&set, &text);
	stack_set_folded(&set, &folded);
	json_out_text(out, "text", buf_str(&text));
	json_out_text(out, "folded", buf_str(&folded));
}

static void put_collectives(struct json_out *out, struct host_answers *answers, size_t world_size)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct forensics forensics;
	forensics_begin(&forensics);
	for (size_t i = 0; i < answers->count; i++) {
		struct host_answer *answer = &answers->items[i];
		if (!answer->failed)
			forensics_read(&forensics, answer->name, buf_str(&answer->text),
				       buf_len(&answer->text), NULL);
	}
	forensics_judge(&forensics, world_size, JOIN_PATIENCE_NS);
	forensics_collectives(&forensics, &text);
	forensics_done(&forensics);
	json_out_text(out, "text", buf_str(&text));
}

static bool is_wanted(const struct wish *wish, struct json_value worker)
{
	int64_t rank;
	if (!json_value_int(json_value_get(worker, "rank"), &rank))
		return false;
	for (size_t i = 0; i < wish->rank_count; i++)
		if (wish->ranks[i] == rank)
			return true;
	return false;
}

/* The states of these workers as their hosts tell them. */
static void put_workers(struct json_out *out, const struct wish *wish, struct host_answers *answers)
{
	json_out_open(out, "workers", '[');
	for (size_t i = 0; i < answers->count; i++) {
		struct host_answer *answer = &answers->items[i];
		struct json_value state, worker;
		struct json_in in;
		if (answer->failed ||
		    json_value_parse(buf_str(&answer->text), buf_len(&answer->text), &state) < 0)
			continue;
		json_value_enter(json_value_get(state, "workers"), &in);
		while (json_value_next(&in, &worker)) {
			if (!is_wanted(wish, worker))
				continue;
			json_out_open(out, NULL, '{');
			json_out_text(out, "host", answer->name);
			json_out_value(out, "state", worker);
			json_out_close(out, '}');
		}
	}
	json_out_close(out, ']');
}

static void put_failed(struct json_out *out, struct host_answers *answers)
{
	json_out_open(out, "failed", '[');
	for (size_t i = 0; i < answers->count; i++) {
		struct host_answer *answer = &answers->items[i];
		if (!answer->failed)
			continue;
		json_out_open(out, NULL, '[');
		json_out_text(out, NULL, answer->name);
		json_out_text(out, NULL, buf_str(&answer->text));
		json_out_close(out, ']');
	}
	json_out_close(out, ']');
}

void dash_answer_put(const struct wish *wish, struct host_answers *answers, size_t world_size,
		     struct buf *text)
{
	struct json_out json = JSON_OUT(text, .ascii = true), *out = &json;
	json_out_open(out, NULL, '{');
	json_out_text(out, "to", wish_name(wish->kind));
	json_out_int(out, "hosts", (int64_t)answers->count);
	put_failed(out, answers);
	if (wish->kind == WISH_STACKS)
		put_stacks(out, answers);
	else if (wish->kind == WISH_COLLECTIVES)
		put_collectives(out, answers, world_size);
	else if (wish->kind == WISH_WORKERS)
		put_workers(out, wish, answers);
	json_out_close(out, '}');
}
