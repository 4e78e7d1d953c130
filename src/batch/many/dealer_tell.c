/* What the coordinator of a batch on many hosts says: of failures, how far it is, how it ended, and
 * to the page. */
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "batch/many/dealer_private.h"
#include "core/worker/exit_code.h"

#define BAR_NS (200 * NS_PER_MS)
#define STATUS_NS (30 * NS_PER_S)

static struct batch_sum sum_of(const struct dealer *dealer)
{
	const struct deal *deal = &dealer->deal;
	const struct worklist *list = &dealer->orders;
	return (struct batch_sum){ .ok = list->ok,
				   .failed = list->failed,
				   .skipped = list->skipped,
				   .total = list->total,
				   .running = deal->given,
				   .stop = dealer->broken ? BATCH_STOP_FATAL : list->stop,
				   .stop_signal = runner_stop_signal(dealer->many->runner),
				   .late = dealer->late,
				   .hosts = deal_hosts_in(deal, DEAL_HERE),
				   .left_ns = deal_eta(deal, clock_now_ns()) };
}

void dealer_on_status(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct dealer *dealer = arg;
	const struct batch_sum sum = sum_of(dealer);
	struct progress progress = { .order_count = 0 };
	journal_sync(dealer->list.journal);
	recorder_show(&dealer->recorder, &sum, &progress);
}

void dealer_begin_telling(struct dealer *dealer)
{
	const struct many *many = dealer->many;
	dealer->recorder = (struct recorder){ .config = many->config,
					      .journal = dealer->list.journal,
					      .printer = runner_printer(many->runner),
					      .outputs = runner_outputs(many->runner),
					      .already_done = dealer->list.already_done };
	recorder_init(&dealer->recorder);
	struct timeval period = clock_timeval(dealer->recorder.bar ? BAR_NS : STATUS_NS);
	event_add(dealer->status, &period);
}

int dealer_exit_code(const struct dealer *dealer)
{
	const struct batch_sum sum = sum_of(dealer);
	return recorder_exit_code(&dealer->recorder, &sum);
}

void dealer_finish(struct dealer *dealer)
{
	struct many *many = dealer->many;
	struct batch_sum sum = sum_of(dealer);
	struct err err = ERR_INIT;
	journal_sync(dealer->list.journal);
	if (!dealer->broken && journal_check(dealer->list.journal, &err) < 0) {
		log_error("%s", err.msg);
		many->exit_code = EXIT_CODE_SYSTEM;
	}
	sum.hosts = dealer->deal.host_count - dealer->deal.late;
	recorder_sum_up(&dealer->recorder, &sum);
}

/* ---- the page ---- */

static const struct order *page_order(void *arg, size_t index)
{
	return dealer_order(arg, (uint32_t)index);
}

static void page_sum(void *arg, struct roster *roster UNUSED, struct roster_sum *ret_sum)
{
	const struct dealer *dealer = arg;
	ret_sum->left_ns = deal_eta(&dealer->deal, clock_now_ns());
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
					 dealer->list.count, &hooks, &dealer->recorder.page, err)
		       : 0;
}
