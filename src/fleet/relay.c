#include "fleet/relay.h"

#include <errno.h>
#include <event2/event.h>
#include <event2/event_struct.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/env.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/piped.h"
#include "base/str.h"
#include "core/worker/exit_code.h"
#include "fleet/branches.h"
#include "fleet/channel.h"
#include "net/addr.h"
#include "proto/fleet/fleet_msg.h"

#define CHUNK ((size_t)64 << 10)
#define LAST_CHUNKS 1024 /* of 64 KiB: what its workers' children leave open has a limit */
#define REPORT_MAX ((size_t)1 << 20)
#define PARTIAL_NS (100 * NS_PER_MS) /* how long a line without an end is kept */

/* The agent that is started here: `muster run`, `muster batch` or `muster doctor` with the
 * starter's options, whose output goes up in whole lines. */
struct stream {
	struct hosted_agent *agent;
	enum fleet_type type;
	int fd;
	struct buf partial;
	struct event readable, impatient;
};

struct hosted_agent {
	struct relay *relay;
	pid_t pid;
	int pidfd;
	int lifeline; /* open as long as we live */
	int report;
	struct stream out, err;
	struct event ended;
};

/* What differs between the hosts of a job. */
struct place {
	uint32_t slots;	   /* 0: as the options say */
	int32_t node_rank; /* -1: any */
	char *name;	   /* what the agent is told: that of the host, for people */
};

struct relay {
	uint32_t host;
	struct event_base *base;
	struct channel up;
	struct branches branches;
	struct hosted_agent *agent;
	struct place place;
	bool orphaned; /* the starter is gone */
	struct event silence;
};

/* Pauses or resumes reading its output; it notices when its pipes are full. */
static void hold_agent(struct hosted_agent *agent, bool hold)
{
	struct stream *const streams[] = { &agent->out, &agent->err };
	for (size_t i = 0; i < ARRAY_LEN(streams); i++) {
		if (hold)
			event_del(&streams[i]->readable);
		else
			event_add(&streams[i]->readable, NULL);
	}
}

/* ---- upwards ---- */

static void send_up(struct relay *relay, const struct buf *frame)
{
	channel_send(&relay->up, buf_data(frame), buf_len(frame));
	if (!channel_is_full(&relay->up))
		return;
	branches_hold(&relay->branches, true);
	if (relay->agent)
		hold_agent(relay->agent, true);
}

static void on_drained(void *arg)
{
	struct relay *relay = arg;
	branches_hold(&relay->branches, false);
	if (relay->agent)
		hold_agent(relay->agent, false);
}

static void send_text(struct relay *relay, enum fleet_type type, uint32_t host, const char *text)
{
	AUTO(buf_done) struct buf frame = BUF_INIT;
	char *texts[] = { (char *)text, NULL };
	fleet_put_texts(&frame, type, host, 0, texts);
	send_up(relay, &frame);
}

static void on_branch_msg(void *arg, const struct fleet_msg *msg)
{
	AUTO(buf_done) struct buf frame = BUF_INIT;
	fleet_put(&frame, msg->type, msg->host, msg->body, msg->len);
	send_up(arg, &frame);
}

static void on_branch_down(void *arg, uint32_t host, const char *why)
{
	send_text(arg, FLEET_MSG_DOWN, host, why);
}

static const struct branches_handler branches_handler = { .on_msg = on_branch_msg,
							  .on_down = on_branch_down };

/* ---- the output of the agent ---- */

static void pass_up(struct relay *relay, enum fleet_type type, const void *data, size_t len)
{
	AUTO(buf_done) struct buf frame = BUF_INIT;
	if (relay->orphaned)
		return;
	fleet_put(&frame, type, relay->host, data, len);
	send_up(relay, &frame);
}

static void pass_on(struct stream *stream, size_t len)
{
	struct hosted_agent *agent = stream->agent;
	if (len == 0)
		return;
	pass_up(agent->relay, stream->type, buf_data(&stream->partial), len);
	buf_consume(&stream->partial, len);
}

