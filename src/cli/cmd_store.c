/* muster store: a c10d store on its own, for jobs with another launcher and for tests. */
#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>

#include "base/fd.h"
#include "base/log.h"
#include "cli/command.h"
#include "core/worker/exit_code.h"
#include "net/store_server.h"

#define STORE_DEFAULT_PORT 29500
#define LOOKUP_NS (10 * NS_PER_S)

struct store_options {
	const char *listen;
	uint64_t max_memory;
	int64_t max_connections;
	uint64_t stall_ns;
};

static const struct opt store_opts[] = {
	OPT_STR("listen", NULL, struct store_options, listen, "HOST:PORT",
		"where to listen (default 127.0.0.1:29500); port 0 takes any free one, an empty "
		"host all interfaces"),
	OPT_SIZE("max-memory", NULL, struct store_options, max_memory, "SIZE",
		 "most that keys, values and waits may take together (default 1G)"),
	OPT_INT("max-connections", NULL, struct store_options, max_connections, "N",
		"most clients at once (default: as many as descriptors allow)"),
	OPT_DURATION(
		"stall-timeout", NULL, struct store_options, stall_ns, "TIME",
		"drop a client that does not finish a request or read its replies in time (default "
		"60s)"),
	OPT_END,
};

static void log_drop(void *arg UNUSED, const struct addr *peer, const char *reason)
{
	char text[ADDR_TEXT_MAX];
	addr_format(peer, text);
	log_warn("store: dropped the client %s: %s", text, reason);
}

static int listen_at(const char *text, struct err *err)
{
	struct addr_name name;
	int r = addr_name_parse(text, STORE_DEFAULT_PORT, &name, err);
	if (r < 0)
		return r;
	return addr_listen_name(&name, ns_add(clock_now_ns(), LOOKUP_NS), err);
}

struct stop {
	struct event_base *base;
	int signal;
};

static void on_signal(evutil_socket_t sig, short what UNUSED, void *arg)
{
	struct stop *stop = arg;
	stop->signal = (int)sig;
	event_base_loopbreak(stop->base);
}

/* Runs until a signal comes; returns it. Whoever reads the address may send one at once. */
static int serve_until_signal(struct event_base *base, const struct addr *addr)
{
	char text[ADDR_TEXT_MAX];
	struct stop stop = { .base = base };
	struct event *term = evsignal_new(base, SIGTERM, on_signal, &stop);
	struct event *interrupt = evsignal_new(base, SIGINT, on_signal, &stop);
	event_add(term, NULL);
	event_add(interrupt, NULL);
	addr_format(addr, text);
	printf("listening on %s\n", text);
	fflush(stdout);
	event_base_dispatch(base);
	event_free(term);
	event_free(interrupt);
	return stop.signal;
}

static int start(struct event_base *base, const struct store_options *o,
		 struct store_server **ret_server, struct addr *ret_addr, struct err *err)
{
	struct store_server_config config = STORE_SERVER_CONFIG_DEFAULT;
	config.table_max = o->max_memory;
	config.connections_max = (size_t)o->max_connections;
	config.stall_ns = o->stall_ns;
	config.on_drop = log_drop;

	int fd = listen_at(o->listen, err);
	if (fd < 0)
		return fd;
	int r = addr_of_socket(fd, ret_addr, err);
	if (r < 0) {
		fd_close(&fd);
		return r;
	}
	*ret_server = store_server_new(base, fd, &config);
	return 0;
}

static int store_main(const struct command *self, int argc, char **argv)
{
	struct store_options o = { .listen = "127.0.0.1",
				   .max_memory = STORE_TABLE_BYTES_MAX,
				   .max_connections = (int64_t)STORE_CONNECTIONS_MAX,
				   .stall_ns = STORE_STALL_NS };
	int first, status;
	if (!command_parse(self, &o, argc, argv, NULL, &first, &status))
		return status;
	if (first < argc)
		return command_usage_error(self, "unexpected argument '%s'", argv[first]);
	if (o.max_connections < 1)
		return command_usage_error(self, "--max-connections must be at least 1");

	fd_limit_raise();
	struct event_base *base = event_base_new();
	struct store_server *server = NULL;
	struct addr addr;
	struct err err = ERR_INIT;
	int r = start(base, &o, &server, &addr, &err);
	if (r < 0) {
		log_error("%s", err.msg);
		event_base_free(base);
		return r == -EINVAL ? EXIT_CODE_USAGE : EXIT_CODE_SYSTEM;
	}
	int sig = serve_until_signal(base, &addr);
	store_server_free(server);
	event_base_free(base);
	return EXIT_CODE_SIGNAL_BASE + sig;
}

const struct command command_store = {
	.name = "store",
	.synopsis = "[--listen HOST:PORT]",
	.summary = "serve a c10d store, as PyTorch's TCPStore",
	.footer = "Prints 'listening on ADDRESS' once clients can connect, and runs until it gets\n"
		  "SIGTERM or SIGINT.\n",
	.opts = store_opts,
	.mode = OPT_PERMUTE,
	.main = store_main,
};
