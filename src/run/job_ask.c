/* Requests to the job: from the guard, from users and programs over HTTP, from our parent, and from
 * the other nodes. */
#include "run/job_private.h"

#include <stdlib.h>
#include <unistd.h>

#include "base/log.h"
#include "base/mem.h"

/* ---- verdicts of the guard ---- */

static void on_condemned(void *arg, size_t rank, enum failure_reason reason, int signal, bool final)
{
	struct job *job = arg;
	TELL_LATER(&job->telling, HAPPENED_WORKER_CONDEMNED, .rank = rank, .reason = reason,
		   .signal = signal);
	if (final && job->config->guard.hang_action == HANG_ACTION_STOP)
		job->cause.no_restart = true;
	else
		job->leaves |= final;
	job_push_group(job, (struct group_event){ GROUP_EV_EXPIRED, .rank = rank, .reason = reason,
						  .signal = signal });
	job_pump(job);
}

static void on_expired(void *arg, const struct watchdog_expiry *expiry)
{
	struct job *job = arg;
	TELL(&job->telling, HAPPENED_TIMER_EXPIRED, .expiry = expiry);
}

static void on_rejected(void *arg, const char *reason, const char *detail)
{
	struct job *job = arg;
	TELL(&job->telling, HAPPENED_TIMER_REJECTED, .text = reason, .detail = detail);
}

static uint64_t progress_of(void *arg, size_t rank)
{
	const struct job *job = arg;
	return output_bytes(job->output, workers_id_of(&job->workers, rank));
}

static void hold_worker(void *arg, size_t rank, bool still)
{
	struct job *job = arg;
	if (job->warden)
		warden_signal(job->warden, workers_id_of(&job->workers, rank),
			      still ? SIGSTOP : SIGCONT);
}

static void on_signs(void *arg, const struct msg_signs *signs)
{
	job_take_agent_event(arg, &(struct agent_event){ .type = AGENT_SIGNS, .signs = *signs });
}

static void on_found(void *arg, const struct msg_found *found)
{
	job_take_agent_event(arg, &(struct agent_event){ .type = AGENT_FOUND, .found = *found });
}

static void on_arrived(void *arg, size_t rank, uint64_t collectives)
{
	const struct job *job = arg;
	guard_arrived(job->guard, rank, collectives);
}

static char *stacks_path(void *arg)
{
	const struct job *job = arg;
	const char *attempt = job->result->logdir.attempt;
	return attempt ? mem_printf("%s/stacks.txt", attempt) : NULL;
}

static void keep_stacks(void *arg, const char *stacks, const char *collectives,
			const struct blame *blame)
{
	struct job *job = arg;
	if (*stacks)
		TELL(&job->telling, HAPPENED_STACKS_READ, .text = stacks);
	if (*collectives)
		TELL(&job->telling, HAPPENED_HANG_EXPLAINED, .text = collectives);
	job->cause.blame = *blame;
}

static void on_end_explained(void *arg)
{
	struct job *job = arg;
	job_release(job, HOLD_FOR_EXPLANATION);
	job_pump(job);
}

static void on_page_made(void *arg)
{
	struct job *job = arg;
	pace_report_wake(job->pace);
	still_watch_wake(&job->still);
}

static void on_looked(void *arg)
{
	job_pump(arg);
}

static void on_straggler(void *arg, size_t rank, const struct straggler_news *news, const char *why,
			 const char *group)
{
	struct job *job = arg;
	TELL(&job->telling, HAPPENED_STRAGGLER, .rank = rank, .straggler = { news, why, group });
}

static void open_page_readers(struct job *job)
{
	struct worker_pages *pages = guard_pages(job->guard);
	pages->on_made = on_page_made;
	pages->arg = job;
	job->pace = pace_report_new(&(struct pace_report_spec){
		.base = job->base,
		.group = &job->group,
		.workers = &job->workers,
		.pages = pages,
		.agent = &job->node.agent,
		.on_event = job_keep_agent_event,
		.on_looked = on_looked,
		.on_straggler = on_straggler,
		.on_arrived = on_arrived,
		.arg = job,
	});
	still_watch_open(&job->still, job->base, &job->telling);
	job->notice = (struct notice){
		.base = job->base,
		.group = &job->group,
		.agent = &job->node.agent,
		.pages = pages,
		.telling = &job->telling,
		.left_ns = job->config->notice_ns,
		.on_event = job_take_agent_event,
		.arg = job,
	};
}

int job_start_guard(struct job *job, struct err *err)
{
	struct guard_hooks hooks = {
		.on_condemned = on_condemned,
		.on_expired = on_expired,
		.on_rejected = on_rejected,
		.progress = progress_of,
		.hold = hold_worker,
		.on_signs = on_signs,
		.on_found = on_found,
		.stacks_path = stacks_path,
		.on_stacks = keep_stacks,
		.on_end_explained = on_end_explained,
		.arg = job,
	};
	int r = guard_new(&job->config->guard, job->base, &hooks, &job->guard, err);
	job->workers.guard = job->telling.guard = job->guard;
	job->telling.steps = (struct steps){ .workers = &job->workers,
					     .output = job->output,
					     .guard = job->guard,
					     .group = &job->group };
	if (r == 0)
		open_page_readers(job);
	return r;
}

void job_tell_stop(struct job *job, int signal)
{
	job->stop_told = true;
	TELL_LATER(&job->telling, HAPPENED_STOP_REQUESTED, .signal = signal);
}

void job_stop(struct job *job, int signal)
{
	job_tell_stop(job, signal);
	job_push_agent(job, (struct agent_event){ .type = AGENT_STOP_REQUESTED, .signal = signal });
}

