/* N agents of a job in one process, each the real agent core with a real connection of its own to a
 * coordinator. Their workers are imaginary: they start and stop at once.
 *
 *     rendezvous_load HOST PORT AGENTS RUN_ID          (the token is in MUSTER_TOKEN)
 *
 * Connects all and waits for the first round; after a newline on stdin lets one worker fail and
 * waits for the second round; after another one all workers are done. So the caller can look at the
 * coordinator in between, and ask the job: each agent answers with the state of its 8 workers.
 * Prints "name value" pairs, a line after each round:
 *
 *     all_ms       first connect -> last FORMED
 *     form_ms      last JOIN -> last FORMED; reform_ms the same of the second round
 *     in, out      bytes per agent until the first round, as the agent sees them (mean)
 *     out_max      the most that one agent sent
 *     asked        questions to all that were answered in between
 *     answer       bytes of the frames that an agent sent for one (mean)
 *     stop_ms      a worker fails -> the last agent hears STOP
 *     again_ms     a worker fails -> last FORMED of the second round
 */
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/rounds/agent.h"
#include "net/link.h"
#include "proto/round_msg.h"

#define GREETING_AT_ONCE \
	1000 /* more would only fill the listen queue, and lost SYNs wait for a second */

struct load;

struct host {
	struct load *load;
	struct agent agent;
	struct link *link;
	struct event *timer;
	uint32_t rounds;
	bool exited;
};

struct load {
	struct event_base *base;
	struct link_self self;
	struct host *hosts;
	uint32_t count;
	const struct link_target *target;
	uint32_t connecting, up;
	uint32_t formed, stopped, exited;
	uint64_t last_join_ns, last_formed_ns, last_stop_ns;
	uint64_t answers, answer_bytes;
};

static void die(const char *what)
{
	fprintf(stderr, "rendezvous_load: %s\n", what);
	exit(1);
}

static void step(struct host *host, const struct agent_event *event);

static void carry_out(struct host *host, const struct agent_action *action)
{
	struct load *load = host->load;
	switch (action->type) {
	case AGENT_SEND:
		if (action->msg.type == MSG_JOIN)
			load->last_join_ns = clock_now_ns();
		link_send(host->link, &action->msg);
		break;
	case AGENT_GROUP_START:
		host->rounds++;
		load->formed++;
		load->last_formed_ns = clock_now_ns();
		break;
	case AGENT_GROUP_STOP:
	case AGENT_GROUP_KILL:
		load->stopped++;
		load->last_stop_ns = clock_now_ns();
		step(host, &(struct agent_event){ .type = AGENT_GROUP_GONE });
		break;
	case AGENT_HANG_UP:
		link_hang_up(host->link);
		host->link = NULL;
		break;
	case AGENT_EXIT:
		host->exited = true;
		load->exited++;
		break;
	case AGENT_PEERS:
		break;
	}
}

static void set_timer(struct host *host)
{
	uint64_t due_ns = agent_deadline_ns(&host->agent);
	if (host->exited || due_ns == NS_NEVER) {
		event_del(host->timer);
		return;
	}
	const struct timeval left = clock_left(due_ns, clock_now_ns());
	evtimer_add(host->timer, &left);
}

static void step(struct host *host, const struct agent_event *event)
{
	struct agent_actions actions = { .items = NULL };
	agent_step(&host->agent, event, clock_now_ns(), &actions);
	for (size_t i = 0; i < actions.count; i++)
		carry_out(host, &actions.items[i]);
	agent_actions_done(&actions);
	set_timer(host);
}

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	step(arg, &(struct agent_event){ .type = AGENT_TIMER });
}

static void connect_more(struct load *load);

static void on_up(void *arg, struct link *link UNUSED)
{
	struct host *host = arg;
	step(host, &(struct agent_event){ .type = AGENT_LINK_UP });
	host->load->up++;
	connect_more(host->load);
}

