#include "fleet/starter.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/fleet/host_env.h"
#include "core/fleet/fleet.h"
#include "core/worker/exit_code.h"
#include "fleet/branches.h"
#include "fleet/nonblocking_out.h"
#include "fleet/relay.h"
#include "fleet/ssh.h"
#include "net/addr.h"
#include "sys/signals.h"

#define LEAVE_NS (2 * NS_PER_S) /* for relays to end by themselves */

/* What is known of a host beyond core/fleet. */
struct place {
	char why[STARTER_TEXT_MAX];   /* it is down */
	char address[ADDR_TEXT_MAX];  /* where a coordinator could listen; "": nowhere */
	enum fleet_nearness nearness; /* of that address */
	char report;		      /* the first byte of its report; '\0': there was none */
};

struct starter {
	const struct starter_config *config;
	struct event_base *base;
	struct signals signals;
	struct event on_signal, timer, beat;
	struct nonblocking_out outs[2]; /* stdout, stderr */
	struct branches branches;
	struct fleet fleet;
	struct fleet_queue queue;
	struct place *places;
	struct buf report; /* the best so far */
	bool has_best;	   /* that is of the host where it happened */
	int code;
	bool ended;
};

static const char *host_name(const struct starter *starter, uint32_t host)
{
	return starter->config->hosts->items[host].name;
}

/* ---- what fleet wants ---- */

static void send_to(struct starter *starter, uint32_t host, const struct buf *frame)
{
	branches_send(&starter->branches, host, buf_data(frame), buf_len(frame));
}

static void send_all(struct starter *starter, const struct buf *frame)
{
	branches_send_all(&starter->branches, buf_data(frame), buf_len(frame));
}

static bool is_run(const struct starter *starter)
{
	return str_eq(starter->config->what, "run");
}

static void step(struct starter *starter, struct fleet_event event);

static void host_down(struct starter *starter, uint32_t host, const char *why)
{
	snprintf(starter->places[host].why, sizeof(starter->places[host].why), "%s", why);
	step(starter, (struct fleet_event){ FLEET_EV_DOWN, .host = host });
}

static void reach(struct starter *starter, uint32_t host, int32_t via)
{
	const struct starter_config *config = starter->config;
	const struct ssh_config ssh = { config->ssh, config->program, config->timeout_ns };
	AUTO(strv_done) struct strv argv = STRV_INIT;
	struct err err = ERR_INIT;
	ssh_command(&ssh, host_name(starter, host), host, &argv);
	if (via != FLEET_SELF) {
		AUTO(buf_done) struct buf frame = BUF_INIT;
		fleet_put_texts(&frame, FLEET_MSG_REACH, (uint32_t)via, host, strv_argv(&argv));
		branches_set_way(&starter->branches, host, via);
		send_to(starter, (uint32_t)via, &frame);
	} else if (branches_reach(&starter->branches, host, strv_argv(&argv), &err) < 0) {
		host_down(starter, host, err.msg);
	}
}

static void drop(struct starter *starter, uint32_t host, int32_t via)
{
	AUTO(buf_done) struct buf frame = BUF_INIT;
	if (via == FLEET_SELF) {
		branches_drop(&starter->branches, host);
		return;
	}
	fleet_put_number(&frame, FLEET_MSG_DROP, (uint32_t)via, host);
	branches_set_way(&starter->branches, host, -1);
	send_to(starter, (uint32_t)via, &frame);
}

static void tell(struct starter *starter, const struct fleet_action *action)
{
	const struct place *place = &starter->places[action->host];
	const char *name = host_name(starter, action->host);
	char timeout[CLOCK_HUMAN_MAX];
	if (starter->config->answers) {
		struct starter_answer *answer = &starter->config->answers[action->host];
		answer->lost = true;
		answer->late = action->late;
		snprintf(answer->why, sizeof(answer->why), "%s", place->why);
		return;
	}
	clock_human(starter->config->timeout_ns, timeout);
	if (action->lost)
		log_warn("lost %s: %s", name, *place->why ? place->why : "the way to it is lost");
	else if (action->late)
		log_warn("cannot reach %s: no answer within %s", name, timeout);
	else
		log_warn("cannot reach %s: %s", name, place->why);
}

