#include "net/store_client.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

#define ADDRS_MAX 8
#define RETRY_FIRST_NS (20 * NS_PER_MS)
#define RETRY_MAX_NS NS_PER_S
#define CANCEL_GRACE_NS NS_PER_S /* for the answer to a cancelled wait, past the deadline */

struct store_client {
	struct store_link *link;
	struct buf scratch; /* keys with their "/", lists */
};

/* The answer to the current call. `on_reply`, if set, sees it while it is valid. */
struct answer {
	bool done;
	int result;
	int64_t number;
	void (*on_reply)(struct answer *answer, const struct c10d_message *reply);
	struct buf *value;
	store_value_fn *on_item;
	void *arg;
};

/* Waits until the link can be stepped or the deadline passes, and steps it. */
static int step_until(struct store_link *link, uint64_t deadline_ns, struct err *err)
{
	uint64_t now_ns = clock_now_ns();
	if (now_ns >= deadline_ns)
		return err_set(err, ETIMEDOUT, "the store did not answer in time");
	struct timespec left = { .tv_sec = (time_t)((deadline_ns - now_ns) / NS_PER_S),
				 .tv_nsec = (long)((deadline_ns - now_ns) % NS_PER_S) };
	struct pollfd pfd = { .fd = store_link_fd(link), .events = store_link_events(link) };
	int n = ppoll(&pfd, 1, deadline_ns == NS_NEVER ? NULL : &left, NULL);
	if (n < 0 && errno != EINTR)
		return err_set(err, errno, "poll: %m");
	return n > 0 ? store_link_step(link, err) : 0;
}

/* ---- connecting ---- */

int store_client_name(const char *text, struct addr_name *ret_name, struct err *err)
{
	if (text)
		return addr_name_parse(text, STORE_DEFAULT_PORT, ret_name, err);
	const char *host = getenv("MASTER_ADDR"), *port = getenv("MASTER_PORT");
	if (!host || !*host)
		return err_set(err, EINVAL,
			       "which store? Name it, or set MASTER_ADDR and MASTER_PORT");
	uint64_t number = STORE_DEFAULT_PORT;
	if (port && *port && (str_to_u64(port, &number) < 0 || number > UINT16_MAX))
		return err_set(err, EINVAL, "MASTER_PORT: '%s' is not a port", port);
	if (strlen(host) >= sizeof(ret_name->host))
		return err_set(err, EINVAL, "MASTER_ADDR: the host name is too long");
	strcpy(ret_name->host, host);
	ret_name->port = (uint16_t)number;
	return 0;
}

static int try_address(const struct addr *addr, uint64_t deadline_ns, struct store_link **ret_link,
		       struct err *err)
{
	struct store_link *link = NULL;
	int r = store_link_open(addr, &link, err);
	while (r == 0 && !store_link_ready(link))
		r = step_until(link, deadline_ns, err);
	if (r == 0)
		*ret_link = link;
	else
		store_link_free(link);
	return r;
}

static int try_once(const struct addr_name *name, uint64_t deadline_ns,
		    struct store_link **ret_link, struct err *err)
{
	struct addr addrs[ADDRS_MAX];
	int count = addr_resolve(name, deadline_ns, addrs, ARRAY_LEN(addrs), err);
	if (count < 0)
		return count;
	int r = 0;
	for (int i = 0; i < count; i++) {
		r = try_address(&addrs[i], deadline_ns, ret_link, err);
		if (r == 0)
			return 0;
	}
	return r;
}

static void pause_until(uint64_t until_ns)
{
	uint64_t now_ns = clock_now_ns();
	if (until_ns <= now_ns)
		return;
	const struct timespec left = { .tv_sec = (time_t)((until_ns - now_ns) / NS_PER_S),
				       .tv_nsec = (long)((until_ns - now_ns) % NS_PER_S) };
	ppoll(NULL, 0, &left, NULL);
}

