#include "batch/many/many.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "batch/many/many_private.h"
#include "core/worker/exit_code.h"

#define LEAVE_NS (3 * NS_PER_S)	  /* for the others to hear that it is over */
#define ORPHAN_NS (30 * NS_PER_S) /* without a coordinator, after there was one */
#define HINT_NS (10 * NS_PER_S)	  /* without one, before people are told; half of a short wait */

/* ---- the end ---- */

static void on_leave(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct many *many = arg;
	runner_end(many->runner);
}

/* A coordinator stays until all others have heard it. */
void many_end(struct many *many, int code)
{
	if (many->over)
		return;
	many->over = true;
	many->exit_code = code;
	uint64_t wait_ns = 0;
	if (many->dealer && dealer_is_awaited(many->dealer)) {
		log_warn("the batch is over; hosts that are still to come are told so, for %.0f "
			 "s",
			 (double)many->rdzv->close_timeout_ns / NS_PER_S);
		wait_ns = many->rdzv->close_timeout_ns;
	} else if (many->dealer && peer_links_caller_count(many->links) > 0) {
		wait_ns = LEAVE_NS;
	}
	struct timeval wait = clock_left(wait_ns, 0);
	event_add(many->leave, &wait);
}

static void fail(struct many *many, int code, const char *why)
{
	if (!many->over)
		log_error("%s", why);
	many->failed = many->failed || !many->over;
	many_end(many, code);
}

static void on_patience(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct many *many = arg;
	AUTO(buf_done) struct buf tried = BUF_INIT;
	AUTO_FREE char *why = NULL;
	bool orphan = post_had_coordinator(many->post);
	const char *resume = many->config->part ? "" : "; --resume goes on with what is written";
	peer_links_explain(many->links, &tried);
	if (many->withdrew)
		why = mem_printf("the coordinator is out of reach, and it or its host still has "
				 "the result file: %s",
				 buf_str(&tried));
	else if (orphan)
		why = mem_printf("the coordinator is gone, and no host takes over: %s%s",
				 buf_str(&tried), resume);
	else
		why = mem_printf("found no coordinator: %s", buf_str(&tried));
	fail(many, orphan ? EXIT_CODE_SYSTEM : EXIT_CODE_TIMEOUT, why);
}

/* It cannot tell a batch that is over from one that has not begun, but people can. */
static void on_hint(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct many *many = arg;
	AUTO(buf_done) struct buf tried = BUF_INIT;
	if (many->over || many->dealer || post_had_coordinator(many->post))
		return;
	peer_links_explain(many->links, &tried);
	uint64_t all_ns = many->rdzv->join_timeout_ns, waited_ns = MIN(HINT_NS, all_ns / 2);
	log_warn("found no coordinator so far: %s; it has not begun, or the batch is over; giving "
		 "up in %.0f s",
		 buf_str(&tried), (double)(all_ns - waited_ns) / NS_PER_S);
}

static void wait_for_coordinator(struct many *many, uint64_t ns)
{
	struct timeval left = clock_left(ns, 0);
	event_add(many->patience, &left);
}

void many_orphaned(struct many *many)
{
	wait_for_coordinator(many, ORPHAN_NS);
}

/* ---- the coordinator here ---- */

/* A coordinator that this host does not reach has the result file: it is frozen, or cut off. */
static void withdraw(struct many *many, const char *why)
{
	if (!many->withdrew)
		log_warn("%s, so this host does not take over: searching for its coordinator", why);
	many->withdrew = true;
	peer_links_withdraw(many->links);
}

/* The list is here from now on. */
static int take_list(struct many *many, bool again, struct err *err)
{
	int r = many->hooks->load(many->arg, again, &many->job, err);
	if (r < 0)
		return r;
	many->job.node = many->name;
	many->job.opts.shared = true;
	many->job.opts.once = many->config->part;
	many->job.opts.hold_until_ns = again ? ns_add(clock_now_ns(), many->lost_ns) : 0;
	return dispatch_new(many->runner, &many->job, &many->dispatch, err);
}

