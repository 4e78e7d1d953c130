#include "run/guard.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/env.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/procfs.h"
#include "base/str.h"
#include "run/explanation.h"
#include "watch/flight_hook.h"
#include "watch/fifo.h"
#include "watch/jobdir.h"
#include "watch/keeps.h"
#include "watch/procinfo.h"
#include "watch/socket.h"

struct guarded {   /* one worker */
	pid_t pid; /* 0: not running */
	bool died; /* an exception of torch.distributed has ended it */
	struct hang hang;
};

struct verdict {
	size_t rank;
	pid_t pid;
	enum failure_reason reason;
	int signal; /* 0: only a report */
	bool ended; /* the worker has ended: only the reason is looked for */
	bool final;
};

struct guard {
	struct guard_config config;
	struct guard_hooks hooks;
	struct event_base *base;
	struct jobdir jobdir;
	struct watchdog *watchdog;
	struct fifo *fifo;
	struct watch_socket *socket;
	char *fifo_path, *socket_path;
	char *flight_hook; /* for workers without the package; NULL: none */
	struct worker_pages pages;
	struct keeps *keeps;
	struct event *look; /* every hang_period_ns(), while workers run and it was asked for */
	struct guarded *workers;
	size_t count;
	size_t rank_base, world_size;
	char *dumps;			 /* as in struct flight_source, which also has the next */
	uint64_t began_ns;		 /* the round, by the wall clock */
	struct own_question *asker;	 /* of other hosts; NULL: there are none */
	const struct node_info *self;	 /* if there are */
	struct explanation *explanation; /* NULL: none is under way */
	struct verdict verdict;		 /* to be executed after it */
};

static void log_lines(const char *text)
{
	size_t len;
	for (const char *line; (line = str_split(&text, '\n', &len));)
		if (len > 0)
			log_warn("%.*s", (int)len, line);
}

static void log_snapshot(pid_t pid)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	procinfo_snapshot(pid, &text);
	log_lines(buf_str(&text));
}

/* ---- verdicts ---- */

static void start_looking(struct guard *guard);

static void execute(struct guard *guard, const struct verdict *verdict)
{
	if (verdict->signal > 0)
		guard->hooks.on_condemned(guard->hooks.arg, verdict->rank, verdict->reason,
					  verdict->signal, verdict->final);
}

/* The worker that holds the others up takes the place of one that only waits for it. */
static void turn_to_culprit(const struct guard *guard, const struct blame *blame,
			    struct verdict *verdict)
{
	size_t local = blame->rank - guard->rank_base;
	if (verdict->reason != FAILURE_HANG || !blame->named || blame->rank < guard->rank_base ||
	    local >= guard->count || !guard->workers[local].pid)
		return;
	verdict->rank = local;
	verdict->pid = guard->workers[local].pid;
}

static void on_explained(void *arg, struct forensics *found)
{
	struct guard *guard = arg;
	struct verdict verdict = guard->verdict;
	struct blame blame;
	AUTO(buf_done) struct buf stacks = BUF_INIT, collectives = BUF_INIT;
	guard->explanation = NULL;
	forensics_collectives(found, &collectives);
	stack_set_print(&found->stacks, &stacks);
	forensics_blame(found, guard->config.exclude_culprit, &blame);
	log_lines(buf_str(&stacks));
	guard->hooks.on_stacks(guard->hooks.arg, buf_str(&stacks), buf_str(&collectives), &blame);
	if (verdict.ended) {
		guard->hooks.on_end_explained(guard->hooks.arg);
		return;
	}
	turn_to_culprit(guard, &blame, &verdict);
	if (guard->workers[verdict.rank].pid !=
	    verdict.pid) { /* it ended meanwhile; check the others again */
		start_looking(guard);
		return;
	}
	/* Send the signal first: it takes effect when the worker continues. */
	execute(guard, &verdict);
	if (!guard->config.flight)
		guard->hooks.hold(guard->hooks.arg, verdict.rank, false);
}

