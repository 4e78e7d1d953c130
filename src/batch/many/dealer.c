/* The coordinator of a batch on many hosts: gives orders out, writes and shows what comes back. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/random.h"
#include "batch/many/dealer_private.h"
#include "batch/show/output_file.h"
#include "batch/show/outputs.h"
#include "core/worker/exit_code.h"

#define PATIENCE_NS (30 * NS_PER_S) /* for a host that can take an order that none here can */

static void step(struct dealer *dealer, struct deal_event event);

/* ---- hosts ---- */

static struct peer *find_peer(struct dealer *dealer, uint64_t id)
{
	list_foreach(link, &dealer->peers)
	{
		struct peer *peer = list_entry(link, struct peer, link);
		if (peer->id == id)
			return peer;
	}
	return NULL;
}

static const char *host_name(const struct dealer *dealer, uint32_t host)
{
	return host < dealer->deal.host_count ? dealer->deal.hosts[host].facts.name : "?";
}

void dealer_send(struct dealer *dealer, uint64_t link, struct work_msg msg)
{
	AUTO(buf_done) struct buf data = BUF_INIT;
	work_put(&data, &msg);
	peer_links_send_to(dealer->many->links, link, buf_data(&data), buf_len(&data));
}

static void free_got(struct got *got)
{
	list_unlink(&got->link);
	fd_close(&got->fds[0]);
	fd_close(&got->fds[1]);
	dealer_drop_files(got);
	free(got);
}

static void free_peer(struct peer *peer)
{
	list_foreach(link, &peer->gots) free_got(list_entry(link, struct got, link));
	list_unlink(&peer->link);
	buf_done(&peer->in);
	free(peer);
}

/* ---- results ---- */

static struct got *find_got(struct peer *peer, uint32_t lease)
{
	list_foreach(link, &peer->gots)
	{
		struct got *got = list_entry(link, struct got, link);
		if (got->lease == lease)
			return got;
	}
	return NULL;
}

struct got *dealer_got(struct peer *peer, uint32_t lease)
{
	struct got *got = find_got(peer, lease);
	if (got)
		return got;
	got = NEW(struct got);
	*got = (struct got){ .lease = lease, .fds = { -1, -1 } };
	list_append(&peer->gots, &got->link);
	return got;
}

static int take_output(struct dealer *dealer, struct peer *peer, const struct work_msg *msg,
		       struct err *err)
{
	if (msg->number > 1)
		return err_set(err, EPROTO, "output of an unknown stream");
	struct got *got = dealer_got(peer, msg->lease);
	if (!dealer_may_take(dealer, got, msg->len))
		return 0;
	int *fd = &got->fds[msg->number];
	if (*fd < 0 && (*fd = file_temporary(err)) < 0)
		return *fd;
	int r = fd_write_all(*fd, msg->text, msg->len);
	if (r < 0)
		return err_set(err, -r, "keep the output of an order: %m");
	got->bytes[msg->number] += msg->len;
	return 0;
}

