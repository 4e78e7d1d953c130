/* What the user reads on stderr while the job runs. */
#include <errno.h>
#include <signal.h>

#include "base/log.h"
#include "run/tell/happening.h"
#include "run/tell/report.h"

static void on_restart(struct telling *telling, const struct happening *happening)
{
	AUTO(buf_done) struct buf line = BUF_INIT;
	report_restart(history_last(telling->history), happening->restarts,
		       telling->config->max_restarts, &line);
	log_warn("%s", buf_str(&line));
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
		[HAPPENED_WORKER_NOT_STARTED] = on_not_started,
		[HAPPENED_STOP_REQUESTED] = on_stop_requested,
		[HAPPENED_SURVIVOR] = on_survivor,
		[HAPPENED_WARDEN_LOST] = on_warden_lost,
	},
};
