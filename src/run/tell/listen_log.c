/* What the user reads on stderr while the job runs. */
#include <errno.h>
#include <inttypes.h>
#include <signal.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "run/tell/happening.h"
#include "run/tell/report.h"

static void on_restart(struct telling *telling, const struct happening *happening)
{
	AUTO(buf_done) struct buf line = BUF_INIT;
	const struct run_config *config = telling->config;
	report_restart(history_last(telling->history), happening->restarts,
		       config->restarts_by_progress ? 0 : config->max_restarts, &line);
	log_warn("%s", buf_str(&line));
}

/* Where the workers of a restart go on, if they keep state at all. */
static void on_formed(struct telling *telling, const struct happening *happening)
{
	const struct kept_state *kept = &happening->formed->kept;
	if (guard_kept_bytes(telling->guard) == 0)
		return;
	if (kept_is_none(kept))
		log_info("no kept state that all ranks have: a host or ranks are new, or ranks "
			 "were more than one commit apart");
	else
		log_info("going on from step %llu, which all ranks have kept",
			 (unsigned long long)kept->step);
}

static void on_not_started(struct telling *telling, const struct happening *happening)
{
	if (happening->why)
		log_info("cannot start rank %zu: %s",
			 telling->workers->round.rank_base + happening->rank, happening->why->msg);
}

static void on_stop_requested(struct telling *telling, const struct happening *happening)
{
	bool first = !telling->history->stop_signal;
	if (first && happening->signal == SIGINT && telling->group->alive > 0)
		log_warn(
			"stopping: the workers got SIGINT and have %g s to end; Ctrl-C again kills "
			"them",
			(double)telling->config->shutdown_ns / NS_PER_S);
}

static void on_notice(struct telling *telling, const struct happening *happening)
{
	if (happening->notice.kind == PLAN_LEAVE)
		log_info("the workers are to leave together; they have %g s",
			 (double)telling->config->notice_ns / NS_PER_S);
}

static void on_agreed(struct telling *telling UNUSED, const struct happening *happening)
{
	log_info("the workers %s after step %" PRIu64,
		 happening->plan->kind == PLAN_LEAVE ? "leave" : "save", happening->plan->step);
}

static void on_straggler(struct telling *telling UNUSED, const struct happening *happening)
{
	const struct straggler_news *news = happening->straggler.news;
	const char *why = happening->straggler.why, *group = happening->straggler.group;
	double lag_ms = (double)news->lag_ns / 1e6;
	if (news->begins && news->group)
		log_warn("rank %u holds the others up: it came last to %u of %u collectives of "
			 "group '%s' that were waited for, %.1f ms after the others%s%s",
			 news->rank, news->times, news->of, group, lag_ms, *why ? "; " : "", why);
	else if (news->begins)
		log_warn("rank %u holds the others up: at %u of %u looks they waited for it, %.1f "
			 "ms a step%s%s",
			 news->rank, news->times, news->of, lag_ms, *why ? "; " : "", why);
	else
		log_info("rank %u keeps up with the others again", news->rank);
}

/* All hosts of a job stand still together: one of them says it. */
static void on_standstill(struct telling *telling, const struct happening *happening)
{
	enum log_level level = happening->standstill.first_host ? LOG_WARN : LOG_INFO;
	char lasted[CLOCK_HUMAN_MAX], usual[CLOCK_HUMAN_MAX];
	bool records = guard_flight(telling->guard).dir;
	clock_human(happening->standstill.lasted_ns, lasted);
	clock_human(happening->standstill.usual_ns, usual);
	if (happening->standstill.news == STANDSTILL_ENDS)
		log_at(level, "steps go on after %s without one", lasted);
	else
		log_at(level,
		       "no step for %s (usually %s), the last one is %" PRIu64
		       "; 'muster %s %s' shows %s",
		       lasted, usual, happening->standstill.step,
		       records ? "collectives" : "stacks", telling->config->run_id,
		       records ? "who is missing" : "where the workers are");
}

static void on_explained(struct telling *telling UNUSED, const struct happening *happening)
{
	const char *rest = happening->text;
	size_t len;
	for (const char *line; (line = str_split(&rest, '\n', &len));)
		if (len > 0)
			log_warn("%.*s", (int)len, line);
}

/* For how long it is waited for, where the job cannot go on without it. */
static void on_host_lost(struct telling *telling, const struct happening *happening)
{
	const struct cause *cause = happening->cause;
	const struct run_config *config = telling->config;
	char left[CLOCK_HUMAN_MAX];
	clock_human(telling->lost_timeout_ns, left);
	if (config->min_nodes < config->max_nodes)
		log_warn("%s is lost: %s", cause->name, cause->words);
	else
		log_warn("%s is lost: %s; waiting up to %s for it to come back "
			 "(--lost-host-timeout)",
			 cause->name, cause->words, left);
}

static void on_survivor(struct telling *telling UNUSED, const struct happening *happening)
{
	const struct warden_event *survivor = happening->ended;
	log_warn("process %d (%s) %s", (int)survivor->pid, survivor->comm,
		 survivor->error == EPERM ? "may not be signalled (no permission) and stays"
					  : "was killed but does not end yet");
}

static void on_warden_lost(struct telling *telling UNUSED, const struct happening *happening UNUSED)
{
	log_warn("the warden was killed; starting over with a new one");
}

const struct listener listen_log = {
	.on = {
		[HAPPENED_RESTART] = on_restart,
		[HAPPENED_ROUND_FORMED] = on_formed,
		[HAPPENED_WORKER_NOT_STARTED] = on_not_started,
		[HAPPENED_STOP_REQUESTED] = on_stop_requested,
		[HAPPENED_NOTICE] = on_notice,
		[HAPPENED_AGREED] = on_agreed,
		[HAPPENED_STRAGGLER] = on_straggler,
		[HAPPENED_STANDSTILL] = on_standstill,
		[HAPPENED_HANG_EXPLAINED] = on_explained,
		[HAPPENED_HOST_LOST] = on_host_lost,
		[HAPPENED_SURVIVOR] = on_survivor,
		[HAPPENED_WARDEN_LOST] = on_warden_lost,
	},
};
