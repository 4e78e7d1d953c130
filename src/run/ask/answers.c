#include "run/ask/answers.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/unix_socket.h"
#include "nodes/callers.h"
#include "proto/stacks/stack_json.h"
#include "run/ask/answer_logs.h"
#include "run/explanation.h"
#include "run/joblog/log_sender.h"

#define STACKS_MARGIN_NS (NS_PER_S / 2) /* before the deadline, for the answer to arrive */

struct answer {
	struct answers *answers;
	struct list link;
	uint32_t question;
	uint16_t slot;
	struct inquiry ask; /* without arguments */
	bool silent;	    /* no answer is wanted */
	bool own;	    /* this host asks: it knows of itself */
	bool of_muster; /* one that looks who is to blame for a hang: states without records, too */
	bool detail, tail; /* as its arguments say */
	bool dropped;	   /* nor any more of it */
	struct buf text;
	size_t sent;
	bool complete;		  /* the text is all there is */
	bool failed;		  /* it says why there is no answer */
	struct diagnosis *stacks; /* under way */
	struct answer_logs *logs; /* NULL: it is not about logs */
	bool job_log;		  /* of what the sender has */
	bool begun;		  /* a piece has been sent */
};

struct answers {
	struct event_base *base;
	const struct node *node;
	const struct pages *pages;
	struct answers_hooks hooks;
	struct list open;
	struct event *soon;
	struct callers *callers; /* commands on this host; NULL: they cannot ask */
	struct link_self self;	 /* to them */
};

static void end_answer(struct answer *answer)
{
	if (answer->job_log)
		log_sender_end(answer->answers->pages->log_sender);
	diagnosis_cancel(answer->stacks);
	answer_logs_free(answer->logs);
	list_unlink(&answer->link);
	buf_done(&answer->text);
	free(answer);
}

static struct answer *find(struct answers *answers, uint32_t question, uint16_t slot)
{
	list_foreach(it, &answers->open)
	{
		struct answer *answer = list_entry(it, struct answer, link);
		if (answer->question == question && answer->slot == slot && !answer->dropped)
			return answer;
	}
	return NULL;
}

/* ---- what is asked for ---- */

static void on_stacks(void *arg, struct forensics *found)
{
	struct answer *answer = arg;
	answer->stacks = NULL;
	answer->complete = true;
	struct json_out out = JSON_OUT(&answer->text);
	stack_json_write(&out, &found->stacks);
	event_active(answer->answers->soon, EV_TIMEOUT, 0);
}

static void on_collectives(void *arg, struct forensics *found)
{
	struct answer *answer = arg;
	answer->stacks = NULL;
	answer->complete = true;
	struct wall_offset clock = agent_wall_offset(answer->answers->pages->agent, clock_now_ns());
	forensics_write(found, &clock, &answer->text);
	event_active(answer->answers->soon, EV_TIMEOUT, 0);
}

static void fill_in(struct answer *answer, const char *text)
{
	buf_append_str(&answer->text, text);
	answer->complete = true;
}

static void fail(struct answer *answer, const char *why)
{
	buf_append_str(&answer->text, why);
	answer->complete = answer->failed = true;
}

static void tell_state(struct answer *answer)
{
	pages_put_state(answer->answers->pages, answer->detail ? &answer->ask : NULL,
			&answer->text);
	answer->complete = true;
}

/* Has a thread look at the workers that are asked about. */
static void look(struct answer *answer, const struct flight_source *flight, diagnosis_fn *on_done)
{
	const struct pages *pages = answer->answers->pages;
	const struct group *group = pages->group;
	AUTO_FREE struct stacks_worker *workers = mem_alloc((group->count + 1) * sizeof(*workers));
	size_t count = 0;
	for (size_t i = 0; i < group->count; i++) {
		size_t rank = pages->workers->round.rank_base + i;
		if (group->workers[i].state == WORKER_RUNNING && inquiry_means(&answer->ask, rank))
			workers[count++] =
				(struct stacks_worker){ .rank = rank,
							.pid = pages->workers->pids[i],
							.works = guard_works(pages->guard, i),
							.prints = guard_prints(pages->guard, i) };
	}
	struct forensics_question question = { .flight = *flight,
					       .workers = workers,
					       .count = count };
	uint64_t left_ns = answer->ask.timeout_ns;
	left_ns -= MIN(left_ns / 2, STACKS_MARGIN_NS);
	if (count == 0)
		answer->complete = true;
	else if (diagnosis_start(answer->answers->base, &question, left_ns, NULL, on_done, answer,
				 &answer->stacks) < 0)
		fail(answer, "no thread can be started to read the stacks");
}

static void tell_stacks(struct answer *answer)
{
	look(answer, &(struct flight_source){ .dir = NULL }, on_stacks);
}

