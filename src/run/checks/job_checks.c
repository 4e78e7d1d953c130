#include "run/checks/job_checks.h"

#include <event2/event.h>
#include <signal.h>
#include <unistd.h>

#include "base/child.h"
#include "base/fd.h"
#include "base/log.h"
#include "core/checks/counter_changes.h"
#include "proto/checks/check_json.h"
#include "run/checks/preflight.h"

#define OUTPUT_MAX ((size_t)1 << 20)
#define CHUNK 4096

static void tell(const struct job_checks *checks, const struct agent_event *event)
{
	checks->on_event(checks->arg, event);
}

/* ---- between two attempts ---- */

static void forget_child(struct job_checks *checks)
{
	if (checks->on_output)
		event_free(checks->on_output);
	if (checks->on_end)
		event_free(checks->on_end);
	checks->on_output = checks->on_end = NULL;
	piped_done(&checks->child);
	buf_done(&checks->output);
}

/* False: nothing more can be read now. */
static bool read_some(struct job_checks *checks)
{
	return fd_read_some(checks->child.out, CHUNK, &checks->output) > 0 &&
	       buf_len(&checks->output) < OUTPUT_MAX;
}

static void on_output(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct job_checks *checks = arg;
	if (!read_some(checks))
		event_del(checks->on_output);
}

static void tell_checked(struct job_checks *checks, const struct check_list *results)
{
	struct check_digest digest;
	AUTO(check_list_done) struct check_list all = CHECK_LIST_INIT;
	preflight_tell(results);
	for (size_t i = 0; i < results->count; i++)
		check_list_add(&all, &results->items[i]);
	check_changes_add(&checks->counters, &all);
	check_digest_make(&all, &digest);
	tell(checks, &(struct agent_event){ .type = AGENT_CHECKED, .digest = &digest });
}

static void on_end(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct job_checks *checks = arg;
	AUTO(check_list_done) struct check_list results = CHECK_LIST_INIT;
	struct err err = checks->failed;
	bool read = false;
	if (checks->child.pid) {
		while (read_some(checks))
			;
		child_wait(checks->child.pid);
		read = check_json_read_all(buf_str(&checks->output), buf_len(&checks->output),
					   &results, &err) == 0;
	}
	forget_child(checks);
	if (read) {
		tell_checked(checks, &results);
		return;
	}
	log_warn("preflight: the checks failed, which says nothing about this node: %s", err.msg);
	tell(checks, &(struct agent_event){ .type = AGENT_CHECKED, .digest = NULL });
}

static int start(struct job_checks *checks, struct err *err)
{
	AUTO(strv_done) struct strv argv = STRV_INIT;
	preflight_command(checks->config, &argv);
	struct piped_spec spec = { .argv = argv.items, .envp = environ, .deaf = true };
	int r = piped_start(&spec, &checks->child, err);
	if (r < 0)
		return r;
	fd_close(&checks->child.err);
	fd_set_nonblock(checks->child.out, true);
	checks->on_output =
		event_new(checks->base, checks->child.out, EV_READ | EV_PERSIST, on_output, checks);
	checks->on_end = event_new(checks->base, checks->child.pidfd, EV_READ, on_end, checks);
	event_add(checks->on_output, NULL);
	event_add(checks->on_end, NULL);
	return 0;
}

void job_checks_begin(struct job_checks *checks)
{
	static const struct timeval now = { 0, 0 };
	log_info("checking this node before the next attempt");
	if (checks->on_end)
		return;
	checks->failed = ERR_INIT;
	if (start(checks, &checks->failed) == 0)
		return;
	checks->on_end = evtimer_new(checks->base, on_end, checks);
	event_add(checks->on_end, &now);
}

/* ---- wires ---- */

static void on_measured(void *arg, const struct msg_paired *paired, const char *why)
{
	if (*why)
		log_info("preflight: pairs: %s", why);
	else if (paired->known)
		log_info("preflight: pairs: %.0f MB/s, %.0f us there and back",
			 (double)paired->bandwidth / 1e6, (double)paired->latency_ns / 1e3);
	tell(arg, &(struct agent_event){ .type = AGENT_MEASURED, .paired = *paired });
}

static void open_measuring(struct job_checks *checks, struct node_info *node)
{
	const struct run_config *config = checks->config;
	struct err err = ERR_INIT;
	checks->measuring =
		measuring_new(checks->base, config->rdzv.has_token ? &config->rdzv.token : NULL,
			      on_measured, checks, &node->pair_port, &err);
	if (!checks->measuring)
		log_warn("preflight: pairs: %s", err.msg);
	node->pair_ms = preflight_pair_ms(config);
}

void job_checks_measure(struct job_checks *checks, const struct msg_pair *pair)
{
	if (checks->measuring)
		measuring_start(checks->measuring, pair);
}

void job_checks_stop_measuring(struct job_checks *checks)
{
	if (checks->measuring)
		measuring_stop(checks->measuring);
}

void job_checks_open(struct job_checks *checks, struct node_info *node)
{
	checks->counters = checks->config->counters;
	checks->child = PIPED_INIT;
	checks->output = BUF_INIT;
	if (preflight_wants_pairs(checks->config))
		open_measuring(checks, node);
}

void job_checks_done(struct job_checks *checks)
{
	if (checks->child.pid) {
		kill(checks->child.pid, SIGKILL);
		child_wait(checks->child.pid);
	}
	forget_child(checks);
	measuring_free(checks->measuring);
}