/* Up to the end of the last line, so that lines of different hosts do not mix. A carriage return
 * ends one, too. */
static size_t whole_lines(const struct buf *partial)
{
	for (size_t len = buf_len(partial); len > 0; len--)
		if (strchr("\n\r", buf_data(partial)[len - 1]) && buf_data(partial)[len - 1])
			return len;
	return 0;
}

static ssize_t stream_read(struct stream *stream)
{
	ssize_t n = fd_read_some(stream->fd, CHUNK, &stream->partial);
	if (n <= 0)
		return n;
	pass_on(stream, buf_len(&stream->partial) > CHUNK ? buf_len(&stream->partial)
							  : whole_lines(&stream->partial));
	return n;
}

static void on_readable(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct stream *stream = arg;
	ssize_t n = stream_read(stream);
	if (n == 0 || (n < 0 && n != -EAGAIN))
		event_del(&stream->readable);
	const struct timeval soon = clock_timeval(PARTIAL_NS);
	if (buf_len(&stream->partial) > 0)
		event_add(&stream->impatient, &soon);
}

static void on_impatient(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct stream *stream = arg;
	pass_on(stream, buf_len(&stream->partial));
}

static void stream_open(struct stream *stream, struct hosted_agent *agent, enum fleet_type type,
			int fd)
{
	*stream = (struct stream){ .agent = agent, .type = type, .fd = fd };
	fd_set_nonblock(fd, true);
	event_assign(&stream->readable, agent->relay->base, fd, EV_READ | EV_PERSIST, on_readable,
		     stream);
	event_assign(&stream->impatient, agent->relay->base, -1, 0, on_impatient, stream);
	event_add(&stream->readable, NULL);
}

static void stream_finish(struct stream *stream)
{
	for (int i = 0; i < LAST_CHUNKS && stream_read(stream) > 0; i++)
		;
	pass_on(stream, buf_len(&stream->partial));
}

/* ---- the end of the agent ---- */

static void pass_report(struct hosted_agent *agent)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	fd_set_nonblock(agent->report, true);
	while (buf_len(&text) < REPORT_MAX && fd_read_some(agent->report, CHUNK, &text) > 0)
		;
	if (buf_len(&text) > 0)
		pass_up(agent->relay, FLEET_MSG_REPORT, buf_data(&text), buf_len(&text));
}

static void stream_close(struct stream *stream)
{
	event_del(&stream->readable);
	event_del(&stream->impatient);
	fd_close(&stream->fd);
	buf_done(&stream->partial);
}

/* Without us it sees the end of its lifeline, and stops. */
static void free_agent(struct hosted_agent *agent)
{
	if (!agent)
		return;
	event_del(&agent->ended);
	stream_close(&agent->out);
	stream_close(&agent->err);
	fd_close(&agent->pidfd);
	fd_close(&agent->lifeline);
	fd_close(&agent->report);
	free(agent);
}

static void signal_agent(struct hosted_agent *agent, int signal)
{
	if (agent->pid)
		pidfd_send_signal(agent->pidfd, signal, NULL, 0);
}

static void leave(struct relay *relay)
{
	event_base_loopbreak(relay->base);
}

static void agent_ended(struct relay *relay, const struct exit_status *status)
{
	free_agent(relay->agent);
	relay->agent = NULL;
	AUTO(buf_done) struct buf frame = BUF_INIT;
	fleet_put_agent(&frame, relay->host, status);
	send_up(relay, &frame);
	if (relay->orphaned)
		leave(relay);
}

static void on_ended(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct hosted_agent *agent = arg;
	int status = child_wait(agent->pid);
	agent->pid = 0;
	stream_finish(&agent->out);
	stream_finish(&agent->err);
	pass_report(agent);
	struct exit_status ended = status >= 0 ? exit_status_from_wait(status)
					       : (struct exit_status){ .kind = EXIT_UNKNOWN };
	agent_ended(agent->relay, &ended);
}

