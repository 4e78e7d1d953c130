/* muster coordinator: a coordinator apart from all workers. */
#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/log.h"
#include "cli/command.h"
#include "core/rounds/job_exit.h"
#include "core/worker/exit_code.h"
#include "net/link.h"
#include "nodes/coordinating.h"
#include "sys/output.h"

#define DEFAULT_PORT 29400
#define LOOKUP_NS (10 * NS_PER_S)
#define LINES_PER_S 20 /* about single agents: ten thousand of them may come at once */

struct coordinator_options {
	const char *listen;
	const char *run_id;
	const char *token_file;
	uint64_t last_call_ns, scale_up_ns, close_ns;
};

static const struct opt coordinator_opts[] = {
	OPT_STR("listen", NULL, struct coordinator_options, listen, "HOST:PORT",
		"where to listen (default :29400, all interfaces); port 0 takes any free one"),
	OPT_STR("rdzv-id", "PET_RDZV_ID", struct coordinator_options, run_id, "ID",
		"the job's name; agents of another one are refused (default 'none')"),
	OPT_STR("token-file", NULL, struct coordinator_options, token_file, "FILE",
		"a secret that agents must know, too (default: the variable MUSTER_TOKEN, if set)"),
	OPT_DURATION("last-call-timeout", NULL, struct coordinator_options, last_call_ns, "TIME",
		     "wait that long for more than the minimum of nodes (default 30s)"),
	OPT_DURATION("scale-up-delay", NULL, struct coordinator_options, scale_up_ns, "TIME",
		     "gather newcomers that long before a running group is formed anew with them "
		     "(default 5s)"),
	OPT_DURATION("close-timeout", NULL, struct coordinator_options, close_ns, "TIME",
		     "wait that long for agents to take note of the job's end (default 30s)"),
	OPT_END,
};

/* The command at work. */
struct session {
	struct event_base *base;
	struct coordinating *coordinating;
	/* log lines are written by its thread: a paused terminal stops nothing */
	struct output *output;
	int exit_code;
	/* Lines about single agents in this second, and how many were left out. */
	uint64_t second;
	unsigned lines, left_out;
};

/* ---- log lines ---- */

static void say_left_out(struct session *session)
{
	if (session->left_out)
		log_info("(%u more such lines are left out)", session->left_out);
	session->left_out = 0;
}

static bool may_say(struct session *session)
{
	uint64_t second = clock_now_ns() / NS_PER_S;
	if (second != session->second) {
		say_left_out(session);
		session->second = second;
		session->lines = 0;
	}
	if (session->lines++ < LINES_PER_S)
		return true;
	session->left_out++;
	return false;
}

static void say_joined(struct session *session, const char *name)
{
	const struct coordinator *machine = coordinating_machine(session->coordinating);
	if (machine && may_say(session))
		log_info("%s has joined: %u of %u:%u nodes are here", name,
			 roster_linked(&machine->roster), machine->min_nodes, machine->max_nodes);
}

static void on_note(void *arg, enum coordinating_note note, const char *name, const char *text)
{
	struct session *session = arg;
	switch (note) {
	case TOLD_JOINED:
		say_joined(session, name);
		break;
	case TOLD_LOST:
		if (may_say(session))
			log_warn("%s is lost: %s", name, text);
		break;
	case TOLD_LEFT:
		if (may_say(session))
			log_info("%s leaves: %s", name, text);
		break;
	case TOLD_REFUSED:
		if (may_say(session))
			log_warn("refused %s: %s", name, text);
		break;
	case TOLD_TURNED_AWAY:
		log_warn("turned away %s: %s", name, text);
		break;
	case TOLD_FORMED:
		say_left_out(session);
		log_info("formed %s", text);
		break;
	case TOLD_STOPPED:
		log_info("stopping %s", text);
		break;
	case TOLD_CLOSED:
		say_left_out(session);
		log_info("the job is over: %s", text);
		break;
	case TOLD_SUPERSEDED:
		log_error("another coordinator has taken over this job");
		break;
	case TOLD_COUNT:
		break;
	}
}

/* ---- the end ---- */

static void end(struct session *session, int exit_code)
{
	session->exit_code = exit_code;
	event_base_loopbreak(session->base);
}

static void on_step_down(void *arg)
{
	end(arg, EXIT_CODE_SYSTEM);
}

static void on_finished(void *arg)
{
	struct session *session = arg;
	const struct coordinator *machine = coordinating_machine(session->coordinating);
	end(session, job_exit_code(machine->ruling == RULING_DONE ? OUTCOME_DONE : OUTCOME_FAILED,
				   0, machine->has_cause ? &machine->cause : NULL));
}

static void on_signal(evutil_socket_t sig, short what UNUSED, void *arg)
{
	log_info("ending because of %s", sig == SIGTERM ? "SIGTERM" : "SIGINT");
	end(arg, EXIT_CODE_SIGNAL_BASE + (int)sig);
}

static const struct coordinating_handler handler = {
	.on_step_down = on_step_down,
	.on_finished = on_finished,
	.on_note = on_note,
};

/* ---- at work ---- */