static void tell_collectives(struct answer *answer)
{
	struct flight_source flight = guard_flight(answer->answers->pages->guard);
	if (answer->own)
		fill_in(answer, "[]");
	else if (flight.dir || answer->of_muster)
		look(answer, &flight, on_collectives);
	else
		fail(answer, "it runs without --flight-recorder");
}

static void on_more(void *arg)
{
	const struct answers *answers = arg;
	event_active(answers->soon, EV_TIMEOUT, 0);
}

static void tell_logs(struct answer *answer)
{
	struct answers *answers = answer->answers;
	answer->logs = answer_logs_new(answers->base, answers->pages, &answer->ask, answer->tail,
				       on_more, answers);
	if (!answer->logs)
		fail(answer, "it keeps nothing of what its workers print; --redirects and --tee "
			     "of muster run do");
}

/* It ends with the question. One that was asked before is over. */
static void tell_job_log(struct answer *answer)
{
	struct answers *answers = answer->answers;
	const struct pages *pages = answers->pages;
	if (!pages->log_sender) {
		fail(answer, "it runs without --job-log");
		return;
	}
	list_foreach(it, &answers->open)
	{
		struct answer *other = list_entry(it, struct answer, link);
		other->dropped |= other->job_log;
		other->job_log = false;
	}
	answer->job_log = true;
	log_sender_begin(pages->log_sender, pages->workers->round.group_world_size, on_more,
			 answers);
}

static void do_stop(struct answer *answer)
{
	answer->complete = true;
}

static void do_restart(struct answer *answer)
{
	const struct answers_hooks *hooks = &answer->answers->hooks;
	if (hooks->on_restart(hooks->arg))
		answer->complete = true;
	else
		fail(answer, "no group is running just now");
}

static void do_notice(struct answer *answer)
{
	const struct answers_hooks *hooks = &answer->answers->hooks;
	enum plan_kind kind = answer->ask.kind == ASK_SAVE ? PLAN_SAVE : PLAN_LEAVE;
	if (hooks->on_notice(hooks->arg, kind))
		answer->complete = true;
	else
		fail(answer, PAGES_NO_NOTICE);
}

static void begin(struct answer *answer)
{
	static void (*const kinds[])(struct answer * answer) = {
		[ASK_STATE] = tell_state,
		[ASK_LOGS] = tell_logs,
		[ASK_FOLLOW] = tell_logs,
		[ASK_STACKS] = tell_stacks,
		[ASK_STOP] = do_stop,
		[ASK_RESTART] = do_restart,
		[ASK_COLLECTIVES] = tell_collectives,
		[ASK_LEAVE] = do_notice,
		[ASK_SAVE] = do_notice,
		[ASK_JOB_LOG] = tell_job_log,
	};
	static_assert(ARRAY_LEN(kinds) == ASK_KIND_COUNT, "every kind is answered");
	kinds[answer->ask.kind](answer);
}

/* ---- pieces ---- */

/* Gets as much of the logs as may be sent now. */
static void refill(struct answer *answer, uint32_t room)
{
	if (answer->complete || answer->sent < buf_len(&answer->text) ||
	    !(answer->logs || (answer->job_log && room)))
		return;
	buf_clear(&answer->text);
	answer->sent = 0;
	if (answer->job_log) {
		log_sender_take(answer->answers->pages->log_sender, room * (size_t)ASK_PIECE_MAX,
				&answer->text);
		return;
	}
	answer->complete =
		answer_logs_take(answer->logs, room * (size_t)ASK_PIECE_MAX, &answer->text);
}

/* Sends as much as there is room for; true when the answer is over. The first piece may be empty:
 * it tells the coordinator that the answer is being made. */
static bool send_pieces(struct answer *answer)
{
	const struct answers *answers = answer->answers;
	for (;;) {
		uint32_t room = node_room(answers->node, answer->question, answer->slot);
		refill(answer, room);
		size_t left = buf_len(&answer->text) - answer->sent;
		size_t len = MIN(left, (size_t)ASK_PIECE_MAX);
		bool last = answer->complete && len == left;
		if ((len == 0 && !last && answer->begun) || room == 0)
			return false;
		answer->begun = true;
		struct msg msg = { .type = MSG_ANSWER };
		msg.answer = (struct msg_answer){
			.question = answer->question,
			.slot = answer->slot,
			.last = last,
			.failed = last && answer->failed,
			.piece = bytes_of(buf_data(&answer->text) + answer->sent, len),
		};
		answer->sent += len;
		answers->hooks.on_event(answers->hooks.arg,
					&(struct node_event){ .type = NODE_EV_PIECE, .msg = &msg });
		if (last)
			return true;
	}
}

