/* The store client of libmuster: net/store_client.h behind a lock, with strings as keys. */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>

#include <muster/muster.h>
#include "base/mem.h"
#include "lib/last_error.h"
#include "net/store_client.h"

struct muster_store {
	pthread_mutex_t lock;
	struct store_client *client;
};

static uint64_t deadline_after(double seconds)
{
	if (!(seconds >= 0 && seconds < (double)(NS_NEVER / NS_PER_S)))
		return NS_NEVER;
	return ns_add(clock_now_ns(), (uint64_t)(seconds * (double)NS_PER_S));
}

int muster_store_open(const char *address, double seconds, struct muster_store **ret_store)
{
	struct err err = ERR_INIT;
	struct addr_name name;
	struct store_client *client = NULL;
	int r = store_client_name(address, &name, &err);
	if (r == 0)
		r = store_client_open(&name, deadline_after(seconds), &client, &err);
	if (r < 0)
		return last_error(r, &err);
	struct muster_store *store = NEW(struct muster_store);
	pthread_mutex_init(&store->lock, NULL);
	store->client = client;
	*ret_store = store;
	return 0;
}

void muster_store_close(struct muster_store *store)
{
	if (!store)
		return;
	store_client_close(store->client);
	pthread_mutex_destroy(&store->lock);
	free(store);
}

/* One call: it holds the lock, and its deadline counts from before it took the lock. */
struct call {
	struct muster_store *store;
	struct store_client *client;
	uint64_t deadline_ns;
	struct err err;
};

static void call_begin(struct call *call, struct muster_store *store, double seconds)
{
	*call = (struct call){ .store = store,
			       .client = store->client,
			       .deadline_ns = deadline_after(seconds) };
	pthread_mutex_lock(&store->lock);
}

static int call_end(struct call *call, int r)
{
	pthread_mutex_unlock(&call->store->lock);
	return last_error(r, &call->err);
}

static int hand_out(struct call *call, int r, struct buf *value, void **ret_value, size_t *ret_len)
{
	if (r >= 0) {
		*ret_len = buf_len(value);
		*ret_value = buf_take_str(value);
	}
	buf_done(value);
	return call_end(call, r);
}

/* ---- writing ---- */

typedef int write_fn(struct store_client *client, struct bytes key, struct bytes value,
		     uint64_t deadline_ns, struct err *err);

static int write_value(write_fn *write, struct muster_store *store, const char *key,
		       const void *value, size_t len, double seconds)
{
	struct call call;
	call_begin(&call, store, seconds);
	int r = write(call.client, bytes_str(key), bytes_of(value, len), call.deadline_ns,
		      &call.err);
	return call_end(&call, r);
}

int muster_store_set(struct muster_store *store, const char *key, const void *value, size_t len,
		     double seconds)
{
	return write_value(store_client_set, store, key, value, len, seconds);
}

int muster_store_append(struct muster_store *store, const char *key, const void *value, size_t len,
			double seconds)
{
	return write_value(store_client_append, store, key, value, len, seconds);
}

int muster_store_push(struct muster_store *store, const char *key, const void *value, size_t len,
		      double seconds)
{
	return write_value(store_client_queue_push, store, key, value, len, seconds);
}

int muster_store_delete(struct muster_store *store, const char *key, double seconds)
{
	struct call call;
	bool existed = false;
	call_begin(&call, store, seconds);
	int r = store_client_delete(call.client, bytes_str(key), call.deadline_ns, &existed,
				    &call.err);
	return call_end(&call, r < 0 ? r : existed);
}

int muster_store_add(struct muster_store *store, const char *key, int64_t delta, double seconds,
		     int64_t *ret_sum)
{
	struct call call;
	call_begin(&call, store, seconds);
	int r = store_client_add(call.client, bytes_str(key), delta, call.deadline_ns, ret_sum,
				 &call.err);
	return call_end(&call, r);
}