static bool start_explanation(struct guard *guard, const struct verdict *verdict,
			      uint64_t timeout_ns)
{
	if (timeout_ns == 0 || guard->explanation ||
	    (guard->workers[verdict->rank].pid == 0 && !verdict->ended))
		return false;
	/* A worker that is stopped cannot give its flight record. */
	bool holds = !guard->config.flight;
	AUTO_FREE struct stacks_worker *workers = mem_alloc(guard->count * sizeof(*workers));
	size_t count = 0;
	for (size_t i = 0; i < guard->count; i++)
		if (guard->workers[i].pid || guard->workers[i].died)
			workers[count++] =
				(struct stacks_worker){ .rank = guard->rank_base + i,
							.pid = guard->workers[i].pid,
							.stopped = holds && i == verdict->rank };
	AUTO_FREE char *path = guard->hooks.stacks_path(guard->hooks.arg);
	struct forensics_question question = { .flight = guard_flight(guard),
					       .workers = workers,
					       .count = count,
					       .world_size = guard->world_size,
					       .host = guard->self ? guard->self->name : NULL };
	bool others = guard->asker && question.flight.dir && guard->world_size > guard->count;
	if (holds)
		guard->hooks.hold(guard->hooks.arg, verdict->rank, true);
	int r = explanation_start(guard->base, &question, timeout_ns, path,
				  others ? guard->asker : NULL, guard->self, on_explained, guard,
				  &guard->explanation);
	if (r < 0) {
		log_warn("no stacks: %s", strerror(-r));
		if (holds)
			guard->hooks.hold(guard->hooks.arg, verdict->rank, false);
		return false;
	}
	guard->verdict = *verdict;
	guard->verdict.pid = guard->workers[verdict->rank].pid;
	return true;
}

/* Executes the verdict, after reading the stacks if there is time for that. */
static void judge(struct guard *guard, const struct verdict *verdict, uint64_t diagnose_ns)
{
	if (!start_explanation(guard, verdict, diagnose_ns))
		execute(guard, verdict);
}

/* ---- timers ---- */

static void on_expired(void *arg, const struct watchdog_expiry *expiry)
{
	struct guard *guard = arg;
	char limit[CLOCK_HUMAN_MAX], cpu[CLOCK_HUMAN_MAX];
	clock_human(expiry->deadline_ns - MIN(expiry->deadline_ns, expiry->armed_ns), limit);
	clock_human(expiry->cpu_ns, cpu);
	const char *signal = expiry->signal > 0 ? str_signal_name(expiry->signal) : NULL;
	log_warn("rank %zu (process %d) did not finish '%.200s' within %s (CPU used since: %s); %s",
		 guard->rank_base + expiry->rank, (int)expiry->pid, expiry->scope, limit, cpu,
		 expiry->signal <= 0 ? "only reported, as asked"
		 : signal	     ? signal
				     : "a real-time signal");
	log_snapshot(expiry->pid);
	guard->hooks.on_expired(guard->hooks.arg, expiry);
	struct verdict verdict = { .rank = expiry->rank,
				   .reason = FAILURE_TIMER,
				   .signal = expiry->signal };
	judge(guard, &verdict, guard->config.diagnose_timer_ns);
}

static void on_rejected(void *arg, enum watchdog_rejection rejection, const char *detail)
{
	struct guard *guard = arg;
	const char *reason = watchdog_rejection_name(rejection);
	log_warn("watchdog: request rejected: %s (%s); further ones are only counted", reason,
		 detail);
	guard->hooks.on_rejected(guard->hooks.arg, reason, detail);
}

/* ---- hangs ---- */

static void on_hang(struct guard *guard, size_t rank, enum hang_kind kind, uint64_t since_ns)
{
	char since[CLOCK_HUMAN_MAX];
	clock_human(clock_now_ns() - since_ns, since);
	log_warn("rank %zu (process %d) hangs: %s for %s", guard->rank_base + rank,
		 (int)guard->workers[rank].pid, hang_kind_text(kind), since);
	for (size_t i = 0; i < guard->count; i++)
		if (guard->workers[i].pid)
			log_snapshot(guard->workers[i].pid);
	/* No signal reaches a process in D state, and a new worker on this host would hang in the
	 * same way. */
	bool final = kind == HANG_UNINTERRUPTIBLE || guard->config.hang_action == HANG_ACTION_STOP;
	bool only_report =
		kind != HANG_UNINTERRUPTIBLE && guard->config.hang_action == HANG_ACTION_REPORT;
	struct verdict verdict = { .rank = rank,
				   .reason = FAILURE_HANG,
				   .signal = only_report ? 0 : SIGKILL,
				   .final = final };
	if (!only_report)
		/* one verdict ends the round; the others hang because of it, or with it */
		event_del(guard->look);
	/* A process that reads the stack of one in D state would hang, too. */
	judge(guard, &verdict, kind == HANG_UNINTERRUPTIBLE ? 0 : guard->config.diagnose_hang_ns);
}

static bool is_uninterruptible(const struct guard *guard, pid_t pid)
{
	struct proc_stat info;
	return guard->config.hang.uninterruptible_ns && procfs_stat(pid, &info) == 0 &&
	       info.state == 'D';
}

/* A number that grows with everything that the worker tells through its page. */
static uint64_t signs_of_life(const struct guard *guard, size_t rank)
{
	struct step_progress progress;
	guard_headway(guard, rank, &progress);
	return worker_pages_beats(&guard->pages, rank) + progress.told;
}

