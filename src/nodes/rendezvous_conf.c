#include "nodes/rendezvous_conf.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"

enum value_kind {
	VALUE_TIME,  /* more than 0 */
	VALUE_DELAY, /* 0 or more */
	VALUE_COUNT, /* 1 or more */
	VALUE_RANK,  /* 0 or more */
	VALUE_HOST,
	VALUE_QUORUM,
	VALUE_AUTH,
	VALUE_TEXT,
	VALUE_TCP, /* the only choice */
	VALUE_UNUSED,
};

#define KEY(key, kind, field) \
	{ \
		key, kind, offsetof(struct rendezvous_conf, field) \
	}

static const struct key {
	const char *name;
	enum value_kind kind;
	size_t offset;
} keys[] = {
	KEY("join_timeout", VALUE_TIME, join_timeout_ns),
	KEY("last_call_timeout", VALUE_TIME, last_call_ns),
	KEY("close_timeout", VALUE_TIME, close_timeout_ns),
	KEY("timeout", VALUE_TIME, timeout_ns),
	KEY("keep_alive_interval", VALUE_TIME, keep_alive_ns),
	KEY("keep_alive_max_attempt", VALUE_COUNT, keep_alive_attempts),
	KEY("scale_up_delay", VALUE_DELAY, scale_up_delay_ns),
	KEY("failover_after", VALUE_TIME, failover_after_ns),
	KEY("rank", VALUE_RANK, rank),
	KEY("is_host", VALUE_HOST, host),
	KEY("quorum", VALUE_QUORUM, quorum),
	KEY("auth", VALUE_AUTH, auth),
	KEY("token_file", VALUE_TEXT, token_file),
	/* With the names of torchrun's two etcd backends. */
	KEY("protocol", VALUE_TEXT, protocol),
	KEY("cacert", VALUE_TEXT, ca_file),
	KEY("ca_cert", VALUE_TEXT, ca_file),
	KEY("cert", VALUE_TEXT, cert_file),
	KEY("ssl_cert", VALUE_TEXT, cert_file),
	KEY("key", VALUE_TEXT, key_file),
	KEY("ssl_cert_key", VALUE_TEXT, key_file),
	KEY("etcd_prefix", VALUE_TEXT, etcd_prefix),
	KEY("user", VALUE_TEXT, user),
	KEY("password_file", VALUE_TEXT, password_file),
	KEY("lease_ttl", VALUE_COUNT, lease_ttl_s),
	{ "store_type", VALUE_TCP, 0 },
	{ "read_timeout", VALUE_UNUSED, 0 },
	{ "heartbeat_timeout", VALUE_UNUSED, 0 },
};

static const struct key *find_key(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (str_eq(keys[i].name, name))
			return &keys[i];
	return NULL;
}

static const char *nearest_key(const char *name)
{
	const char *nearest = NULL;
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		nearest = str_nearest(name, keys[i].name, nearest);
	return nearest;
}

static int to_time(const char *value, uint64_t *ret_ns)
{
	return str_to_duration_ns(value, ret_ns) < 0 || *ret_ns == 0 ? -EINVAL : 0;
}

static int to_number(const char *value, uint64_t least, uint64_t *ret_number)
{
	return str_to_u64(value, ret_number) < 0 || *ret_number < least || *ret_number > INT32_MAX
		       ? -EINVAL
		       : 0;
}

static int to_host(const char *value, enum rendezvous_host *ret_host)
{
	static const char *const yes[] = { "1", "true", "t", "yes", "y" };
	static const char *const no[] = { "0", "false", "f", "no", "n" };
	static_assert(ARRAY_LEN(yes) == ARRAY_LEN(no), "as many ways to say either");
	for (size_t i = 0; i < ARRAY_LEN(yes); i++) {
		if (strcasecmp(value, yes[i]) == 0)
			*ret_host = RENDEZVOUS_HOST_YES;
		else if (strcasecmp(value, no[i]) == 0)
			*ret_host = RENDEZVOUS_HOST_NO;
		else
			continue;
		return 0;
	}
	return -EINVAL;
}

static int to_quorum(const char *value, enum quorum_rule *ret_quorum)
{
	if (!str_eq(value, "any") && !str_eq(value, "majority"))
		return -EINVAL;
	*ret_quorum = str_eq(value, "any") ? QUORUM_ANY : QUORUM_MAJORITY;
	return 0;
}

static int to_auth(const char *value, enum rendezvous_auth *ret_auth)
{
	static const char *const names[] = { [RENDEZVOUS_AUTH_AUTO] = "auto",
					     [RENDEZVOUS_AUTH_NONE] = "none",
					     [RENDEZVOUS_AUTH_TOKEN] = "token",
					     [RENDEZVOUS_AUTH_MUNGE] = "munge" };
	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (str_eq(value, names[i])) {
			*ret_auth = (enum rendezvous_auth)i;
			return 0;
		}
	return -EINVAL;
}

