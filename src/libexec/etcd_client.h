/* Requests to the JSON gateway of etcd, one at a time, and one watch beside them, over HTTP or
 * HTTPS.
 *
 * It logs in when there is a user, and again when etcd rejects the token. It neither chooses among
 * the endpoints nor retries. */
#ifndef LIBEXEC_ETCD_CLIENT_H
#define LIBEXEC_ETCD_CLIENT_H

#include "base/strv.h"
#include "base/err.h"

struct etcd_client_config {
	struct strv endpoints; /* "http://host:port" or "https://host:port" */
	const char *user;      /* NULL: no log-in */
	const char *password;
	const char *ca_file;   /* NULL: the authorities of the system */
	const char *cert_file; /* NULL: no client certificate */
	const char *key_file;
	uint64_t timeout_ns; /* of a request, connection included */
};

enum etcd_client_what {
	ETCD_CLIENT_NOTHING,	/* the time is up, or `fd` is readable */
	ETCD_CLIENT_ANSWER,	/* to the request: text, len */
	ETCD_CLIENT_FAILED,	/* the request: reason */
	ETCD_CLIENT_MESSAGE,	/* of the watch: text, len */
	ETCD_CLIENT_WATCH_DOWN, /* reason */
};

#define ETCD_CLIENT_REASON_MAX 512

/* Borrowed until the next call. */
struct etcd_client_event {
	enum etcd_client_what what;
	const char *text;
	size_t len;
	const char *reason;
};

struct etcd_client;

/* Borrows `config`. */
int etcd_client_new(const struct etcd_client_config *config, struct etcd_client **ret_client,
		    struct err *err);
void etcd_client_free(struct etcd_client *client);

/* Both replace a request or watch that is under way. */
void etcd_client_ask(struct etcd_client *client, size_t endpoint, const char *path,
		     const char *body);
void etcd_client_watch(struct etcd_client *client, size_t endpoint, const char *body);

/* Works until there is an event, `fd` is readable, or the deadline has passed. */
struct etcd_client_event etcd_client_wait(struct etcd_client *client, int fd, uint64_t deadline_ns);

#endif
