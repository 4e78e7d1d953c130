#include "run/dash/dash.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "core/collectives/join.h"
#include "proto/dash/log_feed.h"
#include "proto/dash/wish.h"
#include "proto/json_value.h"
#include "proto/stacks/stack_json.h"
#include "run/ask/host_answers.h"
#include "run/ask/own_question.h"
#include "run/forensics.h"

/* What all hosts answered to the wish of a page, as the page gets it: JSON. */

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

static void dash_answer_put(const struct wish *wish, struct host_answers *answers,
			    size_t world_size, struct buf *text)
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

#define STATE_TIMEOUT_NS (5 * NS_PER_S)
#define WISH_TIMEOUT_NS (10 * NS_PER_S)
#define LOG_PERIOD_NS (250 * NS_PER_MS)
#define LOG_FOLD_NS (800 * NS_PER_MS)	   /* lines wait this much longer for equal ones */
#define LOG_INTAKE_MAX ((size_t)256 << 10) /* bytes of logs that are taken in such a period */

enum dash_question {
	DASH_STATES,
	DASH_WISHES,
	DASH_LOGS,
	DASH_QUESTION_COUNT,
};

struct dash {
	struct event_base *base;
	struct http_server *server;
	struct dash_hooks hooks;
	struct routes *routes;
	struct own_question *questions[DASH_QUESTION_COUNT]; /* NULL: not needed yet */

	struct board *board; /* NULL: nobody has looked yet */
	struct http_feed pages;
	struct event *tick;
	bool asking; /* for states */

	struct wish wish; /* under way */
	bool wishing;

	struct log_feed *feed; /* NULL: nobody looks at the log */
	struct event *log_tick;
	size_t intake; /* bytes since the last tick */
};

static struct own_question *question_of(struct dash *dash, enum dash_question which)
{
	const struct own_question_hooks hooks = { dash->hooks.on_event, dash->hooks.arg };
	if (!dash->questions[which])
		dash->questions[which] = own_question_new(dash->base, dash->routes, &hooks);
	return dash->questions[which];
}

/* ---- pages ---- */

static bool any_viewer(const struct dash *dash, bool log)
{
	struct http_stream *it = http_streams_first(dash->server);
	for (; it; it = http_streams_next(dash->server, it))
		if (log ? it->kind == HTTP_VIEWER_OTHER : http_stream_is_viewer(it))
			return true;
	return false;
}

static void put_all(void *arg, struct buf *out)
{
	struct dash *dash = arg;
	board_put_all(dash->board, out);
}

static bool put_changes(void *arg, struct buf *out)
{
	struct dash *dash = arg;
	return board_put_changes(dash->board, out);
}

/* ---- states ---- */

static void take_parts(struct dash *dash)
{
	for (int i = 0; i < BOARD_PART_COUNT; i++) {
		AUTO(buf_done) struct buf part = BUF_INIT;
		dash->hooks.put_part(dash->hooks.arg, (enum board_part)i, &part);
		board_set_part(dash->board, (enum board_part)i, &part);
	}
}

static void on_states(void *arg, struct host_answers *answers)
{
	struct dash *dash = arg;
	uint64_t began_ns = clock_now_ns();
	dash->asking = false;
	board_begin(dash->board, dash->hooks.world_size(dash->hooks.arg), began_ns,
		    clock_wall_ns() / NS_PER_MS);
	for (size_t i = 0; i < answers->count; i++) {
		struct host_answer *answer = &answers->items[i];
		board_take(dash->board, answer->name, answer->group_rank, answer->failed,
			   bytes_of(buf_data(&answer->text), buf_len(&answer->text)));
	}
	board_end(dash->board);
	take_parts(dash);
	const struct timeval pause = clock_timeval(http_feed_tell(&dash->pages, began_ns));
	event_add(dash->tick, &pause);
}

static void on_tick(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct dash *dash = arg;
	const struct inquiry ask = { .kind = ASK_STATE, .timeout_ns = STATE_TIMEOUT_NS };
	if (!any_viewer(dash, false))
		return;
	dash->asking = true;
	own_question_ask(question_of(dash, DASH_STATES), &ask, on_states, dash);
}

void dash_open(struct dash *dash, struct http_stream *stream)
{
	if (!dash->board)
		dash->board = board_new();
	if (dash->board->host_count)
		http_feed_tell_all(&dash->pages, stream);
	if (!dash->asking && !event_pending(dash->tick, EV_TIMEOUT, NULL))
		event_active(dash->tick, EV_TIMEOUT, 0);
}

/* ---- logs ---- */

static void on_piece(void *arg, const struct msg_reply *reply)
{
	struct dash *dash = arg;
	if (reply->failed)
		return;
	log_feed_take(dash->feed, reply->slot, reply->piece, reply->last, clock_now_ns());
	dash->intake += reply->piece.len;
	if (dash->intake > LOG_INTAKE_MAX)
		own_question_hold(dash->questions[DASH_LOGS], true);
}

static void follow_logs(struct dash *dash);

/* The question lives no longer than an hour, and ends with the coordinator. */
static void on_logs_over(void *arg, struct host_answers *answers UNUSED)
{
	struct dash *dash = arg;
	if (any_viewer(dash, true))
		follow_logs(dash);
}

static void follow_logs(struct dash *dash)
{
	const struct inquiry ask = { .kind = ASK_FOLLOW,
				     .timeout_ns = ASK_TIMEOUT_MAX_NS,
				     .args = bytes_str(ASK_LOGS_TAIL) };
	own_question_follow(question_of(dash, DASH_LOGS), &ask, on_piece, on_logs_over, dash);
}

static void end_logs(struct dash *dash)
{
	if (dash->questions[DASH_LOGS])
		own_question_cancel(dash->questions[DASH_LOGS]);
	event_del(dash->log_tick);
	log_feed_free(dash->feed);
	dash->feed = NULL;
}

