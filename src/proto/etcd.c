#include "proto/etcd.h"

#include <errno.h>
#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"
#include "proto/json_value.h"

/* Requests. */

static void put_base64(struct json_out *out, const char *key, const char *text)
{
	size_t len = strlen(text);
	size_t size = sodium_base64_ENCODED_LEN(len, sodium_base64_VARIANT_ORIGINAL);
	AUTO_FREE char *base64 = mem_alloc(size);
	sodium_bin2base64(base64, size, (const unsigned char *)text, len,
			  sodium_base64_VARIANT_ORIGINAL);
	json_out_text(out, key, base64);
}

static void put_number(struct json_out *out, const char *key, int64_t number)
{
	char text[24];
	snprintf(text, sizeof(text), "%" PRId64, number);
	json_out_text(out, key, text);
}

static void put_range(struct json_out *out, const char *name, const char *key)
{
	json_out_open(out, name, '{');
	put_base64(out, "key", key);
	json_out_close(out, '}');
}

void etcd_put_read(struct buf *body, const char *key)
{
	struct json_out out = JSON_OUT(body);
	put_range(&out, NULL, key);
}

/* The key must have been created at this revision; 0: it must not exist. */
static void put_compare(struct json_out *out, const char *key, uint64_t revision)
{
	json_out_open(out, "compare", '[');
	json_out_open(out, NULL, '{');
	json_out_text(out, "target", "CREATE");
	json_out_text(out, "result", "EQUAL");
	put_number(out, "create_revision", (int64_t)revision);
	put_base64(out, "key", key);
	json_out_close(out, '}');
	json_out_close(out, ']');
}

static void put_pair(struct json_out *out, const char *key, const char *value, int64_t lease)
{
	json_out_open(out, NULL, '{');
	json_out_open(out, "request_put", '{');
	put_base64(out, "key", key);
	put_base64(out, "value", value);
	put_number(out, "lease", lease);
	json_out_close(out, '}');
	json_out_close(out, '}');
}

void etcd_put_campaign(struct buf *body, const char *key, const char *value, int64_t lease)
{
	struct json_out json = JSON_OUT(body), *out = &json;
	json_out_open(out, NULL, '{');
	put_compare(out, key, 0);
	json_out_open(out, "success", '[');
	put_pair(out, key, value, lease);
	json_out_close(out, ']');
	json_out_open(out, "failure", '[');
	json_out_open(out, NULL, '{');
	put_range(out, "request_range", key);
	json_out_close(out, '}');
	json_out_close(out, ']');
	json_out_close(out, '}');
}

void etcd_put_record(struct buf *body, const char *key, uint64_t epoch, const char *past,
		     const char *value, int64_t lease)
{
	struct json_out json = JSON_OUT(body), *out = &json;
	json_out_open(out, NULL, '{');
	put_compare(out, key, epoch);
	json_out_open(out, "success", '[');
	put_pair(out, past, value, lease);
	json_out_close(out, ']');
	json_out_close(out, '}');
}

static void put_one(struct buf *body, const char *name, int64_t number)
{
	struct json_out out = JSON_OUT(body);
	json_out_open(&out, NULL, '{');
	put_number(&out, name, number);
	json_out_close(&out, '}');
}

void etcd_put_grant(struct buf *body, uint64_t ttl_s)
{
	put_one(body, "TTL", (int64_t)ttl_s);
}

void etcd_put_lease(struct buf *body, int64_t lease)
{
	put_one(body, "ID", lease);
}

void etcd_put_watch(struct buf *body, const char *key, uint64_t from_revision)
{
	struct json_out out = JSON_OUT(body);
	json_out_open(&out, NULL, '{');
	json_out_open(&out, "create_request", '{');
	put_base64(&out, "key", key);
	put_number(&out, "start_revision", (int64_t)from_revision);
	json_out_close(&out, '}');
	json_out_close(&out, '}');
}

