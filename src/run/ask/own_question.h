/* A question of this process to all hosts of its job: it goes the way of users' questions
 * (core/rounds/asking.h), on a link of its own that is not a connection. One at a time.
 *
 * While the coordinator is busy with others, or there is none, it is asked again until its time is
 * over. */
#ifndef RUN_ASK_OWN_QUESTION_H
#define RUN_ASK_OWN_QUESTION_H

#include <event2/event.h>

#include "nodes/routes.h"
#include "run/ask/host_answers.h"

struct own_question;

struct own_question_hooks {
	/* A message for the node: a NODE_EV_MSG, always from the loop. Step it now. */
	void (*on_event)(void *arg, const struct node_event *event);
	void *arg;
};

/* All hosts have answered or are named, or the time is over. What is not taken over is freed. */
typedef void own_question_fn(void *arg, struct host_answers *answers);

struct own_question *own_question_new(struct event_base *base, struct routes *routes,
				      const struct own_question_hooks *hooks);
void own_question_free(struct own_question *question); /* NULL is fine */

/* Calls hooks and back from the loop only, so that steps of the node may lead here. The arguments
 * of the question are borrowed until then. */
void own_question_ask(struct own_question *question, const struct inquiry *ask,
		      own_question_fn *on_done, void *arg);
void own_question_cancel(struct own_question *question);

/* The same, for an answer without end: `on_piece` gets each piece as it comes, in a step of the
 * node, and at the end those hosts are told that do not answer. */
typedef void own_question_piece_fn(void *arg, const struct msg_reply *reply);
void own_question_follow(struct own_question *question, const struct inquiry *ask,
			 own_question_piece_fn *on_piece, own_question_fn *on_done, void *arg);

/* Holds the hosts back: pieces that come from now on are not acknowledged until it is false
 * again. */
void own_question_hold(struct own_question *question, bool hold);
#endif
