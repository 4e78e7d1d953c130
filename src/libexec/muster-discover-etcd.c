/* muster-discover-etcd: chooses the coordinator of a job by an election through etcd.
 *
 * core/rounds/election.h has the rules and proto/etcd.h the requests; this file carries them out.
 * muster-discovery(7) is the contract with muster. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/random.h"
#include "base/str.h"
#include "core/rounds/election.h"
#include "core/worker/exit_code.h"
#include "libexec/etcd_client.h"
#include "libexec/etcd_options.h"
#include "proto/discovery_line.h"
#include "proto/etcd.h"

#define ID_MAX 40
#define PAST_TTL_S 3600 /* for agents that were cut off when the job ended */

struct program {
	const struct etcd_options *options;
	struct election election;
	struct etcd_client *client;
	enum election_request asked;
	char *key, *past_key;
	char value[ETCD_VALUE_MAX];	     /* "host:port id" */
	char reason[ETCD_CLIENT_REASON_MAX]; /* of the last failure */
	int leave_fd;			     /* an epoll: stdin, and signals. -1: we are leaving */
	int status;			     /* of the exit, -1 while we run */
};

static void say(const char *fmt, ...) PRINTF_LIKE(1, 2);

static void say(const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	AUTO(buf_done) struct buf line = BUF_INIT;
	buf_vprintf(&line, fmt, args);
	va_end(args);
	buf_append_char(&line, '\n');
	/* A closed stderr must not stop us. */
	int ignored UNUSED = fd_write_all(STDERR_FILENO, buf_data(&line), buf_len(&line));
}

/* Events. */

static const char *const paths[] = {
	[ELECTION_READ] = ETCD_PATH_READ,	  [ELECTION_GRANT] = ETCD_PATH_GRANT,
	[ELECTION_CAMPAIGN] = ETCD_PATH_CAMPAIGN, [ELECTION_KEEP] = ETCD_PATH_KEEP,
	[ELECTION_REVOKE] = ETCD_PATH_REVOKE,	  [ELECTION_READ_PAST] = ETCD_PATH_READ,
	[ELECTION_GRANT_PAST] = ETCD_PATH_GRANT,  [ELECTION_RECORD] = ETCD_PATH_CAMPAIGN,
};
static_assert(ARRAY_LEN(paths) == ELECTION_REQUEST_COUNT, "every request needs a path");

static void key_event(const struct etcd_key *key, struct election_event *event)
{
	event->type = ELECTION_KEY;
	event->present = key->present;
	event->value = key->value;
	event->epoch = key->create_revision;
	event->lease = key->lease;
	event->revision = key->revision;
}

/* "EPOCH done" or "EPOCH failed". */
static void format_past(const struct recorded_end *past, char text[ETCD_VALUE_MAX])
{
	snprintf(text, ETCD_VALUE_MAX, "%" PRIu64 " %s", past->epoch,
		 discovery_end_name(past->ruling));
}

/* A value that is not one of ours records nothing. */
static struct recorded_end parse_past(const struct etcd_key *key)
{
	struct recorded_end past = { .epoch = 0 };
	char number[ETCD_VALUE_MAX];
	size_t len = strcspn(key->value, " ");
	if (!key->present || !key->value[len])
		return past;
	memcpy(number, key->value, len);
	number[len] = '\0';
	past.ruling = discovery_end_parse(key->value + len + 1);
	if (past.ruling == RULING_NONE || str_to_u64(number, &past.epoch) < 0 ||
	    past.epoch > INT64_MAX)
		past.epoch = 0;
	return past;
}

/* Turns an answer into an event; `key` holds its texts. */
static int answer_event(enum election_request asked, const char *text, size_t len,
			struct etcd_key *key, struct election_event *event, struct err *err)
{
	bool won = false;
	uint64_t ttl_s = 0;
	int r = 0;
	switch (asked) {
	case ELECTION_READ:
		r = etcd_get_read(text, len, key, err);
		key_event(key, event);
		break;
	case ELECTION_CAMPAIGN:
		r = etcd_get_campaign(text, len, &won, key, err);
		key_event(key, event);
		if (won)
			event->type = ELECTION_WON;
		break;
	case ELECTION_READ_PAST:
		r = etcd_get_read(text, len, key, err);
		event->type = ELECTION_PAST;
		event->past = parse_past(key);
		break;
	case ELECTION_RECORD:
		r = etcd_get_record(text, len, &event->alive, err);
		event->type = ELECTION_RECORDED;
		break;
	case ELECTION_GRANT:
	case ELECTION_GRANT_PAST:
		r = etcd_get_grant(text, len, &event->lease, &ttl_s, err);
		event->type = ELECTION_GRANTED;
		event->ttl_ns = ttl_s * NS_PER_S;
		break;
	case ELECTION_KEEP:
		r = etcd_get_keep(text, len, &event->alive, err);
		event->type = ELECTION_KEPT;
		break;
	case ELECTION_REVOKE:
		event->type = ELECTION_REVOKED;
		break;
	case ELECTION_NOTHING:
	case ELECTION_REQUEST_COUNT:
		r = err_set(err, EPROTO, "nothing was asked");
		break;
	}
	return r;
}