static void say_too_few(const struct starter *starter)
{
	const struct fleet *fleet = &starter->fleet;
	if (starter->config->answers)
		return;
	if (fleet->started)
		log_error("%u hosts are left, and the job needs %u: stopping it",
			  fleet_count(fleet, FLEET_RUNS), fleet->config.min_nodes);
	else
		log_error("%u of %u hosts can be reached, and the job needs %u "
			  "(--nnodes=MIN:MAX lets it start with MIN)",
			  fleet_count(fleet, FLEET_UP), fleet->config.hosts,
			  fleet->config.min_nodes);
}

/* ---- the start ---- */

static void send_place(struct starter *starter, uint32_t host, int32_t rank)
{
	AUTO(buf_done) struct buf frame = BUF_INIT;
	char number[16];
	snprintf(number, sizeof(number), "%d", rank);
	const struct starter_answer *answers = starter->config->answers;
	const char *name = answers ? answers[host].name : host_name(starter, host);
	char *texts[] = { number, (char *)name, NULL };
	fleet_put_texts(&frame, FLEET_MSG_PLACE, host, starter->config->hosts->items[host].slots,
			texts);
	send_to(starter, host, &frame);
}

/* In a job of fixed size without spares, nodes are in the order of the list. */
static void send_places(struct starter *starter)
{
	const struct fleet *fleet = &starter->fleet;
	uint32_t runs = fleet_count(fleet, FLEET_RUNS);
	bool ordered = is_run(starter) && fleet->config.min_nodes == runs && fleet->nodes == runs;
	int32_t rank = 0;
	for (uint32_t i = 0; i < fleet->config.hosts; i++)
		if (fleet->hosts[i].state == FLEET_RUNS)
			send_place(starter, i, ordered ? rank++ : -1);
}

static void choose_endpoints(const struct starter *starter, struct buf *out)
{
	uint32_t chosen[FLEET_ENDPOINTS_MAX];
	AUTO_FREE enum fleet_nearness *nearness =
		NEW_ARRAY(enum fleet_nearness, starter->fleet.config.hosts);
	for (uint32_t i = 0; i < starter->fleet.config.hosts; i++)
		nearness[i] = starter->places[i].nearness;
	size_t count = fleet_endpoints(&starter->fleet, nearness, chosen);
	for (size_t i = 0; i < count; i++)
		buf_printf(out, "%s%s", i ? "," : "", starter->places[chosen[i]].address);
}

static void add_options(const struct starter *starter, const char *endpoints, struct strv *options)
{
	const struct starter_config *config = starter->config;
	const struct fleet *fleet = &starter->fleet;
	strv_add_all(options, strv_argv(config->options));
	if (str_eq(config->what, "doctor"))
		return;
	if (is_run(starter))
		strv_take(options,
			  mem_printf("--nnodes=%u:%u", MIN(fleet->config.min_nodes, fleet->nodes),
				     fleet->nodes));
	if (*endpoints) {
		strv_add(options, "--rdzv-backend=c10d");
		strv_take(options, mem_printf("--rdzv-endpoint=%s", endpoints));
	}
	if (config->run_id)
		strv_take(options, mem_printf("--rdzv-id=%s", config->run_id));
	if (!strstr(config->conf, "token_file="))
		strv_take(options, mem_printf("--rdzv-conf=%s%stoken_file=/dev/fd/%d", config->conf,
					      *config->conf ? "," : "", FLEET_FD_TOKEN));
	strv_take(options, mem_printf("--lifeline=%d", FLEET_FD_LIFELINE));
}

static void fill_start(const struct starter *starter, const char *endpoints,
		       struct fleet_start *start)
{
	AUTO_FREE char *cwd = getcwd(NULL, 0);
	strv_add(&start->place, cwd ? cwd : "/");
	strv_add(&start->place, starter->config->token);
	if (!is_run(starter))
		strv_add(&start->place, starter->config->what);
	add_options(starter, endpoints, &start->options);
	strv_add_all(&start->command, strv_argv(starter->config->command));
	for (char **variable = environ; *variable; variable++)
		if (fleet_exports(*variable))
			strv_add(&start->env, *variable);
}