int store_client_open(const struct addr_name *name, uint64_t deadline_ns,
		      struct store_client **ret_client, struct err *err)
{
	struct store_link *link = NULL;
	struct err last = ERR_INIT;
	uint64_t pause_ns = RETRY_FIRST_NS;
	while (try_once(name, deadline_ns, &link, &last) < 0) {
		if (ns_add(clock_now_ns(), pause_ns) >= deadline_ns)
			return err_set(err, last.code, "no store at %s, port %u: %s", name->host,
				       name->port, last.msg);
		/* There is no event for "a process listens now". */
		pause_until(clock_now_ns() + pause_ns);
		pause_ns = MIN(2 * pause_ns, RETRY_MAX_NS);
	}
	struct store_client *client = NEW(struct store_client);
	client->link = link;
	client->scratch = BUF_INIT;
	*ret_client = client;
	return 0;
}

void store_client_close(struct store_client *client)
{
	if (!client)
		return;
	store_link_free(client->link);
	buf_done(&client->scratch);
	free(client);
}

/* ---- calling ---- */

static void on_answer(void *arg, int result, const struct c10d_message *reply)
{
	struct answer *answer = arg;
	answer->done = true;
	answer->result = result;
	if (result < 0)
		return;
	answer->number = reply->number;
	if (answer->on_reply)
		answer->on_reply(answer, reply);
}

/* Past the deadline of a wait: cancel it, and check whether the answer crossed. A server that does
 * not answer even that is frozen; give the link up. */
static int cancel(struct store_client *client, struct answer *answer, struct err *err)
{
	store_link_cancel_wait(client->link);
	uint64_t deadline_ns = ns_add(clock_now_ns(), CANCEL_GRACE_NS);
	int r = 0;
	while (r == 0 && !answer->done)
		r = step_until(client->link, deadline_ns, err);
	if (r < 0)
		return r;
	return answer->result == -ECANCELED ? err_set(err, ETIMEDOUT, "timed out") : answer->result;
}

static int call(struct store_client *client, const struct c10d_message *request,
		uint64_t deadline_ns, struct answer *answer, struct err *err)
{
	store_link_ask(client->link, request, on_answer, answer);
	int r = 0;
	while (r == 0 && !answer->done)
		r = step_until(client->link, deadline_ns, err);
	if (answer->done && answer->result == 0)
		return 0;
	if (r == -ETIMEDOUT && (request->query == C10D_WAIT || request->query == C10D_BARRIER))
		r = cancel(client, answer, err);
	if (!answer->done) /* the answer does not belong to us any more */
		store_link_abandon(client->link);
	return r;
}

static const struct c10d_limits limits = C10D_LIMITS_DEFAULT;

static int check_key(struct bytes key, struct err *err)
{
	if (key.len + 1 <= limits.key_max)
		return 0;
	return err_set(err, EMSGSIZE, "a key of %zu bytes; a store takes at most %zu", key.len,
		       limits.key_max - 1);
}

static int check_value(struct bytes value, struct err *err)
{
	if (value.len <= limits.value_max)
		return 0;
	return err_set(err, EMSGSIZE, "a value of %zu bytes; a store takes at most %zu", value.len,
		       limits.value_max);
}

/* The key as it is on the wire, in the scratch buffer. */
static int wire_key(struct store_client *client, struct bytes key, struct bytes *ret_key,
		    struct err *err)
{
	int r = check_key(key, err);
	if (r < 0)
		return r;
	buf_clear(&client->scratch);
	buf_append_char(&client->scratch, '/');
	buf_append(&client->scratch, key.data, key.len);
	*ret_key = bytes_of(buf_data(&client->scratch), buf_len(&client->scratch));
	return 0;
}

static void put_wire_key(struct buf *list, struct bytes key)
{
	c10d_put_i64(list, (int64_t)key.len + 1);
	buf_append_char(list, '/');
	buf_append(list, key.data, key.len);
}

/* One key, perhaps a value and a number. */
static int call_key(struct store_client *client, struct c10d_message request, struct bytes key,
		    uint64_t deadline_ns, struct answer *answer, struct err *err)
{
	int r = wire_key(client, key, &request.string[0], err);
	if (r == 0)
		r = check_value(request.string[1], err);
	if (r == 0)
		r = check_value(request.string[2], err);
	return r < 0 ? r : call(client, &request, deadline_ns, answer, err);
}

