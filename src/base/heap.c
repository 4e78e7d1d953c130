#include "base/heap.h"

#include <stdlib.h>

#include "base/mem.h"

static bool before(const struct heap_node *a, const struct heap_node *b)
{
	return a->key != b->key ? a->key < b->key : a->seq < b->seq;
}

static void place(struct heap *heap, struct heap_node *node, size_t index)
{
	heap->nodes[index] = node;
	node->pos = index + 1;
}

static void sift_up(struct heap *heap, struct heap_node *node)
{
	size_t index = node->pos - 1;
	while (index > 0) {
		size_t parent = (index - 1) / 2;
		if (!before(node, heap->nodes[parent]))
			break;
		place(heap, heap->nodes[parent], index);
		index = parent;
	}
	place(heap, node, index);
}

static void sift_down(struct heap *heap, struct heap_node *node)
{
	size_t index = node->pos - 1;
	for (;;) {
		size_t child = 2 * index + 1;
		if (child >= heap->count)
			break;
		if (child + 1 < heap->count && before(heap->nodes[child + 1], heap->nodes[child]))
			child++;
		if (!before(heap->nodes[child], node))
			break;
		place(heap, heap->nodes[child], index);
		index = child;
	}
	place(heap, node, index);
}

void heap_done(struct heap *heap)
{
	free(heap->nodes);
	*heap = HEAP_INIT;
}

void heap_push(struct heap *heap, struct heap_node *node, uint64_t key)
{
	assert(!heap_node_queued(node));
	ARRAY_RESERVE(heap->nodes, heap->count, heap->cap);
	node->key = key;
	node->seq = heap->next_seq++;
	place(heap, node, heap->count++);
	sift_up(heap, node);
}

void heap_remove(struct heap *heap, struct heap_node *node)
{
	if (!heap_node_queued(node))
		return;
	size_t index = node->pos - 1;
	struct heap_node *last = heap->nodes[--heap->count];
	node->pos = 0;
	if (last == node)
		return;
	place(heap, last, index);
	sift_up(heap, last);
	sift_down(heap, last);
}

void heap_update(struct heap *heap, struct heap_node *node, uint64_t key)
{
	heap_remove(heap, node);
	heap_push(heap, node, key);
}

struct heap_node *heap_pop(struct heap *heap)
{
	struct heap_node *top = heap_top(heap);
	if (top)
		heap_remove(heap, top);
	return top;
}
