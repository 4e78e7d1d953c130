#include "libexec/etcd_options.h"

#include <errno.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/rounds/fence.h"
#include "core/worker/exit_code.h"
#include "proto/discovery_line.h"

#define DEFAULT_PORT "2379"
#define DEFAULT_PREFIX "/muster/"
#define DEFAULT_TTL_S 10
#define TTL_S_MAX 3600
#define ENDPOINTS_MAX 64
#define PASSWORD_MAX 4096
#define TIMEOUTS_PER_TTL 5 /* a lease outlives a few endpoints that do not answer */

static const char usage[] =
	"usage: muster-discover-etcd [options] RUN-ID HOST:PORT\n"
	"\n"
	"Chooses the coordinator of the job RUN-ID by an election through etcd, in which HOST:PORT "
	"is a\n"
	"candidate. Normally started by `muster run --rdzv-backend=etcd`.\n"
	"\n"
	"  --endpoints=LIST      [http://|https://]HOST[:PORT],... (default localhost:" DEFAULT_PORT
	")\n"
	"  --ca-file=FILE        trust the authorities in FILE (PEM), and speak TLS\n"
	"  --cert-file=FILE      our own certificate (PEM)\n"
	"  --key-file=FILE       its key (PEM)\n"
	"  --user=NAME           log in as NAME\n"
	"  --password-file=FILE  with the password in the first line of FILE\n"
	"  --prefix=TEXT         of the key in etcd (default " DEFAULT_PREFIX ")\n"
	"  --ttl=SECONDS         a leader that is silent for this long loses its place (default "
	"10)\n"
	"  --help, --version\n";

static int add_endpoint(const char *text, size_t len, const char *scheme, struct strv *endpoints,
			struct err *err)
{
	AUTO_FREE char *endpoint = mem_strndup(text, len);
	const char *host = endpoint;
	size_t host_len = strlen(host);
	if (str_starts(endpoint, "http://") || str_starts(endpoint, "https://")) {
		scheme = str_starts(endpoint, "https") ? "https://" : "http://";
		host = strstr(endpoint, "//") + 2;
		host_len = strcspn(host, "/");
	}
	if (host_len == 0 || strpbrk(host, " @?#") || endpoints->count == ENDPOINTS_MAX)
		return err_set(err, EINVAL, "--endpoints: '%.64s' is not HOST[:PORT]", endpoint);
	const char *bracket = memchr(host, ']', host_len);
	bool has_port = memchr(bracket ? bracket : host, ':',
			       host_len - (size_t)((bracket ? bracket : host) - host));
	strv_take(endpoints, mem_printf("%s%.*s%s", scheme, (int)host_len, host,
					has_port ? "" : ":" DEFAULT_PORT));
	return 0;
}

static int parse_endpoints(const char *text, const char *scheme, struct strv *endpoints,
			   struct err *err)
{
	const char *rest = text, *piece;
	size_t len;
	int r = 0;
	while (r == 0 && (piece = str_split(&rest, ',', &len)))
		r = add_endpoint(piece, len, scheme, endpoints, err);
	return r;
}

static int read_password(const char *path, char **ret_password, struct err *err)
{
	AUTO(buf_done) struct buf content = BUF_INIT;
	int r = file_read(path, PASSWORD_MAX, &content, err);
	if (r < 0)
		return err_wrap(err, "--password-file");
	const char *text = buf_str(&content);
	*ret_password = mem_strndup(text, strcspn(text, "\r\n"));
	return 0;
}

struct typed {
	const char *endpoints, *password_file, *ttl;
	bool help, version;
};

