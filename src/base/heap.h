/* An intrusive binary min-heap on a 64-bit key, for deadlines and schedules. Equal keys leave in
 * the order in which they came, so that a simulation replays exactly. */
#ifndef BASE_HEAP_H
#define BASE_HEAP_H

#include "base/util.h"

struct heap_node {
	uint64_t key;
	uint64_t seq;
	size_t pos; /* 1-based; 0 while in no heap */
};

struct heap {
	struct heap_node **nodes;
	size_t count;
	size_t cap;
	uint64_t next_seq;
};

#define HEAP_INIT ((struct heap){ .nodes = NULL })
#define HEAP_NODE_INIT ((struct heap_node){ .pos = 0 })

void heap_done(struct heap *heap); /* does not touch the nodes */
void heap_push(struct heap *heap, struct heap_node *node, uint64_t key);
void heap_remove(struct heap *heap, struct heap_node *node); /* nothing if in no heap */
void heap_update(struct heap *heap, struct heap_node *node,
		 uint64_t key);		       /* pushes if in no heap */
struct heap_node *heap_pop(struct heap *heap); /* NULL when empty */

static inline struct heap_node *heap_top(const struct heap *heap)
{
	return heap->count ? heap->nodes[0] : NULL;
}

static inline bool heap_node_queued(const struct heap_node *node)
{
	return node->pos != 0;
}

#endif