/* Actions. */

static void put_record(const struct program *program, const struct election_action *action,
		       struct buf *body)
{
	char value[ETCD_VALUE_MAX];
	format_past(&(struct recorded_end){ action->epoch, action->ruling }, value);
	etcd_put_record(body, program->key, action->epoch, program->past_key, value, action->lease);
}

static void ask(struct program *program, const struct election_action *action)
{
	AUTO(buf_done) struct buf body = BUF_INIT;
	switch (action->request) {
	case ELECTION_READ:
		etcd_put_read(&body, program->key);
		break;
	case ELECTION_GRANT:
		etcd_put_grant(&body, program->options->ttl_s);
		break;
	case ELECTION_CAMPAIGN:
		etcd_put_campaign(&body, program->key, program->value, action->lease);
		break;
	case ELECTION_KEEP:
	case ELECTION_REVOKE:
		etcd_put_lease(&body, action->lease);
		break;
	case ELECTION_READ_PAST:
		etcd_put_read(&body, program->past_key);
		break;
	case ELECTION_GRANT_PAST:
		etcd_put_grant(&body, PAST_TTL_S);
		break;
	case ELECTION_RECORD:
		put_record(program, action, &body);
		break;
	case ELECTION_NOTHING:
	case ELECTION_REQUEST_COUNT:
		return;
	}
	program->asked = action->request;
	etcd_client_ask(program->client, action->endpoint, paths[action->request], buf_str(&body));
}

static void watch(struct program *program, const struct election_action *action)
{
	AUTO(buf_done) struct buf body = BUF_INIT;
	etcd_put_watch(&body, program->key, action->from);
	etcd_client_watch(program->client, action->endpoint, buf_str(&body));
}

/* Prints the key's value on standard output. A key with our address but another id belongs to a
 * dead process that ran here before; its epoch is not ours, and its lease will end. */
static void announce(struct program *program, const struct election_action *action)
{
	AUTO_FREE char *coordinator = mem_strndup(action->text, strcspn(action->text, " "));
	if (!discovery_coordinator_ok(coordinator)) {
		say("the key %s does not hold a coordinator; waiting for its end", program->key);
		return;
	}
	if (str_eq(coordinator, program->options->own) && !str_eq(action->text, program->value))
		return;
	AUTO(buf_done) struct buf line = BUF_INIT;
	struct discovery_line said = { .epoch = action->epoch,
				       .until_ns = action->until_ns,
				       .past = action->past };
	memcpy(said.coordinator, coordinator, strlen(coordinator) + 1);
	discovery_line_format(&line, &said);
	if (fd_write_all(STDOUT_FILENO, buf_data(&line), buf_len(&line)) < 0)
		program->status = EXIT_CODE_SYSTEM; /* no reader is left */
}

static void complain(const struct program *program, const struct election_action *action)
{
	char since[CLOCK_HUMAN_MAX];
	clock_human(action->since_ns, since);
	if (action->since_ns < NS_PER_S)
		say("no etcd endpoint answers, still trying: %s", program->reason);
	else
		say("no etcd endpoint has answered for %s, still trying: %s", since,
		    program->reason);
}

static void act(struct program *program, const struct election_action *action)
{
	switch (action->type) {
	case ELECTION_ASK:
		ask(program, action);
		break;
	case ELECTION_WATCH:
		watch(program, action);
		break;
	case ELECTION_ANNOUNCE:
		announce(program, action);
		break;
	case ELECTION_COMPLAIN:
		complain(program, action);
		break;
	case ELECTION_ANSWERS:
		say("etcd answers again");
		break;
	case ELECTION_EXIT:
		program->status = 0;
		break;
	}
}

static void step(struct program *program, const struct election_event *event)
{
	struct election_actions actions;
	election_step(&program->election, event, clock_now_ns(), &actions);
	for (size_t i = 0; i < actions.count && program->status < 0; i++)
		act(program, &actions.items[i]);
}

static void step_simple(struct program *program, enum election_event_type type)
{
	step(program, &(struct election_event){ .type = type });
}

static void on_failed(struct program *program, const char *reason)
{
	snprintf(program->reason, sizeof(program->reason), "%s", reason);
	step_simple(program, ELECTION_FAILED);
}

static void on_answer(struct program *program, const struct etcd_client_event *got)
{
	struct err err = ERR_INIT;
	struct etcd_key key = { .present = false };
	struct election_event event = { .type = ELECTION_FAILED };
	if (answer_event(program->asked, got->text, got->len, &key, &event, &err) < 0)
		on_failed(program, err.msg);
	else
		step(program, &event);
}

static void on_message(struct program *program, const struct etcd_client_event *got)
{
	struct err err = ERR_INIT;
	enum etcd_watch what;
	if (etcd_get_watch(got->text, got->len, &what, &err) < 0)
		step_simple(program, ELECTION_WATCH_DOWN);
	else if (what == ETCD_WATCH_CHANGED)
		step_simple(program, ELECTION_CHANGED);
}

