#include "proto/etcd.h"

#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "base/str.h"

/* Requests. */

static void put_base64(struct buf *out, const char *text)
{
	size_t len = strlen(text);
	size_t size = sodium_base64_ENCODED_LEN(len, sodium_base64_VARIANT_ORIGINAL);
	char *at = (char *)buf_reserve(out, size + 1);
	*at = '"';
	sodium_bin2base64(at + 1, size, (const unsigned char *)text, len,
			  sodium_base64_VARIANT_ORIGINAL);
	buf_commit(out, size); /* the quote, and all but the NUL */
	buf_append_char(out, '"');
}

void etcd_put_read(struct buf *out, const char *key)
{
	buf_append_str(out, "{\"key\":");
	put_base64(out, key);
	buf_append_char(out, '}');
}

void etcd_put_campaign(struct buf *out, const char *key, const char *value, int64_t lease)
{
	buf_append_str(out, "{\"compare\":[{\"target\":\"CREATE\",\"result\":\"EQUAL\",\"create_"
			    "revision\":\"0\",\"key\":");
	put_base64(out, key);
	buf_append_str(out, "}],\"success\":[{\"request_put\":{\"key\":");
	put_base64(out, key);
	buf_append_str(out, ",\"value\":");
	put_base64(out, value);
	buf_printf(out, ",\"lease\":\"%" PRId64 "\"}}],\"failure\":[{\"request_range\":", lease);
	etcd_put_read(out, key);
	buf_append_str(out, "}]}");
}

void etcd_put_grant(struct buf *out, uint64_t ttl_s)
{
	buf_printf(out, "{\"TTL\":\"%" PRIu64 "\"}", ttl_s);
}

void etcd_put_lease(struct buf *out, int64_t lease)
{
	buf_printf(out, "{\"ID\":\"%" PRId64 "\"}", lease);
}

void etcd_put_watch(struct buf *out, const char *key, uint64_t from_revision)
{
	buf_append_str(out, "{\"create_request\":{\"key\":");
	put_base64(out, key);
	buf_printf(out, ",\"start_revision\":\"%" PRIu64 "\"}}", from_revision);
}

int etcd_put_authenticate(struct buf *out, const char *user, const char *password)
{
	json_t *body = json_pack("{s:s,s:s}", "name", user, "password", password);
	char *text = body ? json_dumps(body, JSON_COMPACT) : NULL;
	json_decref(body);
	if (!text)
		return -EINVAL;
	buf_append_str(out, text);
	free(text);
	return 0;
}

/* Answers. Where an object is wanted and something else is there, jansson's functions find
 * nothing. */

static void json_drop(json_t **json)
{
	json_decref(*json);
}

static json_t *load(const char *text, size_t len)
{
	return len > ETCD_ANSWER_MAX ? NULL : json_loadb(text, len, 0, NULL);
}

static int wrong(struct err *err, const char *what)
{
	return err_set(err, EPROTO, "etcd's answer has no %s", what);
}

/* A number that is left out is 0. */
static int get_number(const json_t *object, const char *name, int64_t *ret_value)
{
	const json_t *member = json_object_get(object, name);
	*ret_value = 0;
	if (!member)
		return 0;
	if (json_is_integer(member)) {
		*ret_value = json_integer_value(member);
		return 0;
	}
	const char *text = json_string_value(member);
	return text && str_to_i64(text, ret_value) == 0 ? 0 : -EPROTO;
}

static int get_positive(const json_t *object, const char *name, uint64_t *ret_value)
{
	int64_t value;
	if (get_number(object, name, &value) < 0 || value < 1)
		return -EPROTO;
	*ret_value = (uint64_t)value;
	return 0;
}

static int get_revision(const json_t *answer, uint64_t *ret_revision, struct err *err)
{
	if (get_positive(json_object_get(answer, "header"), "revision", ret_revision) < 0)
		return wrong(err, "revision");
	return 0;
}

