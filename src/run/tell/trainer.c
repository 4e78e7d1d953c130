#include "run/tell/trainer.h"

#include <event2/event.h>
#include <event2/event_struct.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/child.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/path.h"
#include "base/piped.h"
#include "proto/k8s/trainer_status.h"

#define PROGRAM "muster-report-kubeflow"
#define WORDS_MAX 512 /* what it may say */

struct trainer {
	struct event_base *base;
	const struct steps *steps;
	struct event tick, ended;
	struct piped program; /* pid 0: none runs */
	bool is_first;	      /* this host has rank 0 */
	bool failed;	      /* the last report, and the user knows */
	uint32_t restarts;
	uint64_t told_step;
	bool told;
	bool ending, done;
};

/* Its last words, for people; control characters could disturb a terminal. */
static void read_words(struct trainer *trainer, char words[WORDS_MAX])
{
	fd_set_nonblock(trainer->program.err, true);
	ssize_t len = read(trainer->program.err, words, WORDS_MAX - 1);
	len = MAX(len, 0);
	words[len] = '\0';
	words[strcspn(words, "\n")] = '\0';
	for (char *p = words; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f)
			*p = '?';
}

/* The user hears of the first failure only, and when it works again. */
static void note(struct trainer *trainer, bool failed, const char *why)
{
	if (failed && !trainer->failed)
		log_warn("Kubeflow's Trainer is not told of the progress: %s",
			 *why ? why : PROGRAM " failed");
	else if (!failed && trainer->failed)
		log_info("Kubeflow's Trainer is told of the progress again");
	trainer->failed = failed;
}

static void reap(struct trainer *trainer)
{
	char words[WORDS_MAX];
	int status = child_wait(trainer->program.pid);
	read_words(trainer, words);
	note(trainer, status != 0, words);
	event_del(&trainer->ended);
	fd_close(&trainer->program.pidfd);
	fd_close(&trainer->program.out);
	fd_close(&trainer->program.err);
	trainer->program.pid = 0;
}

static void on_ended(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	reap(arg);
}

/* The pipe takes a report whole. */
static void start(struct trainer *trainer, const struct buf *report)
{
	AUTO_FREE char *path = path_libexec(PROGRAM);
	char *argv[] = { path, NULL };
	struct err err = ERR_INIT;
	if (piped_start(&(struct piped_spec){ .argv = argv, .envp = environ }, &trainer->program,
			&err) < 0) {
		trainer->program.pid = 0;
		note(trainer, true, err.msg);
		return;
	}
	int ignored UNUSED = fd_write_all(trainer->program.in, buf_data(report), buf_len(report));
	fd_close(&trainer->program.in);
	event_assign(&trainer->ended, trainer->base, trainer->program.pidfd, EV_READ, on_ended,
		     trainer);
	event_add(&trainer->ended, NULL);
}

/* Nothing is said of a job that tells no steps, nor twice the same. */
static void report(struct trainer *trainer, bool done)
{
	struct trainer_status status = { .steps = steps_sum(trainer->steps, clock_now_ns()),
					 .done = done,
					 .restarts = trainer->restarts,
					 .wall_ns = clock_wall_ns() };
	uint64_t step = status.steps.least;
	if (trainer->program.pid || status.steps.count == 0 ||
	    (trainer->told && trainer->told_step == step && !done && !trainer->failed))
		return;
	AUTO(buf_done) struct buf text = BUF_INIT;
	trainer_status_put(&status, &text);
	trainer->told = true;
	trainer->told_step = step;
	start(trainer, &text);
}

static void arm(struct trainer *trainer)
{
	const struct timeval period = { .tv_sec = (time_t)(TRAINER_PERIOD_NS / NS_PER_S) };
	evtimer_add(&trainer->tick, &period);
}

static void on_tick(evutil_socket_t fd UNUSED, short what UNUSED, void *arg)
{
	struct trainer *trainer = arg;
	report(trainer, false);
	arm(trainer);
}

struct trainer *trainer_new(struct event_base *base, const struct steps *steps)
{
	const char *url = getenv("KUBEFLOW_TRAINER_SERVER_URL");
	if (!url || !*url)
		return NULL;
	struct trainer *trainer = NEW(struct trainer);
	trainer->base = base;
	trainer->steps = steps;
	trainer->program = PIPED_INIT;
	evtimer_assign(&trainer->tick, base, on_tick, trainer);
	return trainer;
}

void trainer_begin(struct trainer *trainer, uint32_t group_rank, uint32_t restarts)
{
	if (!trainer)
		return;
	trainer->is_first = group_rank == 0;
	trainer->restarts = restarts;
	if (trainer->is_first)
		arm(trainer);
	else
		event_del(&trainer->tick);
}

void trainer_end(struct trainer *trainer, bool done)
{
	if (!trainer || !trainer->is_first)
		return;
	event_del(&trainer->tick);
	trainer->ending = true;
	trainer->done = done;
}

static void finish(struct trainer *trainer, uint64_t deadline_ns)
{
	if (!trainer->program.pid)
		return;
	fd_wait(trainer->program.pidfd, POLLIN, deadline_ns);
	kill(trainer->program.pid, SIGKILL); /* not reaped yet: the number is its own */
	reap(trainer);
}

/* Only now is all read that the workers said. */
void trainer_free(struct trainer *trainer, uint64_t patience_ns)
{
	if (!trainer)
		return;
	uint64_t deadline_ns = ns_add(clock_now_ns(), patience_ns);
	event_del(&trainer->tick);
	finish(trainer, deadline_ns);
	if (trainer->ending)
		report(trainer, trainer->done);
	finish(trainer, deadline_ns);
	free(trainer);
}
