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
#include "watch/work_read.h"

struct guarded {	  /* one worker */
	pid_t pid;	  /* 0: not running */
	bool died;	  /* an exception of torch.distributed has ended it */
	uint64_t arrived; /* collectives that it has come to */
};

struct verdict {
	size_t rank;
	pid_t pid;
	enum failure_reason reason;
	int signal; /* 0: only a report */
	bool ended; /* the worker has ended: only the reason is looked for */
	bool final;
	enum hang_kind kind; /* of FAILURE_HANG */
	bool long_since;     /* as in struct msg_look */
	uint64_t silent_ns;
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
	struct hang *hangs; /* of the workers, likewise */
	size_t count;
	uint64_t looked_ns;	 /* the last look */
	uint64_t look_again_ns;	 /* ask for another LOOK then: the last one found nothing; 0: no */
	struct hang_signs signs; /* as the coordinator knows them */
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

static bool is_here(const struct guard *guard, uint32_t rank, size_t *ret_local)
{
	size_t local = rank - guard->rank_base;
	if (rank < guard->rank_base || local >= guard->count || !guard->workers[local].pid)
		return false;
	*ret_local = local;
	return true;
}

/* What a verdict relies on, for the report. */
static void say_reason(const struct verdict *verdict, const struct guard *guard, struct buf *out)
{
	char since[CLOCK_HUMAN_MAX];
	clock_human(verdict->silent_ns, since);
	buf_printf(out, HANG_EVIDENCE "for %s ", since);
	if (verdict->kind == HANG_PROMISE)
		buf_printf(out, "rank %zu has sent no heartbeat or step, after %llu of them%s\n",
			   guard->rank_base + verdict->rank,
			   (unsigned long long)guard->hangs[verdict->rank].last.promised,
			   verdict->long_since ? "" : ", and does not print or work");
	else if (verdict->kind == HANG_RECORDS)
		buf_append_str(out,
			       "no rank has come to a collective, and the records show one that "
			       "cannot end\n");
	else
		buf_printf(out, "no rank has printed, sent a heartbeat or step%s, and none works\n",
			   guard->config.flight ? ", or come to a collective" : "");
}

/* Of the records alone: whether they say that the collective cannot end. A worker that is missing
 * but works may be on its way, for a while. */
static bool proves_hang(const struct verdict *verdict, const struct forensics *found)
{
	return verdict->kind != HANG_RECORDS || forensics_cannot_end(found, verdict->long_since);
}

/* The worker that holds the others up is ended, wherever it is; where none is known, the one that
 * has been silent for longest. */
static void turn_to_culprit(struct guard *guard, const struct blame *blame, struct verdict *verdict)
{
	size_t local;
	if (verdict->reason != FAILURE_HANG || !blame->named)
		return;
	if (is_here(guard, blame->rank, &local)) {
		verdict->rank = local;
		verdict->pid = guard->workers[local].pid;
	} else if (verdict->signal > 0 && guard->world_size > guard->count) {
		guard->hooks.on_found(guard->hooks.arg,
				      &(struct msg_found){ verdict->kind, *blame });
		verdict->signal = 0;
	}
}

static void look_again(struct guard *guard)
{
	guard->look_again_ns = ns_add(clock_now_ns(), guard->config.hang.silent_ns);
	start_looking(guard);
}

static void on_explained(void *arg, struct forensics *found)
{
	struct guard *guard = arg;
	struct verdict verdict = guard->verdict;
	struct blame blame;
	AUTO(buf_done) struct buf stacks = BUF_INIT, collectives = BUF_INIT;
	guard->explanation = NULL;
	if (verdict.reason == FAILURE_HANG && !proves_hang(&verdict, found)) {
		look_again(guard);
		return;
	}
	forensics_blame(found, guard->config.exclude_culprit, &blame);
	if (verdict.reason == FAILURE_HANG && !blame.named)
		forensics_suspect(found, &blame);
	forensics_collectives(found, &collectives);
	if (verdict.reason == FAILURE_HANG) {
		if (blame.named && found->findings.count == 0)
			buf_printf(&collectives, "%s\n", blame.text);
		say_reason(&verdict, guard, &collectives);
	}
	stack_set_print(&found->stacks, &stacks);
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
	if (!guard->config.flight && verdict.reason == FAILURE_TIMER)
		guard->hooks.hold(guard->hooks.arg, verdict.rank, false);
}

static bool start_explanation(struct guard *guard, const struct verdict *verdict,
			      uint64_t timeout_ns)
{
	if (timeout_ns == 0 || guard->explanation ||
	    (guard->workers[verdict->rank].pid == 0 && !verdict->ended))
		return false;
	/* A worker that is stopped cannot give its flight record, nor does its state tell why it
	 * hangs. */
	bool holds = !guard->config.flight && verdict->reason == FAILURE_TIMER;
	AUTO_FREE struct stacks_worker *workers = mem_alloc(guard->count * sizeof(*workers));
	size_t count = 0;
	for (size_t i = 0; i < guard->count; i++)
		if (guard->workers[i].pid || guard->workers[i].died)
			workers[count++] =
				(struct stacks_worker){ .rank = guard->rank_base + i,
							.pid = guard->workers[i].pid,
							.stopped = holds && i == verdict->rank,
							.works = guard_works(guard, i),
							.prints = guard_prints(guard, i) };
	AUTO_FREE char *path = guard->hooks.stacks_path(guard->hooks.arg);
	struct forensics_question question = { .flight = guard_flight(guard),
					       .workers = workers,
					       .count = count,
					       .world_size = guard->world_size,
					       .patience_ns = verdict->kind == HANG_RECORDS
								      ? guard->config.hang.silent_ns
								      : 0,
					       .host = guard->self ? guard->self->name : NULL };
	bool others = guard->asker && guard->world_size > guard->count &&
		      (question.flight.dir || verdict->reason == FAILURE_HANG);
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

/* The consequences, with the time for a diagnosis before. */
static void on_hang(struct guard *guard, struct verdict *verdict, uint64_t diagnose_ns)
{
	bool stuck = verdict->kind == HANG_UNINTERRUPTIBLE;
	bool only_report = !stuck && guard->config.hang_action == HANG_ACTION_REPORT;
	verdict->reason = FAILURE_HANG;
	/* No signal reaches a process in D state, and a new worker on this host would hang in the
	 * same way. */
	verdict->final = stuck || guard->config.hang_action == HANG_ACTION_STOP;
	verdict->signal = only_report ? 0 : SIGKILL;
	if (!only_report)
		/* one verdict ends the round; the others hang because of it, or with it */
		event_del(guard->look);
	judge(guard, verdict, diagnose_ns);
}

static void say_hang(const struct guard *guard, const struct verdict *verdict)
{
	char since[CLOCK_HUMAN_MAX];
	clock_human(verdict->silent_ns, since);
	if (verdict->kind == HANG_GROUP || verdict->kind == HANG_START)
		log_warn("the job hangs: %s, for %s", hang_kind_text(verdict->kind), since);
	else
		log_warn("rank %zu (process %d) hangs: %s, for %s",
			 guard->rank_base + verdict->rank, (int)guard->workers[verdict->rank].pid,
			 hang_kind_text(verdict->kind), since);
	for (size_t i = 0; i < guard->count; i++)
		if (guard->workers[i].pid)
			log_snapshot(guard->workers[i].pid);
}

/* A worker here holds the others up, as another host has found. */
static void end_culprit(struct guard *guard, const struct msg_look *look)
{
	struct verdict verdict = { .kind = look->kind };
	if (!is_here(guard, look->blame.rank, &verdict.rank))
		while (verdict.rank + 1 < guard->count && !guard->workers[verdict.rank].pid)
			verdict.rank++;
	AUTO(buf_done) struct buf text = BUF_INIT;
	buf_printf(&text, "%s\n", look->blame.text);
	log_warn("rank %zu (process %d) hangs: %s", guard->rank_base + verdict.rank,
		 (int)guard->workers[verdict.rank].pid, look->blame.text);
	guard->hooks.on_stacks(guard->hooks.arg, "", buf_str(&text), &look->blame);
	on_hang(guard, &verdict, 0);
}

void guard_look(struct guard *guard, const struct msg_look *look)
{
	uint64_t diagnose_ns = guard->config.diagnose_hang_ns;
	if (guard->count == 0)
		return;
	if (look->blame.named) {
		end_culprit(guard, look);
		return;
	}
	struct verdict verdict = { .kind = look->kind, .long_since = look->long_since };
	struct hang_signs signs;
	hang_signs_of(guard->hangs, guard->count, &guard->config.hang, clock_now_ns(), &signs);
	verdict.rank = signs.rank;
	const struct hang *hang = &guard->hangs[signs.rank];
	uint64_t since_ns = look->kind == HANG_PROMISE	 ? hang->promised_ns
			    : look->kind == HANG_RECORDS ? hang->arrived_ns
							 : hang->alive_ns;
	verdict.silent_ns = clock_now_ns() - since_ns;
	if (!guard->workers[verdict.rank].pid)
		return;
	if (look->kind != HANG_RECORDS)
		say_hang(guard, &verdict);
	else if (!guard->config.flight || diagnose_ns == 0 || guard->explanation)
		return;
	on_hang(guard, &verdict, diagnose_ns);
}

void guard_arrived(struct guard *guard, size_t rank, uint64_t collectives)
{
	if (rank < guard->count)
		guard->workers[rank].arrived = collectives;
}

bool guard_works(const struct guard *guard, size_t rank)
{
	return rank < guard->count && guard->hangs[rank].works;
}

bool guard_prints(const struct guard *guard, size_t rank)
{
	return rank < guard->count && guard->hangs[rank].last.output &&
	       clock_now_ns() - guard->hangs[rank].output_ns < guard->config.hang.silent_ns;
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

static void look_at(struct guard *guard, size_t rank, uint64_t now_ns)
{
	const struct hang_policy *policy = &guard->config.hang;
	const struct guarded *worker = &guard->workers[rank];
	struct hang *hang = &guard->hangs[rank];
	struct hang_sample sample = { .promised = signs_of_life(guard, rank),
				      .arrived = worker->arrived };
	if (guard->hooks.progress)
		sample.output = guard->hooks.progress(guard->hooks.arg, rank);
	hang_look(hang, &sample, now_ns);
	if (hang_wants_work(hang, policy, now_ns)) {
		struct hang_work work;
		work_read(worker->pid, &work);
		hang_add_work(hang, policy, &work);
	}
	if (!hang_is_stuck(hang, policy, is_uninterruptible(guard, worker->pid), now_ns))
		return;
	struct verdict verdict = { .rank = rank,
				   .kind = HANG_UNINTERRUPTIBLE,
				   .silent_ns = now_ns - hang->stuck_since_ns };
	say_hang(guard, &verdict);
	/* A process that reads the stack of one in D state would hang, too. */
	on_hang(guard, &verdict, 0);
}

/* We were stopped ourselves, or got no CPU: what the workers did meanwhile is not known. */
static void forgive_pause(struct guard *guard, uint64_t now_ns)
{
	uint64_t period_ns = hang_period_ns(&guard->config.hang);
	uint64_t gap_ns = now_ns - MIN(guard->looked_ns, now_ns);
	for (size_t i = 0; gap_ns > 3 * period_ns && i < guard->count; i++)
		hang_pause(&guard->hangs[i], gap_ns - period_ns);
	guard->looked_ns = now_ns;
}

static void tell_signs(struct guard *guard, uint64_t now_ns)
{
	struct msg_signs told = { .looked =
					  guard->look_again_ns && now_ns >= guard->look_again_ns };
	hang_signs_of(guard->hangs, guard->count, &guard->config.hang, now_ns, &told.signs);
	if (!told.looked && hang_signs_eq(&told.signs, &guard->signs))
		return;
	guard->signs = told.signs;
	if (told.looked)
		guard->look_again_ns = 0;
	guard->hooks.on_signs(guard->hooks.arg, &told);
}

static void on_look(UNUSED evutil_socket_t fd, UNUSED short what, void *arg)
{
	struct guard *guard = arg;
	uint64_t now_ns = clock_now_ns();
	forgive_pause(guard, now_ns);
	for (size_t i = 0; i < guard->count && event_pending(guard->look, EV_TIMEOUT, NULL); i++)
		if (guard->workers[i].pid)
			look_at(guard, i, now_ns);
	if (event_pending(guard->look, EV_TIMEOUT, NULL))
		tell_signs(guard, now_ns);
}

static void start_looking(struct guard *guard)
{
	uint64_t period_ns = hang_period_ns(&guard->config.hang);
	struct timeval period = clock_timeval(period_ns);
	guard->looked_ns = clock_now_ns();
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
	guard->hangs = mem_alloc(count * sizeof(struct hang));
	guard->signs = (struct hang_signs){ .silence = HANG_FINE };
	guard->look_again_ns = 0;
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
	struct hang_work work = { .at_ns = clock_now_ns() };
	if (hang_period_ns(&guard->config.hang))
		work_read(pid, &work);
	hang_begin(&guard->hangs[rank], &work, work.at_ns);
	watchdog_add_worker(guard->watchdog, rank, pid);
}

void guard_paused(struct guard *guard, uint64_t pause_ns)
{
	for (size_t i = 0; i < guard->count; i++)
		hang_pause(&guard->hangs[i], pause_ns);
	guard->looked_ns = clock_now_ns();
	watchdog_pause(guard->watchdog, pause_ns);
}

void guard_not_started(struct guard *guard)
{
	watchdog_skip_worker(guard->watchdog);
}

void guard_ended(struct guard *guard, size_t rank)
{
	guard->workers[rank].pid = 0;
	guard->hangs[rank].runs = false;
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
	free(guard->hangs);
	guard->workers = NULL;
	guard->hangs = NULL;
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
	return looked_at ? guard->hangs[rank].alive_ns : 0;
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