/* A list of keys, or of keys and values. */
static int call_list(struct store_client *client, enum c10d_query query, const struct bytes *keys,
		     const struct bytes *values, size_t count, uint64_t deadline_ns,
		     struct answer *answer, struct err *err)
{
	if (count > limits.keys_max)
		return err_set(err, EMSGSIZE, "%zu keys; a store takes at most %zu at once", count,
			       limits.keys_max);
	buf_clear(&client->scratch);
	for (size_t i = 0; i < count; i++) {
		int r = check_key(keys[i], err);
		if (r == 0 && values)
			r = check_value(values[i], err);
		if (r < 0)
			return r;
		put_wire_key(&client->scratch, keys[i]);
		if (values)
			c10d_put_string(&client->scratch, values[i]);
	}
	const struct c10d_message request = { .query = query,
					      .count = count,
					      .list = bytes_of(buf_data(&client->scratch),
							       buf_len(&client->scratch)) };
	return call(client, &request, deadline_ns, answer, err);
}

int store_client_ping(struct store_client *client, uint64_t deadline_ns, struct err *err)
{
	struct answer answer = { .done = false };
	return call(client, &(struct c10d_message){ .query = C10D_PING }, deadline_ns, &answer,
		    err);
}

/* ---- what keeps values ---- */

static void keep_value(struct answer *answer, const struct c10d_message *reply)
{
	buf_append(answer->value, reply->string[0].data, reply->string[0].len);
}

static void show_items(struct answer *answer, const struct c10d_message *reply)
{
	struct bytes list = reply->list, item;
	while (c10d_list_next(&list, &item))
		answer->on_item(answer->arg, item);
}

static int write_value(struct store_client *client, enum c10d_query query, struct bytes key,
		       struct bytes value, uint64_t deadline_ns, struct err *err)
{
	struct answer answer = { .done = false };
	int r = call_key(client, (struct c10d_message){ .query = query, .string[1] = value }, key,
			 deadline_ns, &answer, err);
	return r < 0 ? r : store_client_ping(client, deadline_ns, err);
}

int store_client_set(struct store_client *client, struct bytes key, struct bytes value,
		     uint64_t deadline_ns, struct err *err)
{
	return write_value(client, C10D_SET, key, value, deadline_ns, err);
}

int store_client_append(struct store_client *client, struct bytes key, struct bytes value,
			uint64_t deadline_ns, struct err *err)
{
	return write_value(client, C10D_APPEND, key, value, deadline_ns, err);
}

int store_client_queue_push(struct store_client *client, struct bytes key, struct bytes value,
			    uint64_t deadline_ns, struct err *err)
{
	return write_value(client, C10D_QUEUE_PUSH, key, value, deadline_ns, err);
}

int store_client_multi_set(struct store_client *client, const struct bytes *keys,
			   const struct bytes *values, size_t count, uint64_t deadline_ns,
			   struct err *err)
{
	struct answer answer = { .done = false };
	int r = call_list(client, C10D_MULTI_SET, keys, values, count, deadline_ns, &answer, err);
	return r < 0 ? r : store_client_ping(client, deadline_ns, err);
}

int store_client_get(struct store_client *client, struct bytes key, uint64_t deadline_ns,
		     struct buf *ret_value, struct err *err)
{
	int r = store_client_wait(client, &key, 1, deadline_ns, err);
	if (r < 0)
		return r;
	struct answer answer = { .on_reply = keep_value, .value = ret_value };
	return call_key(client, (struct c10d_message){ .query = C10D_GET }, key, deadline_ns,
			&answer, err);
}

int store_client_compare_set(struct store_client *client, struct bytes key, struct bytes expected,
			     struct bytes desired, uint64_t deadline_ns, struct buf *ret_value,
			     struct err *err)
{
	struct answer answer = { .on_reply = keep_value, .value = ret_value };
	const struct c10d_message request = { .query = C10D_COMPARE_SET,
					      .string = { [1] = expected, [2] = desired } };
	return call_key(client, request, key, deadline_ns, &answer, err);
}

int store_client_multi_get(struct store_client *client, const struct bytes *keys, size_t count,
			   uint64_t deadline_ns, store_value_fn *on_value, void *arg,
			   struct err *err)
{
	int r = store_client_wait(client, keys, count, deadline_ns, err);
	if (r < 0)
		return r;
	struct answer answer = { .on_reply = show_items, .on_item = on_value, .arg = arg };
	return call_list(client, C10D_MULTI_GET, keys, NULL, count, deadline_ns, &answer, err);
}

