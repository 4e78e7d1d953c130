#include "batch/dispatch.h"

#include <errno.h>
#include <event2/event.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/procfs.h"
#include "batch/pipe/stdin_blocks.h"
#include "batch/printer.h"
#include "batch/progress.h"
#include "core/deal/deal.h"
#include "core/worker/exit_code.h"

#define SYNC_PERIOD_NS NS_PER_S
#define BAR_PERIOD_NS (200 * NS_PER_MS)
#define PLAIN_PERIOD_NS (30 * NS_PER_S)
#define ETA_PERIOD_NS (500 * NS_PER_MS)

struct dispatch {
	const struct dispatch_job *job;
	struct runner *runner;
	struct order_source source;
	struct recorder recorder;
	struct event *status_timer, *sync_timer;
	struct stdin_blocks *blocks;  /* of --pipe; NULL: none */
	struct batch_order *fetching; /* the place of the next block */
	const struct deal *deal;      /* the hosts elsewhere; NULL: there are none */
	void (*look)(void *arg);      /* with that */
	void *look_arg;
	uint64_t seen;		       /* worklist.changes that both sides know of */
	uint64_t eta_ns, eta_until_ns; /* valid until then */
	bool told_wait;		       /* that --memfree or --load holds orders back */
};

struct order_source *dispatch_source(struct dispatch *dispatch)
{
	return &dispatch->source;
}

const struct dispatch_job *dispatch_job(const struct dispatch *dispatch)
{
	return dispatch->job;
}

const struct order *dispatch_order(const struct dispatch *dispatch, uint32_t number, char variant)
{
	const struct dispatch_job *job = dispatch->job;
	size_t side = variant ? (size_t)(variant - 'A') : 0;
	return &job->orders->items[job->todo[number].item.index + side * job->variant_step];
}

/* ---- what the two sides do to the list ---- */

static bool has_news(struct dispatch *dispatch)
{
	bool news = dispatch->source.list.changes != dispatch->seen;
	dispatch->seen = dispatch->source.list.changes;
	return news;
}

void dispatch_hosts_stepped(struct dispatch *dispatch)
{
	if (has_news(dispatch))
		runner_post(dispatch->runner,
			    &(struct batch_event){ .type = BATCH_LOOK, .slot = -1 });
}

static void look_both(struct dispatch *dispatch)
{
	runner_post(dispatch->runner, &(struct batch_event){ .type = BATCH_LOOK, .slot = -1 });
	if (dispatch->deal)
		dispatch->look(dispatch->look_arg);
}

void dispatch_fail(struct dispatch *dispatch, const struct err *err)
{
	if (dispatch->source.list.stop == BATCH_STOP_FATAL)
		return;
	log_error("%s", err->msg);
	worklist_stop(&dispatch->source.list, WORKLIST_KILL, BATCH_STOP_FATAL);
	look_both(dispatch);
}

/* ---- how far it is ---- */

/* Playing the schedule takes time on large lists: spend at most 2 % of ours on it. */
static uint64_t current_eta(struct dispatch *dispatch)
{
	uint64_t now = clock_now_ns();
	if (now >= dispatch->eta_until_ns) {
		uint64_t left = dispatch->deal ? deal_eta(dispatch->deal, now)
					       : batch_eta(runner_batch(dispatch->runner), now);
		uint64_t cost = clock_now_ns() - now;
		dispatch->eta_ns = left == NS_NEVER ? NS_NEVER : now + left;
		dispatch->eta_until_ns = now + MAX(ETA_PERIOD_NS, cost * 50);
	}
	if (dispatch->eta_ns == NS_NEVER)
		return NS_NEVER;
	return dispatch->eta_ns > now ? dispatch->eta_ns - now : 0;
}