static int take_value(const struct key *key, const char *value, struct rendezvous_conf *conf)
{
	void *field = (char *)conf + key->offset;
	switch (key->kind) {
	case VALUE_TIME:
		return to_time(value, field);
	case VALUE_DELAY:
		return str_to_duration_ns(value, field);
	case VALUE_COUNT:
		return to_number(value, 1, field);
	case VALUE_RANK:
		return to_number(value, 0, field);
	case VALUE_HOST:
		return to_host(value, field);
	case VALUE_QUORUM:
		return to_quorum(value, field);
	case VALUE_AUTH:
		return to_auth(value, field);
	case VALUE_TEXT:
		free(*(char **)field);
		*(char **)field = mem_strdup(value);
		return 0;
	case VALUE_TCP:
		return str_eq(value, "tcp") ? 0 : -EINVAL;
	case VALUE_UNUSED:
		log_debug("--rdzv-conf: '%s' has no effect: nothing in muster waits for that",
			  key->name);
		return 0;
	}
	return -EINVAL;
}

static const char *expected(enum value_kind kind)
{
	static const char *const texts[] = {
		[VALUE_TIME] = "a time above 0, such as 30 or 1.5s",
		[VALUE_DELAY] = "a time, such as 5 or 200ms",
		[VALUE_COUNT] = "a number from 1 on",
		[VALUE_RANK] = "a number from 0 on",
		[VALUE_HOST] = "true or false",
		[VALUE_QUORUM] = "majority or any",
		[VALUE_AUTH] = "munge, token, none or auto",
		[VALUE_TEXT] = "a text",
		[VALUE_TCP] = "tcp, which is the only store there is",
		[VALUE_UNUSED] = "a value",
	};
	return texts[kind];
}

/* Without the blanks around it. */
static char *trimmed(const char *text, size_t len)
{
	text = str_trim(text, &len);
	return mem_strndup(text, len);
}

static int take_pair(const char *text, size_t len, struct rendezvous_conf *conf, struct err *err)
{
	const char *sign = memchr(text, '=', len);
	AUTO_FREE char *name = trimmed(text, sign ? (size_t)(sign - text) : len);
	AUTO_FREE char *value =
		sign ? trimmed(sign + 1, len - (size_t)(sign + 1 - text)) : mem_strdup("");
	if (!*name || !*value)
		return err_set(err, EINVAL, "--rdzv-conf: '%.*s' is not KEY=VALUE",
			       (int)MIN(len, 64), text);
	const struct key *key = find_key(name);
	if (!key) {
		const char *nearest = nearest_key(name);
		log_warn("--rdzv-conf: '%s' is unknown and has no effect%s%s%s", name,
			 nearest ? "; did you mean '" : "", nearest ? nearest : "",
			 nearest ? "'?" : "");
		return 0;
	}
	if (take_value(key, value, conf) < 0)
		return err_set(err, EINVAL, "--rdzv-conf: '%s=%.64s' is not %s", name, value,
			       expected(key->kind));
	return 0;
}

/* Quotes around the whole, which a shell did not take off. */
static char *without_quotes(const char *text)
{
	size_t len = strlen(text);
	bool quoted = len >= 2 && (*text == '\'' || *text == '"') && text[len - 1] == *text;
	return quoted ? mem_strndup(text + 1, len - 2) : mem_strdup(text);
}

int rendezvous_conf_parse(const char *text, struct rendezvous_conf *ret_conf, struct err *err)
{
	struct rendezvous_conf conf = {
		.join_timeout_ns = RENDEZVOUS_CONF_UNSET,
		.last_call_ns = RENDEZVOUS_CONF_UNSET,
		.close_timeout_ns = RENDEZVOUS_CONF_UNSET,
		.timeout_ns = RENDEZVOUS_CONF_UNSET,
		.keep_alive_ns = RENDEZVOUS_CONF_UNSET,
		.keep_alive_attempts = RENDEZVOUS_CONF_UNSET,
		.scale_up_delay_ns = RENDEZVOUS_CONF_UNSET,
		.failover_after_ns = RENDEZVOUS_CONF_UNSET,
		.rank = RENDEZVOUS_CONF_UNSET,
		.lease_ttl_s = RENDEZVOUS_CONF_UNSET,
		.host = RENDEZVOUS_HOST_WHO_CAN,
		.quorum = QUORUM_LEASE,
	};
	AUTO_FREE char *bare = without_quotes(text);
	const char *rest = bare, *piece;
	size_t len;
	while (*bare && (piece = str_split(&rest, ',', &len))) {
		int r = take_pair(piece, len, &conf, err);
		if (r < 0) {
			rendezvous_conf_done(&conf);
			return r;
		}
	}
	*ret_conf = conf;
	return 0;
}

void rendezvous_conf_done(struct rendezvous_conf *conf)
{
	for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
		if (keys[i].kind != VALUE_TEXT)
			continue;
		char **text = (char **)((char *)conf + keys[i].offset);
		free(*text);
		*text = NULL;
	}
}