static void on_coordinate(void *arg)
{
	struct many *many = arg;
	struct err err = ERR_INIT;
	bool again = post_had_coordinator(many->post);
	int r = take_list(many, again, &err);
	if (r == -EBUSY && (again || many->rdzv->endpoint_count > 1)) {
		withdraw(many, err.msg);
		return;
	}
	event_del(many->patience);
	post_coordinates(many->post);
	log_info("this host coordinates the batch");
	if (r < 0) {
		fail(many,
		     r == -EINVAL || r == -EEXIST || r == -ENOENT ? EXIT_CODE_USAGE
								  : EXIT_CODE_SYSTEM,
		     err.msg);
		return;
	}
	many->coordinated = true;
	many->dealer = dealer_new(many, many->dispatch);
	if (many_runs_orders(many))
		runner_adopt(many->runner, dispatch_source(many->dispatch));
}

static void on_superseded(void *arg)
{
	fail(arg, EXIT_CODE_SYSTEM, "another host coordinates this batch by now");
}

static void on_peer(void *arg, uint64_t id, const char *name)
{
	struct many *many = arg;
	if (many->dealer)
		dealer_peer(many->dealer, id, name);
}

static void on_peer_bytes(void *arg, uint64_t id, const void *data, size_t len)
{
	struct many *many = arg;
	if (many->dealer)
		dealer_take(many->dealer, id, data, len);
}

static void on_peer_down(void *arg, uint64_t id, bool dead)
{
	struct many *many = arg;
	if (many->dealer)
		dealer_down(many->dealer, id, dead);
	if (many->over && peer_links_caller_count(many->links) == 0 &&
	    !(many->dealer && dealer_is_awaited(many->dealer)))
		runner_end(many->runner);
}

/* ---- the coordinator elsewhere ---- */

static void on_up(void *arg)
{
	struct many *many = arg;
	many->withdrew = false;
	post_up(many->post);
}

static void on_down(void *arg, const char *why)
{
	struct many *many = arg;
	post_down(many->post);
	if (many->over)
		return;
	log_warn("lost the coordinator: %s", why);
	many_orphaned(many);
}

static void on_bytes(void *arg, const void *data, size_t len)
{
	struct many *many = arg;
	struct err err = ERR_INIT;
	if (post_take(many->post, data, len, &err) < 0)
		fail(many, EXIT_CODE_SYSTEM, err.msg);
}

static void on_drained(void *arg)
{
	struct many *many = arg;
	post_drained(many->post);
}

static void on_barred(void *arg, const char *why)
{
	fail(arg, EXIT_CODE_SYSTEM, why);
}

#define RISK "give orders to the hosts of this batch"

static const struct peer_links_handler peer_links_handler = {
	.on_coordinate = on_coordinate,
	.on_superseded = on_superseded,
	.on_up = on_up,
	.on_down = on_down,
	.on_bytes = on_bytes,
	.on_drained = on_drained,
	.on_peer = on_peer,
	.on_peer_bytes = on_peer_bytes,
	.on_peer_down = on_peer_down,
	.on_barred = on_barred,
};

/* What starts the other hosts has ended, and so have they. */
static void on_hosts_gone(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	fail(arg, EXIT_CODE_SYSTEM,
	     "no host is left that runs orders; --resume goes on with what "
	     "is written");
}

/* ---- the runner ---- */

static struct order_source *open_links(void *arg, struct runner *runner, struct err *err UNUSED)
{
	struct many *many = arg;
	many->runner = runner;
	many->patience = evtimer_new(runner_base(runner), on_patience, many);
	many->leave = evtimer_new(runner_base(runner), on_leave, many);
	many->hint = evtimer_new(runner_base(runner), on_hint, many);
	if (many->config->hosts_fd >= 0) {
		many->hosts = event_new(runner_base(runner), many->config->hosts_fd, EV_READ,
					on_hosts_gone, many);
		event_add(many->hosts, NULL);
	}
	post_begin(many->post);
	wait_for_coordinator(many, many->rdzv->join_timeout_ns);
	struct timeval hint = clock_left(MIN(HINT_NS, many->rdzv->join_timeout_ns / 2), 0);
	event_add(many->hint, &hint);
	many->handler = peer_links_handler;
	many->handler.risk = many->config->part ? many->config->part->risk : RISK;
	many->links = peer_links_new(runner_base(runner), many->rdzv, &many->handler, many);
	return post_source(many->post);
}

