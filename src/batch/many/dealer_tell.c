/* What the coordinator of a batch on many hosts says: of failures, how far it is, how it ended, and
 * to the page. */
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/log.h"
#include "batch/many/dealer_private.h"
#include "batch/printer.h"
#include "batch/progress.h"
#include "core/worker/exit_code.h"

static void describe(const struct result *result, struct buf *out)
{
	char human[CLOCK_HUMAN_MAX];
	if (result->reason == REASON_EXIT || result->reason == REASON_SIGNAL)
		exit_status_describe(&result->status, out);
	else if (result->reason == REASON_TIMEOUT)
		buf_append_str(out, "timed out");
	else if (result->reason == REASON_OOM)
		buf_append_str(out, "killed, out of memory");
	else if (result->reason == REASON_CPU_TIMEOUT)
		buf_append_str(out, "used up its CPU time");
	else if (result->reason == REASON_FILES && env_get(&result->missing, "files"))
		buf_append_str(out, env_get(&result->missing, "files"));
	else
		buf_append_str(out, reason_name(result->reason));
	if (!result->has[RESULT_WALL_NS])
		return;
	clock_human((uint64_t)result->value[RESULT_WALL_NS], human);
	buf_printf(out, " after %s", human);
}

void dealer_tell_failure(struct dealer *dealer, const struct order *order,
			 const struct result *result, bool final)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	const struct exit_status *status = &result->status;
	if (result->reason == REASON_OK || result->reason == REASON_KILLED)
		return;
	order_append_id(order, &text);
	buf_append_str(&text, ": ");
	describe(result, &text);
	buf_printf(&text, " on %s: ", result->node);
	order_append_command(order, 0, &text);
	if (!dealer->many->config->quiet)
		log_warn("order %s%s", buf_str(&text), final ? "" : " (it runs again)");
	if (!final)
		return;
	failures_add(&dealer->failures, buf_str(&text), result->tail);
	dealer->failed_code = status->kind == EXIT_CODE	    ? status->value
			      : status->kind == EXIT_SIGNAL ? EXIT_CODE_SIGNAL_BASE + status->value
							    : EXIT_CODE_FAILED;
}

void dealer_tell_unfit(struct dealer *dealer, const struct order *order, const char *why)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	buf_printf(&text, "%s: ", why);
	order_append_command(order, 0, &text);
	if (!dealer->many->config->quiet)
		log_warn("%s", buf_str(&text));
	failures_add(&dealer->failures, buf_str(&text), NULL);
	dealer->failed_code = EXIT_CODE_FAILED;
}

static uint64_t eta(const struct dealer *dealer, uint64_t elapsed_ns)
{
	uint64_t done = dealer->deal.ok + dealer->deal.failed;
	return done ? elapsed_ns / done * (dealer->deal.count - done) : NS_NEVER;
}

void dealer_on_status(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct dealer *dealer = arg;
	const struct deal *deal = &dealer->deal;
	AUTO(buf_done) struct buf text = BUF_INIT;
	uint64_t elapsed = clock_now_ns() - dealer->start_ns;
	struct progress progress = { .done = deal->ok + deal->failed,
				     .failed = deal->failed,
				     .running = deal->given,
				     .total = deal->count,
				     .elapsed_ns = elapsed,
				     .eta_ns = eta(dealer, elapsed) };
	journal_sync(dealer->list.journal);
	if (dealer->many->config->quiet || dealer->many->config->progress == BATCH_PROGRESS_NONE)
		return;
	buf_append_str(&text, "muster batch: ");
	progress_plain(&progress, &text);
	buf_printf(&text, ", %zu hosts\n", deal_hosts_in(deal, DEAL_HERE));
	printer_text(runner_printer(dealer->many->runner), STDERR_FILENO, buf_data(&text),
		     buf_len(&text));
}

void dealer_finish(struct dealer *dealer)
{
	const struct deal *deal = &dealer->deal;
	struct many *many = dealer->many;
	char human[CLOCK_HUMAN_MAX];
	AUTO(buf_done) struct buf text = BUF_INIT;
	struct err err = ERR_INIT;
	journal_sync(dealer->list.journal);
	if (!dealer->broken && journal_check(dealer->list.journal, &err) < 0) {
		log_error("%s", err.msg);
		many->exit_code = EXIT_CODE_SYSTEM;
	}
	if (many->config->quiet)
		return;
	uint64_t left = deal->count - deal->ok - deal->failed;
	if (deal->count > 1)
		failures_format(&dealer->failures, &text);
	clock_human(clock_now_ns() - dealer->start_ns, human);
	buf_printf(&text, "muster batch: %llu of %zu done", (unsigned long long)deal->ok,
		   deal->count);
	if (deal->failed)
		buf_printf(&text, ", %llu failed", (unsigned long long)deal->failed);
	if (left)
		buf_printf(&text, ", %llu not run", (unsigned long long)left);
	if (dealer->list.already_done)
		buf_printf(&text, ", %zu were done before", dealer->list.already_done);
	if (dealer->late)
		buf_printf(&text, ", %llu results came too late to count",
			   (unsigned long long)dealer->late);
	size_t hosts = deal->host_count - deal->late;
	buf_printf(&text, ", on %zu host%s, in %s", hosts, hosts == 1 ? "" : "s", human);
	if (deal->stop != DEAL_GO)
		buf_printf(&text, "; stopped by %s",
			   deal->why == DEAL_WHY_HALT	    ? "--halt"
			   : deal->why == DEAL_WHY_DEADLINE ? "--deadline"
			   : deal->why == DEAL_WHY_FATAL    ? "an error"
							    : "a signal");
	if ((left || deal->failed) && dealer->list.journal->fd >= 0)
		buf_append_str(&text, "; --resume goes on from here");
	buf_append_char(&text, '\n');
	printer_text(runner_printer(many->runner), STDERR_FILENO, buf_data(&text), buf_len(&text));
}

/* ---- the page ---- */

void dealer_tell_page(struct dealer *dealer, uint32_t number, const struct result *result,
		      bool final, bool again, const char *why)
{
	AUTO(buf_done) struct buf how = BUF_INIT;
	if (why)
		buf_append_str(&how, why);
	else
		describe(result, &how);
	batch_page_ended(dealer->page, number, result, final, again, buf_str(&how));
}

static const struct order *page_order(void *arg, size_t index)
{
	return dealer_order(arg, (uint32_t)index);
}

static void page_sum(void *arg, struct roster *roster UNUSED, struct roster_sum *ret_sum)
{
	const struct dealer *dealer = arg;
	ret_sum->left_ns = eta(dealer, clock_now_ns() - dealer->start_ns);
	ret_sum->before = dealer->list.already_done;
	ret_sum->jobs = dealer->deal.jobs;
	ret_sum->hosts = deal_hosts_in(&dealer->deal, DEAL_HERE);
}

int dealer_open_page(struct dealer *dealer, struct err *err)
{
	const struct many *many = dealer->many;
	const struct batch_page_hooks hooks = { .sum = page_sum,
						.order = page_order,
						.arg = dealer,
						.printer = runner_printer(many->runner) };
	return many->config->http
		       ? batch_page_open(runner_base(many->runner), &many->config->http_addr,
					 dealer->list.count, &hooks, &dealer->page, err)
		       : 0;
}
