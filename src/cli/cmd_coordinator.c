/* muster coordinator: a coordinator apart from all workers. */
#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/fd.h"
#include "base/log.h"
#include "base/random.h"
#include "base/str.h"
#include "cli/command.h"
#include "core/worker/exit_code.h"
#include "net/link.h"
#include "nodes/callers.h"
#include "nodes/notes.h"
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
		     "how long to wait for more than the minimum of nodes (default 30s)"),
	OPT_DURATION("scale-up-delay", NULL, struct coordinator_options, scale_up_ns, "TIME",
		     "how long to gather newcomers before a running group forms again with them "
		     "(default 5s)"),
	OPT_DURATION("close-timeout", NULL, struct coordinator_options, close_ns, "TIME",
		     "how long to wait for agents to acknowledge the job's end (default 30s)"),
	OPT_END,
};

/* The command at work: a node without workers, and the sockets around it. */
struct session {
	struct event_base *base;
	struct node node;
	struct node_actions actions;
	struct node_queue queue;
	struct routes routes;
	struct callers *callers;
	struct event *timer;
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

static void say_joined(const struct session *session, const char *name)
{
	const struct coordinator *machine = session->node.coordinator;
	if (machine)
		log_info("%s has joined: %u of %u:%u nodes are here", name,
			 roster_linked(&machine->roster), machine->min_nodes, machine->max_nodes);
}

/* About a single agent. */
static void say_agent(struct session *session, const struct note *note, const char *text)
{
	char name[MSG_NAME_MAX];
	if (!may_say(session))
		return;
	snprintf(name, sizeof(name), "%s", note->name);
	str_make_printable(name);
	if (note->kind == NOTE_JOINED)
		say_joined(session, name);
	else if (note->kind == NOTE_LOST)
		log_warn("%s is lost: %s", name, text);
	else if (note->kind == NOTE_LEFT)
		log_info("%s leaves: %s", name, text);
	else
		log_warn("refused %s: %s", name, text);
}

static void say(struct session *session, const struct note *note)
{
	char text[NOTES_TEXT_MAX];
	notes_describe(note, text);
	switch (note->kind) {
	case NOTE_JOINED:
	case NOTE_LOST:
	case NOTE_LEFT:
	case NOTE_REFUSED:
		say_agent(session, note, text);
		break;
	case NOTE_FORMED:
		say_left_out(session);
		log_info("formed %s", text);
		break;
	case NOTE_STOPPED:
		log_info("stopping %s", text);
		break;
	case NOTE_LATE:
		log_warn("%s holds the others up: %s", note->name, text);
		break;
	case NOTE_IN_STEP:
		log_info("%s keeps up again: %s", note->name, text);
		break;
	case NOTE_EXCLUDED:
		log_warn("%s is left out of later rounds while enough other nodes are there: "
			 "its worker held the others up",
			 note->name);
		break;
	case NOTE_UNFIT:
		log_warn("%s is not fit and becomes a spare of last resort: %s", note->name, text);
		break;
	case NOTE_FIT:
		log_info("%s is fit again", note->name);
		break;
	case NOTE_NEEDED:
		log_warn("%s is not fit, but takes part: too few others are here", note->name);
		break;
	case NOTE_CLOCK:
		log_warn("%s has a wrong clock: %s", note->name, text);
		break;
	case NOTE_DIFFERENT:
		log_warn("the nodes differ: %s", text);
		break;
	case NOTE_WAITS:
		log_warn("%s", text);
		break;
	case NOTE_CLOSED:
		say_left_out(session);
		log_info("the job is over: %s", text);
		break;
	case NOTE_SUPERSEDED:
		log_error("another coordinator has taken over this job");
		break;
	case NOTE_COORDINATES:
	case NOTE_LEASE: /* no arbiter chooses it */
	case NOTE_STAYS: /* has no workers */
	case NOTE_KIND_COUNT:
		break;
	}
}

static void on_turned_away(void *arg UNUSED, const char *name, const char *why)
{
	log_warn("rejected %s: %s", name, why);
}

/* ---- the end ---- */

static void end(struct session *session, int exit_code)
{
	session->exit_code = exit_code;
	event_base_loopbreak(session->base);
}

/* UNKNOWN: another coordinator has the job. */
static int exit_code_of(const struct outcome *outcome)
{
	if (outcome->kind == OUTCOME_DONE)
		return EXIT_CODE_OK;
	if (outcome->kind == OUTCOME_UNKNOWN)
		return EXIT_CODE_SYSTEM;
	if (!outcome->has_cause || outcome->cause.reason != FAILURE_EXIT)
		return EXIT_CODE_FAILED;
	return exit_status_shell_code(&outcome->cause.status);
}

static void on_signal(evutil_socket_t sig, short what UNUSED, void *arg)
{
	log_info("ending because of %s", sig == SIGTERM ? "SIGTERM" : "SIGINT");
	end(arg, EXIT_CODE_SIGNAL_BASE + (int)sig);
}

/* ---- the node ---- */

static void act(struct session *session, const struct node_action *action)
{
	if (routes_act(&session->routes, action))
		return;
	switch (action->type) {
	case NODE_DO_HANG_UP_ALL:
		callers_hang_up_all(session->callers);
		break;
	case NODE_DO_NOTE:
		say(session, &action->note);
		break;
	case NODE_DO_HOST: /* without workers: EXIT */
		end(session, exit_code_of(&action->agent.outcome));
		break;
	case NODE_DO_LISTEN:
	case NODE_DO_PROBE:
	case NODE_DO_CONNECT:
	case NODE_DO_SEND:
	case NODE_DO_HANG_UP:
	case NODE_DO_RECORD:
	case NODE_DO_PLACE_STORE:
	case NODE_DO_ASKED:
	case NODE_ACTION_COUNT:
		assert(!"a node that coordinates apart from all agents looks for nothing");
		break;
	}
}

static void take(void *arg, const struct node_event *event)
{
	struct session *session = arg;
	uint64_t now_ns = clock_now_ns();
	node_set_wall(&session->node, clock_wall_shift(clock_wall_ns(), now_ns));
	node_step(&session->node, event, now_ns, &session->actions);
	for (size_t i = 0; i < session->actions.count; i++)
		act(session, &session->actions.items[i]);
	node_actions_clear(&session->actions);
}

static void on_event(void *arg, const struct node_event *event)
{
	struct session *session = arg;
	node_push(&session->queue, event);
	if (!node_drive(&session->queue, take, session))
		return;
	uint64_t deadline_ns = node_deadline_ns(&session->node);
	struct timeval left = clock_left(deadline_ns, clock_now_ns());
	if (deadline_ns == NS_NEVER)
		event_del(session->timer);
	else
		event_add(session->timer, &left);
}

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	on_event(arg, &(struct node_event){ .type = NODE_EV_TIMER });
}

