#include "nodes/rendezvous_etcd.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"

#define PROGRAM "muster-discover-etcd"
#define DEFAULT_ENDPOINT "localhost"
#define LEASE_TTL_S_MAX 3600 /* the limit of muster-discover-etcd */

static void add_option(struct strv *args, const char *name, const char *value)
{
	if (value)
		strv_take(args, mem_printf("--%s=%s", name, value));
}

/* Adds the scheme to every endpoint that has none. */
static void add_endpoints(struct strv *args, const char *text, const char *protocol)
{
	AUTO(buf_done) struct buf list = BUF_INIT;
	const char *rest = *text ? text : DEFAULT_ENDPOINT, *piece;
	size_t len;
	while ((piece = str_split(&rest, ',', &len))) {
		piece = str_trim(piece, &len);
		AUTO_FREE char *endpoint = mem_strndup(piece, len);
		bool has_scheme = strstr(endpoint, "://");
		buf_printf(&list, "%s%s%s%s", buf_len(&list) ? "," : "",
			   protocol && !has_scheme ? protocol : "",
			   protocol && !has_scheme ? "://" : "", endpoint);
	}
	add_option(args, "endpoints", buf_str(&list));
}

int rendezvous_etcd_args(const char *endpoints, const struct rendezvous_conf *conf,
			 struct strv *ret_args, struct err *err)
{
	if (conf->protocol && !str_eq(conf->protocol, "http") && !str_eq(conf->protocol, "https"))
		return err_set(err, EINVAL,
			       "--rdzv-conf: 'protocol=%.32s' is neither http nor https",
			       conf->protocol);
	if (!conf->user != !conf->password_file)
		return err_set(err, EINVAL,
			       "--rdzv-conf: 'user' and 'password_file' need each other");
	bool has_ttl = conf->lease_ttl_s != RENDEZVOUS_CONF_UNSET;
	if (has_ttl && conf->lease_ttl_s > LEASE_TTL_S_MAX)
		return err_set(err, EINVAL,
			       "--rdzv-conf: 'lease_ttl=%" PRIu64 "' is more than %d seconds",
			       conf->lease_ttl_s, LEASE_TTL_S_MAX);
	struct strv args = STRV_INIT;
	strv_take(&args, path_libexec(PROGRAM));
	add_endpoints(&args, endpoints, conf->protocol);
	add_option(&args, "ca-file", conf->ca_file);
	add_option(&args, "cert-file", conf->cert_file);
	add_option(&args, "key-file", conf->key_file);
	add_option(&args, "user", conf->user);
	add_option(&args, "password-file", conf->password_file);
	add_option(&args, "prefix", conf->etcd_prefix);
	if (has_ttl)
		strv_take(&args, mem_printf("--ttl=%" PRIu64, conf->lease_ttl_s));
	strv_add(&args, "--"); /* the run id may begin with a dash */
	*ret_args = args;
	return 0;
}

void rendezvous_etcd_host(const char *endpoints, char ret_host[ADDR_HOST_MAX])
{
	const char *scheme = strstr(endpoints, "://");
	const char *from = scheme ? scheme + strlen("://") : endpoints;
	AUTO_FREE char *first = mem_strndup(from, strcspn(from, ",/"));
	struct addr_name name = { .host = "" };
	addr_name_parse(first, 0, &name, NULL);
	memcpy(ret_host, name.host, ADDR_HOST_MAX);
}

void rendezvous_etcd_unused(const struct rendezvous_conf *conf)
{
	const struct {
		const char *name;
		bool given;
	} keys[] = {
		{ "protocol", conf->protocol != NULL },
		{ "the authority of etcd", conf->ca_file != NULL },
		{ "the certificate for etcd", conf->cert_file != NULL },
		{ "the key of the certificate for etcd", conf->key_file != NULL },
		{ "user", conf->user != NULL },
		{ "password_file", conf->password_file != NULL },
		{ "etcd_prefix", conf->etcd_prefix != NULL },
		{ "lease_ttl", conf->lease_ttl_s != RENDEZVOUS_CONF_UNSET },
	};
	for (size_t i = 0; i < ARRAY_LEN(keys); i++)
		if (keys[i].given)
			log_debug("--rdzv-conf: %s has no effect without etcd", keys[i].name);
}