static void on_stop_asked(void *arg)
{
	struct job *job = arg;
	job_stop(job, SIGTERM);
	job_pump(job);
}

/* The process that started us holds the other end of this pipe. End of file means that it is
 * gone. */
void job_on_lifeline(evutil_socket_t fd, short what UNUSED, void *arg)
{
	struct job *job = arg;
	char bytes[64];
	ssize_t n = read(fd, bytes, sizeof(bytes));
	if (n > 0 || (n < 0 && (errno == EINTR || errno == EAGAIN)))
		return;
	event_del(job->on_lifeline);
	log_warn("the process that started this job is gone; stopping it");
	on_stop_asked(job);
}

static bool on_restart_asked(void *arg)
{
	struct job *job = arg;
	if (job->node.agent.state != AGENT_RUNNING || job->group.state != GROUP_ACTIVE)
		return false;
	TELL_LATER(&job->telling, HAPPENED_RESTART_REQUESTED);
	job_push_agent(job, (struct agent_event){ .type = AGENT_RESTART_REQUESTED });
	job_pump(job);
	return true;
}

static bool on_notice_asked(void *arg, enum plan_kind kind)
{
	struct job *job = arg;
	return notice_give(&job->notice, kind, 0);
}

static void on_node_event(void *arg, const struct node_event *event)
{
	struct job *job = arg;
	job_push_node(job, *event);
	job_pump(job);
}

int job_open_pages(struct job *job, struct err *err)
{
	job->pages = (struct pages){
		.base = job->base,
		.config = job->config,
		.workers = &job->workers,
		.group = &job->group,
		.history = &job->result->history,
		.output = job->output,
		.guard = job->guard,
		.agent = &job->node.agent,
		.store = &job->store,
		.steps = &job->telling.steps,
		.routes = &job->routes,
		.log_sender = job->log.sender,
		.log_dir = job->result->logdir.run,
		.on_stop = on_stop_asked,
		.on_restart = on_restart_asked,
		.on_notice = on_notice_asked,
		.on_event = on_node_event,
		.arg = job,
	};
	events_open(&job->telling.events, job->config->run_id, &job->result->history,
		    &job->node.agent, job->config->events,
		    job->config->log_dir ? job->result->logdir.run : NULL);
	TELL(&job->telling, HAPPENED_JOB_STARTED);
	return pages_open(&job->pages, err);
}

/* ---- questions to the whole job ---- */

static void on_log_sent(void *arg)
{
	job_pump(arg);
}

void job_open_log(struct job *job)
{
	const struct run_config *config = job->config;
	if (config->job_log)
		joblog_open(&job->log, job->base, config->job_log,
			    config->streams.output.log_max_size, job->output, &job->routes,
			    &(struct own_question_hooks){ on_node_event, job });
}

void job_open_answers(struct job *job)
{
	const struct answers_hooks hooks = {
		.on_event = on_node_event,
		.on_stop = on_stop_asked,
		.on_restart = on_restart_asked,
		.on_notice = on_notice_asked,
		.on_log_sent = on_log_sent,
		.arg = job,
	};
	struct err err = ERR_INIT;
	job->answers = answers_new(job->base, &job->node, &job->pages, &hooks);
	AUTO_FREE char *path = guard_file(job->guard, ANSWERS_SOCKET);
	if (path && answers_listen(job->answers, path, job->config->run_id, &job->routes, &err) < 0)
		log_warn("commands on this host cannot ask the whole job: %s", err.msg);
}

/* ---- the other nodes ---- */

static void on_store_client(void *arg, int fd, const struct addr *peer)
{
	struct job *job = arg;
	round_store_adopt(&job->store, fd, peer);
}

static void on_others_event(void *arg, const struct node_event *event)
{
	const struct job *job = arg;
	if (event->type == NODE_EV_LINK_DOWN && event->link == job->node.link)
		log_warn("lost the coordinator: %s", event->why);
	on_node_event(arg, event);
}

static void standing(void *arg, struct frame_standing *ret_standing)
{
	const struct job *job = arg;
	callers_node_standing(&job->node, ret_standing);
}

void job_join_others(struct job *job)
{
	static const struct wiring_handler handler = {
		.risk = "join this job",
		.standing = standing,
		.on_event = on_others_event,
		.on_store_client = on_store_client,
	};
	struct node_config config;
	own_node_configure(job->config, &config);
	job->checks = (struct job_checks){ .base = job->base,
					   .config = job->config,
					   .on_event = job_take_agent_event,
					   .arg = job };
	job_checks_open(&job->checks, &config.agent.node);
	job->telling.lost_timeout_ns = config.agent.node.lost_timeout_ns;
	node_init(&job->node, &config);
	if (config.kind == NODE_ALONE)
		return;
	job->wiring =
		wiring_new(job->base, &job->config->rdzv, &job->node, &job->routes, &handler, job);
	job->asker = own_question_new(job->base, &job->routes,
				      &(struct own_question_hooks){ on_node_event, job });
	guard_set_asker(job->guard, job->asker, &job->node.agent.config.node);
}

/* With a single node its address is known; otherwise it is known when the nodes meet. */
int job_open_store(struct job *job, struct err *err)
{
	const struct run_config *config = job->config;
	round_store_init(&job->store, job->base, config->master_port, config->store_access);
	job->store.shares_port = config->rdzv.store_at_endpoint;
	if (!config->master_addr || config->rdzv.store_at_endpoint)
		return 0;
	int r = round_store_name(&job->store, config->master_addr, err);
	return r < 0 ? r : job_offer_store(job, err);
}
