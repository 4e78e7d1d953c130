/* The content of a worker store: keys with their values, queues, and waiters.
 *
 * Pure: no I/O, no time. A change that ends a wait puts the waiter on a list; after the change the
 * caller fetches these with store_table_next_released() and answers them.
 *
 * A key has one entry for its value and its queue, which are separate name spaces, but waiting for
 * a name and checking it look at both, as PyTorch's clients expect.
 *
 * The table counts all memory that clients can make it hold, waits included. It refuses what would
 * exceed the limit with -ENOSPC and changes nothing. */
#ifndef CORE_STORE_TABLE_H
#define CORE_STORE_TABLE_H

#include "base/bytes.h"
#include "base/err.h"
#include "base/list.h"
#include "base/map.h"

#define STORE_TABLE_BYTES_MAX ((size_t)1 << 30)

struct store_table {
	struct map slots; /* name -> struct slot, private */
	size_t key_count; /* names that have a value */
	size_t bytes;	  /* held for clients */
	size_t bytes_max;
	struct list released; /* waiters whose wait has ended, oldest first */
};

/* One per client, embedded by it. It waits for one thing at a time. */
struct store_waiter {
	struct store_wait *waits; /* the names it waits for; NULL when it does not wait */
	size_t count;		  /* of waits */
	size_t missing;		  /* how many of them do not exist yet */
	struct list released;
};

/* `hash_key` must be random where keys come from a wire. */
void store_table_init(struct store_table *table, size_t bytes_max, const uint64_t hash_key[2]);

/* Frees everything. Waiters that still wait are forgotten: do not cancel them afterwards. */
void store_table_done(struct store_table *table);

void store_waiter_init(struct store_waiter *waiter);

/* Waiting, or released and not fetched yet. */
bool store_waiter_busy(const struct store_waiter *waiter);

int store_table_set(struct store_table *table, struct bytes key, struct bytes value,
		    struct err *err);

/* ret_value is the key's value afterwards; `expected` if it is absent and stays so. Borrowed until
 * the next change. */
int store_table_compare_set(struct store_table *table, struct bytes key, struct bytes expected,
			    struct bytes desired, struct bytes *ret_value, struct err *err);

/* Borrowed until the next change; false if there is no value. */
bool store_table_get(const struct store_table *table, struct bytes key, struct bytes *ret_value);

/* The value is a number in decimal text, absent counts as 0; the sum wraps. -EINVAL if the value
 * does not begin with a number that fits. */
int store_table_add(struct store_table *table, struct bytes key, int64_t delta, int64_t *ret_sum,
		    struct err *err);

int store_table_append(struct store_table *table, struct bytes key, struct bytes value,
		       struct err *err);

bool store_table_delete(struct store_table *table, struct bytes key); /* the value, not the queue */

bool store_table_has(const struct store_table *table, struct bytes key); /* a value or a queue */

/* Calls `on_key` for every name that has a value, in any order. */
typedef void store_key_fn(void *arg, struct bytes key);
void store_table_each_key(const struct store_table *table, store_key_fn *on_key, void *arg);
/* total length of the names that each_key will show */
size_t store_table_key_bytes(const struct store_table *table);

/* Queues. A push ends the first wait for the name. front returns the length (0: empty). */
int store_table_push(struct store_table *table, struct bytes key, struct bytes value,
		     struct err *err);
size_t store_table_front(const struct store_table *table, struct bytes key,
			 struct bytes *ret_value);
void store_table_pop(struct store_table *table, struct bytes key); /* drops the front, if any */

/* Waits for all keys: 1 if none is missing, 0 if the waiter now waits. A name counts from the
 * moment it was seen, even if it is deleted while others are missing. The waiter must not be
 * busy. */
int store_table_wait(struct store_table *table, struct store_waiter *waiter,
		     const struct bytes *keys, size_t count, struct err *err);

/* Counts the caller under `key`: 1 if `world` callers have come (and all are released), 0 if the
 * waiter now waits. The number is the key's value, so a barrier can be used once. */
int store_table_barrier(struct store_table *table, struct store_waiter *waiter, struct bytes key,
			int64_t world, struct err *err);

/* Ends the wait without an answer; also for a waiter that goes away. */
void store_table_cancel(struct store_table *table, struct store_waiter *waiter);

/* A waiter whose wait has ended, in order; NULL when none is left. */
struct store_waiter *store_table_next_released(struct store_table *table);

#endif