static void on_look(UNUSED evutil_socket_t fd, UNUSED short what, void *arg)
{
	struct guard *guard = arg;
	uint64_t now_ns = clock_now_ns(), since_ns;
	for (size_t i = 0; i < guard->count && event_pending(guard->look, EV_TIMEOUT, NULL); i++) {
		struct guarded *worker = &guard->workers[i];
		if (!worker->pid)
			continue;
		uint64_t progress = signs_of_life(guard, i);
		if (guard->hooks.progress)
			progress += guard->hooks.progress(guard->hooks.arg, i);
		enum hang_kind kind =
			hang_look(&worker->hang, &guard->config.hang, progress,
				  is_uninterruptible(guard, worker->pid), now_ns, &since_ns);
		if (kind)
			on_hang(guard, i, kind, since_ns);
	}
}

static void start_looking(struct guard *guard)
{
	uint64_t period_ns = hang_period_ns(&guard->config.hang);
	struct timeval period = clock_timeval(period_ns);
	if (period_ns)
		event_add(guard->look, &period);
}

/* ---- rounds ---- */

void guard_set_warden(struct guard *guard, pid_t warden_pid)
{
	watchdog_set_warden(guard->watchdog, warden_pid);
}

/* PyTorch's recorder for this round, where our hook in Python finds it. What the user chose
 * stays. */
static void record_flights(struct guard *guard, struct strv *env)
{
	static const char size[] = "TORCH_FR_BUFFER_SIZE", dumps[] = "TORCH_FR_DUMP_TEMP_FILE";
	if (!guard->config.flight)
		return;
	env_set(env, FLIGHT_VARIABLE, guard->jobdir.path);
	if (guard->flight_hook)
		flight_hook_add(guard->flight_hook, env);
	if (!env_get(env, size))
		env_setf(env, size, "%u", guard->config.flight);
	if (!env_get(env, dumps))
		env_setf(env, dumps, "%s/" FLIGHT_DUMPS, guard->jobdir.path);
	free(guard->dumps);
	guard->dumps = mem_strdup(env_get(env, dumps));
	guard->began_ns = clock_wall_ns();
}

void guard_begin(struct guard *guard, size_t count, size_t rank_base, size_t world_size,
		 struct strv *env)
{
	guard_gone(guard);
	guard->rank_base = rank_base;
	guard->world_size = world_size;
	guard->count = count;
	guard->workers = mem_alloc(count * sizeof(struct guarded));
	worker_pages_reset(&guard->pages, count);
	watchdog_expect(guard->watchdog, count);
	if (guard->fifo)
		env_set(env, "TORCHELASTIC_TIMER_FILE", guard->fifo_path);
	if (guard->socket)
		env_set(env, "MUSTER_WATCHDOG", guard->socket_path);
	record_flights(guard, env);
	start_looking(guard);
}

void guard_keep(struct guard *guard, struct ballot ballot, const struct kept_state *state)
{
	keeps_begin(guard->keeps, ballot, state);
}

void guard_kept(const struct guard *guard, struct kept_state ret_states[KEPT_STATES])
{
	keeps_read(guard->keeps, ret_states);
}

uint64_t guard_kept_bytes(const struct guard *guard)
{
	return keeps_bytes(guard->keeps);
}

void guard_started(struct guard *guard, size_t rank, pid_t pid)
{
	guard->workers[rank].pid = pid;
	hang_begin(&guard->workers[rank].hang, clock_now_ns());
	watchdog_add_worker(guard->watchdog, rank, pid);
}

void guard_paused(struct guard *guard, uint64_t pause_ns)
{
	for (size_t i = 0; i < guard->count; i++)
		hang_pause(&guard->workers[i].hang, pause_ns);
	watchdog_pause(guard->watchdog, pause_ns);
}

void guard_not_started(struct guard *guard)
{
	watchdog_skip_worker(guard->watchdog);
}

void guard_ended(struct guard *guard, size_t rank)
{
	guard->workers[rank].pid = 0;
}

bool guard_explain_end(struct guard *guard, size_t rank, const struct exit_status *status)
{
	struct flight_source flight = guard_flight(guard);
	bool aborted = status->kind == EXIT_SIGNAL && status->value == SIGABRT;
	if (!flight.dir || (!aborted && !flight_died(&flight, (uint32_t)(guard->rank_base + rank))))
		return false;
	guard->workers[rank].died = true;
	return start_explanation(guard, &(struct verdict){ .rank = rank, .ended = true },
				 guard->config.diagnose_timer_ns);
}

void guard_gone(struct guard *guard)
{
	event_del(guard->look);
	explanation_cancel(guard->explanation);
	guard->explanation = NULL;
	watchdog_forget_all(guard->watchdog);
	free(guard->workers);
	guard->workers = NULL;
	guard->count = 0;
}

/* ---- life cycle ---- */