/* --results: a file of its own for each stream, as on one host. */
static int keep_output(struct dealer *dealer, uint32_t number, const struct got *got,
		       struct result *result, struct err *err)
{
	const char *dir = dealer->job->config->results;
	const struct order *order = dealer_order(dealer, number);
	bool repeated = dealer->job->todo[number].runs > 1;
	const struct batch_trial trial = { .attempt = result->attempt,
					   .run = result->run,
					   .warmup = result->warmup };
	for (int i = 0; dir && i < 2; i++) {
		struct result_output *output = i ? &result->err_out : &result->out;
		free(output->path);
		output->path = output_file(order, dir, &trial, repeated, i);
		output->present = true;
		int r = output_copy(output->path, order, got ? got->fds[i] : -1, err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* What runs is known better here: a host is told only what it needs. */
static void forget_order(struct result *result)
{
	struct strv *lists[] = { &result->argv, &result->args, &result->env, &result->labels,
				 &result->arg_names };
	char **texts[] = { &result->id,		&result->shell, &result->cwd,
			   &result->stdin_path, &result->group, &result->source };
	for (size_t i = 0; i < ARRAY_LEN(lists); i++) {
		strv_done(lists[i]);
		*lists[i] = STRV_INIT;
	}
	for (size_t i = 0; i < ARRAY_LEN(texts); i++) {
		free(*texts[i]);
		*texts[i] = NULL;
	}
}

/* One that failed and is not over runs again where it is. */
static void set_retry(const struct dealer *dealer, struct ending *ending)
{
	const struct result *result = &ending->result;
	ending->retry = !ending->final && !ending->unrun && result->reason != REASON_OK;
	ending->retry_in_ns =
		batch_retry_delay_ns(dealer->job->config->retry_delay_ns, result->attempt);
}

/* Its host says only that it was one, and its status. */
static void set_canary(struct ending *ending, const struct batch_order *todo)
{
	struct result *result = &ending->result;
	if (!todo->is_canary || result->reason == REASON_OK || result->reason == REASON_KILLED)
		return;
	if (result->reason != REASON_CANARY)
		ending->canary = result->reason; /* of a host that does not know canaries */
	else if (env_get(&result->missing, "start"))
		ending->canary = REASON_SPAWN;
	else if (env_get(&result->missing, "run"))
		ending->canary = REASON_TIMEOUT;
	else
		ending->canary = result->status.kind == EXIT_SIGNAL ? REASON_SIGNAL : REASON_EXIT;
	result->reason = REASON_CANARY;
}

static void count_result(struct dealer *dealer, uint32_t number)
{
	AUTO(ending_done) struct ending ending;
	const struct work_msg *msg = dealer->msg;
	struct result *result = &ending.result;
	struct err err = ERR_INIT;
	struct got *got = find_got(dealer->peer, msg->lease);
	ending_init_bare(&ending);
	if (result_read(msg->text, msg->len, result, &err) <= 0) {
		log_warn("%s sent a result that cannot be read: %s", dealer->peer->name, err.msg);
		return;
	}
	const struct order *order = dispatch_order(dealer->dispatch, number, result->variant[0]);
	const struct batch_order *todo = &dealer->job->todo[number];
	forget_order(result);
	ending_set_order(result, order, 0, todo->item.width);
	free(result->node);
	result->node = mem_strdup(dealer->peer->name);
	if (got && got->trouble && result->reason == REASON_OK) {
		result->reason = REASON_FILES;
		result_miss(result, "files", got->trouble);
	}
	ending.start_wall_ns = msg->value;
	ending.unrun = msg->flags & WORK_UNRUN;
	ending.final = msg->flags & WORK_FINAL && !ending.unrun;
	set_retry(dealer, &ending);
	set_canary(&ending, todo);
	if (keep_output(dealer, number, got, result, &err) < 0 ||
	    (ending.final && dealer_place_files(got, &err) < 0))
		dispatch_fail(dealer->dispatch, &err);
	for (int i = 0; got && i < 2; i++) {
		ending.fds[i] = fd_take(&got->fds[i]);
		ending.bytes[i] = got->bytes[i];
	}
	ending.timed = result->has[RESULT_WALL_NS];
	ending.runtime_ns = ending.timed ? (uint64_t)result->value[RESULT_WALL_NS] : 0;
	dispatch_record(dealer->dispatch, number, &ending);
	if (result->reason == REASON_OK && !result->warmup && ending.timed && !todo->is_canary)
		worklist_learn(dispatch_list(dealer->dispatch), todo, ending.runtime_ns);
	if (got)
		free_got(got);
}

/* A line for what no host could tell. */
static void write_own(struct dealer *dealer, uint32_t number, uint32_t host, enum reason reason,
		      const char *why, bool final)
{
	AUTO(ending_done) struct ending ending;
	struct result *result = &ending.result;
	ending_init_bare(&ending);
	const struct batch_order *todo = &dealer->job->todo[number];
	ending_set_order(result, dealer_order(dealer, number), 0, todo->item.width);
	result->attempt = (int)MAX(todo->losses, 1);
	result->reason = reason;
	result->status = (struct exit_status){ .kind = EXIT_UNKNOWN };
	result->node = mem_strdup(host_name(dealer, host));
	clock_iso(clock_wall_ns(), result->start);
	result_miss(result, "run", why);
	ending.start_wall_ns = clock_wall_ns();
	ending.final = final;
	ending.retry = !final;
	dispatch_record(dealer->dispatch, number, &ending);
}

/* ---- the end ---- */

static void say_bye(struct dealer *dealer, uint64_t link)
{
	dealer_send(dealer, link,
		    (struct work_msg){ .type = WORK_BYE,
				       .count = (uint32_t)dispatch_exit_code(dealer->dispatch) });
}

static void end(struct dealer *dealer)
{
	list_foreach(link, &dealer->peers) say_bye(dealer, list_entry(link, struct peer, link)->id);
	many_end(dealer->many, dispatch_exit_code(dealer->dispatch));
}

/* Those that were promised are told that it is over, unless the user wants to leave. */
bool dealer_is_awaited(const struct dealer *dealer)
{
	return deal_absent(&dealer->deal) > 0 && dealer->deal.list->stop == BATCH_GO;
}

/* ---- what deal wants ---- */

/* Which order needs what, for people. */
static char *unfit(const struct dealer *dealer, uint32_t number, const char *what)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	const struct order_kind *kind =
		worklist_kind(dealer->deal.list, &dealer->job->todo[number].item);
	buf_printf(&text, "%s what order ", what);
	order_append_id(dealer_order(dealer, number), &text);
	buf_printf(&text, " needs: %d core%s", kind->width, kind->width == 1 ? "" : "s");
	if (kind->memory)
		buf_printf(&text, ", %llu MiB of memory",
			   (unsigned long long)(dealer_order(dealer, number)->extra->memory >> 20));
	if (kind->files)
		buf_append_str(&text, ", a version that moves files");
	if (needs_any(&kind->needs)) {
		buf_append_str(&text, ", ");
		needs_describe(&kind->needs, &text);
	}
	return buf_take_str(&text);
}

static void give(struct dealer *dealer, const struct deal_action *action)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	const struct batch_order *todo = &dealer->job->todo[action->order];
	work_put_order(&text, dealer_order(dealer, action->order));
	for (uint32_t i = 1; i < dealer->job->variants; i++) {
		buf_append_char(&text, '\n');
		work_put_order(&text,
			       dispatch_order(dealer->dispatch, action->order, (char)('A' + i)));
	}
	dealer_send(dealer, action->link,
		    (struct work_msg){ .type = WORK_GIVE,
				       .order = action->order,
				       .lease = action->lease,
				       .number = todo->losses,
				       .value = todo->is_canary ? WORK_CANARY : 0,
				       .text = buf_data(&text),
				       .len = buf_len(&text) });
}

/* Nobody tells us that a link is down which we have hung up. */
static void hang_up(struct dealer *dealer, uint64_t link)
{
	struct peer *peer = find_peer(dealer, link);
	peer_links_hang_up_on(dealer->many->links, link);
	if (peer && peer == dealer->taking)
		peer->gone = true;
	else if (peer)
		free_peer(peer);
}

static void act(struct dealer *dealer, const struct deal_action *action)
{
	struct work_msg msg = { .order = action->order,
				.lease = action->lease,
				.number = action->number,
				.count = action->count };
	AUTO_FREE char *why = NULL;
	switch (action->type) {
	case DEAL_DO_WELCOME:
		dealer->peer->host = action->host;
		dealer->peer->known = true;
		msg.type = WORK_WELCOME;
		msg.value = dealer->term;
		msg.text = dealer->mark;
		msg.len = strlen(dealer->mark);
		dealer_send(dealer, action->link, msg);
		log_info("%s takes part with %d cores", dealer->peer->name,
			 dealer->deal.hosts[action->host].facts.cores);
		break;
	case DEAL_DO_GIVE:
		give(dealer, action);
		break;
	case DEAL_DO_FEED:
		dealer_feed(dealer, action->order);
		break;
	case DEAL_DO_RECALL:
		msg.type = WORK_RECALL;
		dealer_send(dealer, action->link, msg);
		break;
	case DEAL_DO_DROP:
		msg.type = WORK_DROP;
		log_info("%s is back with an order that another host has by now: it is told so",
			 host_name(dealer, action->host));
		dealer_send(dealer, action->link, msg);
		break;
	case DEAL_DO_STOP:
		msg.type = WORK_STOP;
		msg.count = (uint32_t)action->stop;
		dealer_send(dealer, action->link, msg);
		break;
	case DEAL_DO_COUNT:
		count_result(dealer, action->order);
		break;
	case DEAL_DO_ACK:
		msg.type = WORK_ACK;
		if (dealer->deal.list->stop != BATCH_STOP_FATAL) /* it may not be written */
			dealer_send(dealer, action->link, msg);
		break;
	case DEAL_DO_NOTE:
		log_info("a result of %s for an order that was given to another host does not "
			 "count",
			 host_name(dealer, action->host));
		break;
	case DEAL_DO_LOSE:
		why = mem_printf("%s was lost", host_name(dealer, action->host));
		write_own(dealer, action->order, action->host, REASON_LOST, why, action->final);
		break;
	case DEAL_DO_UNFIT:
		why = unfit(dealer, action->order, "no host has");
		write_own(dealer, action->order, DEAL_NO_HOST, REASON_SPAWN, why, true);
		break;
	case DEAL_DO_AWAIT:
		why = unfit(dealer, action->order, "waiting for a host that has");
		log_warn("%s", why);
		break;
	case DEAL_DO_HOST_LOST:
		log_warn("lost %s with %u orders", host_name(dealer, action->host), action->count);
		break;
	case DEAL_DO_HANG_UP:
		hang_up(dealer, action->link);
		break;
	case DEAL_DO_END:
		end(dealer);
		break;
	case DEAL_DO_BYE:
		say_bye(dealer, action->link);
		break;
	}
}

static void step(struct dealer *dealer, struct deal_event event)
{
	struct deal_actions actions = { .items = NULL };
	deal_step(&dealer->deal, &event, clock_now_ns(), &actions);
	for (size_t i = 0; i < actions.count; i++)
		act(dealer, &actions.items[i]);
	deal_actions_done(&actions);
	dispatch_hosts_stepped(dealer->dispatch);
	uint64_t deadline_ns = deal_deadline_ns(&dealer->deal);
	struct timeval left = clock_left(deadline_ns, clock_now_ns());
	if (deadline_ns == NS_NEVER)
		event_del(dealer->timer);
	else
		event_add(dealer->timer, &left);
}

static void on_timer(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	step(arg, (struct deal_event){ DEAL_EV_TIMER });
}

static void look(void *arg)
{
	step(arg, (struct deal_event){ DEAL_EV_LOOK });
}

/* ---- what hosts say ---- */

static int take_hello(struct dealer *dealer, struct peer *peer, const struct work_msg *msg,
		      struct err *err)
{
	AUTO_FREE struct work_hello *hello = NEW(struct work_hello);
	int r = work_get_hello(msg->text, msg->len, hello, err);
	if (r < 0)
		return r;
	memcpy(peer->name, hello->name, sizeof(peer->name));
	dealer->peer = peer;
	bool ours = msg->value == dealer->term;
	hello->facts.name = peer->name;
	hello->facts.features = *hello->features ? hello->features : NULL;
	step(dealer, (struct deal_event){ DEAL_EV_HELLO, .link = peer->id, .id = hello->id,
					  .facts = hello->facts, .held = hello->held,
					  .held_count = ours ? hello->held_count : 0 });
	return 0;
}

/* A file of this order could not be written here. */
static bool has_trouble(struct peer *peer, uint32_t lease)
{
	const struct got *got = find_got(peer, lease);
	return got && got->trouble;
}

static int take_msg(struct dealer *dealer, struct peer *peer, const struct work_msg *msg,
		    struct err *err)
{
	struct deal_event event = {
		.host = peer->host, .link = peer->id, .order = msg->order, .lease = msg->lease
	};
	if (!work_from_host(msg->type))
		return err_set(err, EPROTO, "a message in the wrong direction");
	if (msg->type == WORK_HELLO)
		return take_hello(dealer, peer, msg, err);
	if (!peer->known)
		return err_set(err, EPROTO, "no HELLO first");
	dealer->peer = peer;
	dealer->msg = msg;
	switch (msg->type) {
	case WORK_STARTED:
		event.type = DEAL_EV_STARTED;
		break;
	case WORK_OUTPUT:
		event.type = DEAL_EV_BEAT;
		int r = take_output(dealer, peer, msg, err);
		if (r == -EPROTO)
			return r;
		if (r < 0)
			dispatch_fail(dealer->dispatch, err);
		break;
	case WORK_RESULT:
		event.type = DEAL_EV_RESULT;
		event.number = msg->number;
		event.final = msg->flags & WORK_FINAL;
		event.ok = msg->flags & WORK_OK && !has_trouble(peer, msg->lease);
		event.unrun = msg->flags & WORK_UNRUN;
		break;
	case WORK_FILE:
		event.type = DEAL_EV_BEAT;
		if (dealer_take_file(dealer, peer, msg, err) < 0)
			return -EPROTO;
		break;
	case WORK_FETCH:
		event.type = DEAL_EV_FETCH;
		if (dealer_check_fetch(dealer, msg, err) < 0)
			return -EPROTO;
		break;
	case WORK_RETURNED:
		event.type = DEAL_EV_RETURNED;
		break;
	case WORK_RECALLED:
		event.type = DEAL_EV_RECALLED;
		break;
	default:
		event.type = DEAL_EV_BEAT;
		break;
	}
	step(dealer, event);
	if (msg->type == WORK_STARTED && msg->order < dealer->job->count &&
	    dealer->job->todo[msg->order].lease == msg->lease)
		dispatch_started(dealer->dispatch, msg->order, peer->name);
	const struct deal_host *host = &dealer->deal.hosts[peer->host];
	if (msg->type == WORK_BEAT && host->link == peer->id)
		dealer_send(dealer, peer->id,
			    (struct work_msg){ .type = WORK_ANSWERED, .value = msg->value });
	return 0;
}

void dealer_take(struct dealer *dealer, uint64_t link, const void *data, size_t len)
{
	struct peer *peer = find_peer(dealer, link);
	struct work_msg msg;
	struct err err = ERR_INIT;
	size_t size, used = 0;
	int r = 0, got = 0;
	if (!peer)
		return;
	buf_append(&peer->in, data, len);
	dealer->taking = peer;
	while (!peer->gone &&
	       (got = work_next(buf_data(&peer->in) + used, buf_len(&peer->in) - used, &msg, &size,
				&err)) > 0 &&
	       (r = take_msg(dealer, peer, &msg, &err)) == 0)
		used += size;
	dealer->taking = NULL;
	buf_consume(&peer->in, used);
	if (peer->gone) {
		free_peer(peer);
		return;
	}
	if (got >= 0 && r >= 0)
		return;
	log_warn("%s is dropped: %s", peer->name, err.msg);
	peer_links_hang_up_on(dealer->many->links, link);
	dealer_down(dealer, link, false);
}

void dealer_peer(struct dealer *dealer, uint64_t link, const char *name)
{
	struct peer *peer = NEW(struct peer);
	peer->id = link;
	peer->host = DEAL_NO_HOST;
	list_init(&peer->gots);
	snprintf(peer->name, sizeof(peer->name), "%.64s", name);
	list_append(&dealer->peers, &peer->link);
}

void dealer_down(struct dealer *dealer, uint64_t link, bool dead)
{
	struct peer *peer = find_peer(dealer, link);
	if (!peer)
		return;
	uint32_t host = peer->host;
	free_peer(peer);
	if (host != DEAL_NO_HOST)
		step(dealer, (struct deal_event){ DEAL_EV_LINK_DOWN, .host = host, .link = link,
						  .dead = dead });
}

/* ---- life ---- */

/* All runs of an order are on one host. Some that an earlier coordinator has written may be on
 * another: they do not count, and the order begins again. */
static void forget_runs(struct dealer *dealer)
{
	for (size_t i = 0; i < dealer->job->count; i++) {
		if (dealer->job->todo[i].run == 0)
			continue;
		dealer->job->todo[i].run = 0;
		write_own(dealer, (uint32_t)i, DEAL_NO_HOST, REASON_LOST,
			  "it begins again, so that all runs are on one host", false);
	}
}

struct dealer *dealer_new(struct many *many, struct dispatch *dispatch)
{
	struct dealer *dealer = NEW(struct dealer);
	const struct batch_config *config = many->config;
	dealer->many = many;
	dealer->dispatch = dispatch;
	dealer->job = dispatch_job(dispatch);
	dealer->term = random_u64() | 1;
	list_init(&dealer->peers);
	dealer->timer = evtimer_new(runner_base(many->runner), on_timer, dealer);
	struct deal_config deal = {
		.lost_after_ns = many->lost_ns,
		.patience_ns = PATIENCE_NS,
		.min_hosts = many->rdzv->min_nodes,
		.max_hosts = many->rdzv->max_nodes,
		.own = many_runs_orders(many) ? runner_batch(many->runner) : NULL,
		.retry_lost = config->retry_on.reasons[REASON_LOST],
	};
	deal_init(&dealer->deal, &deal, dispatch_list(dispatch));
	dealer_mark_directory(dealer);
	dispatch_share(dispatch, &dealer->deal, look, dealer);
	forget_runs(dealer);
	step(dealer, (struct deal_event){ DEAL_EV_START });
	return dealer;
}

void dealer_free(struct dealer *dealer)
{
	if (!dealer)
		return;
	dispatch_share(dealer->dispatch, NULL, NULL, NULL);
	dealer_unmark_directory(dealer);
	list_foreach(link, &dealer->peers) free_peer(list_entry(link, struct peer, link));
	event_free(dealer->timer);
	deal_done(&dealer->deal);
	free(dealer);
}
