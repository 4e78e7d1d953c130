#include "cli/batch_fleet.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "cli/batch_opts.h"
#include "cli/hosts.h"
#include "core/worker/exit_code.h"
#include "fleet/starter.h"
#include "net/addr.h"
#include "net/token.h"

#define LEAVE_NS (5 * NS_PER_S) /* for the starter to end after each way of asking it */

/* Stands for the address of the terminal, which each host learns from ssh. */
#define TERMINAL "terminal"
#define CONNECTION "SSH_CONNECTION"

/* What the hosts find out in other ways, or what is not theirs to do. */
static const char *const excluded[] = { "rdzv-endpoint", "rdzv-backend", "lifeline", "notify",
					"http" };

/* ---- in the terminal ---- */

static int find_address(struct addr *ret_addr, struct err *err)
{
	static const char *const all[] = { "::", "0.0.0.0" };
	for (size_t i = 0; i < ARRAY_LEN(all); i++)
		if (addr_from_ip(all[i], 0, ret_addr) == 0 && addr_find_port(ret_addr))
			return 0;
	return err_set(err, EADDRINUSE, "found no port to listen on for the other hosts");
}

static void set_meeting(struct batch_config *config, struct batch_fleet *fleet,
			const struct addr *addr)
{
	char text[ADDR_TEXT_MAX];
	const char *conf = config->meeting.conf, *comma = *conf ? "," : "";
	fleet->run_id = mem_printf("batch-%016llx", (unsigned long long)random_u64());
	fleet->conf = mem_printf("%s%sis_host=0", conf, comma);
	fleet->own_conf = mem_printf("%s%sis_host=1", conf, comma);
	addr_format(addr, text);
	fleet->own_endpoint = mem_strdup(text);
	strv_take(&fleet->options, mem_printf("--rdzv-endpoint=" TERMINAL ":%u", addr_port(addr)));
	config->meeting.conf = fleet->own_conf;
	config->meeting.endpoint = fleet->own_endpoint;
	config->meeting.id = fleet->run_id;
	config->jobs = 1; /* none of the orders runs here */
}

int batch_fleet_prepare(const struct command *self, struct batch_config *config,
			const struct opt_seen *seen, char **argv, int first,
			struct batch_fleet *fleet)
{
	struct err err = ERR_INIT;
	struct addr addr;
	for (size_t i = 0; i < ARRAY_LEN(excluded); i++)
		if (opt_given(batch_opts, seen, excluded[i]))
			return command_usage_error(self, "--hosts and --%s exclude each other",
						   excluded[i]);
	if (hosts_check(&config->hosts, &err) < 0 ||
	    hosts_read(&config->hosts, &fleet->hosts, &err) < 0)
		return command_usage_error(self, "%s", err.msg);
	if (find_address(&addr, &err) < 0) {
		log_error("%s", err.msg);
		return EXIT_CODE_SYSTEM;
	}
	int end = first - str_eq(argv[first - 1], "--");
	for (int i = 1; i < end; i++)
		strv_add(&fleet->options, argv[i]);
	fleet->token = hosts_secret();
	setenv(TOKEN_VARIABLE, fleet->token, 1); /* rendezvous_make() takes it out again */
	set_meeting(config, fleet, &addr);
	fleet->prepared = true;
	return 0;
}

/* Ctrl-C is for the coordinator, which tells the hosts: the starter is in a group of its own. */
_Noreturn static void be_starter(const struct batch_config *config, const struct batch_fleet *fleet,
				 pid_t parent)
{
	char program[HOSTS_PROGRAM_MAX];
	struct err err = ERR_INIT;
	AUTO(strv_done) struct strv command = STRV_INIT;
	uint32_t count = (uint32_t)fleet->hosts.count;
	struct starter_config starter = { .hosts = &fleet->hosts,
					  .min_nodes = 1,
					  .max_nodes = count,
					  .fanout = count,
					  .timeout_ns = config->hosts.timeout_ns,
					  .ssh = config->hosts.ssh,
					  .program = program,
					  .token = fleet->token,
					  .endpoint = "",
					  .what = "batch",
					  .options = &fleet->options,
					  .conf = fleet->conf,
					  .run_id = fleet->run_id,
					  .command = &command };
	sigemptyset(&starter.stop_signals);
	sigaddset(&starter.stop_signals, SIGTERM);
	setpgid(0, 0);
	unsetenv(CONNECTION); /* the user's own login is not how a host here is reached */
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	if (getppid() != parent)
		_exit(EXIT_CODE_SYSTEM);
	int r = hosts_program(program, &err);
	if (r >= 0)
		r = starter_run(&starter, &err);
	if (r < 0)
		log_error("%s", err.msg);
	_exit(r < 0 ? EXIT_CODE_SYSTEM : r);
}

int batch_fleet_start(struct batch_config *config, struct batch_fleet *fleet)
{
	AUTO(fd_close) int held = -1;
	struct err err = ERR_INIT;
	pid_t parent = getpid();
	if (fd_open_pipe(&fleet->lifeline, &held, &err) < 0) {
		log_error("%s", err.msg);
		return EXIT_CODE_SYSTEM;
	}
	pid_t pid = child_fork();
	if (pid < 0) {
		log_error("fork: %s", strerror(errno));
		return EXIT_CODE_SYSTEM;
	}
	if (pid == 0)
		be_starter(config, fleet, parent);
	fleet->starter = pid;
	config->hosts_fd = fleet->lifeline;
	return 0;
}

void batch_fleet_done(struct batch_fleet *fleet)
{
	/* The agents end with the batch; one that does not is asked, and then killed. */
	static const int ways[] = { 0, SIGTERM, SIGTERM, SIGKILL };
	for (size_t i = 0; fleet->starter && i < ARRAY_LEN(ways); i++) {
		if (ways[i])
			kill(fleet->starter, ways[i]);
		uint64_t deadline_ns = ns_add(clock_now_ns(), LEAVE_NS);
		if (ways[i] != SIGKILL && fd_wait(fleet->lifeline, POLLIN, deadline_ns) < 0)
			continue;
		child_wait(fleet->starter);
		fleet->starter = 0;
	}
	fd_close(&fleet->lifeline);
	hostfile_done(&fleet->hosts);
	strv_done(&fleet->options);
	char *texts[] = { fleet->token, fleet->run_id, fleet->conf, fleet->own_conf,
			  fleet->own_endpoint };
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		free(texts[i]);
}

/* ---- on a host ---- */

int batch_fleet_join(const struct command *self, struct batch_config *config,
		     struct batch_fleet *fleet)
{
	struct rendezvous_options *meeting = &config->meeting;
	/* "client port server port", as sshd sets it. */
	const char *connection = getenv(CONNECTION);
	AUTO_FREE char *address = connection ? mem_strndup(connection, strcspn(connection, " "))
					     : mem_strdup("127.0.0.1");
	if (!meeting->endpoint || !str_starts(meeting->endpoint, TERMINAL ":"))
		return command_usage_error(self, "a host of --hosts, but the terminal is not told");
	fleet->own_endpoint = mem_printf(strchr(address, ':') ? "[%s]%s" : "%s%s", address,
					 meeting->endpoint + strlen(TERMINAL));
	meeting->endpoint = fleet->own_endpoint;
	return 0;
}
