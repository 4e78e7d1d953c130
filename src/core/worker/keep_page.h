/* What a worker keeps over a restart: memory that it shares with its agent, which hands it to the
 * next worker of that rank. muster_keep(3) is its manual, muster-page(7) documents its layout.
 *
 *     0      the head below: one page
 *     4096   slot 0
 *     4096 + stride   slot 1
 *
 * A worker may be killed between any two instructions. So it takes a slot's number away before it
 * writes into that slot, and gives it a number again when the whole state is in it: a slot with a
 * number is complete. The agent looks at the numbers only after the worker's death, and trusts
 * none. */
#ifndef CORE_WORKER_KEEP_PAGE_H
#define CORE_WORKER_KEEP_PAGE_H

#include <stdatomic.h>

#include "base/util.h"

#define KEEP_HEAD_SIZE 4096
#define KEEP_VERSION 1
#define KEEP_SLOTS 2
#define KEEP_NAME_MAX 64		  /* bytes, without the NUL */
#define KEEP_NAMES_MAX 16		  /* of one worker */
#define KEEP_SIZE_MAX ((uint64_t)1 << 46) /* of one state */

struct keep_slot {
	_Atomic uint64_t committed;    /* 1 + the step of the state in it; 0: none; written last */
	_Atomic uint64_t epoch, round; /* in which it was committed */
	uint64_t reserved[5];
};

struct keep_head {
	uint64_t version; /* 0: this and all before the slots is written by the agent */
	uint64_t size;	  /* 8: bytes of a state */
	uint64_t stride;  /* 16: from one slot to the next */
	_Atomic uint64_t epoch, round; /* 24, 32: of the round that runs */
	uint64_t reserved[3];
	struct keep_slot slots[KEEP_SLOTS]; /* 64 */
	unsigned char rest[KEEP_HEAD_SIZE - 64 - KEEP_SLOTS * sizeof(struct keep_slot)];
};
static_assert(sizeof(struct keep_slot) == 64, "as documented");
static_assert(offsetof(struct keep_head, slots) == 64, "as documented");
static_assert(sizeof(struct keep_head) == KEEP_HEAD_SIZE, "data begins on a page");

/* What the numbers of a slot say. */
struct keep_mark {
	bool committed;
	uint64_t step, epoch, round;
};

/* The distance of slots for states of `size` bytes, and the bytes of the whole memory. */
uint64_t keep_stride(uint64_t size);
uint64_t keep_bytes(uint64_t size);

struct keep_mark keep_mark(const struct keep_head *head, size_t slot);

/* The slot with the newest state; -1: none has one. */
int keep_newest(const struct keep_head *head);

/* The worker's side. Takes the older slot for the next state: what was in it no longer counts. */
size_t keep_begin(struct keep_head *head);

/* The slot of keep_begin() has the state after `step`. -EINVAL: this round has committed that step
 * or a later one. */
int keep_commit(struct keep_head *head, size_t slot, uint64_t step);

/* The agent's side, while no worker has it: a round begins, and only the state that `mark` names
 * counts; none if it is not committed. */
void keep_enter(struct keep_head *head, uint64_t epoch, uint64_t round,
		const struct keep_mark *mark);

#endif