int store_client_queue_pop(struct store_client *client, struct bytes key, uint64_t deadline_ns,
			   int64_t *ret_length, struct buf *ret_value, struct err *err)
{
	struct answer answer = { .on_reply = keep_value, .value = ret_value };
	int r = call_key(client, (struct c10d_message){ .query = C10D_QUEUE_POP }, key, deadline_ns,
			 &answer, err);
	if (r == 0)
		*ret_length = answer.number;
	return r;
}

/* ---- what gives numbers ---- */

static int call_number(struct store_client *client, struct c10d_message request, struct bytes key,
		       uint64_t deadline_ns, int64_t *ret_number, struct err *err)
{
	struct answer answer = { .done = false };
	int r = call_key(client, request, key, deadline_ns, &answer, err);
	if (r == 0)
		*ret_number = answer.number;
	return r;
}

int store_client_add(struct store_client *client, struct bytes key, int64_t delta,
		     uint64_t deadline_ns, int64_t *ret_sum, struct err *err)
{
	return call_number(client, (struct c10d_message){ .query = C10D_ADD, .number = delta }, key,
			   deadline_ns, ret_sum, err);
}

int store_client_queue_len(struct store_client *client, struct bytes key, uint64_t deadline_ns,
			   int64_t *ret_length, struct err *err)
{
	return call_number(client, (struct c10d_message){ .query = C10D_QUEUE_LEN }, key,
			   deadline_ns, ret_length, err);
}

int store_client_delete(struct store_client *client, struct bytes key, uint64_t deadline_ns,
			bool *ret_existed, struct err *err)
{
	int64_t deleted = 0;
	int r = call_number(client, (struct c10d_message){ .query = C10D_DELETE_KEY }, key,
			    deadline_ns, &deleted, err);
	if (r == 0)
		*ret_existed = deleted > 0;
	return r;
}

int store_client_check(struct store_client *client, const struct bytes *keys, size_t count,
		       uint64_t deadline_ns, bool *ret_present, struct err *err)
{
	struct answer answer = { .done = false };
	int r = call_list(client, C10D_CHECK, keys, NULL, count, deadline_ns, &answer, err);
	if (r == 0)
		*ret_present = answer.number == C10D_READY;
	return r;
}

int store_client_wait(struct store_client *client, const struct bytes *keys, size_t count,
		      uint64_t deadline_ns, struct err *err)
{
	struct answer answer = { .done = false };
	return call_list(client, C10D_WAIT, keys, NULL, count, deadline_ns, &answer, err);
}

int store_client_barrier(struct store_client *client, struct bytes key, int64_t world,
			 uint64_t deadline_ns, struct err *err)
{
	struct answer answer = { .done = false };
	return call_key(client, (struct c10d_message){ .query = C10D_BARRIER, .number = world },
			key, deadline_ns, &answer, err);
}

int store_client_num_keys(struct store_client *client, uint64_t deadline_ns, int64_t *ret_count,
			  struct err *err)
{
	struct answer answer = { .done = false };
	int r = call(client, &(struct c10d_message){ .query = C10D_GETNUMKEYS }, deadline_ns,
		     &answer, err);
	if (r == 0)
		*ret_count = answer.number;
	return r;
}

/* Keys without the "/" are PyTorch's own. */
static void show_user_keys(struct answer *answer, const struct c10d_message *reply)
{
	struct bytes list = reply->list, key;
	while (c10d_list_next(&list, &key))
		if (key.len > 0 && key.data[0] == '/')
			answer->on_item(answer->arg, bytes_of(key.data + 1, key.len - 1));
}

int store_client_list_keys(struct store_client *client, uint64_t deadline_ns,
			   store_value_fn *on_key, void *arg, struct err *err)
{
	struct answer answer = { .on_reply = show_user_keys, .on_item = on_key, .arg = arg };
	return call(client, &(struct c10d_message){ .query = C10D_LIST_KEYS }, deadline_ns, &answer,
		    err);
}