/* ---- the start of the agent ---- */

static void make_env(const struct fleet_start *start, const char *name, struct strv *env)
{
	strv_add_all(env, environ);
	for (size_t i = 0; i < start->env.count; i++) {
		const char *sign = strchr(start->env.items[i], '=');
		if (!sign)
			continue;
		AUTO_FREE char *variable =
			mem_strndup(start->env.items[i], (size_t)(sign - start->env.items[i]));
		env_set(env, variable, sign + 1);
	}
	env_set(env, FLEET_VARIABLE, name);
}

/* The user's options come after those of the host, and so win; those of the starter come last. */
static void make_argv(const struct fleet_start *start, const struct place *place, struct strv *argv)
{
	const char *what = start->place.items[2];
	bool run = str_eq(what, "run");
	strv_add(argv, "/proc/self/exe");
	strv_add(argv, what);
	if (place->slots && !str_eq(what, "doctor"))
		strv_take(argv, mem_printf(run ? "--nproc-per-node=%u" : "-j%u", place->slots));
	if (place->node_rank >= 0 && run)
		strv_take(argv, mem_printf("--node-rank=%d", place->node_rank));
	strv_add_all(argv, strv_argv(&start->options));
	if (!run)
		return;
	strv_add(argv, "--");
	strv_add_all(argv, strv_argv(&start->command));
}

/* A pipe that already has the token in it: no other process of this user can read that, as it could
 * an environment. */
static int offer_token(const char *token, int *ret_fd, struct err *err)
{
	AUTO(fd_close) int in = -1;
	int r = fd_open_pipe(ret_fd, &in, err);
	if (r < 0)
		return r;
	r = fd_write_all(in, token, strlen(token));
	return r < 0 ? err_set(err, -r, "token: %m") : 0;
}

static int spawn_agent(const struct fleet_start *start, const struct place *place,
		       struct piped *ret_piped, int *ret_lifeline, int *ret_report, struct err *err)
{
	AUTO(fd_close) int token = -1, lifeline = -1, held = -1, report = -1, reports = -1;
	AUTO(strv_done) struct strv argv = STRV_INIT, env = STRV_INIT;
	int r;
	if ((r = offer_token(start->place.items[1], &token, err)) < 0 ||
	    (r = fd_open_pipe(&lifeline, &held, err)) < 0 ||
	    (r = fd_open_pipe(&report, &reports, err)) < 0)
		return r;
	make_argv(start, place, &argv);
	make_env(start, place->name, &env);
	const int extra[] = { token, lifeline, reports };
	static_assert(FLEET_FD_TOKEN == 3 && FLEET_FD_LIFELINE == 4 && FLEET_FD_REPORT == 5,
		      "as they are listed");
	const struct piped_spec spec = { .argv = strv_argv(&argv),
					 .envp = strv_argv(&env),
					 .cwd = start->place.items[0],
					 .deaf = true,
					 .extra = extra,
					 .extra_count = ARRAY_LEN(extra) };
	r = piped_start(&spec, ret_piped, err);
	if (r < 0)
		return err_wrap(err, "in %s", start->place.items[0]);
	*ret_lifeline = fd_take(&held);
	*ret_report = fd_take(&report);
	return 0;
}

static int start_agent(struct relay *relay, const struct fleet_start *start, struct err *err)
{
	struct piped piped;
	int lifeline = -1, report = -1;
	int r = spawn_agent(start, &relay->place, &piped, &lifeline, &report, err);
	if (r < 0)
		return r;
	struct hosted_agent *agent = NEW(struct hosted_agent);
	*agent = (struct hosted_agent){ .relay = relay,
					.pid = piped.pid,
					.pidfd = piped.pidfd,
					.lifeline = lifeline,
					.report = report };
	stream_open(&agent->out, agent, FLEET_MSG_OUT, piped.out);
	stream_open(&agent->err, agent, FLEET_MSG_ERR, piped.err);
	event_assign(&agent->ended, relay->base, piped.pidfd, EV_READ, on_ended, agent);
	event_add(&agent->ended, NULL);
	relay->agent = agent;
	return 0;
}

