#include "cli/run_hosts.h"

#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/hosts.h"
#include "cli/run_opts.h"
#include "core/host/hostlist.h"
#include "core/worker/exit_code.h"
#include "fleet/starter.h"
#include "net/token.h"

/* What contradicts --hosts: the nodes find each other by other means then. */
static const char *const excluded[] = { "standalone",  "node-rank", "master-addr",
					"master-port", "lifeline",  "local-addr" };

static int check_options(const struct run_options *o, const struct opt_seen *seen, struct err *err)
{
	for (size_t i = 0; i < ARRAY_LEN(excluded); i++)
		if (opt_given(run_opts, seen, excluded[i]))
			return err_set(err, EINVAL, "--hosts and --%s exclude each other",
				       excluded[i]);
	return hosts_check(&o->hosts, err);
}

/* "user@node7.cluster" is named by node7.cluster and by node7. */
static bool is_named(const char *host, const char *name)
{
	const char *at = strrchr(host, '@');
	host = at ? at + 1 : host;
	return str_eq(host, name) ||
	       (strlen(name) == strcspn(host, ".") && memcmp(host, name, strlen(name)) == 0);
}

static int leave_out(const char *list, struct hostfile *hosts, struct err *err)
{
	AUTO(strv_done) struct strv names = STRV_INIT;
	uint32_t count;
	size_t kept = 0;
	int r = list ? hostlist_expand(list, HOSTLIST_HOSTS_MAX, &names, &count, err) : 0;
	if (r < 0)
		return err_wrap(err, "--exclude-hosts");
	for (size_t i = 0; i < hosts->count; i++) {
		bool out = false;
		for (size_t n = 0; n < names.count; n++)
			out |= is_named(hosts->items[i].name, names.items[n]);
		if (!out)
			hosts->items[kept++] = hosts->items[i];
	}
	hosts->count = kept;
	return kept ? 0 : err_set(err, EINVAL, "--exclude-hosts: no host is left");
}

/* Without --nnodes all hosts are needed. */
static int count_nodes(const struct run_options *o, const struct opt_seen *seen, uint32_t hosts,
		       struct starter_config *config, struct err *err)
{
	config->min_nodes = config->max_nodes = hosts;
	if (!opt_given(run_opts, seen, "nnodes"))
		return 0;
	int r = run_nodes_parse(o->rdzv.nnodes, &config->min_nodes, &config->max_nodes, err);
	if (r == 0 && config->min_nodes > hosts)
		return err_set(err, EINVAL, "--nnodes: '%.64s' are more than the %u hosts",
			       o->rdzv.nnodes, hosts);
	return r;
}

/* The options as typed, and the command with its arguments. */
static void cut_argv(char **argv, int first, struct strv *options, struct strv *command)
{
	int end = first - str_eq(argv[first - 1], "--");
	for (int i = 1; i < end; i++)
		strv_add(options, argv[i]);
	strv_add(command, argv[first]);
	strv_add_all(command, run_opts_args(argv, first));
}

static bool is_given(const char *text)
{
	return text && *text;
}

static int start(const struct run_options *o, struct starter_config *config, char **argv, int first,
		 struct err *err)
{
	AUTO(strv_done) struct strv options = STRV_INIT, command = STRV_INIT;
	AUTO_FREE char *token = hosts_secret();
	AUTO_FREE char *run_id = is_given(o->rdzv.id) ? NULL : run_random_id();
	char program[HOSTS_PROGRAM_MAX];
	int r = hosts_program(program, err);
	if (r < 0)
		return r;
	token_hide();
	cut_argv(argv, first, &options, &command);
	config->program = program;
	config->token = token;
	config->run_id = run_id;
	config->options = &options;
	config->command = &command;
	config->conf = o->rdzv.conf;
	config->endpoint =
		is_given(o->rdzv.endpoint) || is_given(o->rdzv.backend) ? o->rdzv.endpoint : NULL;
	return starter_run(config, err);
}

int run_on_hosts(const struct command *self, const struct run_options *o,
		 const struct opt_seen *seen, char **argv, int first)
{
	AUTO(hostfile_done) struct hostfile hosts = HOSTFILE_INIT;
	struct err err = ERR_INIT;
	struct starter_config config = { .hosts = &hosts,
					 .fanout = (uint32_t)o->hosts.fanout,
					 .timeout_ns = o->hosts.timeout_ns,
					 .ssh = o->hosts.ssh };
	int r;
	if ((r = check_options(o, seen, &err)) < 0 ||
	    (r = hosts_read(&o->hosts, &hosts, &err)) < 0 ||
	    (r = leave_out(o->preflight.exclude_hosts, &hosts, &err)) < 0 ||
	    (r = count_nodes(o, seen, (uint32_t)hosts.count, &config, &err)) < 0 ||
	    (r = run_signals_parse(o->signals_to_handle, &config.stop_signals, &err)) < 0)
		return command_usage_error(self, "%s", err.msg);
	r = start(o, &config, argv, first, &err);
	if (r >= 0)
		return r;
	log_error("%s", err.msg);
	return EXIT_CODE_SYSTEM;
}