static void send_lines(struct dash *dash, struct http_stream *stream, size_t max)
{
	AUTO(buf_done) struct buf lines = BUF_INIT;
	if (log_feed_put(dash->feed, &stream->at, max, &lines))
		http_stream_send(stream, "log", &lines);
}

static void on_log_tick(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct dash *dash = arg;
	if (!any_viewer(dash, true)) {
		end_logs(dash);
		return;
	}
	dash->intake = 0;
	own_question_hold(dash->questions[DASH_LOGS], false);
	log_feed_collect(dash->feed, clock_now_ns() - LOG_FOLD_NS, clock_wall_ns() / NS_PER_MS);
	struct http_stream *it = http_streams_first(dash->server);
	for (; it; it = http_streams_next(dash->server, it))
		if (it->kind == HTTP_VIEWER_OTHER && !http_stream_is_behind(it))
			send_lines(dash, it, DASH_LOG_BYTES);
}

void dash_open_log(struct dash *dash, struct http_stream *stream)
{
	const struct timeval period = clock_timeval(LOG_PERIOD_NS);
	stream->kind = HTTP_VIEWER_OTHER;
	if (dash->feed) {
		send_lines(dash, stream, SIZE_MAX);
		return;
	}
	dash->feed = log_feed_new();
	dash->intake = 0;
	event_add(dash->log_tick, &period);
	follow_logs(dash);
}

/* ---- wishes ---- */

static void on_wish_done(void *arg, struct host_answers *answers)
{
	struct dash *dash = arg;
	AUTO(buf_done) struct buf answer = BUF_INIT;
	dash->wishing = false;
	dash_answer_put(&dash->wish, answers, dash->hooks.world_size(dash->hooks.arg), &answer);
	struct http_stream *it = http_streams_first(dash->server);
	for (; it; it = http_streams_next(dash->server, it))
		if (http_stream_is_viewer(it) && !http_stream_is_behind(it))
			http_stream_send(it, "answer", &answer);
}

void dash_wish(struct dash *dash, struct http_reply *reply)
{
	static const enum ask_kind kinds[] = {
		[WISH_STACKS] = ASK_STACKS,   [WISH_COLLECTIVES] = ASK_COLLECTIVES,
		[WISH_WORKERS] = ASK_STATE,   [WISH_STOP] = ASK_STOP,
		[WISH_RESTART] = ASK_RESTART, [WISH_CHECKPOINT] = ASK_SAVE,
	};
	static_assert(ARRAY_LEN(kinds) == WISH_KIND_COUNT, "every wish is a question");
	struct err err = ERR_INIT;
	struct wish wish;
	if (wish_parse(reply->sent, &wish, &err) < 0) {
		reply->code = 400;
		buf_printf(&reply->body, "%s\n", err.msg);
	} else if (dash->wishing) {
		reply->code = 409;
		buf_append_str(&reply->body, "the hosts are still answering the last question\n");
	} else {
		struct inquiry ask = { .kind = kinds[wish.kind], .timeout_ns = WISH_TIMEOUT_NS };
		if (wish.kind == WISH_WORKERS)
			ask.args = bytes_str(ASK_STATE_DETAIL);
		ask.rank_count = wish.rank_count;
		static_assert(WISH_RANKS_MAX <= ASK_RANKS_MAX, "they fit into a question");
		memcpy(ask.ranks, wish.ranks, wish.rank_count * sizeof(*wish.ranks));
		dash->wish = wish;
		dash->wishing = true;
		own_question_ask(question_of(dash, DASH_WISHES), &ask, on_wish_done, dash);
		reply->code = 202;
		buf_append_str(&reply->body, "the answer follows on the stream\n");
	}
}

/* ---- beginning and end ---- */

void dash_finish(struct dash *dash)
{
	if (!dash->board)
		return;
	event_del(dash->tick);
	for (int i = 0; i < DASH_QUESTION_COUNT; i++)
		if (dash->questions[i])
			own_question_cancel(dash->questions[i]);
	dash->asking = true; /* no more */
	dash->hooks.finish(dash->hooks.arg, dash->board);
	take_parts(dash);
	http_feed_tell(&dash->pages, clock_now_ns());
	if (dash->feed) {
		log_feed_end(dash->feed, 0);
		log_feed_collect(dash->feed, NS_NEVER, clock_wall_ns() / NS_PER_MS);
	}
	struct http_stream *it = http_streams_first(dash->server);
	for (; dash->feed && it; it = http_streams_next(dash->server, it))
		if (it->kind == HTTP_VIEWER_OTHER)
			send_lines(dash, it, SIZE_MAX);
}

void dash_complete(struct dash *dash)
{
	if (!dash->board)
		return;
	take_parts(dash);
	http_feed_tell(&dash->pages, clock_now_ns());
}

struct dash *dash_new(struct event_base *base, struct http_server *server, struct routes *routes,
		      const struct dash_hooks *hooks)
{
	struct dash *dash = NEW(struct dash);
	*dash = (struct dash){ .base = base,
			       .server = server,
			       .pages = { server, "board", put_all, put_changes, dash },
			       .routes = routes,
			       .hooks = *hooks };
	dash->tick = evtimer_new(base, on_tick, dash);
	dash->log_tick = event_new(base, -1, EV_PERSIST, on_log_tick, dash);
	return dash;
}

void dash_free(struct dash *dash)
{
	if (!dash)
		return;
	for (int i = 0; i < DASH_QUESTION_COUNT; i++)
		own_question_free(dash->questions[i]);
	event_free(dash->tick);
	event_free(dash->log_tick);
	board_free(dash->board);
	log_feed_free(dash->feed);
	free(dash);
}
