#include "cli/jobs/asker.h"

#include <errno.h>
#include <event2/event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/worker/exit_code.h"
#include "net/link.h"
#include "base/unix_socket.h"
#include "nodes/rendezvous.h"
#include "run/ask/answers.h"

#define GRACE_NS (5 * NS_PER_S) /* for the agent's own end of a question to arrive */
#define AGAIN_NS NS_PER_S	/* after the loss of the coordinator */

struct asker {
	const struct command *self;
	struct event_base *base;
	struct link_self link_self;
	struct token token;
	struct link *link; /* NULL: it has ended */
	struct msg ask;
	const struct asker_handler *handler;
	struct event *again;
	uint64_t until_ns; /* ask again until then */
	uint32_t missed;
	int status; /* the exit code */
};

static void complain(struct asker *asker, int status, const char *why)
{
	command_complain(asker->self, "%s", why);
	asker->status = status;
	event_base_loopbreak(asker->base);
}

/* ---- what comes back ---- */

static void take_reply(struct asker *asker, const struct msg_reply *reply)
{
	asker->handler->on_reply(asker->handler->arg, reply);
	if (!asker->link)
		return;
	struct msg msg = { .type = MSG_TAKEN };
	msg.taken = (struct msg_taken){ .id = reply->id, .slot = reply->slot, .pieces = 1 };
	link_send(asker->link, &msg);
}

static void take_missed(struct asker *asker, const struct msg_missed *missed)
{
	command_complain(asker->self, "no answer from %s: %s", missed->name,
			 ask_missed_text(missed->why));
	asker->missed++;
}

static void take_ended(struct asker *asker, const struct msg_ended *ended)
{
	static const char *const reasons[] = {
		[ASK_ENDED_ALL] = NULL,
		[ASK_ENDED_LATE] = NULL, /* the hosts that did not answer are named */
		[ASK_ENDED_BUSY] = "too many questions to this job are under way; try again",
		[ASK_ENDED_NO_ONE] = "no host of the job is meant",
		[ASK_ENDED_APART] = "this host has no connection to the coordinator just now; "
				    "--here shows this host",
		[ASK_ENDED_LOST] = "the coordinator was lost meanwhile; ask again",
		[ASK_ENDED_OLD] = "the coordinator's muster is too old for questions to all "
				  "hosts; --here shows this host",
	};
	static_assert(ARRAY_LEN(reasons) == ASK_END_COUNT, "every end needs words");
	bool lost = ended->why == ASK_ENDED_APART || ended->why == ASK_ENDED_LOST;
	if (lost && clock_now_ns() + AGAIN_NS < asker->until_ns) {
		const struct timeval pause = clock_timeval(AGAIN_NS);
		event_add(asker->again, &pause);
	} else if (reasons[ended->why]) {
		complain(asker, EXIT_CODE_FAILED, reasons[ended->why]);
	} else {
		asker->status = asker->missed ? EXIT_CODE_FAILED : EXIT_CODE_OK;
		event_base_loopbreak(asker->base);
	}
}

static void on_msg(void *arg, struct link *link UNUSED, const struct msg *msg)
{
	struct asker *asker = arg;
	if (msg->type == MSG_REPLY && msg->reply.id == asker->ask.ask.id)
		take_reply(asker, &msg->reply);
	else if (msg->type == MSG_MISSED && msg->missed.id == asker->ask.ask.id)
		take_missed(asker, &msg->missed);
	else if (msg->type == MSG_ENDED && msg->ended.id == asker->ask.ask.id)
		take_ended(asker, &msg->ended);
}

static void send_ask(struct asker *asker)
{
	asker->ask.ask.id++;
	asker->missed = 0;
	if (asker->link)
		link_send(asker->link, &asker->ask);
}

static void on_again(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct asker *asker = arg;
	asker->handler->on_reply(asker->handler->arg, NULL);
	send_ask(asker);
}

static void on_up(void *arg, struct link *link UNUSED)
{
	send_ask(arg);
}

static void on_down(void *arg, struct link *link UNUSED, const struct link_end *end)
{
	struct asker *asker = arg;
	asker->link = NULL;
	if (asker->ask.ask.ask.kind == ASK_FOLLOW && end->kind == LINK_CLOSED)
		event_base_loopbreak(asker->base);
	else
		complain(asker, EXIT_CODE_SYSTEM, end->text);
}

static void on_late(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	complain(arg, EXIT_CODE_SYSTEM, "the job's muster does not answer");
}

static void on_tick(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	const struct asker *asker = arg;
	asker->handler->on_tick(asker->handler->arg);
}

static const struct link_handler link_handler = { .on_up = on_up,
						  .on_msg = on_msg,
						  .on_down = on_down };

/* ---- asking ---- */

static void run(struct asker *asker)
{
	uint64_t timeout_ns = asker->ask.ask.ask.timeout_ns;
	const struct timeval limit = clock_timeval(ns_add(2 * timeout_ns, GRACE_NS));
	const struct timeval period = clock_timeval(ASKER_TICK_NS);
	struct event *late = evtimer_new(asker->base, on_late, asker);
	struct event *tick = event_new(asker->base, -1, EV_PERSIST, on_tick, asker);
	if (asker->handler->on_tick)
		event_add(tick, &period);
	asker->again = evtimer_new(asker->base, on_again, asker);
	asker->until_ns = ns_add(clock_now_ns(), timeout_ns);
	event_add(late, &limit);
	event_base_dispatch(asker->base);
	event_free(late);
	event_free(tick);
	event_free(asker->again);
	if (asker->link)
		link_drop(asker->link);
}

