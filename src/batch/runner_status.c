/* Output for users while a batch runs, and at its end. */
#include <locale.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/procfs.h"
#include "base/str.h"
#include "batch/progress.h"
#include "batch/runner_private.h"
#include "core/worker/exit_code.h"

#define COLUMNS_DEFAULT 80
#define ETA_PERIOD_NS (500 * NS_PER_MS)

static void log_line(void *arg, enum log_level level UNUSED, const char *line, size_t len)
{
	struct runner *runner = arg;
	printer_text(runner->printer, STDERR_FILENO, line, len);
}

void status_init(struct runner *runner)
{
	const struct runner_job *job = runner->job;
	runner->recorder = (struct recorder){ .config = job->config,
					      .journal = job->journal,
					      .printer = runner->printer,
					      .outputs = runner->outputs,
					      .already_done = job->already_done };
	recorder_init(&runner->recorder);
	setlocale(LC_CTYPE, "");
	log_set_sink(log_line, runner);
}

/* Playing the schedule takes time on large lists: spend at most 2 % of ours on it. */
static uint64_t current_eta(struct runner *runner, uint64_t now)
{
	if (now >= runner->eta_until_ns) {
		uint64_t end = batch_eta(&runner->batch, now);
		uint64_t cost = clock_now_ns() - now;
		runner->eta_ns = end == NS_NEVER ? NS_NEVER : now + end;
		runner->eta_until_ns = now + MAX(ETA_PERIOD_NS, cost * 50);
	}
	if (runner->eta_ns == NS_NEVER)
		return NS_NEVER;
	return runner->eta_ns > now ? runner->eta_ns - now : 0;
}

static struct batch_sum sum_of(struct runner *runner)
{
	const struct worklist *list = &runner->list;
	return (struct batch_sum){ .ok = list->ok,
				   .failed = list->failed,
				   .skipped = list->skipped,
				   .total = list->total,
				   .running = (uint64_t)runner->batch.running,
				   .open = worklist_is_open(list),
				   .stop = list->stop,
				   .stop_signal = runner->stop_signal,
				   .left_ns = NS_NEVER };
}

/* What runs here, longest first. */
static void gather(struct runner *runner, struct progress *progress, struct strv *commands)
{
	const struct batch *batch = &runner->batch;
	uint64_t now = clock_now_ns(), since;
	for (int i = 0; i < batch->opts.jobs && progress->order_count < PROGRESS_ORDERS_MAX; i++) {
		const struct batch_order *order = batch_running(batch, i, &since);
		if (!order)
			continue;
		AUTO(buf_done) struct buf text = BUF_INIT;
		order_append_command(&runner->job->orders->items[order->item.index], i + 1, &text);
		strv_add(commands, buf_str(&text));
		/* Longest first: insert in order of age. */
		size_t at = progress->order_count++;
		for (; at > 0 && progress->orders[at - 1].since_ns < now - since; at--)
			progress->orders[at] = progress->orders[at - 1];
		progress->orders[at].command = commands->items[commands->count - 1];
		progress->orders[at].since_ns = now - since;
	}
}

static void show(struct runner *runner,
		 void (*as)(const struct recorder *, const struct batch_sum *, struct progress *))
{
	AUTO(strv_done) struct strv commands = STRV_INIT;
	struct progress progress = { .order_count = 0 };
	struct batch_sum sum = sum_of(runner);
	sum.left_ns = current_eta(runner, clock_now_ns());
	gather(runner, &progress, &commands);
	as(&runner->recorder, &sum, &progress);
}

void status_show(struct runner *runner)
{
	if (runner->recorder.bar || runner->recorder.plain)
		show(runner, recorder_show);
}

void status_tell(struct runner *runner)
{
	show(runner, recorder_tell_progress);
}

void status_wait(struct runner *runner)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	const struct batch_config *config = runner->job->config;
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
	recorder_say(&runner->recorder, &text);
}

int status_sum_up(struct runner *runner)
{
	const struct batch_sum sum = sum_of(runner);
	recorder_sum_up(&runner->recorder, &sum);
	return recorder_exit_code(&runner->recorder, &sum);
}

/* ---- the page ---- */

static size_t index_of(const struct place *place)
{
	return (size_t)(place->order - place->runner->job->batch_orders);
}

static const struct order *order_at(void *arg, size_t index)
{
	const struct runner *runner = arg;
	return &runner->job->orders->items[runner->job->batch_orders[index].item.index];
}

/* Orders are skipped without an event of their own, when their canary has failed. */
static void tell_skipped(const struct runner *runner, struct roster *roster)
{
	const struct worklist *list = &runner->list;
	if (list->skipped == roster_count(roster, ROSTER_SKIPPED))
		return;
	for (size_t i = 0; i < list->count; i++)
		if (list->orders[i].state == BATCH_SKIPPED)
			roster_skipped(roster, i);
}

static void sum_up(void *arg, struct roster *roster, struct roster_sum *ret_sum)
{
	struct runner *runner = arg;
	tell_skipped(runner, roster);
	ret_sum->left_ns = current_eta(runner, clock_now_ns());
	ret_sum->before = runner->job->already_done;
	ret_sum->jobs = (uint64_t)runner->job->plan->jobs;
}

int status_page_open(struct runner *runner, struct err *err)
{
	const struct batch_page_hooks hooks = {
		.sum = sum_up, .order = order_at, .arg = runner, .printer = runner->printer
	};
	/* Canaries are no orders of the list, and come after it. */
	size_t count = runner->job->count;
	while (count > 0 && runner->job->batch_orders[count - 1].is_canary)
		count--;
	return batch_page_open(runner->base, &runner->job->config->http_addr, count, &hooks,
			       &runner->recorder.page, err);
}

void status_page_started(const struct place *place)
{
	if (place->runner->recorder.page)
		batch_page_started(place->runner->recorder.page, index_of(place), NULL);
}