static int open_fifo(struct guard *guard, struct err *err)
{
	if (guard->config.timer_file)
		guard->fifo_path = mem_strdup(guard->config.timer_file);
	else if (guard->jobdir.path[0])
		guard->fifo_path = jobdir_file(&guard->jobdir, "timer");
	else
		return err_set(err, ENOENT, "no private directory for the timer FIFO");
	return fifo_new(guard->base, guard->watchdog, guard->fifo_path, &guard->fifo, err);
}

static void open_socket(struct guard *guard)
{
	struct err err = ERR_INIT;
	int r = jobdir_init(&guard->jobdir, &err);
	if (r == 0) {
		guard->socket_path = jobdir_file(&guard->jobdir, "watchdog");
		r = watch_socket_new(guard->base, guard->watchdog, &guard->pages, guard->keeps,
				     guard->socket_path, &guard->socket, &err);
	}
	if (r < 0)
		log_warn("no watchdog socket for this job: %s", err.msg);
}

static void open_flight_hook(struct guard *guard)
{
	struct err err = ERR_INIT;
	guard->flight_hook = jobdir_file(&guard->jobdir, "flight.zip");
	if (flight_hook_write(guard->flight_hook, &err) == 0)
		return;
	log_warn("--flight-recorder: only workers whose Python has the muster package are seen: %s",
		 err.msg);
	free(guard->flight_hook);
	guard->flight_hook = NULL;
}

int guard_new(const struct guard_config *config, struct event_base *base,
	      const struct guard_hooks *hooks, struct guard **ret, struct err *err)
{
	struct guard *guard = NEW(struct guard);
	guard->config = *config;
	guard->hooks = *hooks;
	guard->base = base;
	guard->jobdir = JOBDIR_INIT;
	guard->look = event_new(base, -1, EV_PERSIST, on_look, guard);
	guard->watchdog = watchdog_new(base, &(struct watchdog_hooks){ .on_expired = on_expired,
								       .on_rejected = on_rejected,
								       .arg = guard });
	guard->keeps = keeps_new(config->workers, config->keep_limit);
	open_socket(guard);
	if (config->flight && !guard->jobdir.path[0]) {
		log_warn("no flight recorder for this job: there is no private directory");
		guard->config.flight = 0;
	}
	if (guard->config.flight && !guard->config.warm)
		open_flight_hook(guard);
	int r = config->file_timer ? open_fifo(guard, err) : 0;
	if (r < 0) {
		guard_free(guard);
		return r;
	}
	*ret = guard;
	return 0;
}

void guard_free(struct guard *guard)
{
	if (!guard)
		return;
	guard_gone(guard);
	fifo_free(guard->fifo);
	watch_socket_free(guard->socket);
	worker_pages_done(&guard->pages);
	keeps_free(guard->keeps);
	watchdog_free(guard->watchdog);
	event_free(guard->look);
	free(guard->fifo_path);
	free(guard->socket_path);
	free(guard->flight_hook);
	free(guard->dumps);
	jobdir_done(&guard->jobdir);
	free(guard);
}

char *guard_file(const struct guard *guard, const char *name)
{
	return guard->jobdir.path[0] ? jobdir_file(&guard->jobdir, name) : NULL;
}

void guard_set_asker(struct guard *guard, struct own_question *asker, const struct node_info *self)
{
	guard->asker = asker;
	guard->self = self;
}

struct flight_source guard_flight(const struct guard *guard)
{
	if (!guard->config.flight)
		return (struct flight_source){ .dir = NULL };
	return (struct flight_source){ .dir = guard->jobdir.path,
				       .dumps = guard->dumps,
				       .since_ns = guard->began_ns };
}

/* ---- reports ---- */

struct watchdog_stats guard_stats(const struct guard *guard)
{
	return watchdog_stats(guard->watchdog);
}

uint64_t guard_heartbeats(const struct guard *guard, size_t rank)
{
	return worker_pages_beats(&guard->pages, rank);
}

struct worker_pages *guard_pages(struct guard *guard)
{
	return &guard->pages;
}

void guard_headway(const struct guard *guard, size_t rank, struct step_progress *ret_headway)
{
	const struct worker_page *page = worker_pages_get(&guard->pages, rank);
	*ret_headway = (struct step_progress){ .told = 0 };
	if (page)
		worker_page_read(page, ret_headway);
}

uint64_t guard_alive_ns(const struct guard *guard, size_t rank)
{
	bool looked_at = rank < guard->count && hang_period_ns(&guard->config.hang);
	return looked_at ? guard->workers[rank].hang.alive_ns : 0;
}

size_t guard_timers(const struct guard *guard, size_t rank)
{
	size_t count = 0;
	if (rank < guard->count && guard->workers[rank].pid)
		for (const struct deadline *at =
			     watchdog_timers_of(guard->watchdog, guard->workers[rank].pid);
		     at; at = deadlines_of_next(at))
			count++;
	return count;
}
