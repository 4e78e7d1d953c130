#include "run/ask/own_question.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"

#define AGAIN_NS (NS_PER_S / 2)
#define GRACE_NS NS_PER_S /* for the coordinator's own end of the question to arrive */

struct own_question {
	struct own_question_hooks hooks;
	struct routes *routes;
	struct route route;
	struct event *timer; /* ask again, or the time is over */
	struct event *soon;  /* send what is below, not from a step of the node */
	bool unsent;	     /* the question */
	struct msg_taken *taken;
	size_t taken_count, taken_cap;
	uint32_t last_id;
	bool open;  /* asked, and neither ended nor cancelled */
	bool again; /* the coordinator does not know of it: ask again when the timer runs */
	uint64_t deadline_ns;
	struct inquiry ask;
	struct host_answers answers;
	own_question_fn *on_done;
	own_question_piece_fn *on_piece; /* NULL: answers are put together */
	bool hold;
	void *arg;
};

static void send_msg(struct own_question *q, const struct msg *msg)
{
	q->hooks.on_event(q->hooks.arg, &(struct node_event){ .type = NODE_EV_MSG,
							      .link = q->route.id,
							      .msg = msg });
}

static void wait_until(struct own_question *q, uint64_t ns)
{
	struct timeval left = clock_left(ns, clock_now_ns());
	event_add(q->timer, &left);
}

static void send_ask(struct own_question *q)
{
	struct msg msg = { .type = MSG_ASK };
	uint64_t now_ns = clock_now_ns();
	msg.ask.id = q->last_id;
	msg.ask.ask = q->ask;
	msg.ask.ask.timeout_ns = q->deadline_ns - MIN(now_ns, q->deadline_ns);
	q->unsent = false;
	send_msg(q, &msg);
}

/* What is sent may be answered at once, and that be taken. */
static void on_soon(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct own_question *q = arg;
	for (size_t i = 0; i < q->taken_count; i++)
		send_msg(q, &(struct msg){ .type = MSG_TAKEN, .taken = q->taken[i] });
	q->taken_count = 0;
	if (q->unsent)
		send_ask(q);
}

static void ask_soon(struct own_question *q)
{
	q->last_id++;
	q->again = false;
	q->unsent = true;
	wait_until(q, ns_add(q->deadline_ns, GRACE_NS));
	event_active(q->soon, EV_TIMEOUT, 0);
}

static void tell_taken(struct own_question *q, uint16_t slot, uint8_t pieces)
{
	ARRAY_RESERVE(q->taken, q->taken_count, q->taken_cap);
	q->taken[q->taken_count++] = (struct msg_taken){ q->last_id, slot, pieces };
	if (!q->hold || pieces == 0)
		event_active(q->soon, EV_TIMEOUT, 0);
}

static void finish(struct own_question *q)
{
	AUTO(host_answers_done) struct host_answers answers = q->answers;
	q->answers = HOST_ANSWERS_INIT;
	q->open = false;
	host_answers_sort(&answers);
	q->on_done(q->arg, &answers);
}

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct own_question *q = arg;
	if (!q->open)
		return;
	if (q->again && clock_now_ns() < q->deadline_ns)
		ask_soon(q);
	else
		finish(q);
}

static void take_ended(struct own_question *q, const struct msg_ended *ended)
{
	uint64_t now_ns = clock_now_ns();
	bool whole = ended->why == ASK_ENDED_ALL || ended->why == ASK_ENDED_LATE;
	bool hopeless = ended->why == ASK_ENDED_OLD || ended->why == ASK_ENDED_NO_ONE;
	q->again = !whole && !hopeless;
	if (q->again)
		host_answers_done(&q->answers);
	/* The end is told from the loop, like all else: this is a step of the node. */
	wait_until(q, q->again ? MIN(ns_add(now_ns, AGAIN_NS), q->deadline_ns) : now_ns);
}

/* REPLY, MISSED or ENDED. */
static void take(void *arg, const struct msg *msg)
{
	struct own_question *q = arg;
	if (!q->open)
		return;
	if (msg->type == MSG_REPLY && msg->reply.id == q->last_id) {
		if (q->on_piece)
			q->on_piece(q->arg, &msg->reply);
		else
			host_answers_take(&q->answers, &msg->reply);
		tell_taken(q, msg->reply.slot, 1);
	} else if (msg->type == MSG_MISSED && msg->missed.id == q->last_id) {
		host_answers_miss(&q->answers, &msg->missed);
	} else if (msg->type == MSG_ENDED && msg->ended.id == q->last_id) {
		take_ended(q, &msg->ended);
	}
}

void own_question_ask(struct own_question *q, const struct inquiry *ask, own_question_fn *on_done,
		      void *arg)
{
	own_question_cancel(q);
	q->open = true;
	q->ask = *ask;
	q->deadline_ns = ns_add(clock_now_ns(), ask->timeout_ns);
	q->on_done = on_done;
	q->on_piece = NULL;
	q->hold = false;
	q->arg = arg;
	ask_soon(q);
}

void own_question_follow(struct own_question *q, const struct inquiry *ask,
			 own_question_piece_fn *on_piece, own_question_fn *on_done, void *arg)
{
	own_question_ask(q, ask, on_done, arg);
	q->on_piece = on_piece;
}

void own_question_hold(struct own_question *q, bool hold)
{
	q->hold = hold;
	if (!hold && q->taken_count)
		event_active(q->soon, EV_TIMEOUT, 0);
}

void own_question_cancel(struct own_question *q)
{
	if (!q->open)
		return;
	q->open = false;
	event_del(q->timer);
	host_answers_done(&q->answers);
	if (!q->again && !q->unsent)
		tell_taken(q, 0, 0);
	q->unsent = false;
}

struct own_question *own_question_new(struct event_base *base, struct routes *routes,
				      const struct own_question_hooks *hooks)
{
	struct own_question *q = NEW(struct own_question);
	*q = (struct own_question){ .hooks = *hooks,
				    .routes = routes,
				    .route = { .send = take, .arg = q },
				    .answers = HOST_ANSWERS_INIT };
	routes_open(routes, &q->route);
	q->timer = evtimer_new(base, on_timer, q);
	q->soon = evtimer_new(base, on_soon, q);
	return q;
}

void own_question_free(struct own_question *q)
{
	if (!q)
		return;
	routes_close(q->routes, &q->route);
	event_free(q->timer);
	event_free(q->soon);
	free(q->taken);
	host_answers_done(&q->answers);
	free(q);
}
