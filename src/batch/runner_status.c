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

static void say(struct runner *runner, struct buf *text)
{
	buf_append_char(text, '\n');
	printer_text(runner->printer, STDERR_FILENO, buf_data(text), buf_len(text));
}

void status_init(struct runner *runner)
{
	const struct batch_config *config = runner->job->config;
	bool terminal =
		isatty(STDERR_FILENO) && !str_eq(getenv("TERM") ? getenv("TERM") : "", "dumb");
	int mode = config->progress;
	if (config->quiet)
		mode = BATCH_PROGRESS_NONE;
	else if (mode == BATCH_PROGRESS_AUTO)
		mode = terminal ? BATCH_PROGRESS_BAR : BATCH_PROGRESS_PLAIN;
	runner->bar = mode == BATCH_PROGRESS_BAR;
	runner->plain = mode == BATCH_PROGRESS_PLAIN;
	setlocale(LC_CTYPE, "");
	log_set_sink(log_line, runner);
}

static int columns(void)
{
	struct winsize size;
	if (ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0)
		return size.ws_col;
	return COLUMNS_DEFAULT;
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

static void gather(struct runner *runner, struct progress *progress, struct strv *commands)
{
	const struct batch *batch = &runner->batch;
	uint64_t now = clock_now_ns(), since;
	*progress = (struct progress){
		.done = batch->ok + batch->failed + batch->skipped,
		.failed = batch->failed,
		.running = (uint64_t)batch->running,
		.total = batch->total,
		.open = batch->opts.open && !batch->closed,
		.elapsed_ns = now - runner->start_ns,
		.eta_ns = current_eta(runner, now),
	};
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

void status_show(struct runner *runner)
{
	AUTO(strv_done) struct strv commands = STRV_INIT;
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct progress progress;
	if (!runner->bar && !runner->plain)
		return;
	gather(runner, &progress, &commands);
	if (runner->bar) {
		progress_render(&progress, columns(), true, &text);
		printer_status(runner->printer, buf_str(&text));
	} else {
		buf_append_str(&text, "muster batch: ");
		progress_plain(&progress, &text);
		say(runner, &text);
	}
}

static void describe(const struct batch_outcome *outcome, const struct place *place,
		     struct buf *out)
{
	char human[CLOCK_HUMAN_MAX];
	clock_human(outcome->timed ? outcome->end_ns - outcome->start_ns : 0, human);
	switch (outcome->reason == REASON_CANARY ? outcome->canary : outcome->reason) {
	case REASON_SPAWN:
		buf_append_str(out, place->failure ? place->failure : "cannot be started");
		return;
	case REASON_EXIT:
	case REASON_SIGNAL:
		exit_status_describe(&outcome->status, out);
		break;
	case REASON_OOM:
		buf_append_str(out, "killed, out of memory");
		break;
	case REASON_TIMEOUT:
		buf_append_str(out, "timed out");
		break;
	case REASON_CPU_TIMEOUT:
		buf_append_str(out, "used up its CPU time");
		break;
	default:
		buf_append_str(out, reason_name(outcome->reason));
		break;
	}
	buf_printf(out, " after %s", human);
}

static void append_labels(const struct order *order, struct buf *out)
{
	if (!order->extra || order->extra->labels.count == 0)
		return;
	buf_append_str(out, " [");
	label_format(&order->extra->labels, out);
	buf_append_char(out, ']');
}

/* One line for every attempt that failed. */
void status_outcome(struct runner *runner, const struct batch_action *action,
		    const struct place *place)
{
	const struct batch_outcome *outcome = &action->outcome;
	const struct order *order = &runner->job->orders->items[place->order->item.index];
	AUTO(buf_done) struct buf text = BUF_INIT;
	if (outcome->reason == REASON_OK || outcome->reason == REASON_KILLED ||
	    runner->job->config->quiet)
		return;
	buf_append_str(&text, outcome->reason == REASON_CANARY ? "muster batch: the canary failed: "
							       : "muster batch: order ");
	if (outcome->reason != REASON_CANARY) {
		order_append_id(order, &text);
		append_labels(order, &text);
		buf_append_str(&text, " failed: ");
	}
	describe(outcome, place, &text);
	if (outcome->retry) {
		char human[CLOCK_HUMAN_MAX];
		clock_human(outcome->retry_in_ns, human);
		buf_printf(&text, ", attempt %d of %d, again in %s", outcome->trial.attempt,
			   place->order->retries + 1, human);
	} else if (outcome->trial.attempt > 1) {
		buf_printf(&text, ", attempt %d", outcome->trial.attempt);
	}
	buf_append_str(&text, ": ");
	order_append_command(order, place->number + 1, &text);
	if (place->paths[1])
		buf_printf(&text, " (%s)", place->paths[1]);
	say(runner, &text);
}

void status_failure(struct runner *runner, const struct batch_outcome *outcome,
		    const struct place *place, const struct ending *ending)
{
	const struct order *order = place_order(place);
	AUTO(buf_done) struct buf text = BUF_INIT;
	order_append_id(order, &text);
	append_labels(order, &text);
	buf_append_str(&text, ": ");
	describe(outcome, place, &text);
	buf_append_str(&text, ": ");
	order_append_command(order, place->number + 1, &text);
	failures_add(&runner->failures, buf_str(&text), ending->result.tail);
	runner->failed_code = outcome->status.kind == EXIT_CODE ? outcome->status.value
			      : outcome->status.kind == EXIT_SIGNAL
				      ? EXIT_CODE_SIGNAL_BASE + outcome->status.value
				      : EXIT_CODE_FAILED;
}

void status_tell(struct runner *runner)
{
	AUTO(strv_done) struct strv commands = STRV_INIT;
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct progress progress;
	gather(runner, &progress, &commands);
	buf_append_str(&text, "muster batch: ");
	progress_plain(&progress, &text);
	for (size_t i = 0; i < progress.order_count; i++) {
		char human[CLOCK_HUMAN_MAX];
		clock_human(progress.orders[i].since_ns, human);
		buf_printf(&text, "\n  %s: %s", human, progress.orders[i].command);
	}
	say(runner, &text);
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
	say(runner, &text);
}

void status_summary(struct runner *runner)
{
	const struct batch *batch = &runner->batch;
	uint64_t left = batch->total - batch->ok - batch->failed - batch->skipped;
	char human[CLOCK_HUMAN_MAX];
	AUTO(buf_done) struct buf text = BUF_INIT;
	if (runner->job->config->quiet)
		return;
	if (batch->total > 1) /* a single one has just said so */
		failures_format(&runner->failures, &text);
	clock_human(clock_now_ns() - runner->start_ns, human);
	buf_printf(&text, "muster batch: %llu of %llu done", (unsigned long long)batch->ok,
		   (unsigned long long)batch->total);
	if (batch->failed)
		buf_printf(&text, ", %llu failed", (unsigned long long)batch->failed);
	if (batch->skipped)
		buf_printf(&text, ", %llu skipped because their canary failed",
			   (unsigned long long)batch->skipped);
	if (left)
		buf_printf(&text, ", %llu not run", (unsigned long long)left);
	if (batch->opts.open && !batch->closed)
		buf_append_str(&text, ", standard input not read to its end");
	if (runner->job->already_done)
		buf_printf(&text, ", %zu were done before", runner->job->already_done);
	buf_printf(&text, ", in %s", human);
	static const char *const stops[] = { [BATCH_STOP_DRAIN] = "SIGHUP",
					     [BATCH_STOP_HALT] = "--halt",
					     [BATCH_STOP_DEADLINE] = "--deadline",
					     [BATCH_STOP_INTERRUPT] = "a signal",
					     [BATCH_STOP_FATAL] = "an error" };
	if (batch->stop != BATCH_GO)
		buf_printf(&text, "; stopped by %s", stops[batch->stop]);
	if ((left || batch->failed || batch->skipped) && runner->job->journal->fd >= 0 &&
	    !runner->job->pipe)
		buf_append_str(&text, "; --resume goes on from here");
	say(runner, &text);
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
	const struct batch *batch = &runner->batch;
	if (batch->skipped == roster_count(roster, ROSTER_SKIPPED))
		return;
	for (size_t i = 0; i < batch->count; i++)
		if (batch->orders[i].state == BATCH_SKIPPED)
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
			       &runner->page, err);
}

void status_page_started(const struct place *place)
{
	if (place->runner->page)
		batch_page_started(place->runner->page, index_of(place), NULL);
}

void status_page_ended(const struct place *place, const struct batch_outcome *outcome,
		       const struct result *result)
{
	AUTO(buf_done) struct buf how = BUF_INIT;
	if (!place->runner->page)
		return;
	bool again = !outcome->final && !outcome->retry && outcome->reason != REASON_OK;
	describe(outcome, place, &how);
	batch_page_ended(place->runner->page, index_of(place), result, outcome->final, again,
			 buf_str(&how));
}