int etcd_put_authenticate(struct buf *body, const char *user, const char *password)
{
	if (!utf8_valid(user, strlen(user)) || !utf8_valid(password, strlen(password)))
		return -EINVAL;
	struct json_out out = JSON_OUT(body);
	json_out_open(&out, NULL, '{');
	json_out_text(&out, "name", user);
	json_out_text(&out, "password", password);
	json_out_close(&out, '}');
	return 0;
}

/* Answers. What is not JSON is absent, and what is absent has no members. */

static struct json_value load(const char *text, size_t len)
{
	struct json_value answer;
	bool good = len <= ETCD_ANSWER_MAX && json_value_parse(text, len, &answer) == 0;
	return good ? answer : JSON_ABSENT;
}

static int wrong(struct err *err, const char *what)
{
	return err_set(err, EPROTO, "etcd's answer has no %s", what);
}

/* A number that is left out is 0. */
static int get_number(struct json_value object, const char *name, int64_t *ret_value)
{
	struct json_value member = json_value_get(object, name);
	AUTO_FREE char *text = json_value_text(member);
	*ret_value = 0;
	if (member.kind == JSON_NONE || json_value_int(member, ret_value))
		return 0;
	return text && str_to_i64(text, ret_value) == 0 ? 0 : -EPROTO;
}

static int get_positive(struct json_value object, const char *name, uint64_t *ret_value)
{
	int64_t value;
	if (get_number(object, name, &value) < 0 || value < 1)
		return -EPROTO;
	*ret_value = (uint64_t)value;
	return 0;
}

static int get_revision(struct json_value answer, uint64_t *ret_revision, struct err *err)
{
	if (get_positive(json_value_get(answer, "header"), "revision", ret_revision) < 0)
		return wrong(err, "revision");
	return 0;
}

/* A value that cannot be one of ours becomes the empty one. */
static void get_value(struct json_value pair, char value[ETCD_VALUE_MAX])
{
	AUTO_FREE char *base64 = json_value_text(json_value_get(pair, "value"));
	size_t len = 0;
	if (!base64 ||
	    sodium_base642bin((unsigned char *)value, ETCD_VALUE_MAX - 1, base64, strlen(base64),
			      NULL, &len, NULL, sodium_base64_VARIANT_ORIGINAL) != 0)
		len = 0;
	value[len] = '\0';
	if (strlen(value) != len)
		value[0] = '\0';
}

/* The one pair of a range that asked for one key. */
static int get_pair(struct json_value range, struct etcd_key *key, struct err *err)
{
	struct json_value pair = json_value_first(json_value_get(range, "kvs"));
	key->present = pair.kind != JSON_NONE;
	if (!key->present)
		return 0;
	if (get_positive(pair, "create_revision", &key->create_revision) < 0 ||
	    get_number(pair, "lease", &key->lease) < 0)
		return wrong(err, "revision and lease of the key");
	get_value(pair, key->value);
	return 0;
}

int etcd_get_read(const char *text, size_t len, struct etcd_key *ret_key, struct err *err)
{
	struct json_value answer = load(text, len);
	struct etcd_key key = { .present = false };
	int r = get_revision(answer, &key.revision, err);
	if (r < 0 || (r = get_pair(answer, &key, err)) < 0)
		return r;
	*ret_key = key;
	return 0;
}

int etcd_get_campaign(const char *text, size_t len, bool *ret_won, struct etcd_key *ret_key,
		      struct err *err)
{
	struct json_value answer = load(text, len);
	struct etcd_key key = { .present = false };
	int r = get_revision(answer, &key.revision, err);
	if (r < 0)
		return r;
	bool won = json_value_is_true(json_value_get(answer, "succeeded"));
	struct json_value response = json_value_first(json_value_get(answer, "responses"));
	if (won) {
		key.create_revision = key.revision;
	} else {
		r = get_pair(json_value_get(response, "response_range"), &key, err);
		if (r < 0)
			return r;
	}
	*ret_won = won;
	*ret_key = key;
	return 0;
}