static struct batch_sum sum_of(struct dispatch *dispatch)
{
	const struct worklist *list = &dispatch->source.list;
	struct batch_sum sum = { .ok = list->ok,
				 .failed = list->failed,
				 .skipped = list->skipped,
				 .total = list->total,
				 .running = (uint64_t)runner_batch(dispatch->runner)->running,
				 .open = worklist_is_open(list),
				 .stop = list->stop,
				 .stop_signal = runner_stop_signal(dispatch->runner),
				 .left_ns = NS_NEVER };
	if (!dispatch->deal)
		return sum;
	sum.running = deal_running(dispatch->deal);
	sum.late = dispatch->deal->passed;
	sum.hosts = deal_hosts_here(dispatch->deal);
	return sum;
}

/* Of all that run, those that have run longest. */
struct longest {
	struct dispatch *dispatch;
	struct progress *progress;
	struct strv *commands;
	uint64_t now_ns;
};

static void add_running(struct longest *longest, const struct batch_order *order, uint64_t since_ns,
			int slot)
{
	struct progress *progress = longest->progress;
	uint64_t age_ns = longest->now_ns - since_ns;
	if (progress->order_count == PROGRESS_ORDERS_MAX)
		return;
	AUTO(buf_done) struct buf text = BUF_INIT;
	order_append_command(&longest->dispatch->job->orders->items[order->item.index], slot,
			     &text);
	strv_add(longest->commands, buf_str(&text));
	/* Longest first: insert in order of age. */
	size_t at = progress->order_count++;
	for (; at > 0 && progress->orders[at - 1].since_ns < age_ns; at--)
		progress->orders[at] = progress->orders[at - 1];
	progress->orders[at].command = longest->commands->items[longest->commands->count - 1];
	progress->orders[at].since_ns = age_ns;
}

static void add_host(struct longest *longest, const struct deal_host *host)
{
	for (size_t i = 0; i < host->given_count; i++) {
		const struct batch_order *order = &longest->dispatch->job->todo[host->given[i]];
		if (order->started)
			add_running(longest, order, order->since_ns, 0);
	}
}

static void gather(struct longest *longest)
{
	const struct batch *batch = runner_batch(longest->dispatch->runner);
	uint64_t since_ns;
	for (int i = 0; i < batch->opts.jobs; i++) {
		const struct batch_order *order = batch_running(batch, i, &since_ns);
		if (order)
			add_running(longest, order, since_ns, i + 1);
	}
	const struct deal *deal = longest->dispatch->deal;
	for (size_t i = 0; deal && i < deal->host_count; i++)
		add_host(longest, &deal->hosts[i]);
}

static void show(struct dispatch *dispatch,
		 void (*as)(const struct recorder *, const struct batch_sum *, struct progress *))
{
	AUTO(strv_done) struct strv commands = STRV_INIT;
	struct progress progress = { .order_count = 0 };
	struct batch_sum sum = sum_of(dispatch);
	struct longest longest = { dispatch, &progress, &commands, clock_now_ns() };
	sum.left_ns = current_eta(dispatch);
	gather(&longest);
	as(&dispatch->recorder, &sum, &progress);
}

static void show_status(struct dispatch *dispatch)
{
	if (dispatch->recorder.bar || dispatch->recorder.plain)
		show(dispatch, recorder_show);
}

static void on_status(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	show_status(arg);
}

/* The host is too busy for --memfree or --load. */
static void say_wait(struct dispatch *dispatch)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	const struct batch_config *config = dispatch->job->config;
	const char *before = "";
	if (config->quiet)
		return;
	buf_append_str(&text, "muster batch: orders wait for the host, which has ");
	if (config->memory_free) {
		buf_printf(&text, "%llu MiB free (--memfree: %llu)",
			   (unsigned long long)(procfs_memory_available() >> 20),
			   (unsigned long long)(config->memory_free >> 20));
		before = " and ";
	}
	if (config->load > 0)
		buf_printf(&text, "%s%llu running threads (--load: fewer than %g)", before,
			   (unsigned long long)procfs_running(), config->load);
	recorder_say(&dispatch->recorder, &text);
}

