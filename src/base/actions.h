/* What the steps of a machine ask for, in order: a list that grows.
 *
 * ACTIONS_OF(deal) declares struct deal_actions, of struct deal_action. An empty one is all zero.
 *
 *	deal_actions_add()	one more at the end, which the caller fills
 *	deal_actions_done()	frees it
 *
 * QUEUE_OF(deal) declares struct deal_queue, of struct deal_event: how a shell drives the machine.
 * It keeps an event that an action brings about until all actions before it are carried out, so the
 * machine is never stepped from inside one of its own actions. An empty one is all zero.
 *
 *	deal_push()		one more event, which is copied; what it borrows must live until it
 *				is taken
 *	deal_drive()		has all events taken in order, also those that are pushed meanwhile;
 *				from inside `take` it does nothing, and says so: false
 *	deal_queue_done()	frees it
 *
 *	static void take(void *arg, const struct deal_event *event)
 *	{
 *		deal_step(..., event, clock_now_ns(), &actions);
 *		(carry out the actions)
 *	}
 */
#ifndef BASE_ACTIONS_H
#define BASE_ACTIONS_H

#include <stdbool.h>
#include <stdlib.h>

#include "base/mem.h"

#define ACTIONS_OF(machine) \
	struct machine##_actions { \
		struct machine##_action *items; \
		size_t count, cap; \
	}; \
	static inline struct machine##_action *machine##_actions_add( \
		struct machine##_actions *actions) \
	{ \
		ARRAY_RESERVE(actions->items, actions->count, actions->cap); \
		return &actions->items[actions->count++]; \
	} \
	static inline void machine##_actions_done(struct machine##_actions *actions) \
	{ \
		free(actions->items); \
		*actions = (struct machine##_actions){ .items = NULL }; \
	} \
	struct machine##_actions

#define QUEUE_OF(machine) \
	struct machine##_queue { \
		struct machine##_event *items; \
		size_t count, cap; \
		bool driven; \
	}; \
	static inline void machine##_push(struct machine##_queue *queue, \
					  const struct machine##_event *event) \
	{ \
		ARRAY_RESERVE(queue->items, queue->count, queue->cap); \
		queue->items[queue->count++] = *event; \
	} \
	static inline bool machine##_drive( \
		struct machine##_queue *queue, \
		void (*take)(void *arg, const struct machine##_event *event), void *arg) \
	{ \
		if (queue->driven) \
			return false; \
		queue->driven = true; \
		for (size_t i = 0; i < queue->count; i++) { \
			struct machine##_event event = queue->items[i]; \
			take(arg, &event); \
		} \
		queue->count = 0; \
		queue->driven = false; \
		return true; \
	} \
	static inline void machine##_queue_done(struct machine##_queue *queue) \
	{ \
		free(queue->items); \
		*queue = (struct machine##_queue){ .items = NULL }; \
	} \
	struct machine##_queue

#endif
