#include "fleet/relay.h"

#include <errno.h>
#include <event2/event.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "core/worker/exit_code.h"
#include "fleet/branches.h"
#include "fleet/channel.h"
#include "fleet/hosted.h"
#include "net/addr.h"

/* Below the ports that the kernel gives to outgoing connections. */
#define PORT_FIRST 16384
#define PORT_COUNT 16384
#define PORT_TRIES 64

struct relay {
	uint32_t host;
	struct event_base *base;
	struct channel up;
	struct branches branches;
	struct hosted *hosted;
	struct hosted_place place;
	char *name;
	bool orphaned; /* the starter is gone */
	struct event silence;
};

/* ---- upwards ---- */

static void send_up(struct relay *relay, const struct buf *frame)
{
	channel_send(&relay->up, buf_data(frame), buf_len(frame));
	if (!channel_is_full(&relay->up))
		return;
	branches_hold(&relay->branches, true);
	if (relay->hosted)
		hosted_hold(relay->hosted, true);
}

static void on_drained(void *arg)
{
	struct relay *relay = arg;
	branches_hold(&relay->branches, false);
	if (relay->hosted)
		hosted_hold(relay->hosted, false);
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

/* ---- the agent ---- */

static void leave(struct relay *relay)
{
	event_base_loopbreak(relay->base);
}

static void on_output(void *arg, enum fleet_type type, const void *data, size_t len)
{
	struct relay *relay = arg;
	AUTO(buf_done) struct buf frame = BUF_INIT;
	if (relay->orphaned)
		return;
	fleet_put(&frame, type, relay->host, data, len);
	send_up(relay, &frame);
}

static void on_agent_ended(void *arg, const struct exit_status *status)
{
	struct relay *relay = arg;
	hosted_free(relay->hosted);
	relay->hosted = NULL;
	AUTO(buf_done) struct buf frame = BUF_INIT;
	fleet_put_agent(&frame, relay->host, status);
	send_up(relay, &frame);
	if (relay->orphaned)
		leave(relay);
}

static const struct hosted_handler hosted_handler = { .on_output = on_output,
						      .on_ended = on_agent_ended };

/* An agent that cannot be started has ended. */
static void say_not_started(struct relay *relay, const struct err *err)
{
	AUTO_FREE char *line = mem_printf("muster: %s: error: %s\n", relay->name, err->msg);
	on_output(relay, FLEET_MSG_ERR, line, strlen(line));
	on_agent_ended(relay,
		       &(struct exit_status){ .kind = EXIT_CODE, .value = EXIT_CODE_NOT_FOUND });
}

static void start(struct relay *relay, const struct fleet_msg *msg)
{
	AUTO(fleet_start_done) struct fleet_start what = FLEET_START_INIT;
	struct err err = ERR_INIT;
	if (relay->hosted || fleet_start_of(msg, &what) < 0)
		return;
	relay->place.name = relay->name;
	if (hosted_start(relay->base, &what, &relay->place, &hosted_handler, relay, &relay->hosted,
			 &err) < 0)
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
	relay->place = (struct hosted_place){ .slots = slots, .node_rank = (int32_t)rank };
	free(relay->name);
	relay->name = mem_strdup(texts.items[1]);
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
		if (relay->hosted && fleet_number(msg, &number) == 0)
			hosted_signal(relay->hosted, (int)number);
		break;
	case FLEET_MSG_BEAT:
	default:
		break;
	}
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
	if (!relay->hosted) {
		leave(relay);
		return;
	}
	hosted_hold(relay->hosted, false);
	hosted_signal(relay->hosted, SIGTERM);
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
	if (!own_address(&addr))
		return;
	for (int i = 0; i < PORT_TRIES; i++) {
		uint16_t random;
		random_bytes(&random, sizeof(random));
		addr_set_port(&addr, (uint16_t)(PORT_FIRST + random % PORT_COUNT));
		AUTO(fd_close) int fd = addr_try_listen(&addr);
		if (fd >= 0) {
			addr_format(&addr, text);
			return;
		}
	}
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
	relay.name = mem_strdup("");
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
	free(relay.name);
	return EXIT_CODE_OK;
}