void dispatch_slots_stepped(struct dispatch *dispatch)
{
	if (!dispatch->told_wait && batch_waits_for_host(runner_batch(dispatch->runner))) {
		dispatch->told_wait = true;
		say_wait(dispatch);
	}
	if (dispatch->deal && has_news(dispatch))
		dispatch->look(dispatch->look_arg);
}

/* ---- what came of orders ---- */

static void on_sync(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct dispatch *dispatch = arg;
	journal_sync(dispatch->job->journal);
}

static void write_result(struct dispatch *dispatch, struct ending *ending)
{
	struct err err = ERR_INIT;
	if (ending->silent)
		return;
	if (recorder_write(&dispatch->recorder, ending, &err) < 0)
		dispatch_fail(dispatch, &err);
	if (dispatch->job->journal->dirty &&
	    !event_pending(dispatch->sync_timer, EV_TIMEOUT, NULL)) {
		struct timeval wait = clock_timeval(SYNC_PERIOD_NS);
		event_add(dispatch->sync_timer, &wait);
	}
}

void dispatch_started(struct dispatch *dispatch, uint32_t number, const char *node)
{
	batch_page_started(dispatch->recorder.page, number, node);
}

/* The output of runs that are repeated is of no use, unless one fails. */
static void set_screen(const struct dispatch *dispatch, const struct batch_order *order,
		       struct ending *ending)
{
	const struct batch_config *config = dispatch->job->config;
	bool repeated = order->runs > 1 || order->repeat || config->warmup > 0;
	const struct order_extra *extra = ending->what->extra;
	ending->order = dispatch->job->pipe ? (size_t)order->number : ending->index;
	ending->tag = extra && extra->tag ? mem_strdup(extra->tag) : NULL;
	ending->hidden = repeated && !config->show_output && ending->result.reason == REASON_OK;
}

static void set_order(const struct dispatch *dispatch, const struct batch_order *order,
		      struct ending *ending)
{
	ending->index = (size_t)(order - dispatch->job->todo);
	ending->number = order->number;
	ending->what = dispatch_order(dispatch, (uint32_t)ending->index, ending->result.variant[0]);
	ending->attempts = order->retries + order->losses + 1;
	/* A canary that ended well leaves no line, nor does one that was stopped. */
	ending->silent = order->is_canary && ending->result.reason != REASON_CANARY &&
			 ending->result.reason != REASON_LOST;
	ending->logged = !ending->retry && !order->is_canary;
	set_screen(dispatch, order, ending);
}

void dispatch_record(struct dispatch *dispatch, uint32_t number, struct ending *ending)
{
	set_order(dispatch, &dispatch->job->todo[number], ending);
	recorder_tell(&dispatch->recorder, ending);
	write_result(dispatch, ending);
}

/* ---- the slots of this host ---- */

static void on_started(void *arg, const struct batch_order *order)
{
	struct dispatch *dispatch = arg;
	dispatch_started(dispatch, (uint32_t)(order - dispatch->job->todo), dispatch->job->node);
}

static void on_ended(void *arg, struct ending *ending)
{
	struct dispatch *dispatch = arg;
	const struct dispatch_job *job = dispatch->job;
	if (job->node)
		ending->result.node = mem_strdup(job->node);
	set_order(dispatch, ending->from, ending);
	recorder_tell(&dispatch->recorder, ending);
	if (job->pipe && ending->final)
		pipe_orders_drop(job->pipe, ending->from);
}

static void on_measured(void *arg, struct ending *ending)
{
	write_result(arg, ending);
}

static void on_fetch(void *arg, struct batch_order *order)
{
	struct dispatch *dispatch = arg;
	dispatch->fetching = order;
	stdin_blocks_want(dispatch->blocks);
}