/* A value that cannot be one of ours becomes the empty one. */
static void get_value(const json_t *pair, char value[ETCD_VALUE_MAX])
{
	const char *base64 = json_string_value(json_object_get(pair, "value"));
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
static int get_pair(const json_t *range, struct etcd_key *key, struct err *err)
{
	const json_t *pair = json_array_get(json_object_get(range, "kvs"), 0);
	key->present = pair != NULL;
	if (!pair)
		return 0;
	if (get_positive(pair, "create_revision", &key->create_revision) < 0 ||
	    get_number(pair, "lease", &key->lease) < 0)
		return wrong(err, "revision and lease of the key");
	get_value(pair, key->value);
	return 0;
}

int etcd_get_read(const char *text, size_t len, struct etcd_key *ret_key, struct err *err)
{
	AUTO(json_drop) json_t *answer = load(text, len);
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
	AUTO(json_drop) json_t *answer = load(text, len);
	struct etcd_key key = { .present = false };
	int r = get_revision(answer, &key.revision, err);
	if (r < 0)
		return r;
	bool won = json_is_true(json_object_get(answer, "succeeded"));
	const json_t *response = json_array_get(json_object_get(answer, "responses"), 0);
	if (won) {
		key.create_revision = key.revision;
	} else {
		r = get_pair(json_object_get(response, "response_range"), &key, err);
		if (r < 0)
			return r;
	}
	*ret_won = won;
	*ret_key = key;
	return 0;
}

int etcd_get_grant(const char *text, size_t len, int64_t *ret_lease, uint64_t *ret_ttl_s,
		   struct err *err)
{
	AUTO(json_drop) json_t *answer = load(text, len);
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
	AUTO(json_drop) json_t *answer = load(text, len);
	const json_t *result = json_object_get(answer, "result");
	int64_t ttl_s;
	if (!json_is_object(result) || get_number(result, "TTL", &ttl_s) < 0)
		return wrong(err, "time to live");
	*ret_alive = ttl_s > 0;
	return 0;
}

/* It goes into a header: nothing that could end one. */
int etcd_get_token(const char *text, size_t len, char ret_token[ETCD_TOKEN_MAX], struct err *err)
{
	AUTO(json_drop) json_t *answer = load(text, len);
	const char *token = json_string_value(json_object_get(answer, "token"));
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
static void get_reason(const json_t *member, char reason[ETCD_REASON_MAX])
{
	const char *text = json_is_string(member) ? json_string_value(member) : "";
	size_t len = 0;
	for (; text[len] && len < ETCD_REASON_MAX - 1; len++)
		reason[len] = text[len] >= ' ' && text[len] <= '~' ? text[len] : '?';
	reason[len] = '\0';
}

/* Depending on the request, the reason is in "error", or "error" is an object that has it. */
static void answer_error(const json_t *answer, char reason[ETCD_REASON_MAX])
{
	const json_t *error = json_object_get(answer, "error");
	get_reason(json_is_object(error) ? json_object_get(error, "message") : error, reason);
}

void etcd_get_error(const char *text, size_t len, char ret_reason[ETCD_REASON_MAX])
{
	AUTO(json_drop) json_t *answer = load(text, len);
	answer_error(answer, ret_reason);
}

int etcd_get_watch(const char *text, size_t len, enum etcd_watch *ret_what, struct err *err)
{
	AUTO(json_drop) json_t *answer = load(text, len);
	const json_t *result = json_object_get(answer, "result");
	char reason[ETCD_REASON_MAX];
	if (json_object_get(answer, "error")) {
		answer_error(answer, reason);
		return err_set(err, ECANCELED, "%s", *reason ? reason : "no reason given");
	}
	if (!json_is_object(result))
		return wrong(err, "result");
	if (json_is_true(json_object_get(result, "canceled"))) {
		get_reason(json_object_get(result, "cancel_reason"), reason);
		return err_set(err, ECANCELED, "%s", *reason ? reason : "no reason given");
	}
	bool changed = json_array_size(json_object_get(result, "events")) > 0;
	*ret_what = changed ? ETCD_WATCH_CHANGED : ETCD_WATCH_NOTHING;
	return 0;
}