int etcd_get_record(const char *text, size_t len, bool *ret_done, struct err *err)
{
	struct json_value answer = load(text, len);
	uint64_t revision;
	int r = get_revision(answer, &revision, err);
	if (r < 0)
		return r;
	*ret_done = json_value_is_true(json_value_get(answer, "succeeded"));
	return 0;
}

int etcd_get_grant(const char *text, size_t len, int64_t *ret_lease, uint64_t *ret_ttl_s,
		   struct err *err)
{
	struct json_value answer = load(text, len);
	uint64_t lease, ttl_s;
	if (get_positive(answer, "ID", &lease) < 0 || get_positive(answer, "TTL", &ttl_s) < 0 ||
	    ttl_s > UINT32_MAX)
		return wrong(err, "lease");
	*ret_lease = (int64_t)lease;
	*ret_ttl_s = ttl_s;
	return 0;
}

int etcd_get_keep(const char *text, size_t len, bool *ret_alive, struct err *err)
{
	struct json_value answer = load(text, len);
	struct json_value result = json_value_get(answer, "result");
	int64_t ttl_s;
	if (result.kind != JSON_OBJECT || get_number(result, "TTL", &ttl_s) < 0)
		return wrong(err, "time to live");
	*ret_alive = ttl_s > 0;
	return 0;
}

/* It goes into a header: nothing that could end one. */
int etcd_get_token(const char *text, size_t len, char ret_token[ETCD_TOKEN_MAX], struct err *err)
{
	struct json_value answer = load(text, len);
	AUTO_FREE char *token = json_value_text(json_value_get(answer, "token"));
	size_t token_len = token ? strlen(token) : 0;
	if (token_len == 0 || token_len >= ETCD_TOKEN_MAX)
		return wrong(err, "token");
	for (const char *c = token; *c; c++)
		if (*c <= ' ' || *c > '~')
			return wrong(err, "usable token");
	memcpy(ret_token, token, token_len + 1);
	return 0;
}

/* What is not printable becomes a question mark: it goes to people. */
static void get_reason(struct json_value member, char reason[ETCD_REASON_MAX])
{
	AUTO_FREE char *text = json_value_text(member);
	size_t len = 0;
	for (; text && text[len] && len < ETCD_REASON_MAX - 1; len++)
		reason[len] = text[len] >= ' ' && text[len] <= '~' ? text[len] : '?';
	reason[len] = '\0';
}

/* Depending on the request, the reason is in "error", or "error" is an object that has it. */
static void answer_error(struct json_value answer, char reason[ETCD_REASON_MAX])
{
	struct json_value error = json_value_get(answer, "error");
	get_reason(error.kind == JSON_OBJECT ? json_value_get(error, "message") : error, reason);
}

void etcd_get_error(const char *text, size_t len, char ret_reason[ETCD_REASON_MAX])
{
	struct json_value answer = load(text, len);
	answer_error(answer, ret_reason);
}

int etcd_get_watch(const char *text, size_t len, enum etcd_watch *ret_what, struct err *err)
{
	struct json_value answer = load(text, len);
	struct json_value result = json_value_get(answer, "result");
	char reason[ETCD_REASON_MAX];
	if (json_value_get(answer, "error").kind != JSON_NONE) {
		answer_error(answer, reason);
		return err_set(err, ECANCELED, "%s", *reason ? reason : "no reason given");
	}
	if (result.kind != JSON_OBJECT)
		return wrong(err, "result");
	if (json_value_is_true(json_value_get(result, "canceled"))) {
		get_reason(json_value_get(result, "cancel_reason"), reason);
		return err_set(err, ECANCELED, "%s", *reason ? reason : "no reason given");
	}
	bool changed = json_value_count(json_value_get(result, "events")) > 0;
	*ret_what = changed ? ETCD_WATCH_CHANGED : ETCD_WATCH_NOTHING;
	return 0;
}