static void on_block(void *arg, const struct stdin_blocks_block *block, const struct err *why)
{
	struct dispatch *dispatch = arg;
	struct err err = why ? *why : ERR_INIT;
	struct batch_order *order = dispatch->fetching;
	AUTO(fd_close) int input = block->fd;
	int r = input >= 0 ? pipe_orders_put(dispatch->job->pipe, order, &input, &err) : -err.code;
	if (r < 0)
		runner_fail(dispatch->runner, &err);
	bool there = r >= 0 && block->fd >= 0;
	runner_post(dispatch->runner,
		    &(struct batch_event){ .type = there ? BATCH_OFFER : BATCH_CLOSED,
					   .slot = -1,
					   .order = order });
}

static const struct order_source_ops source_ops = {
	.started = on_started,
	.ended = on_ended,
	.measured = on_measured,
	.fetch = on_fetch,
};

/* ---- the page ---- */

static const struct order *page_order(void *arg, size_t index)
{
	return dispatch_order(arg, (uint32_t)index, 0);
}

/* Orders are skipped without an event of their own, when their canary has failed. */
static void tell_skipped(const struct dispatch *dispatch, struct roster *roster)
{
	const struct worklist *list = &dispatch->source.list;
	if (list->skipped == roster_count(roster, ROSTER_SKIPPED))
		return;
	for (size_t i = 0; i < list->count; i++)
		if (list->orders[i].state == BATCH_SKIPPED)
			roster_skipped(roster, i);
}

static void page_sum(void *arg, struct roster *roster, struct roster_sum *ret_sum)
{
	struct dispatch *dispatch = arg;
	tell_skipped(dispatch, roster);
	ret_sum->left_ns = current_eta(dispatch);
	ret_sum->before = dispatch->job->already_done;
	ret_sum->jobs = (uint64_t)runner_batch(dispatch->runner)->opts.jobs;
	if (!dispatch->deal)
		return;
	ret_sum->jobs = dispatch->deal->jobs;
	ret_sum->hosts = deal_hosts_here(dispatch->deal);
}

static int open_page(struct dispatch *dispatch, struct err *err)
{
	const struct dispatch_job *job = dispatch->job;
	const struct batch_page_hooks hooks = { .sum = page_sum,
						.order = page_order,
						.arg = dispatch,
						.printer = runner_printer(dispatch->runner) };
	/* Canaries are no orders of the list, and come after it. */
	size_t count = job->count;
	while (count > 0 && job->todo[count - 1].is_canary)
		count--;
	return job->config->http
		       ? batch_page_open(runner_base(dispatch->runner), &job->config->http_addr,
					 count, &hooks, &dispatch->recorder.page, err)
		       : 0;
}

/* ---- what the user wants, and the end ---- */

void dispatch_signalled(struct dispatch *dispatch, int sig)
{
	switch (sig) {
	case SIGWINCH:
		printer_status(runner_printer(dispatch->runner), "");
		show_status(dispatch);
		return;
	case SIGUSR1:
		show(dispatch, recorder_tell_progress);
		return;
	case SIGHUP:
		worklist_stop(&dispatch->source.list, WORKLIST_DRAIN, BATCH_STOP_DRAIN);
		break;
	default:
		if (dispatch->job->config->part && dispatch->source.list.stop == BATCH_GO)
			worklist_stop(&dispatch->source.list, WORKLIST_DRAIN, BATCH_STOP_INTERRUPT);
		else
			worklist_interrupt(&dispatch->source.list);
		break;
	}
	look_both(dispatch);
}

int dispatch_exit_code(struct dispatch *dispatch)
{
	const struct batch_sum sum = sum_of(dispatch);
	return recorder_exit_code(&dispatch->recorder, &sum);
}

int dispatch_finish(struct dispatch *dispatch)
{
	struct err err = ERR_INIT;
	struct journal *journal = dispatch->job->journal;
	journal_sync(journal);
	if (journal_check(journal, &err) < 0)
		dispatch_fail(dispatch, &err);
	struct batch_sum sum = sum_of(dispatch);
	if (dispatch->deal)
		sum.hosts = deal_hosts_ever(dispatch->deal);
	recorder_sum_up(&dispatch->recorder, &sum);
	return recorder_exit_code(&dispatch->recorder, &sum);
}