/* The stop comes after its answer. */
static void finish(struct answer *answer)
{
	const struct answers_hooks *hooks = &answer->answers->hooks;
	bool stops = answer->ask.kind == ASK_STOP;
	end_answer(answer);
	if (stops)
		hooks->on_stop(hooks->arg);
}

static void on_soon(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct answers *answers = arg;
	bool log = false;
	list_foreach(it, &answers->open)
	{
		struct answer *answer = list_entry(it, struct answer, link);
		if (!answer->dropped && !answer->complete && !answer->stacks && !answer->logs &&
		    !answer->job_log)
			begin(answer);
		if (answer->dropped)
			end_answer(answer);
		else if (answer->silent ? answer->complete : send_pieces(answer))
			finish(answer);
		else
			log |= answer->job_log;
	}
	if (log)
		answers->hooks.on_log_sent(answers->hooks.arg);
}

void answers_take(struct answers *answers, const struct msg *msg)
{
	struct answer *answer;
	if (msg->type == MSG_GRANT) {
		answer = find(answers, msg->grant.question, msg->grant.slot);
		if (answer && msg->grant.pieces == 0)
			answer->dropped = true;
	} else {
		answer = NEW(struct answer);
		answer->answers = answers;
		answer->question = msg->question.question;
		answer->slot = msg->question.slot;
		answer->silent = msg->question.pieces == 0;
		answer->ask = msg->question.ask;
		answer->own = explanation_is_own(&answer->ask, &answers->node->agent.config.node);
		answer->detail = bytes_eq(answer->ask.args, bytes_str(ASK_STATE_DETAIL));
		answer->tail = bytes_eq(answer->ask.args, bytes_str(ASK_LOGS_TAIL));
		answer->of_muster = answer->ask.args.len == sizeof(struct agent_id);
		answer->ask.args = bytes_of(NULL, 0);
		answer->text = BUF_INIT;
		list_append(&answers->open, &answer->link);
	}
	event_active(answers->soon, EV_TIMEOUT, 0);
}

void answers_round_ends(struct answers *answers)
{
	list_foreach(it, &answers->open)
	{
		struct answer *answer = list_entry(it, struct answer, link);
		if (answer->logs)
			answer_logs_round_ends(answer->logs);
	}
}

void answers_round_begins(struct answers *answers)
{
	list_foreach(it, &answers->open)
	{
		struct answer *answer = list_entry(it, struct answer, link);
		if (answer->logs)
			answer_logs_round_begins(answer->logs);
	}
}

bool answers_log_is_taken(const struct answers *answers)
{
	list_foreach(it, &answers->open)
	{
		const struct answer *answer = list_entry(it, struct answer, link);
		if (answer->job_log && !answer->dropped)
			return answer->begun && answer->sent == buf_len(&answer->text) &&
			       node_room(answers->node, answer->question, answer->slot) ==
				       questions_window(ASK_JOB_LOG).pieces;
	}
	return false;
}

/* ---- life ---- */

struct answers *answers_new(struct event_base *base, const struct node *node,
			    const struct pages *pages, const struct answers_hooks *hooks)
{
	struct answers *answers = NEW(struct answers);
	*answers = (struct answers){ .base = base, .node = node, .pages = pages, .hooks = *hooks };
	list_init(&answers->open);
	answers->soon = evtimer_new(base, on_soon, answers);
	return answers;
}

static void standing(void *arg, struct frame_standing *ret_standing)
{
	const struct answers *answers = arg;
	callers_node_standing(answers->node, ret_standing);
}

static void on_caller_event(void *arg, const struct node_event *event)
{
	const struct answers *answers = arg;
	answers->hooks.on_event(answers->hooks.arg, event);
}

static void on_turned_away(void *arg UNUSED, const char *name UNUSED, const char *why)
{
	log_info("rejected a command on this host: %s", why);
}

int answers_listen(struct answers *answers, const char *path, const char *run_id,
		   struct routes *routes, struct err *err)
{
	static const struct callers_handler handler = {
		.standing = standing,
		.on_event = on_caller_event,
		.on_turned_away = on_turned_away,
	};
	int fd = unix_listen(path, SOCK_STREAM, err);
	if (fd < 0)
		return fd;
	answers->self = (struct link_self){ .run_id = run_id };
	answers->callers = callers_new(answers->base, CALLERS_HERE, fd, &answers->self, routes,
				       &handler, answers);
	return 0;
}

void answers_free(struct answers *answers)
{
	if (!answers)
		return;
	callers_free(answers->callers);
	list_foreach(it, &answers->open) end_answer(list_entry(it, struct answer, link));
	event_free(answers->soon);
	free(answers);
}