static void end(struct starter *starter, int code)
{
	starter->code = code;
	starter->ended = true;
	event_base_loopbreak(starter->base);
}

static void start(struct starter *starter)
{
	AUTO(fleet_start_done) struct fleet_start what = FLEET_START_INIT;
	AUTO(buf_done) struct buf frame = BUF_INIT, endpoints = BUF_INIT;
	struct err err = ERR_INIT;
	if (!starter->config->endpoint)
		choose_endpoints(starter, &endpoints);
	if (!starter->config->endpoint && buf_len(&endpoints) == 0) {
		log_error("no host has an address at which the others could find it: give "
			  "--rdzv-endpoint=HOST:PORT");
		end(starter, EXIT_CODE_SYSTEM);
		return;
	}
	fill_start(starter, buf_str(&endpoints), &what);
	if (fleet_put_start(&frame, &what, &err) < 0) {
		log_error("%s", err.msg);
		end(starter, EXIT_CODE_SYSTEM);
		return;
	}
	send_places(starter);
	send_all(starter, &frame);
}

static void send_signal(struct starter *starter, int signal)
{
	AUTO(buf_done) struct buf frame = BUF_INIT;
	fleet_put_number(&frame, FLEET_MSG_SIGNAL, FLEET_ALL, (uint32_t)signal);
	send_all(starter, &frame);
}

/* ---- the loop ---- */

static void act(struct starter *starter, const struct fleet_action *action)
{
	switch (action->type) {
	case FLEET_DO_REACH:
		reach(starter, action->host, action->via);
		break;
	case FLEET_DO_DROP:
		drop(starter, action->host, action->via);
		break;
	case FLEET_DO_TELL:
		tell(starter, action);
		break;
	case FLEET_DO_START:
		start(starter);
		break;
	case FLEET_DO_SIGNAL:
		send_signal(starter, action->signal);
		break;
	case FLEET_DO_TOO_FEW:
		say_too_few(starter);
		break;
	case FLEET_DO_END:
		end(starter, action->code);
		break;
	}
}

static void arm_timer(struct starter *starter)
{
	uint64_t deadline_ns = fleet_deadline_ns(&starter->fleet);
	struct timeval left = clock_left(deadline_ns, clock_now_ns());
	if (deadline_ns == NS_NEVER)
		event_del(&starter->timer);
	else
		event_add(&starter->timer, &left);
}

static void take(void *arg, const struct fleet_event *event)
{
	struct starter *starter = arg;
	AUTO(fleet_actions_done) struct fleet_actions actions = { .items = NULL };
	fleet_step(&starter->fleet, event, clock_now_ns(), &actions);
	for (size_t i = 0; i < actions.count; i++)
		act(starter, &actions.items[i]);
}

static void step(struct starter *starter, struct fleet_event event)
{
	fleet_push(&starter->queue, &event);
	if (fleet_drive(&starter->queue, take, starter))
		arm_timer(starter);
}

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	step(arg, (struct fleet_event){ FLEET_EV_TIMER });
}

static void on_beat(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	AUTO(buf_done) struct buf frame = BUF_INIT;
	fleet_put(&frame, FLEET_MSG_BEAT, FLEET_ALL, "", 0);
	send_all(arg, &frame);
}

static void on_signal(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct starter *starter = arg;
	struct signal_taken taken;
	while (signals_next(&starter->signals, &taken)) {
		if (taken.meaning == SIGNAL_STOP)
			step(starter,
			     (struct fleet_event){ FLEET_EV_SIGNAL, .signal = taken.signal });
		else if (taken.meaning == SIGNAL_RELAY)
			send_signal(starter, taken.signal);
		else
			log_warn("a job on several hosts cannot be suspended");
	}
}

/* ---- what relays say ---- */

static void keep_output(struct starter_answer *answer, size_t out, const void *data, size_t len)
{
	struct buf *kept = &answer->outs[out];
	buf_append(kept, data, MIN(len, STARTER_OUTPUT_MAX - buf_len(kept)));
}