/* As large as a real state of so many workers. */
static void make_state(const struct host *host, struct buf *out)
{
	buf_printf(out,
		   "{\"run_id\":\"bench\",\"pid\":4711,\"host\":\"%s\",\"state\":\"running\","
		   "\"uptime_s\":1.5,\"restarts\":0,\"max_restarts\":3,\"nodes\":%u,"
		   "\"world_size\":%u,\"node\":{\"group_rank\":%u},\"workers\":[",
		   host->agent.config.node.name, host->load->count, 8 * host->load->count,
		   host->agent.formed.group_rank);
	for (uint32_t i = 0; i < host->agent.config.node.nproc; i++)
		buf_printf(out,
			   "%s{\"rank\":%u,\"local_rank\":%u,\"pid\":%u,\"state\":\"running\","
			   "\"output_bytes\":123456,\"heartbeats\":0,\"timers\":0,"
			   "\"uptime_s\":1.234567,\"cpu_s\":1.234567,\"resident_bytes\":1234567890,"
			   "\"last_line\":\"step 1234 loss 1.2345 lr 0.0001 grad_norm 1.234\"}",
			   i ? "," : "", host->agent.formed.rank_base + i, i, 5000 + i);
	buf_append_str(out, "]}\n");
}

/* The window of such a question has room for all pieces. */
static void answer(struct host *host, const struct msg_question *question)
{
	AUTO(buf_done) struct buf state = BUF_INIT;
	make_state(host, &state);
	for (size_t at = 0, len; at < buf_len(&state); at += len) {
		struct msg msg = { .type = MSG_ANSWER };
		len = MIN(buf_len(&state) - at, (size_t)ASK_PIECE_MAX);
		msg.answer = (struct msg_answer){ .question = question->question,
						  .slot = question->slot,
						  .last = at + len == buf_len(&state),
						  .piece = bytes_of(buf_data(&state) + at, len) };
		AUTO(buf_done) struct buf frame = BUF_INIT;
		round_msg_encode(&msg, &frame, NULL);
		host->load->answer_bytes += buf_len(&frame);
		link_send(host->link, &msg);
	}
	host->load->answers++;
}

static void on_msg(void *arg, struct link *link UNUSED, const struct msg *msg)
{
	if (msg->type == MSG_QUESTION)
		answer(arg, &msg->question);
	if (msg_is_asking(msg->type))
		return;
	step(arg, &(struct agent_event){ .type = AGENT_MSG, .msg = msg });
}

static void on_down(void *arg, struct link *link UNUSED, const struct link_end *end)
{
	struct host *host = arg;
	host->link = NULL;
	if (!host->exited)
		die(end->text);
}

static const struct link_handler link_handler = { on_up, on_msg, on_down };

static void add_host(struct load *load, uint32_t i)
{
	struct host *host = &load->hosts[i];
	struct agent_config config = {
		.node = { .id = { 7, i + 1 },
			  .min_nodes = load->count,
			  .max_nodes = load->count,
			  .nproc = 8,
			  .node_rank = -1,
			  .max_restarts = 3,
			  .lease_periods = 4,
			  .answers = true,
			  .role = "default",
			  .store_host = "10.0.0.1",
			  .store_port = 29500,
			  .addr_count = 2,
			  .addrs = { { .family = 4,
				       .bytes = { 10, (uint8_t)(i >> 16), (uint8_t)(i >> 8),
						  (uint8_t)i } },
				     { .family = 6,
				       .bytes = { 0xfd, 0, 0, (uint8_t)(i >> 8), (uint8_t)i } } } },
		.join_timeout_ns = 600 * NS_PER_S,
	};
	config.node.period_ns = MAX(NS_PER_S, load->count * NS_PER_S / 2000);
	snprintf(config.node.name, sizeof(config.node.name), "node-%05u.cluster.example", i);
	host->load = load;
	agent_init(&host->agent, &config);
	host->timer = evtimer_new(load->base, on_timer, host);
	step(host, &(struct agent_event){ .type = AGENT_START });
}

static void connect_more(struct load *load)
{
	while (load->connecting < load->count && load->connecting - load->up < GREETING_AT_ONCE) {
		struct host *host = &load->hosts[load->connecting++];
		host->link =
			link_connect(load->base, &load->self, load->target, &link_handler, host);
	}
}

