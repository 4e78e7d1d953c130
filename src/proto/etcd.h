/* The requests to etcd's JSON gateway (version 3.4 and later, /v3/...) that an election needs, and
 * their answers.
 *
 * Keys and values are base64 in JSON, numbers are strings, and members that are 0 are left out.
 * Answers come from outside: lengths are checked before anything is kept, unknown members are
 * skipped, and missing ones make the answer wrong (-EPROTO). */
#ifndef PROTO_ETCD_H
#define PROTO_ETCD_H

#include "base/buf.h"
#include "base/err.h"

#define ETCD_ANSWER_MAX ((size_t)65536) /* bytes of an answer, or of one message of a watch */
#define ETCD_VALUE_MAX 320		/* characters of our key's value, with the NUL */
#define ETCD_TOKEN_MAX 4096

#define ETCD_PATH_READ "/v3/kv/range"
#define ETCD_PATH_CAMPAIGN "/v3/kv/txn"
#define ETCD_PATH_GRANT "/v3/lease/grant"
#define ETCD_PATH_KEEP "/v3/lease/keepalive"
#define ETCD_PATH_REVOKE "/v3/lease/revoke"
#define ETCD_PATH_WATCH "/v3/watch"
#define ETCD_PATH_AUTHENTICATE "/v3/auth/authenticate"

/* Bodies of requests, appended to `body`. */
void etcd_put_read(struct buf *body, const char *key);
void etcd_put_campaign(struct buf *body, const char *key, const char *value, int64_t lease);
/* Writes `past` if the key is the one created at `epoch`. */
void etcd_put_record(struct buf *body, const char *key, uint64_t epoch, const char *past,
		     const char *value, int64_t lease);
void etcd_put_grant(struct buf *body, uint64_t ttl_s);
void etcd_put_lease(struct buf *body, int64_t lease); /* KEEP and REVOKE */
void etcd_put_watch(struct buf *body, const char *key, uint64_t from_revision);
int etcd_put_authenticate(struct buf *body, const char *user,
			  const char *password); /* -EINVAL: not UTF-8 */

struct etcd_key {
	bool present;
	char value[ETCD_VALUE_MAX]; /* empty if it is too long or has a NUL */
	uint64_t create_revision;
	int64_t lease;	   /* 0: none */
	uint64_t revision; /* of the store */
};

int etcd_get_read(const char *text, size_t len, struct etcd_key *ret_key, struct err *err);

/* Whether the key was created now; if so its create_revision, else the existing key. */
int etcd_get_campaign(const char *text, size_t len, bool *ret_won, struct etcd_key *ret_key,
		      struct err *err);
/* Whether it was written. */
int etcd_get_record(const char *text, size_t len, bool *ret_done, struct err *err);
int etcd_get_grant(const char *text, size_t len, int64_t *ret_lease, uint64_t *ret_ttl_s,
		   struct err *err);
int etcd_get_keep(const char *text, size_t len, bool *ret_alive, struct err *err);
int etcd_get_token(const char *text, size_t len, char ret_token[ETCD_TOKEN_MAX], struct err *err);

enum etcd_watch {
	ETCD_WATCH_NOTHING, /* begun, or a sign of life */
	ETCD_WATCH_CHANGED,
};

/* One message of a watch. -ECANCELED: etcd ends it; `err` has its reason. */
int etcd_get_watch(const char *text, size_t len, enum etcd_watch *ret_what, struct err *err);

/* The reason in the answer to a failed request; printable, "" if there is none. */
#define ETCD_REASON_MAX 200
void etcd_get_error(const char *text, size_t len, char ret_reason[ETCD_REASON_MAX]);

#endif