static void stepped(void *arg)
{
	struct many *many = arg;
	if (many->dispatch)
		dispatch_slots_stepped(many->dispatch);
	else
		post_stepped(many->post);
}

/* Ctrl-C: first stops, or with orders of our own starts no more, second kills. A host that does not
 * coordinate leaves alone. */
static void signalled(void *arg, int sig)
{
	struct many *many = arg;
	bool asks = sig == SIGWINCH || sig == SIGUSR1;
	enum worklist_halt first = many->config->part ? WORKLIST_DRAIN : WORKLIST_STOP;
	if (many->over && !asks) {
		runner_end(many->runner);
	} else if (many->dispatch) {
		dispatch_signalled(many->dispatch, sig);
	} else if (!asks) {
		enum worklist_halt stop = sig == SIGHUP	    ? WORKLIST_DRAIN
					  : many->signals++ ? WORKLIST_KILL
							    : first;
		post_interrupt(many->post, stop);
	}
}

/* Nothing runs here, and nothing will. */
static void idle(void *arg)
{
	struct many *many = arg;
	if (many->dispatch)
		return;
	if (runner_failed(many->runner))
		many_end(many, runner_failed(many->runner));
	else if (runner_stop_signal(many->runner))
		many_end(many, EXIT_CODE_SIGNAL_BASE + runner_stop_signal(many->runner));
}

static int finish(void *arg)
{
	struct many *many = arg;
	int code = many->dispatch ? dispatch_finish(many->dispatch) : many->exit_code;
	return many->failed ? many->exit_code : code;
}

/* Before the loop is gone. */
static void close_all(void *arg, int code)
{
	struct many *many = arg;
	dealer_free(many->dealer);
	many->dealer = NULL;
	dispatch_free(many->dispatch, code);
	many->dispatch = NULL;
	peer_links_free(many->links);
	many->links = NULL;
	post_free(many->post);
	many->post = NULL;
	event_free(many->patience);
	event_free(many->leave);
	event_free(many->hint);
	if (many->hosts)
		event_free(many->hosts);
	many->runner = NULL;
}

static const struct runner_owner owner = {
	.open = open_links,
	.stepped = stepped,
	.idle = idle,
	.signalled = signalled,
	.finish = finish,
	.close = close_all,
};

void many_job(struct many *many, const struct orders *around, struct runner_job *job)
{
	post_source(many->post)->hooks = around;
	job->owner = &owner;
	job->owner_arg = many;
}

bool many_coordinated(const struct many *many)
{
	return many->coordinated;
}

/* ---- life ---- */

struct many *many_new(const struct batch_config *config, const struct rendezvous *rdzv,
		      const struct batch_plan *plan, const struct many_hooks *hooks, void *arg)
{
	struct many *many = NEW(struct many);
	many->config = config;
	many->rdzv = rdzv;
	many->plan = plan;
	many->hooks = hooks;
	many->arg = arg;
	many->period_ns = rendezvous_period_ns(rdzv, rdzv->max_nodes);
	many->lease_ns = many->period_ns * rdzv->lease_periods;
	many->lost_ns = many->lease_ns + many->period_ns;
	if (config->part)
		snprintf(many->name, sizeof(many->name), "%s", config->part->host);
	else if (gethostname(many->name, sizeof(many->name) - 1) < 0 || !*many->name)
		strcpy(many->name, "localhost");
	many->post = post_new(many);
	return many;
}

void many_free(struct many *many)
{
	if (!many)
		return;
	post_free(many->post);
	free(many);
}
