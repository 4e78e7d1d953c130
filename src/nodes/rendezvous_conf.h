/* --rdzv-conf: "key=value,key=value". */
#ifndef NODES_RENDEZVOUS_CONF_H
#define NODES_RENDEZVOUS_CONF_H

#include "nodes/rendezvous.h"

#define RENDEZVOUS_CONF_UNSET UINT64_MAX

enum rendezvous_auth {
	RENDEZVOUS_AUTH_AUTO,
	RENDEZVOUS_AUTH_NONE,
	RENDEZVOUS_AUTH_TOKEN,
	RENDEZVOUS_AUTH_MUNGE,
};

struct rendezvous_conf {
	uint64_t join_timeout_ns, last_call_ns, close_timeout_ns, timeout_ns;
	uint64_t keep_alive_ns, keep_alive_attempts;
	uint64_t scale_up_delay_ns, failover_after_ns;
	uint64_t rank;
	enum rendezvous_host host;
	enum quorum_rule quorum;
	enum rendezvous_auth auth;
	char *token_file;
	/* Of etcd; NULL: not given. */
	char *protocol, *ca_file, *cert_file, *key_file;
	char *user, *password_file, *etcd_prefix;
	uint64_t lease_ttl_s;
};

/* Numbers that are not given stay RENDEZVOUS_CONF_UNSET. -EINVAL: a usage error. Logs keys of
 * torchrun that muster does not need at debug level, and warns of unknown ones. */
int rendezvous_conf_parse(const char *text, struct rendezvous_conf *ret_conf, struct err *err);
void rendezvous_conf_done(struct rendezvous_conf *conf);

#endif
