/* A c10d store for straight-line code: every call waits for its answer, at most until its deadline
 * (monotonic ns; NS_NEVER: no limit).
 *
 * Keys are the user's: these calls add and remove the "/" that PyTorch puts in front of every key,
 * so that they and TCPStore's see the same keys.
 *
 * Calls return -ETIMEDOUT past the deadline. A connection whose wait was cancelled stays usable;
 * otherwise, and after any other error but -EMSGSIZE, it is broken and can only be closed. */
#ifndef NET_STORE_CLIENT_H
#define NET_STORE_CLIENT_H

#include "base/clock.h"
#include "net/store_link.h"

struct store_client;

/* The store that `text` names, "host[:port]"; NULL: from $MASTER_ADDR and $MASTER_PORT, as in a
 * worker. */
#define STORE_DEFAULT_PORT 29500
int store_client_name(const char *text, struct addr_name *ret_name, struct err *err);

/* Resolves the name, connects and shakes hands, again and again until it works or the deadline has
 * passed: the server may not be up yet. */
int store_client_open(const struct addr_name *name, uint64_t deadline_ns,
		      struct store_client **ret_client, struct err *err);
void store_client_close(struct store_client *client); /* NULL: nothing */

/* Writes return when the server has them. */
int store_client_set(struct store_client *client, struct bytes key, struct bytes value,
		     uint64_t deadline_ns, struct err *err);
int store_client_append(struct store_client *client, struct bytes key, struct bytes value,
			uint64_t deadline_ns, struct err *err);
int store_client_multi_set(struct store_client *client, const struct bytes *keys,
			   const struct bytes *values, size_t count, uint64_t deadline_ns,
			   struct err *err);

/* Values are appended to *ret_value. get waits for its key, as TCPStore's does. */
int store_client_get(struct store_client *client, struct bytes key, uint64_t deadline_ns,
		     struct buf *ret_value, struct err *err);
int store_client_compare_set(struct store_client *client, struct bytes key, struct bytes expected,
			     struct bytes desired, uint64_t deadline_ns, struct buf *ret_value,
			     struct err *err);

/* Several values at once, after waiting for all. Calls `on_value` for each, in order. */
typedef void store_value_fn(void *arg, struct bytes value);
int store_client_multi_get(struct store_client *client, const struct bytes *keys, size_t count,
			   uint64_t deadline_ns, store_value_fn *on_value, void *arg,
			   struct err *err);

int store_client_add(struct store_client *client, struct bytes key, int64_t delta,
		     uint64_t deadline_ns, int64_t *ret_sum, struct err *err);
int store_client_delete(struct store_client *client, struct bytes key, uint64_t deadline_ns,
			bool *ret_existed, struct err *err);

/* Whether all exist, and waiting until all exist. */
int store_client_check(struct store_client *client, const struct bytes *keys, size_t count,
		       uint64_t deadline_ns, bool *ret_present, struct err *err);
int store_client_wait(struct store_client *client, const struct bytes *keys, size_t count,
		      uint64_t deadline_ns, struct err *err);

int store_client_barrier(struct store_client *client, struct bytes key, int64_t world,
			 uint64_t deadline_ns, struct err *err);

int store_client_num_keys(struct store_client *client, uint64_t deadline_ns, int64_t *ret_count,
			  struct err *err);

/* Calls `on_key` for every key of users, in any order. */
int store_client_list_keys(struct store_client *client, uint64_t deadline_ns,
			   store_value_fn *on_key, void *arg, struct err *err);

/* Queues; PyTorch's legacy server has none and closes the connection. pop does not wait:
 * *ret_length is the length before, 0 if there was nothing. */
int store_client_queue_push(struct store_client *client, struct bytes key, struct bytes value,
			    uint64_t deadline_ns, struct err *err);
int store_client_queue_pop(struct store_client *client, struct bytes key, uint64_t deadline_ns,
			   int64_t *ret_length, struct buf *ret_value, struct err *err);
int store_client_queue_len(struct store_client *client, struct bytes key, uint64_t deadline_ns,
			   int64_t *ret_length, struct err *err);

int store_client_ping(struct store_client *client, uint64_t deadline_ns, struct err *err);

#endif