static int take_options(int argc, char **argv, struct etcd_options *options, struct typed *typed)
{
	const struct {
		const char *name;
		const char **text; /* NULL: a flag */
		bool *flag;
	} table[] = {
		{ "endpoints", &typed->endpoints, NULL },
		{ "ca-file", &options->client.ca_file, NULL },
		{ "cert-file", &options->client.cert_file, NULL },
		{ "key-file", &options->client.key_file, NULL },
		{ "user", &options->client.user, NULL },
		{ "password-file", &typed->password_file, NULL },
		{ "prefix", &options->prefix, NULL },
		{ "ttl", &typed->ttl, NULL },
		{ "help", NULL, &typed->help },
		{ "version", NULL, &typed->version },
	};
	struct option longs[ARRAY_LEN(table) + 1] = { { .name = NULL } };
	for (size_t i = 0; i < ARRAY_LEN(table); i++)
		longs[i] = (struct option){ table[i].name,
					    table[i].text ? required_argument : no_argument, NULL,
					    (int)i };
	for (int which; (which = getopt_long(argc, argv, "+", longs, NULL)) != -1;) {
		if (which == '?')
			return -EINVAL; /* getopt_long() has printed why */
		if (table[which].text)
			*table[which].text = optarg;
		else
			*table[which].flag = true;
	}
	return 0;
}

/* Workers must be dead when the lease ends, so the leader counts on it for that much less. Too
 * short a lease, given by the user, fences nothing. */
static void take_fence(struct etcd_options *options, bool has_ttl)
{
	const char *text = getenv("MUSTER_DISCOVERY_FENCE");
	uint64_t fence_s;
	if (!text || str_to_u64(text, &fence_s) < 0 || fence_s < 1 ||
	    fence_s > TTL_S_MAX / FENCE_LEASE_TIMES)
		return;
	if (!has_ttl)
		options->ttl_s = fence_lease_s(fence_s);
	options->fences = fence_is_covered(fence_s, options->ttl_s);
}

static int check(struct etcd_options *options, const struct typed *typed, struct err *err)
{
	const char *scheme =
		options->client.ca_file || options->client.cert_file ? "https://" : "http://";
	if (typed->ttl && (str_to_u64(typed->ttl, &options->ttl_s) < 0 || options->ttl_s < 1 ||
			   options->ttl_s > TTL_S_MAX))
		return err_set(err, EINVAL, "--ttl: '%.32s' is not a number from 1 to %d",
			       typed->ttl, TTL_S_MAX);
	if (!discovery_coordinator_ok(options->own))
		return err_set(err, EINVAL, "'%.64s' is not HOST:PORT", options->own);
	if (!options->client.user != !typed->password_file)
		return err_set(err, EINVAL, "--user and --password-file need each other");
	if (typed->password_file) {
		int r = read_password(typed->password_file, &options->password, err);
		if (r < 0)
			return r;
		options->client.password = options->password;
	}
	take_fence(options, typed->ttl);
	options->client.timeout_ns = options->ttl_s * NS_PER_S / TIMEOUTS_PER_TTL;
	return parse_endpoints(typed->endpoints, scheme, &options->client.endpoints, err);
}

int etcd_options_parse(int argc, char **argv, struct etcd_options *ret_options)
{
	struct typed typed = { .endpoints = "localhost:" DEFAULT_PORT };
	struct err err = ERR_INIT;
	struct etcd_options *options = ret_options;
	options->prefix = DEFAULT_PREFIX;
	options->ttl_s = DEFAULT_TTL_S;
	if (take_options(argc, argv, options, &typed) < 0)
		return EXIT_CODE_USAGE;
	if (typed.help || typed.version) {
		fputs(typed.help ? usage : "muster-discover-etcd " MUSTER_VERSION "\n", stdout);
		return EXIT_CODE_OK;
	}
	if (argc - optind != 2) {
		fputs(usage, stderr);
		return EXIT_CODE_USAGE;
	}
	options->run_id = argv[optind];
	options->own = argv[optind + 1];
	if (check(options, &typed, &err) < 0) {
		fprintf(stderr, "muster-discover-etcd: %s\n", err.msg);
		return EXIT_CODE_USAGE;
	}
	return -1;
}

void etcd_options_done(struct etcd_options *options)
{
	strv_done(&options->client.endpoints);
	free(options->password);
	*options = ETCD_OPTIONS_INIT;
}