/* ---- life ---- */

static void begin_telling(struct dispatch *dispatch)
{
	const struct dispatch_job *job = dispatch->job;
	dispatch->recorder = (struct recorder){ .config = job->config,
						.journal = job->journal,
						.printer = runner_printer(dispatch->runner),
						.outputs = runner_outputs(dispatch->runner),
						.already_done = job->already_done };
	recorder_init(&dispatch->recorder);
	if (!dispatch->recorder.bar && !dispatch->recorder.plain)
		return;
	struct timeval period =
		clock_timeval(dispatch->recorder.bar ? BAR_PERIOD_NS : PLAIN_PERIOD_NS);
	event_add(dispatch->status_timer, &period);
}

int dispatch_new(struct runner *runner, const struct dispatch_job *job,
		 struct dispatch **ret_dispatch, struct err *err)
{
	struct dispatch *dispatch = NEW(struct dispatch);
	struct event_base *base = runner_base(runner);
	dispatch->job = job;
	dispatch->runner = runner;
	dispatch->source = (struct order_source){ .orders = job->orders,
						  .variant_step = job->variant_step,
						  .hooks = job->hooks,
						  .pipe = job->pipe,
						  .results = job->config->results,
						  .ops = &source_ops,
						  .arg = dispatch };
	worklist_init(&dispatch->source.list, &job->opts, job->todo, job->count);
	dispatch->seen = dispatch->source.list.changes;
	dispatch->sync_timer = evtimer_new(base, on_sync, dispatch);
	dispatch->status_timer = event_new(base, -1, EV_PERSIST, on_status, dispatch);
	begin_telling(dispatch);
	int r = job->pipe ? stdin_blocks_new(base, STDIN_FILENO, &job->pipe->rules, on_block,
					     dispatch, &dispatch->blocks, err)
			  : 0;
	if (r >= 0)
		r = open_page(dispatch, err);
	if (r < 0) {
		dispatch_free(dispatch, EXIT_CODE_SYSTEM);
		return r;
	}
	*ret_dispatch = dispatch;
	return 0;
}

void dispatch_free(struct dispatch *dispatch, int code)
{
	if (!dispatch)
		return;
	batch_page_close(dispatch->recorder.page, code);
	stdin_blocks_free(dispatch->blocks);
	event_free(dispatch->status_timer);
	event_free(dispatch->sync_timer);
	recorder_done(&dispatch->recorder);
	worklist_done(&dispatch->source.list);
	free(dispatch);
}

void dispatch_share(struct dispatch *dispatch, const struct deal *deal, void (*look)(void *arg),
		    void *arg)
{
	dispatch->deal = deal;
	dispatch->look = look;
	dispatch->look_arg = arg;
}

/* ---- this host alone ---- */

static struct order_source *here_open(void *arg, struct runner *runner, struct err *err)
{
	struct dispatch_here *here = arg;
	return dispatch_new(runner, here->job, &here->dispatch, err) < 0 ? NULL
									 : &here->dispatch->source;
}

static void here_stepped(void *arg)
{
	struct dispatch_here *here = arg;
	dispatch_slots_stepped(here->dispatch);
}

static void here_idle(void *arg)
{
	struct dispatch_here *here = arg;
	runner_end(here->dispatch->runner);
}

static void here_signalled(void *arg, int sig)
{
	struct dispatch_here *here = arg;
	dispatch_signalled(here->dispatch, sig);
}

static int here_finish(void *arg)
{
	struct dispatch_here *here = arg;
	return dispatch_finish(here->dispatch);
}

static void here_close(void *arg, int code)
{
	struct dispatch_here *here = arg;
	dispatch_free(here->dispatch, code);
	here->dispatch = NULL;
}

const struct runner_owner dispatch_owner = {
	.open = here_open,
	.stepped = here_stepped,
	.idle = here_idle,
	.signalled = here_signalled,
	.finish = here_finish,
	.close = here_close,
};