int muster_store_compare_set(struct muster_store *store, const char *key, const void *expected,
			     size_t expected_len, const void *desired, size_t desired_len,
			     double seconds, void **ret_value, size_t *ret_len)
{
	struct call call;
	struct buf value = BUF_INIT;
	call_begin(&call, store, seconds);
	int r = store_client_compare_set(call.client, bytes_str(key),
					 bytes_of(expected, expected_len),
					 bytes_of(desired, desired_len), call.deadline_ns, &value,
					 &call.err);
	return hand_out(&call, r, &value, ret_value, ret_len);
}

/* ---- reading ---- */

int muster_store_get(struct muster_store *store, const char *key, double seconds, void **ret_value,
		     size_t *ret_len)
{
	struct call call;
	struct buf value = BUF_INIT;
	call_begin(&call, store, seconds);
	int r = store_client_get(call.client, bytes_str(key), call.deadline_ns, &value, &call.err);
	return hand_out(&call, r, &value, ret_value, ret_len);
}

int muster_store_pop(struct muster_store *store, const char *key, double seconds, void **ret_value,
		     size_t *ret_len)
{
	struct call call;
	struct buf value = BUF_INIT;
	int64_t length = 0;
	call_begin(&call, store, seconds);
	int r = store_client_queue_pop(call.client, bytes_str(key), call.deadline_ns, &length,
				       &value, &call.err);
	if (r == 0 && length > 0)
		return hand_out(&call, 1, &value, ret_value, ret_len);
	buf_done(&value);
	return call_end(&call, r);
}

int muster_store_queue_len(struct muster_store *store, const char *key, double seconds,
			   int64_t *ret_len)
{
	struct call call;
	call_begin(&call, store, seconds);
	int r = store_client_queue_len(call.client, bytes_str(key), call.deadline_ns, ret_len,
				       &call.err);
	return call_end(&call, r);
}

int muster_store_num_keys(struct muster_store *store, double seconds, int64_t *ret_count)
{
	struct call call;
	call_begin(&call, store, seconds);
	int r = store_client_num_keys(call.client, call.deadline_ns, ret_count, &call.err);
	return call_end(&call, r);
}

struct key_hook {
	muster_key_fn *on_key;
	void *arg;
};

static void show_key(void *arg, struct bytes key)
{
	const struct key_hook *hook = arg;
	AUTO_FREE char *text = mem_strndup((const char *)key.data, key.len);
	hook->on_key(hook->arg, text);
}

int muster_store_keys(struct muster_store *store, double seconds, muster_key_fn *on_key, void *arg)
{
	struct call call;
	struct key_hook hook = { on_key, arg };
	call_begin(&call, store, seconds);
	int r = store_client_list_keys(call.client, call.deadline_ns, show_key, &hook, &call.err);
	return call_end(&call, r);
}

/* ---- waiting ---- */

static struct bytes *bytes_of_texts(const char *const *texts, size_t count)
{
	struct bytes *all = NEW_ARRAY(struct bytes, MAX(count, (size_t)1));
	for (size_t i = 0; i < count; i++)
		all[i] = bytes_str(texts[i]);
	return all;
}

int muster_store_check(struct muster_store *store, const char *const *keys, size_t count,
		       double seconds)
{
	AUTO_FREE struct bytes *all = bytes_of_texts(keys, count);
	struct call call;
	bool present = false;
	call_begin(&call, store, seconds);
	int r = store_client_check(call.client, all, count, call.deadline_ns, &present, &call.err);
	return call_end(&call, r < 0 ? r : present);
}

int muster_store_wait(struct muster_store *store, const char *const *keys, size_t count,
		      double seconds)
{
	AUTO_FREE struct bytes *all = bytes_of_texts(keys, count);
	struct call call;
	call_begin(&call, store, seconds);
	int r = store_client_wait(call.client, all, count, call.deadline_ns, &call.err);
	return call_end(&call, r);
}

int muster_store_barrier(struct muster_store *store, const char *key, int64_t world, double seconds)
{
	struct call call;
	call_begin(&call, store, seconds);
	int r = store_client_barrier(call.client, bytes_str(key), world, call.deadline_ns,
				     &call.err);
	return call_end(&call, r);
}