/* An agent that cannot be started has ended. */
static void say_not_started(struct relay *relay, const struct err *err)
{
	const char *name = relay->place.name;
	AUTO_FREE char *line =
		mem_printf("muster: %.*s: error: %s\n", (int)strcspn(name, ","), name, err->msg);
	pass_up(relay, FLEET_MSG_ERR, line, strlen(line));
	agent_ended(relay,
		    &(struct exit_status){ .kind = EXIT_CODE, .value = EXIT_CODE_NOT_FOUND });
}

static void start(struct relay *relay, const struct fleet_msg *msg)
{
	AUTO(fleet_start_done) struct fleet_start what = FLEET_START_INIT;
	struct err err = ERR_INIT;
	if (relay->agent || fleet_start_of(msg, &what) < 0)
		return;
	if (start_agent(relay, &what, &err) < 0)
		say_not_started(relay, &err);
}

/* ---- downwards ---- */

static void reach(struct relay *relay, const struct fleet_msg *msg)
{
	AUTO(strv_done) struct strv argv = STRV_INIT;
	struct err err = ERR_INIT;
	uint32_t host;
	if (fleet_texts(msg, &host, &argv) < 0 || argv.count == 0)
		return;
	if (branches_reach(&relay->branches, host, strv_argv(&argv), &err) < 0)
		send_text(relay, FLEET_MSG_DOWN, host, err.msg);
}

static void take_place(struct relay *relay, const struct fleet_msg *msg)
{
	AUTO(strv_done) struct strv texts = STRV_INIT;
	uint32_t slots;
	int64_t rank;
	if (fleet_texts(msg, &slots, &texts) < 0 || texts.count != 2 ||
	    str_to_i64(texts.items[0], &rank) < 0)
		return;
	free(relay->place.name);
	relay->place = (struct place){ slots, (int32_t)rank, mem_strdup(texts.items[1]) };
}

static void take_own(struct relay *relay, const struct fleet_msg *msg)
{
	uint32_t number;
	switch (msg->type) {
	case FLEET_MSG_REACH:
		reach(relay, msg);
		break;
	case FLEET_MSG_DROP:
		if (fleet_number(msg, &number) == 0)
			branches_drop(&relay->branches, number);
		break;
	case FLEET_MSG_PLACE:
		take_place(relay, msg);
		break;
	case FLEET_MSG_START:
		start(relay, msg);
		break;
	case FLEET_MSG_SIGNAL:
		if (relay->agent && fleet_number(msg, &number) == 0)
			signal_agent(relay->agent, (int)number);
		break;
	case FLEET_MSG_BEAT:
	default:
		break;
	}
}

/* A relay further on is asked to reach a host, or to let go of one. */
static void note_way(struct relay *relay, const struct fleet_msg *msg)
{
	AUTO(strv_done) struct strv argv = STRV_INIT;
	uint32_t host;
	if (msg->type == FLEET_MSG_REACH && fleet_texts(msg, &host, &argv) == 0)
		branches_set_way(&relay->branches, host, msg->host);
	else if (msg->type == FLEET_MSG_DROP && fleet_number(msg, &host) == 0)
		branches_set_way(&relay->branches, host, -1);
}

static void expect_beat(struct relay *relay)
{
	const struct timeval silence = clock_timeval(FLEET_SILENCE_NS);
	event_add(&relay->silence, &silence);
}