static int listen_at(const char *text, const struct link_self *self, struct err *err)
{
	struct addr_name name;
	int r = addr_name_parse(text, DEFAULT_PORT, &name, err);
	if (r < 0)
		return r;
	AUTO(fd_close) int fd = addr_listen_name(&name, ns_add(clock_now_ns(), LOOKUP_NS), err);
	if (fd < 0)
		return fd_take(&fd);
	struct addr addr;
	r = addr_of_socket(fd, &addr, err);
	if (r < 0)
		return r;
	char shown[ADDR_TEXT_MAX];
	addr_format(&addr, shown);
	printf("listening on %s\n", shown);
	fflush(stdout);
	if (!self->token && !addr_is_loopback(&addr))
		log_warn("whoever reaches %s can join this job: give --token-file=FILE to keep "
			 "strangers out",
			 shown);
	return fd_take(&fd);
}

static void serve(struct session *session)
{
	struct event *term = evsignal_new(session->base, SIGTERM, on_signal, session);
	struct event *interrupt = evsignal_new(session->base, SIGINT, on_signal, session);
	event_add(term, NULL);
	event_add(interrupt, NULL);
	event_base_dispatch(session->base);
	event_free(term);
	event_free(interrupt);
}

static void on_output(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct session *session = arg;
	struct output_event event;
	while (output_next(session->output, &event))
		if (event.type == OUTPUT_FINISHED)
			event_base_loopbreak(session->base);
}

/* Waits for the last lines to be written, as any program waits for its terminal. */
static void finish_output(struct session *session)
{
	struct event *news = event_new(session->base, output_fd(session->output),
				       EV_READ | EV_PERSIST, on_output, session);
	event_add(news, NULL);
	output_finish(session->output);
	event_base_dispatch(session->base);
	event_free(news);
	log_set_sink(NULL, NULL);
	output_free(session->output);
}

static void coordinate(struct session *session, int listen_fd, const struct link_self *self,
		       const struct coordinator_options *o)
{
	struct coordinator_config config = COORDINATOR_CONFIG_INIT;
	config.last_call_ns = o->last_call_ns;
	config.scale_up_delay_ns = o->scale_up_ns;
	config.close_timeout_ns = o->close_ns;
	session->coordinating = coordinating_new(session->base, listen_fd, self, &handler, session);
	coordinating_start(session->coordinating, &config);
	serve(session);
	say_left_out(session);
	coordinating_free(session->coordinating);
}

static int run_session(const struct coordinator_options *o, struct err *err)
{
	struct token token;
	int r = token_load(o->token_file, &token, err);
	if (r < 0)
		return r;
	const struct link_self self = { .run_id = o->run_id, .token = r > 0 ? &token : NULL };
	int listen_fd = listen_at(o->listen, &self, err);
	if (listen_fd < 0)
		return listen_fd;
	struct session session = { .base = event_base_new() };
	r = output_new(&(struct output_config){ .prefix = NULL }, &session.output, err);
	if (r == 0) {
		log_set_sink(output_log, session.output);
		coordinate(&session, fd_take(&listen_fd), &self, o);
		finish_output(&session);
		r = session.exit_code;
	}
	fd_close(&listen_fd);
	link_drop_lingering(session.base);
	event_base_free(session.base);
	token_forget(&token);
	return r;
}

static int coordinator_main(const struct command *self, int argc, char **argv)
{
	const struct coordinator_config defaults = COORDINATOR_CONFIG_INIT;
	struct coordinator_options o = { .listen = "",
					 .run_id = "none",
					 .last_call_ns = defaults.last_call_ns,
					 .scale_up_ns = defaults.scale_up_delay_ns,
					 .close_ns = defaults.close_timeout_ns };
	int first, status;
	if (!command_parse(self, &o, argc, argv, NULL, &first, &status))
		return status;
	if (first < argc)
		return command_usage_error(self, "unexpected argument '%s'", argv[first]);
	if (strlen(o.run_id) >= FRAME_RUN_ID_MAX)
		return command_usage_error(self, "--rdzv-id must be shorter than %d bytes",
					   FRAME_RUN_ID_MAX);
	if (!getenv("LOGLEVEL"))
		log_set_level(LOG_INFO); /* saying what happens is half of what it is for */
	fd_limit_raise();
	struct err err = ERR_INIT;
	int r = run_session(&o, &err);
	if (r >= 0)
		return r;
	log_error("%s", err.msg);
	return r == -EINVAL ? EXIT_CODE_USAGE : EXIT_CODE_SYSTEM;
}

const struct command command_coordinator = {
	.name = "coordinator",
	.synopsis = "[--listen HOST:PORT] [--rdzv-id ID]",
	.summary = "coordinate a job on many hosts, apart from its workers",
	.footer = "Prints 'listening on ADDRESS' once agents can join, and ends with the job:\n"
		  "  muster coordinator --listen :29400 --rdzv-id job1\n"
		  "and on every host:\n"
		  "  muster run --nnodes 2:4 --rdzv-endpoint HOST:29400 --rdzv-id job1 train.py\n",
	.opts = coordinator_opts,
	.mode = OPT_PERMUTE,
	.main = coordinator_main,
};
