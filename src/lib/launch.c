/* Launching: the muster program runs as a child that writes events into a pipe and ends when we
 * close another pipe. */
#include <errno.h>
#include <muster/muster.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "base/str.h"
#include "lib/last_error.h"
#include "lib/program.h"
#include "proto/event_in.h"

/* ---- how the workers of this host ended, from the events of a job ---- */

struct worker_ends {
	struct muster_worker_end *items; /* of the last round, by local rank; error_file is owned */
	size_t count, cap;
	int64_t restarts;
};

#define WORKER_ENDS_INIT ((struct worker_ends){ .items = NULL })

static void forget(struct worker_ends *ends)
{
	for (size_t i = 0; i < ends->count; i++)
		free((char *)ends->items[i].error_file);
	ends->count = 0;
}

/* The worker that the event is about, added if new. Events come in the order of ranks, except for a
 * worker that could not be started. */
static struct muster_worker_end *worker_of(struct worker_ends *ends, const struct event_in *event)
{
	size_t at = 0;
	while (at < ends->count && ends->items[at].local_rank < event->local_rank)
		at++;
	if (at < ends->count && ends->items[at].local_rank == event->local_rank)
		return &ends->items[at];
	ARRAY_RESERVE(ends->items, ends->count, ends->cap);
	memmove(&ends->items[at + 1], &ends->items[at], (ends->count - at) * sizeof(*ends->items));
	ends->count++;
	ends->items[at] = (struct muster_worker_end){ .rank = event->rank,
						      .local_rank = event->local_rank,
						      .pid = (pid_t)event->pid,
						      .exit_code = -1 };
	return &ends->items[at];
}

static void note_started(struct worker_ends *ends, struct event_in *event)
{
	struct muster_worker_end *worker = worker_of(ends, event);
	if (buf_len(&event->error_file) > 0 && !worker->error_file)
		worker->error_file = mem_strdup(buf_str(&event->error_file));
}

static void note_exited(struct worker_ends *ends, struct event_in *event)
{
	struct muster_worker_end *worker = worker_of(ends, event);
	int sig = buf_len(&event->signal) > 0 ? str_to_signal(buf_str(&event->signal)) : 0;
	worker->exit_code = (int)event->exit_code;
	worker->signal = MAX(sig, 0);
	worker->ended_ms = event->timestamp;
}

static void worker_ends_note(struct worker_ends *ends, struct event_in *event)
{
	const char *name = buf_str(&event->name);
	ends->restarts = event->restarts;
	if (str_eq(name, "round.formed"))
		forget(ends);
	if (event->local_rank < 0)
		return;
	if (str_eq(name, "worker.started"))
		note_started(ends, event);
	else if (str_eq(name, "worker.exited"))
		note_exited(ends, event);
	else if (str_eq(name, "group.failed"))
		worker_of(ends, event)->first = 1;
}

static void worker_ends_done(struct worker_ends *ends)
{
	forget(ends);
	free(ends->items);
	*ends = WORKER_ENDS_INIT;
}

/* The result that muster_result_free() frees; `ends` is empty afterwards. */
static struct muster_result *worker_ends_take(struct worker_ends *ends, int exit_code)
{
	struct muster_result *result = NEW(struct muster_result);
	*result = (struct muster_result){ .exit_code = exit_code,
					  .restarts = ends->restarts,
					  .count = ends->count,
					  .workers = ends->items };
	*ends = WORKER_ENDS_INIT;
	return result;
}

void muster_result_free(struct muster_result *result)
{
	if (!result)
		return;
	struct worker_ends ends = { .items = (struct muster_worker_end *)result->workers,
				    .count = result->count };
	worker_ends_done(&ends);
	free(result);
}

/* ---- the launch ---- */

#define LINE_MAX_BYTES (1 << 20) /* of an event; longer ones are skipped */
#define READ_SIZE 16384

struct muster_job {
	struct program program; /* its news are events */
	struct buf input;
	struct worker_ends ends;
	struct muster_result *result; /* once it has ended, until it is taken */
};

/* ---- starting ---- */

static void add_words(struct strv *argv, const char *const *words)
{
	for (; words && *words; words++)
		strv_add(argv, *words);
}

static void make_argv(const struct muster_launch_config *config, const struct program *program,
		      struct strv *argv)
{
	strv_add(argv, "muster");
	strv_add(argv, "run");
	strv_take(argv, mem_printf("--events=fd:%d", program->its_news));
	strv_take(argv, mem_printf("--lifeline=%d", program->its_lifeline));
	if (config->nproc_per_node)
		strv_take(argv, mem_printf("--nproc-per-node=%d", config->nproc_per_node));
	if (config->max_restarts)
		strv_take(argv, mem_printf("--max-restarts=%d", config->max_restarts));
	add_words(argv, config->options);
	strv_add(argv, "--");
	add_words(argv, config->command);
}