static void on_msg(void *arg, const struct fleet_msg *msg)
{
	struct relay *relay = arg;
	expect_beat(relay);
	bool all = msg->host == FLEET_ALL;
	if (all || msg->host == relay->host)
		take_own(relay, msg);
	if (msg->host == relay->host)
		return;
	note_way(relay, msg);
	AUTO(buf_done) struct buf frame = BUF_INIT;
	fleet_put(&frame, msg->type, msg->host, msg->body, msg->len);
	if (all)
		branches_send_all(&relay->branches, buf_data(&frame), buf_len(&frame));
	else
		branches_send(&relay->branches, msg->host, buf_data(&frame), buf_len(&frame));
}

/* Nothing of the job may outlive the starter. The hosts behind us see our end. */
static void on_end(void *arg, const char *why UNUSED)
{
	struct relay *relay = arg;
	relay->orphaned = true;
	event_del(&relay->silence);
	branches_done(&relay->branches);
	if (!relay->agent) {
		leave(relay);
		return;
	}
	hold_agent(relay->agent, false);
	signal_agent(relay->agent, SIGTERM);
}

static void on_silence(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct relay *relay = arg;
	channel_close(&relay->up);
	on_end(relay, "");
}

static const struct channel_handler up_handler = { .on_msg = on_msg,
						   .on_end = on_end,
						   .on_drained = on_drained };

/* ---- beginning ---- */

/* The address at which ssh has reached this host; of its own accord, when started without ssh. */
static bool own_address(struct addr *ret_addr)
{
	const char *connection = getenv("SSH_CONNECTION"); /* client port server port */
	if (!connection)
		return addr_from_ip("127.0.0.1", 0, ret_addr) == 0;
	const char *rest = connection, *piece;
	size_t len;
	for (int i = 0; (piece = str_split(&rest, ' ', &len)); i++)
		if (i == 2) {
			AUTO_FREE char *ip = mem_strndup(piece, len);
			return addr_from_ip(ip, 0, ret_addr) == 0;
		}
	return false;
}

/* A port that is free there, or nothing: behind an address translation a host does not have the
 * address that others use. */
static void find_place(char text[ADDR_TEXT_MAX])
{
	struct addr addr;
	text[0] = '\0';
	if (own_address(&addr) && addr_find_port(&addr))
		addr_format(&addr, text);
}

static void say_up(struct relay *relay)
{
	AUTO(buf_done) struct buf frame = BUF_INIT;
	char place[ADDR_TEXT_MAX];
	find_place(place);
	char *texts[] = { MUSTER_VERSION, place, NULL };
	channel_send(&relay->up, FLEET_MAGIC, strlen(FLEET_MAGIC));
	fleet_put_texts(&frame, FLEET_MSG_UP, relay->host, 0, texts);
	send_up(relay, &frame);
}

/* The connection gets numbers of its own: nothing that we start shall write into it. */
static int take_connection(struct relay *relay)
{
	int in = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	int out = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
	int null = open("/dev/null", O_RDWR | O_CLOEXEC);
	if (in < 0 || out < 0 || null < 0)
		return -errno;
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	close(null);
	channel_open(&relay->up, relay->base, in, out, true, &up_handler, relay);
	return 0;
}

int relay_main(int argc, char **argv)
{
	uint64_t host;
	if (argc != 2 || str_to_u64(argv[1], &host) < 0 || host >= FLEET_ALL)
		return EXIT_CODE_USAGE;
	struct relay relay = { .host = (uint32_t)host,
			       .up = CHANNEL_INIT,
			       .place = { .node_rank = -1 } };
	signal(SIGPIPE, SIG_IGN);
	relay.place.name = mem_strdup("");
	relay.base = event_base_new();
	if (!relay.base || take_connection(&relay) < 0)
		return EXIT_CODE_SYSTEM;
	event_assign(&relay.silence, relay.base, -1, 0, on_silence, &relay);
	branches_init(&relay.branches, relay.base, &branches_handler, &relay);
	expect_beat(&relay);
	say_up(&relay);
	event_base_dispatch(relay.base);
	channel_close(&relay.up);
	branches_done(&relay.branches);
	event_base_free(relay.base);
	free(relay.place.name);
	return EXIT_CODE_OK;
}