static void show(struct starter *starter, size_t out, const void *data, size_t len)
{
	nonblocking_out_write(&starter->outs[out], data, len);
	if (nonblocking_out_is_full(&starter->outs[out]))
		branches_hold(&starter->branches, true);
}

static void on_drained(void *arg)
{
	struct starter *starter = arg;
	branches_hold(&starter->branches, false);
}

/* One of the host where it happened is best. */
static void keep_report(struct starter *starter, const struct fleet_msg *msg)
{
	if (msg->len == 0)
		return;
	starter->places[msg->host].report = (char)msg->body[0];
	bool better = msg->body[0] == FLEET_REPORT_HERE && !starter->has_best;
	if (msg->len == 1 || (buf_len(&starter->report) > 0 && !better))
		return;
	starter->has_best = better;
	buf_clear(&starter->report);
	buf_append(&starter->report, msg->body + 1, msg->len - 1);
}

static enum fleet_scope scope_of(char report)
{
	if (report == FLEET_REPORT_HERE || report == FLEET_REPORT_RULED)
		return FLEET_CODE_JOB;
	return report == FLEET_REPORT_ELSEWHERE ? FLEET_CODE_UNSAID : FLEET_CODE_OWN;
}

static void take_up(struct starter *starter, const struct fleet_msg *msg)
{
	AUTO(strv_done) struct strv texts = STRV_INIT;
	struct place *place = &starter->places[msg->host];
	struct addr_name name;
	struct addr addr;
	uint32_t ignored;
	if (fleet_texts(msg, &ignored, &texts) < 0 || texts.count != 2)
		return;
	log_info("%s is up with muster %s", host_name(starter, msg->host), texts.items[0]);
	if (starter->config->answers) {
		struct starter_answer *answer = &starter->config->answers[msg->host];
		snprintf(answer->version, sizeof(answer->version), "%s", texts.items[0]);
		str_make_printable(answer->version);
	}
	if (addr_name_parse(texts.items[1], 0, &name, NULL) == 0 &&
	    addr_from_ip(name.host, name.port, &addr) == 0) {
		snprintf(place->address, sizeof(place->address), "%s", texts.items[1]);
		place->nearness = addr_is_loopback(&addr) ? FLEET_NEAR_ONLY : FLEET_NEAR_ALL;
	}
	step(starter, (struct fleet_event){ FLEET_EV_UP, .host = msg->host });
}

static void take_agent(struct starter *starter, const struct fleet_msg *msg)
{
	struct exit_status status;
	if (fleet_agent(msg, &status) < 0)
		return;
	if (starter->config->answers) {
		starter->config->answers[msg->host].status = status;
	} else if (status.kind != EXIT_CODE) {
		AUTO(buf_done) struct buf how = BUF_INIT;
		exit_status_describe(&status, &how);
		log_warn("the agent on %s ended with %s", host_name(starter, msg->host),
			 buf_str(&how));
	}
	char report = starter->places[msg->host].report;
	step(starter, (struct fleet_event){ FLEET_EV_AGENT, .host = msg->host, .status = status,
					    .scope = scope_of(report) });
}

static void take_down(struct starter *starter, const struct fleet_msg *msg)
{
	AUTO(strv_done) struct strv texts = STRV_INIT;
	uint32_t ignored;
	if (fleet_texts(msg, &ignored, &texts) == 0 && texts.count == 1)
		host_down(starter, msg->host, texts.items[0]);
}

static void take_output(struct starter *starter, const struct fleet_msg *msg)
{
	size_t out = msg->type == FLEET_MSG_ERR;
	if (starter->config->answers)
		keep_output(&starter->config->answers[msg->host], out, msg->body, msg->len);
	else
		show(starter, out, msg->body, msg->len);
}

static void on_msg(void *arg, const struct fleet_msg *msg)
{
	struct starter *starter = arg;
	if (msg->host >= starter->fleet.config.hosts)
		return;
	switch (msg->type) {
	case FLEET_MSG_UP:
		take_up(starter, msg);
		break;
	case FLEET_MSG_DOWN:
		take_down(starter, msg);
		break;
	case FLEET_MSG_OUT:
	case FLEET_MSG_ERR:
		take_output(starter, msg);
		break;
	case FLEET_MSG_REPORT:
		keep_report(starter, msg);
		break;
	case FLEET_MSG_AGENT:
		take_agent(starter, msg);
		break;
	default:
		break;
	}
}