static int start(const struct muster_launch_config *config, struct muster_job *job, struct err *err)
{
	AUTO(strv_done) struct strv argv = STRV_INIT;
	int r = program_open(&job->program, err);
	if (r < 0)
		return r;
	make_argv(config, &job->program, &argv);
	struct program_spec spec = { .program = config->program,
				     .argv = &argv,
				     .env = config->env,
				     .cwd = config->cwd,
				     .stdio = { config->stdio[0], config->stdio[1],
						config->stdio[2] } };
	return program_start(&job->program, &spec, err);
}

/* A caller compiled with an earlier version has a shorter struct; its missing members are zero. */
static int read_config(const struct muster_launch_config *given,
		       struct muster_launch_config *config, struct err *err)
{
	if (given->size < offsetof(struct muster_launch_config, options))
		return err_set(
			err, EINVAL,
			"the configuration has no size: begin with MUSTER_LAUNCH_CONFIG_INIT");
	memcpy(config, given, MIN(given->size, sizeof(*config)));
	if (!config->command || !config->command[0])
		return err_set(err, EINVAL, "the configuration has no command");
	return 0;
}

int muster_job_start(const struct muster_launch_config *given, struct muster_job **ret_job)
{
	struct err err = ERR_INIT;
	struct muster_launch_config config = MUSTER_LAUNCH_CONFIG_INIT;
	int r = read_config(given, &config, &err);
	if (r < 0)
		return last_error(r, &err);
	struct muster_job *job = NEW(struct muster_job);
	job->program = PROGRAM_INIT;
	r = start(&config, job, &err);
	if (r < 0) {
		muster_job_free(job);
		return last_error(r, &err);
	}
	*ret_job = job;
	return 0;
}

/* ---- following ---- */

int muster_job_fd(const struct muster_job *job)
{
	return job->program.news;
}

pid_t muster_job_pid(const struct muster_job *job)
{
	return job->program.ended ? 0 : job->program.pid;
}

static void take_line(struct muster_job *job, const char *line, size_t len,
		      muster_event_fn *on_event, void *arg)
{
	AUTO(event_in_done) struct event_in event = EVENT_IN_INIT;
	if (event_in_parse(line, len, &event) < 0)
		return;
	worker_ends_note(&job->ends, &event);
	if (!on_event)
		return;
	AUTO_FREE char *json = mem_strndup(line, len);
	const struct muster_event told = {
		.name = buf_str(&event.name),
		.json = json,
		.rank = event.rank,
		.local_rank = event.local_rank,
		.pid = (pid_t)event.pid,
		.round = event.round,
		.restarts = event.restarts,
	};
	on_event(arg, &told);
}

static void take_lines(struct muster_job *job, muster_event_fn *on_event, void *arg)
{
	const unsigned char *data, *end;
	while ((data = buf_data(&job->input)) && (end = memchr(data, '\n', buf_len(&job->input)))) {
		size_t len = (size_t)(end - data);
		take_line(job, (const char *)data, len, on_event, arg);
		buf_consume(&job->input, len + 1);
	}
	if (buf_len(&job->input) > LINE_MAX_BYTES)
		buf_clear(&job->input);
}

int muster_job_step(struct muster_job *job, muster_event_fn *on_event, void *arg)
{
	ssize_t n = -1;
	while (!job->program.ended) {
		n = fd_read_some(job->program.news, READ_SIZE, &job->input);
		if (n <= 0)
			break;
		take_lines(job, on_event, arg);
	}
	if (job->program.ended)
		return 1;
	if (n < 0)
		return n == -EAGAIN ? 0 : last_error((int)n, NULL);
	job->result = worker_ends_take(&job->ends, program_wait(&job->program));
	return 1;
}

int muster_job_signal(struct muster_job *job, int signal)
{
	return last_error(program_signal(&job->program, signal), NULL);
}

struct muster_result *muster_job_take_result(struct muster_job *job)
{
	struct muster_result *result = job->result;
	job->result = NULL;
	return result;
}

void muster_job_free(struct muster_job *job)
{
	if (!job)
		return;
	program_done(&job->program);
	buf_done(&job->input);
	worker_ends_done(&job->ends);
	muster_result_free(job->result);
	free(job);
}

int muster_launch(const struct muster_launch_config *config, muster_event_fn *on_event, void *arg,
		  struct muster_result **ret_result)
{
	struct muster_job *job = NULL;
	int r = muster_job_start(config, &job);
	while (r == 0) {
		struct pollfd pfd = { .fd = muster_job_fd(job), .events = POLLIN };
		poll(&pfd, 1, -1);
		r = muster_job_step(job, on_event, arg);
	}
	if (r > 0)
		*ret_result = muster_job_take_result(job);
	muster_job_free(job);
	return MIN(r, 0);
}