/* A line of standard input: how the job ended. Others mean nothing. */
static void on_input(struct program *program, char *text, size_t len)
{
	text[len] = '\0';
	text[strcspn(text, "\n")] = '\0';
	enum ruling ruling = discovery_end_parse(text);
	if (ruling != RULING_NONE)
		step(program, &(struct election_event){ .type = ELECTION_END, .ruling = ruling });
}

/* End of standard input, or a signal. */
static bool told_to_leave(struct program *program)
{
	struct epoll_event event;
	char text[256];
	if (epoll_wait(program->leave_fd, &event, 1, 0) < 1)
		return false;
	if (event.data.fd != STDIN_FILENO)
		return true;
	ssize_t len = read(STDIN_FILENO, text, sizeof(text) - 1);
	if (len > 0)
		on_input(program, text, (size_t)len);
	return len <= 0;
}

static void run(struct program *program)
{
	step_simple(program, ELECTION_START);
	while (program->status < 0) {
		struct etcd_client_event got =
			etcd_client_wait(program->client, program->leave_fd,
					 election_deadline_ns(&program->election));
		if (program->leave_fd >= 0 && told_to_leave(program)) {
			fd_close(&program->leave_fd);
			step_simple(program, ELECTION_RESIGN);
			continue;
		}
		switch (got.what) {
		case ETCD_CLIENT_NOTHING:
			step_simple(program, ELECTION_TIMER);
			break;
		case ETCD_CLIENT_ANSWER:
			on_answer(program, &got);
			break;
		case ETCD_CLIENT_FAILED:
			on_failed(program, got.reason);
			break;
		case ETCD_CLIENT_MESSAGE:
			on_message(program, &got);
			break;
		case ETCD_CLIENT_WATCH_DOWN:
			step_simple(program, ELECTION_WATCH_DOWN);
			break;
		}
	}
}

/* Start. */

static int open_leave_fd(int *ret_fd, struct err *err)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGTERM);
	sigaddset(&set, SIGINT);
	sigaddset(&set, SIGHUP);
	sigprocmask(SIG_BLOCK, &set, NULL);
	signal(SIGPIPE, SIG_IGN);
	/* Both stay open until the process ends. */
	int signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	AUTO(fd_close) int both = epoll_create1(EPOLL_CLOEXEC);
	struct epoll_event on_signal = { .events = EPOLLIN, .data.fd = signals };
	struct epoll_event on_stdin = { .events = EPOLLIN, .data.fd = STDIN_FILENO };
	if (signals < 0 || both < 0 || epoll_ctl(both, EPOLL_CTL_ADD, signals, &on_signal) < 0)
		return err_set(err, errno, "cannot wait for signals: %m");
	if (epoll_ctl(both, EPOLL_CTL_ADD, STDIN_FILENO, &on_stdin) < 0)
		return err_set(err, errno, "standard input must be a pipe that stays open: %m");
	*ret_fd = fd_take(&both);
	return 0;
}

/* Our id in the election: the same when muster restarts this program, different for every muster
 * process. */
static void make_value(struct program *program)
{
	const char *id = getenv("MUSTER_DISCOVERY_ID");
	if (id && discovery_coordinator_ok(id) && strlen(id) <= ID_MAX) {
		snprintf(program->value, sizeof(program->value), "%s %s", program->options->own,
			 id);
		return;
	}
	snprintf(program->value, sizeof(program->value), "%s %016" PRIx64 "%016" PRIx64,
		 program->options->own, random_u64(), random_u64());
}

static int discover(const struct etcd_options *options)
{
	struct err err = ERR_INIT;
	struct program program = { .options = options, .leave_fd = -1, .status = -1 };
	if (open_leave_fd(&program.leave_fd, &err) < 0 ||
	    etcd_client_new(&options->client, &program.client, &err) < 0) {
		say("muster-discover-etcd: %s", err.msg);
		fd_close(&program.leave_fd);
		return EXIT_CODE_SYSTEM;
	}
	program.key = mem_printf("%s%s/coordinator", options->prefix, options->run_id);
	program.past_key = mem_printf("%s%s/ended", options->prefix, options->run_id);
	make_value(&program);
	const struct election_config config = {
		.own = program.value,
		.ttl_ns = options->ttl_s * NS_PER_S,
		.endpoints = (uint32_t)options->client.endpoints.count,
		.fences = options->fences,
	};
	election_init(&program.election, &config);
	run(&program);
	etcd_client_free(program.client);
	fd_close(&program.leave_fd);
	free(program.key);
	free(program.past_key);
	return program.status;
}

int main(int argc, char **argv)
{
	AUTO(etcd_options_done) struct etcd_options options = ETCD_OPTIONS_INIT;
	int status = etcd_options_parse(argc, argv, &options);
	return status < 0 ? discover(&options) : status;
}
