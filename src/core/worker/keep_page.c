#include "core/worker/keep_page.h"

#include <errno.h>

uint64_t keep_stride(uint64_t size)
{
	return (size + KEEP_HEAD_SIZE - 1) / KEEP_HEAD_SIZE * KEEP_HEAD_SIZE;
}

uint64_t keep_bytes(uint64_t size)
{
	return KEEP_HEAD_SIZE + KEEP_SLOTS * keep_stride(size);
}

struct keep_mark keep_mark(const struct keep_head *head, size_t slot)
{
	const struct keep_slot *at = &head->slots[slot];
	uint64_t committed = atomic_load_explicit(&at->committed, memory_order_acquire);
	return (struct keep_mark){
		.committed = committed > 0,
		.step = committed > 0 ? committed - 1 : 0,
		.epoch = atomic_load_explicit(&at->epoch, memory_order_relaxed),
		.round = atomic_load_explicit(&at->round, memory_order_relaxed),
	};
}

static bool is_newer(const struct keep_mark *a, const struct keep_mark *b)
{
	if (a->committed != b->committed)
		return a->committed;
	if (a->epoch != b->epoch)
		return a->epoch > b->epoch;
	return a->round != b->round ? a->round > b->round : a->step > b->step;
}

int keep_newest(const struct keep_head *head)
{
	struct keep_mark first = keep_mark(head, 0), second = keep_mark(head, 1);
	if (!first.committed && !second.committed)
		return -1;
	return is_newer(&second, &first);
}

static void set_committed(struct keep_slot *slot, uint64_t committed)
{
	/* On both sides: what is written into the slot stays between the two. */
	atomic_thread_fence(memory_order_seq_cst);
	atomic_store_explicit(&slot->committed, committed, memory_order_relaxed);
	atomic_thread_fence(memory_order_seq_cst);
}

size_t keep_begin(struct keep_head *head)
{
	size_t slot = keep_newest(head) == 0 ? 1 : 0;
	set_committed(&head->slots[slot], 0);
	return slot;
}

int keep_commit(struct keep_head *head, size_t slot, uint64_t step)
{
	uint64_t epoch = atomic_load_explicit(&head->epoch, memory_order_relaxed);
	uint64_t round = atomic_load_explicit(&head->round, memory_order_relaxed);
	struct keep_mark last = keep_mark(head, 1 - slot);
	bool this_round = last.committed && last.epoch == epoch && last.round == round;
	if (step == UINT64_MAX || (this_round && step <= last.step))
		return -EINVAL;
	atomic_store_explicit(&head->slots[slot].epoch, epoch, memory_order_relaxed);
	atomic_store_explicit(&head->slots[slot].round, round, memory_order_relaxed);
	set_committed(&head->slots[slot], step + 1);
	return 0;
}

void keep_enter(struct keep_head *head, uint64_t epoch, uint64_t round,
		const struct keep_mark *mark)
{
	for (size_t i = 0; i < KEEP_SLOTS; i++) {
		struct keep_mark at = keep_mark(head, i);
		if (!mark->committed || at.epoch != mark->epoch || at.round != mark->round ||
		    at.step != mark->step)
			set_committed(&head->slots[i], 0);
	}
	atomic_store_explicit(&head->epoch, epoch, memory_order_relaxed);
	atomic_store_explicit(&head->round, round, memory_order_relaxed);
}
