#include "nodes/rendezvous.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/str.h"
#include "base/strv.h"
#include "core/rounds/fence.h"
#include "core/rounds/finder.h"
#include "net/munge_client.h"
#include "nodes/rendezvous_conf.h"

/* ---- etcd ---- */

/* The command line of muster-discover-etcd(1) for `--rdzv-backend=etcd`. */
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

/* The program and its options, without run id and address; `endpoints` as typed. -EINVAL: a usage
 * error. */
static int rendezvous_etcd_args(const char *endpoints, const struct rendezvous_conf *conf,
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

/* The host of the first endpoint, for the route to etcd; "" if there is none. */
static void rendezvous_etcd_host(const char *endpoints, char ret_host[ADDR_HOST_MAX])
{
	const char *scheme = strstr(endpoints, "://");
	const char *from = scheme ? scheme + strlen("://") : endpoints;
	AUTO_FREE char *first = mem_strndup(from, strcspn(from, ",/"));
	struct addr_name name = { .host = "" };
	addr_name_parse(first, 0, &name, NULL);
	memcpy(ret_host, name.host, ADDR_HOST_MAX);
}

/* Logs options that have no effect without etcd. */
static void rendezvous_etcd_unused(const struct rendezvous_conf *conf)
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

#define JOIN_TIMEOUT_NS (600 * NS_PER_S)
#define STATIC_TIMEOUT_NS (900 * NS_PER_S)
#define FAILOVER_AFTER_NS (10 * NS_PER_S)
#define EXEC_PREFIX "exec:"

static uint64_t given_or(uint64_t value, uint64_t otherwise)
{
	return value == RENDEZVOUS_CONF_UNSET ? otherwise : value;
}

static bool is_given(const char *text)
{
	return text && *text;
}

/* ---- endpoints ---- */

static int add_endpoint(const char *text, uint16_t default_port, struct rendezvous *rdzv,
			struct err *err)
{
	if (rdzv->endpoint_count == FINDER_ENDPOINTS_MAX)
		return err_set(err, EINVAL, "--rdzv-endpoint: more than %d endpoints",
			       FINDER_ENDPOINTS_MAX);
	if (strstr(text, "://"))
		return err_set(
			err, EINVAL,
			"--rdzv-endpoint: '%s' is a URL; give a host and a port, as in node1:%u",
			text, default_port);
	struct addr_name *name = &rdzv->endpoints[rdzv->endpoint_count];
	int r = addr_name_parse(text, default_port, name, err);
	if (r < 0)
		return err_wrap(err, "--rdzv-endpoint");
	if (!*name->host)
		snprintf(name->host, sizeof(name->host), "localhost");
	rdzv->endpoint_count++;
	return 0;
}

static int parse_endpoints(const char *text, uint16_t default_port, struct rendezvous *rdzv,
			   struct err *err)
{
	rdzv->endpoints = NEW_ARRAY(struct addr_name, FINDER_ENDPOINTS_MAX);
	const char *rest = text, *piece;
	size_t len;
	while ((piece = str_split(&rest, ',', &len))) {
		piece = str_trim(piece, &len);
		AUTO_FREE char *one = mem_strndup(piece, len);
		int r = add_endpoint(one, default_port, rdzv, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- backends ---- */

static int choose_c10d(const struct rendezvous_options *options, const struct rendezvous_conf *conf,
		       uint32_t max_nodes, struct rendezvous *rdzv, struct err *err)
{
	(void)conf;
	int r = parse_endpoints(options->endpoint, RENDEZVOUS_C10D_PORT, rdzv, err);
	if (r < 0)
		return r;
	bool nameless = false;
	for (size_t i = 0; i < rdzv->endpoint_count; i++)
		nameless |= rdzv->endpoints[i].port == 0;
	/* No other node could find the port: torchrun's way to say "on this host". */
	if (nameless && max_nodes > 1)
		return err_set(err, EINVAL,
			       "--rdzv-endpoint: '%.64s': other nodes cannot find port 0",
			       options->endpoint);
	bool alone = max_nodes == 1 && (nameless || !is_given(options->endpoint));
	rdzv->kind = alone ? RENDEZVOUS_LOCAL : RENDEZVOUS_ENDPOINTS;
	return 0;
}

static int static_endpoint(const struct rendezvous_options *options, struct rendezvous *rdzv,
			   struct err *err)
{
	bool port_given = options->master_port != RENDEZVOUS_PORT_UNSET;
	if (is_given(options->endpoint)) {
		int r = parse_endpoints(options->endpoint, 0, rdzv, err);
		if (r == 0 && rdzv->endpoint_count > 1)
			return err_set(err, EINVAL, "--rdzv-endpoint: static has one endpoint");
		if (r == 0 && rdzv->endpoints[0].port == 0)
			return err_set(err, EINVAL, "--rdzv-endpoint: '%.64s': static needs a port",
				       options->endpoint);
		return r;
	}
	rdzv->endpoints = NEW_ARRAY(struct addr_name, 1);
	rdzv->endpoint_count = 1;
	struct addr_name *name = &rdzv->endpoints[0];
	const char *host = is_given(options->master_addr) ? options->master_addr : "127.0.0.1";
	int r = addr_name_parse(host, 0, name, err);
	if (r < 0)
		return err_wrap(err, "--master-addr");
	name->port = port_given ? (uint16_t)options->master_port : RENDEZVOUS_STATIC_PORT;
	return 0;
}

/* With one node it only gives the address of the workers' store. */
static int choose_static(const struct rendezvous_options *options,
			 const struct rendezvous_conf *conf, uint32_t max_nodes,
			 struct rendezvous *rdzv, struct err *err)
{
	(void)conf;
	if (rdzv->node_rank < 0)
		rdzv->node_rank = 0;
	if (max_nodes == 1)
		return 0;
	rdzv->is_static = true;
	rdzv->kind = RENDEZVOUS_ENDPOINTS;
	rdzv->host = rdzv->node_rank == 0 ? RENDEZVOUS_HOST_YES : RENDEZVOUS_HOST_NO;
	return static_endpoint(options, rdzv, err);
}

static int choose_unnamed(const struct rendezvous_options *options,
			  const struct rendezvous_conf *conf, uint32_t max_nodes,
			  struct rendezvous *rdzv, struct err *err)
{
	if (is_given(options->endpoint)) {
		rdzv->backend = "c10d";
		return choose_c10d(options, conf, max_nodes, rdzv, err);
	}
	if (is_given(options->master_addr) || options->master_port != RENDEZVOUS_PORT_UNSET ||
	    rdzv->node_rank >= 0)
		return choose_static(options, conf, max_nodes, rdzv, err);
	if (max_nodes > 1)
		return err_set(err, EINVAL,
			       "--nnodes: '%.64s': several nodes need --rdzv-endpoint=HOST, the "
			       "same on all of "
			       "them, or --master-addr=HOST and --node-rank=N",
			       options->nnodes);
	rdzv->backend = "c10d"; /* as torchrun calls it */
	return 0;
}

static int choose_etcd(const struct rendezvous_options *options, const struct rendezvous_conf *conf,
		       uint32_t max_nodes, struct rendezvous *rdzv, struct err *err)
{
	(void)max_nodes;
	rdzv->kind = RENDEZVOUS_PROGRAM;
	rdzv->is_etcd = true;
	rendezvous_etcd_host(options->endpoint, rdzv->program_reaches);
	return rendezvous_etcd_args(options->endpoint, conf, &rdzv->program, err);
}

static int choose_exec(const struct rendezvous_options *options, const struct rendezvous_conf *conf,
		       uint32_t max_nodes, struct rendezvous *rdzv, struct err *err)
{
	(void)conf, (void)max_nodes, (void)err;
	rdzv->kind = RENDEZVOUS_PROGRAM;
	strv_add(&rdzv->program, options->backend + strlen(EXEC_PREFIX));
	return 0;
}

static const struct backend {
	const char *name;
	int (*choose)(const struct rendezvous_options *options, const struct rendezvous_conf *conf,
		      uint32_t max_nodes, struct rendezvous *rdzv, struct err *err);
} backends[] = { { "static", choose_static },
		 { "c10d", choose_c10d },
		 { "etcd", choose_etcd },
		 { "etcd-v2", choose_etcd } },
  backend_exec = { EXEC_PREFIX, choose_exec };

static const struct backend *find_backend(const char *name)
{
	for (size_t i = 0; i < ARRAY_LEN(backends); i++)
		if (str_eq(name, backends[i].name))
			return &backends[i];
	if (str_starts(name, EXEC_PREFIX) && name[strlen(EXEC_PREFIX)])
		return &backend_exec;
	return NULL;
}

bool rendezvous_has_backend(const char *name)
{
	return find_backend(name) != NULL;
}

static int choose_backend(const struct rendezvous_options *options,
			  const struct rendezvous_conf *conf, uint32_t max_nodes,
			  struct rendezvous *rdzv, struct err *err)
{
	const char *name = options->backend;
	if (options->standalone) {
		rdzv->backend = "c10d";
		if (max_nodes > 1)
			return err_set(err, EINVAL,
				       "--standalone: there is one node, and --nnodes is '%.64s'",
				       options->nnodes);
		return 0;
	}
	rdzv->backend = "static";
	if (!is_given(name))
		return choose_unnamed(options, conf, max_nodes, rdzv, err);
	rdzv->backend = name;
	const struct backend *backend = find_backend(name);
	if (backend)
		return backend->choose(options, conf, max_nodes, rdzv, err);
	return err_set(
		err, EINVAL,
		"--rdzv-backend: '%.64s' is not one of c10d, static, etcd, etcd-v2, exec:PROGRAM",
		name);
}

/* ---- the rest ---- */

static int take_node_rank(const struct rendezvous_options *options,
			  const struct rendezvous_conf *conf, uint32_t max_nodes,
			  struct rendezvous *rdzv, struct err *err)
{
	int64_t rank = options->node_rank != RENDEZVOUS_RANK_UNSET ? options->node_rank
		       : conf->rank != RENDEZVOUS_CONF_UNSET	   ? (int64_t)conf->rank
								   : -1;
	if (options->node_rank != RENDEZVOUS_RANK_UNSET && (rank < 0 || rank >= max_nodes))
		return err_set(err, EINVAL,
			       "--node-rank: %" PRId64
			       " must be below the number of nodes, which is %u",
			       rank, max_nodes);
	rdzv->node_rank = (int32_t)MIN(rank, INT32_MAX);
	return 0;
}

/* Removes the token from the environment so that no child inherits it or reads it in /proc. */
static int take_token(const char *file, struct rendezvous *rdzv, struct err *err)
{
	int r = token_load(file, &rdzv->token, err);
	token_hide();
	if (r < 0)
		return err_wrap(err, "the token");
	rdzv->has_token = r > 0;
	return 0;
}

/* How agents prove that they belong to the job: by a token if there is one, else by munge where an
 * engine says that its hosts have it. */
static int choose_auth(const struct rendezvous_options *options, const struct rendezvous_conf *conf,
		       struct rendezvous *rdzv, struct err *err)
{
	int r = take_token(conf->token_file, rdzv, err);
	if (r < 0)
		return r;
	if (conf->auth == RENDEZVOUS_AUTH_TOKEN && !rdzv->has_token)
		return err_set(err, EINVAL,
			       "--rdzv-conf: auth=token needs token_file=FILE or " TOKEN_VARIABLE);
	rdzv->no_guard = conf->auth == RENDEZVOUS_AUTH_NONE;
	if (rdzv->no_guard || conf->auth == RENDEZVOUS_AUTH_MUNGE)
		rdzv->has_token = false;
	bool by_munge = conf->auth == RENDEZVOUS_AUTH_MUNGE ||
			(conf->auth == RENDEZVOUS_AUTH_AUTO && options->munge && !rdzv->has_token);
	if (!by_munge || rdzv->kind == RENDEZVOUS_LOCAL)
		return 0;
	struct err why = ERR_INIT;
	r = munge_client_try(&why);
	if (r < 0 && conf->auth == RENDEZVOUS_AUTH_MUNGE)
		return err_set(err, EIO, "--rdzv-conf: auth=munge: %s", why.msg);
	if (r < 0)
		log_warn("munge cannot be used: %s", why.msg);
	rdzv->munge = r == 0;
	return 0;
}

static void take_times(const struct rendezvous_conf *conf, struct rendezvous *rdzv)
{
	const struct coordinator_config usual = COORDINATOR_CONFIG_INIT;
	bool by_timeout = rdzv->is_static || rdzv->is_etcd;
	uint64_t join_ns =
		by_timeout ? given_or(conf->timeout_ns, STATIC_TIMEOUT_NS) : JOIN_TIMEOUT_NS;
	rdzv->join_timeout_ns = given_or(conf->join_timeout_ns, join_ns);
	rdzv->last_call_ns = given_or(conf->last_call_ns, usual.last_call_ns);
	rdzv->close_timeout_ns = given_or(conf->close_timeout_ns, usual.close_timeout_ns);
	rdzv->scale_up_delay_ns = given_or(conf->scale_up_delay_ns, usual.scale_up_delay_ns);
	rdzv->failover_after_ns = given_or(conf->failover_after_ns, FAILOVER_AFTER_NS);
	rdzv->period_ns = given_or(conf->keep_alive_ns, 0);
	/* torchrun counts a node as dead after this many periods of silence; our agent gives up one
	 * earlier. */
	uint64_t attempts = given_or(conf->keep_alive_attempts, FENCE_LEASE_PERIODS + 1);
	rdzv->lease_periods = (uint32_t)MAX(attempts - 1, 1);
	if (conf->timeout_ns != RENDEZVOUS_CONF_UNSET && !by_timeout)
		log_debug("--rdzv-conf: 'timeout' has no effect with %s: see join_timeout",
			  rdzv->backend);
}

/* Only the owner of the only endpoint can coordinate. Where a program may give a lease, that
 * decides for jobs of which less than a majority could go on; the others do not depend on the
 * program. */
static enum quorum_rule choose_quorum(enum quorum_rule given, const struct rendezvous *rdzv,
				      uint32_t min_nodes)
{
	if (rdzv->kind != RENDEZVOUS_PROGRAM && rdzv->endpoint_count <= 1)
		return QUORUM_ANY;
	bool by_lease = rdzv->kind == RENDEZVOUS_PROGRAM && min_nodes <= rdzv->max_nodes / 2;
	return given == QUORUM_LEASE && !by_lease ? QUORUM_MAJORITY : given;
}

static int fill(const struct rendezvous_options *options, const struct rendezvous_conf *conf,
		uint32_t min_nodes, uint32_t max_nodes, struct rendezvous *rdzv, struct err *err)
{
	rdzv->min_nodes = min_nodes;
	rdzv->max_nodes = max_nodes;
	rdzv->host = conf->host;
	rdzv->local_addr = is_given(options->local_addr) ? options->local_addr : NULL;
	rdzv->endpoint_text = options->endpoint;
	rdzv->conf = options->conf;
	int r;
	if ((r = take_node_rank(options, conf, max_nodes, rdzv, err)) < 0 ||
	    (r = choose_backend(options, conf, max_nodes, rdzv, err)) < 0 ||
	    (r = choose_auth(options, conf, rdzv, err)) < 0)
		return r;
	rdzv->quorum = choose_quorum(conf->quorum, rdzv, min_nodes);
	take_times(conf, rdzv);
	if (!rdzv->is_etcd)
		rendezvous_etcd_unused(conf);
	return 0;
}

int rendezvous_make(const struct rendezvous_options *options, uint32_t min_nodes,
		    uint32_t max_nodes, struct rendezvous *ret_rdzv, struct err *err)
{
	struct rendezvous rdzv = RENDEZVOUS_INIT;
	struct rendezvous_conf conf;
	int r = rendezvous_conf_parse(options->conf, &conf, err);
	if (r < 0)
		return r;
	r = fill(options, &conf, min_nodes, max_nodes, &rdzv, err);
	rendezvous_conf_done(&conf);
	if (r < 0) {
		rendezvous_done(&rdzv);
		return r;
	}
	*ret_rdzv = rdzv;
	return 0;
}

void rendezvous_done(struct rendezvous *rdzv)
{
	free(rdzv->endpoints);
	strv_done(&rdzv->program);
	token_forget(&rdzv->token);
	*rdzv = RENDEZVOUS_INIT;
}

uint64_t rendezvous_period_ns(const struct rendezvous *rdzv, uint32_t max_nodes)
{
	return rdzv->period_ns ? rdzv->period_ns : fence_period_ns(max_nodes);
}