static void on_down(void *arg, uint32_t host, const char *why)
{
	host_down(arg, host, why);
}

static const struct branches_handler branches_handler = { .on_msg = on_msg, .on_down = on_down };

/* ---- beginning and end ---- */

static void take_log(void *arg, enum log_level level UNUSED, const char *line, size_t len)
{
	struct starter *starter = arg;
	show(starter, 1, line, len);
}

static int set_up(struct starter *starter, struct err *err)
{
	const struct starter_config *config = starter->config;
	int r = signals_open(&config->stop_signals, &starter->signals, err);
	if (r < 0)
		return r;
	starter->base = event_base_new();
	if (!starter->base)
		return err_set(err, ENOMEM, "cannot make the event loop");
	for (int i = 0; i < 2; i++) {
		r = nonblocking_out_open(&starter->outs[i], starter->base, STDOUT_FILENO + i,
					 on_drained, starter, err);
		if (r < 0)
			return r;
	}
	log_set_sink(take_log, starter);
	branches_init(&starter->branches, starter->base, &branches_handler, starter);
	event_assign(&starter->timer, starter->base, -1, 0, on_timer, starter);
	event_assign(&starter->beat, starter->base, -1, EV_PERSIST, on_beat, starter);
	event_assign(&starter->on_signal, starter->base, starter->signals.fd, EV_READ | EV_PERSIST,
		     on_signal, starter);
	const struct timeval beat = clock_timeval(FLEET_BEAT_NS);
	event_add(&starter->on_signal, NULL);
	event_add(&starter->beat, &beat);
	return 0;
}

static void say_end(struct starter *starter)
{
	if (starter->code == 0 || !is_run(starter))
		return;
	if (buf_len(&starter->report) > 0)
		show(starter, 1, buf_data(&starter->report), buf_len(&starter->report));
	else if (starter->fleet.started && !starter->fleet.signal)
		log_error("the job ended with exit code %d", starter->code);
}

static void tear_down(struct starter *starter)
{
	log_set_sink(NULL, NULL);
	branches_leave(&starter->branches, ns_add(clock_now_ns(), LEAVE_NS));
	signals_release(); /* a paused terminal may block us, but signals must still end us */
	for (int i = 0; i < 2; i++)
		nonblocking_out_close(&starter->outs[i]);
	branches_done(&starter->branches);
	if (starter->base)
		event_base_free(starter->base);
	signals_close(&starter->signals);
	fleet_done(&starter->fleet);
	fleet_queue_done(&starter->queue);
	buf_done(&starter->report);
	free(starter->places);
}

void starter_answer_done(struct starter_answer *answer)
{
	free(answer->name);
	buf_done(&answer->outs[0]);
	buf_done(&answer->outs[1]);
}

int starter_run(const struct starter_config *config, struct err *err)
{
	struct starter starter = { .config = config, .signals.fd = -1, .code = EXIT_CODE_SYSTEM };
	starter.outs[0].in = starter.outs[1].in = -1;
	starter.places = NEW_ARRAY(struct place, config->hosts->count);
	fleet_init(&starter.fleet, &(struct fleet_config){ .hosts = (uint32_t)config->hosts->count,
							   .min_nodes = config->min_nodes,
							   .max_nodes = config->max_nodes,
							   .fanout = config->fanout,
							   .timeout_ns = config->timeout_ns,
							   .run_ns = config->run_ns });
	for (uint32_t i = 0; i < config->hosts->count; i++)
		if (ssh_is_here(config->hosts->items[i].name))
			fleet_keep_near(&starter.fleet, i);
	int r = set_up(&starter, err);
	if (r == 0) {
		step(&starter, (struct fleet_event){ FLEET_EV_BEGIN });
		/* No command could be started: a loop that has not begun cannot be broken. */
		if (!starter.ended)
			event_base_dispatch(starter.base);
		say_end(&starter);
	}
	tear_down(&starter);
	return r < 0 ? r : starter.code;
}
