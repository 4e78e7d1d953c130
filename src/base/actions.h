/* What the steps of a machine ask for, in order: a list that grows.
 *
 * ACTIONS_OF(deal) declares struct deal_actions, of struct deal_action. An empty one is all zero.
 *
 *	deal_actions_add()	one more at the end, which the caller fills
 *	deal_actions_done()	frees it */
#ifndef BASE_ACTIONS_H
#define BASE_ACTIONS_H

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

#endif