static void wait_for(struct load *load, const uint32_t *counter, uint32_t value)
{
	while (*counter < value)
		event_base_loop(load->base, EVLOOP_ONCE);
}

static void on_newline(evutil_socket_t fd, short what UNUSED, void *arg)
{
	char c;
	if (read(fd, &c, 1) != 1)
		die("nobody tells when to go on");
	*(uint32_t *)arg = 1;
}

/* The agents stay alive meanwhile: they ping. */
static void wait_for_caller(struct load *load)
{
	uint32_t told = 0;
	struct event *newline = event_new(load->base, STDIN_FILENO, EV_READ, on_newline, &told);
	event_add(newline, NULL);
	wait_for(load, &told, 1);
	event_free(newline);
}

static void fail_one(struct load *load)
{
	struct host *host = &load->hosts[load->count / 2];
	step(host, &(struct agent_event){ .type = AGENT_GROUP_FAILED,
					  .cause = { .status = { EXIT_CODE, 1, false } },
					  .died_ns = clock_now_ns() });
	step(host, &(struct agent_event){ .type = AGENT_GROUP_GONE });
}

static void end_all(struct load *load)
{
	for (uint32_t i = 0; i < load->count; i++) {
		step(&load->hosts[i], &(struct agent_event){ .type = AGENT_GROUP_DONE });
		step(&load->hosts[i], &(struct agent_event){ .type = AGENT_GROUP_GONE });
	}
	wait_for(load, &load->exited, load->count);
}

static double ms(uint64_t from_ns, uint64_t to_ns)
{
	return (double)(to_ns - from_ns) / 1e6;
}

static void print_traffic(const struct load *load)
{
	double in = 0, out = 0;
	uint64_t out_max = 0;
	for (uint32_t i = 0; i < load->count; i++) {
		struct link_traffic traffic;
		link_traffic(load->hosts[i].link, &traffic);
		in += (double)traffic.in;
		out += (double)traffic.out;
		out_max = MAX(out_max, traffic.out);
	}
	printf(" in %.1f out %.1f out_max %llu", in / load->count, out / load->count,
	       (unsigned long long)out_max);
}

int main(int argc, char **argv)
{
	struct addr addr;
	uint64_t port = 0, count = 0;
	if (argc != 5 || str_to_u64(argv[2], &port) < 0 ||
	    addr_from_ip(argv[1], (uint16_t)port, &addr) < 0 || str_to_u64(argv[3], &count) < 0 ||
	    count == 0 || count > MSG_NODES_MAX)
		die("usage: rendezvous_load HOST PORT AGENTS RUN_ID");
	fd_limit_raise();
	struct err err = ERR_INIT;
	struct token token;
	int has_token = token_load(NULL, &token, &err);
	if (has_token < 0)
		die(err.msg);
	struct load load = { .base = event_base_new(),
			     .self = { argv[4], has_token ? &token : NULL },
			     .count = (uint32_t)count,
			     .hosts = mem_alloc(count * sizeof(struct host)) };
	load.target = &(const struct link_target){ &addr, 1, "the coordinator" };
	for (uint32_t i = 0; i < load.count; i++)
		add_host(&load, i);

	uint64_t start_ns = clock_now_ns();
	connect_more(&load);
	wait_for(&load, &load.formed, load.count);
	printf("all_ms %.3f form_ms %.3f", ms(start_ns, load.last_formed_ns),
	       ms(load.last_join_ns, load.last_formed_ns));
	print_traffic(&load);
	printf("\n");
	fflush(stdout);

	wait_for_caller(&load);
	uint64_t failed_ns = clock_now_ns();
	fail_one(&load);
	wait_for(&load, &load.formed, 2 * load.count);
	printf("asked %.1f answer %.1f ", (double)load.answers / load.count,
	       load.answers ? (double)load.answer_bytes / (double)load.answers : 0.0);
	printf("stop_ms %.3f reform_ms %.3f again_ms %.3f\n", ms(failed_ns, load.last_stop_ns),
	       ms(load.last_join_ns, load.last_formed_ns), ms(failed_ns, load.last_formed_ns));
	fflush(stdout);

	wait_for_caller(&load);
	end_all(&load);
	return 0;
}