static void standing(void *arg, struct frame_standing *ret_standing)
{
	const struct session *session = arg;
	callers_node_standing(&session->node, ret_standing);
}

static const struct callers_handler handler = { .standing = standing,
						.on_event = on_event,
						.on_turned_away = on_turned_away };

/* ---- at work ---- */

static int listen_at(const char *text, struct addr *ret_addr, struct err *err)
{
	struct addr_name name;
	int r = addr_name_parse(text, DEFAULT_PORT, &name, err);
	if (r < 0)
		return r;
	AUTO(fd_close) int fd = addr_listen_name(&name, ns_add(clock_now_ns(), LOOKUP_NS), err);
	if (fd < 0)
		return fd_take(&fd);
	r = addr_of_socket(fd, ret_addr, err);
	return r < 0 ? r : fd_take(&fd);
}

static void announce(const struct addr *addr, const struct link_self *self)
{
	char shown[ADDR_TEXT_MAX];
	addr_format(addr, shown);
	printf("listening on %s\n", shown);
	fflush(stdout);
	if (!self->token && !addr_is_loopback(addr))
		log_warn("any process that can reach %s can join this job: give --token-file=FILE "
			 "to "
			 "require a token",
			 shown);
}

/* Whoever reads the address may send a signal at once. */
static void serve(struct session *session, const struct addr *addr, const struct link_self *self)
{
	struct event *term = evsignal_new(session->base, SIGTERM, on_signal, session);
	struct event *interrupt = evsignal_new(session->base, SIGINT, on_signal, session);
	event_add(term, NULL);
	event_add(interrupt, NULL);
	announce(addr, self);
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

static void coordinate(struct session *session, int listen_fd, const struct addr *addr,
		       const struct link_self *self, const struct coordinator_options *o)
{
	struct node_config config = { .kind = NODE_APART, .coordinator = COORDINATOR_CONFIG_INIT };
	config.coordinator.id = 1 + random_u64() / 2;
	config.coordinator.salt = (uint32_t)random_u64();
	config.coordinator.last_call_ns = o->last_call_ns;
	config.coordinator.scale_up_delay_ns = o->scale_up_ns;
	config.coordinator.close_timeout_ns = o->close_ns;
	node_init(&session->node, &config);
	session->timer = evtimer_new(session->base, on_timer, session);
	session->callers = callers_new(session->base, CALLERS_ELSEWHERE, listen_fd, self,
				       &session->routes, &handler, session);
	on_event(session, &(struct node_event){ .type = NODE_EV_START });
	serve(session, addr, self);
	say_left_out(session);
	callers_free(session->callers);
	routes_done(&session->routes);
	event_free(session->timer);
	node_done(&session->node);
	node_actions_done(&session->actions);
	node_queue_done(&session->queue);
}

static int run_session(const struct coordinator_options *o, struct err *err)
{
	struct token token;
	int r = token_load(o->token_file, &token, err);
	token_hide();
	if (r < 0)
		return r;
	const struct link_self self = { .run_id = o->run_id, .token = r > 0 ? &token : NULL };
	struct addr addr;
	int listen_fd = listen_at(o->listen, &addr, err);
	if (listen_fd < 0)
		return listen_fd;
	struct session session = { .base = event_base_new(), .actions = NODE_ACTIONS_INIT };
	r = output_new(&(struct output_config){ .prefix = NULL }, &session.output, err);
	if (r == 0) {
		log_set_sink(output_log, session.output);
		coordinate(&session, fd_take(&listen_fd), &addr, &self, o);
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