static int connect_here(struct asker *asker, const char *dir, struct err *err)
{
	AUTO_FREE char *path = mem_printf("%s/" ANSWERS_SOCKET, dir);
	AUTO(fd_close) int fd = unix_connect(path, GRACE_NS, err);
	if (fd < 0)
		return fd_take(&fd);
	int r = fd_set_nonblock(fd, true);
	if (r < 0)
		return err_set(err, -r, "%s: %m", path);
	asker->link = link_greet_asker(asker->base, fd_take(&fd), &asker->link_self, "the job",
				       &link_handler, asker);
	return 0;
}

static int connect_elsewhere(struct asker *asker, const struct job_place *place, struct err *err)
{
	struct addr_name name;
	struct addr addrs[LINK_ADDRS_MAX];
	int r = token_load(place->token_file, &asker->token, err);
	if (r < 0)
		return err_wrap(err, "the token");
	asker->link_self.token = r > 0 ? &asker->token : NULL;
	r = addr_name_parse(place->endpoint, RENDEZVOUS_C10D_PORT, &name, err);
	if (r < 0)
		return err_wrap(err, "--rdzv-endpoint");
	r = addr_resolve(&name, ns_add(clock_now_ns(), GRACE_NS), addrs, ARRAY_LEN(addrs), err);
	if (r < 0)
		return r;
	asker->link = link_connect_asker(asker->base, &asker->link_self,
					 &(struct link_target){ .addrs = addrs,
								.count = (size_t)r,
								.name = place->endpoint },
					 &link_handler, asker);
	return 0;
}

int asker_ask(const struct command *self, const struct job_state *job, struct msg_ask *ask,
	      const struct asker_handler *handler)
{
	struct err err = ERR_INIT;
	AUTO_FREE char *run_id = json_value_text(json_value_get(job->json, "run_id"));
	ask->ask.timeout_ns = MIN(ask->ask.timeout_ns, ASK_TIMEOUT_MAX_NS);
	struct asker asker = {
		.self = self,
		.base = event_base_new(),
		.link_self = { .run_id = run_id ? run_id : "" },
		.ask = { .type = MSG_ASK, .ask = *ask },
		.handler = handler,
	};
	int r = job->dir ? connect_here(&asker, job->dir, &err)
			 : connect_elsewhere(&asker, &job->place, &err);
	if (r < 0) {
		command_complain(self, "%s", err.msg);
		asker.status = r == -EINVAL ? EXIT_CODE_USAGE : EXIT_CODE_SYSTEM;
	} else {
		run(&asker);
	}
	event_base_free(asker.base);
	token_forget(&asker.token);
	return asker.status;
}

bool asker_narrow(const struct command *self, const struct asker_options *options,
		  struct msg_ask *ask, int *ret_status)
{
	if (options->host && strlen(options->host) >= sizeof(ask->host)) {
		*ret_status = command_usage_error(self, "--host: '%s' is too long", options->host);
		return false;
	}
	snprintf(ask->host, sizeof(ask->host), "%s", options->host ? options->host : "");
	const char *rest = options->ranks;
	size_t len;
	for (const char *word; rest && (word = str_split(&rest, ',', &len));) {
		AUTO_FREE char *text = mem_strndup(word, len);
		uint64_t rank;
		if (str_to_u64(text, &rank) < 0 || rank > UINT32_MAX ||
		    ask->ask.rank_count == ASK_RANKS_MAX) {
			*ret_status = command_usage_error(
				self, "--rank: '%s' is not a list of at most %d ranks",
				options->ranks, ASK_RANKS_MAX);
			return false;
		}
		ask->ask.ranks[ask->ask.rank_count++] = (uint32_t)rank;
	}
	return true;
}

/* ---- whole answers ---- */

static void collect(void *arg, const struct msg_reply *reply)
{
	struct host_answers *answers = arg;
	if (reply)
		host_answers_take(answers, reply);
	else
		host_answers_done(answers);
}

/* Prints the answers that failed, and removes them. */
static void sift(const struct command *self, struct host_answers *answers, int *status)
{
	size_t kept = 0;
	for (size_t i = 0; i < answers->count; i++) {
		struct host_answer answer = answers->items[i];
		if (!answer.failed) {
			answers->items[kept++] = answer;
			continue;
		}
		command_complain(self, "%s: %s", answer.name, buf_str(&answer.text));
		*status = EXIT_CODE_FAILED;
		buf_done(&answer.text);
	}
	answers->count = kept;
}

int asker_collect(const struct command *self, const struct job_state *job, struct msg_ask *ask,
		  struct host_answers *ret_answers)
{
	*ret_answers = HOST_ANSWERS_INIT;
	const struct asker_handler handler = { .on_reply = collect, .arg = ret_answers };
	int status = asker_ask(self, job, ask, &handler);
	host_answers_sort(ret_answers);
	sift(self, ret_answers, &status);
	return status;
}
