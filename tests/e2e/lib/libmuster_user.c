/* A program that uses libmuster as others do: the first argument names what it does, the rest is
 * the command of the workers. It prints what it found, one fact a line. */
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <muster/muster.h>

static struct muster_launch_config config = MUSTER_LAUNCH_CONFIG_INIT;

static void show_event(void *arg, const struct muster_event *event)
{
	int *count = arg;
	(*count)++;
	if (event->rank >= 0)
		printf("event %s rank %d pid %d json %d\n", event->name, (int)event->rank,
		       event->pid > 0, strstr(event->json, event->name) != NULL);
}

static void show_result(const struct muster_result *result)
{
	printf("exit %d restarts %d workers %zu\n", result->exit_code, (int)result->restarts,
	       result->count);
	for (size_t i = 0; i < result->count; i++) {
		const struct muster_worker_end *w = &result->workers[i];
		printf("rank %d local %d code %d signal %d first %d file %s\n", (int)w->rank,
		       (int)w->local_rank, w->exit_code, w->signal, w->first,
		       w->error_file ? strrchr(w->error_file, '/') : "none");
	}
}

static int launch(void)
{
	struct muster_result *result = NULL;
	int count = 0;
	int r = muster_launch(&config, show_event, &count, &result);
	if (r < 0) {
		printf("error %s: %s\n", strerrorname_np(-r), muster_error());
		return 1;
	}
	show_result(result);
	muster_result_free(result);
	return 0;
}

static int with_sigchld_ignored(void)
{
	signal(SIGCHLD, SIG_IGN);
	int r = launch();
	printf("still ignored %d\n", signal(SIGCHLD, SIG_DFL) == SIG_IGN);
	return r;
}

static int with_a_short_config(void)
{
	config.size =
		offsetof(struct muster_launch_config, stdio); /* of a version that had no stdio */
	memset(config.stdio, 0x77, sizeof(config.stdio));
	return launch();
}

static int without_a_size(void)
{
	config.size = 0;
	return launch();
}

static int with_stdio(void)
{
	int fds[2];
	char text[100] = "";
	if (pipe(fds) < 0)
		return 1;
	config.stdio[1] = fds[1];
	config.stdio[2] = fds[1];
	int r = launch();
	printf("read %.*s", (int)read(fds[0], text, sizeof(text)), text);
	return r;
}

static int with_nothing_open(void)
{
	close(0);
	close(1);
	struct muster_result *result = NULL;
	int r = muster_launch(&config, NULL, NULL, &result);
	fprintf(stderr, "exit %d\n", r < 0 ? r : result->exit_code);
	muster_result_free(result);
	return 0;
}

static int with_env(void)
{
	const char *const changes[] = { "ADDED=new", "GONE", NULL };
	setenv("GONE", "here", 1);
	config.env = changes;
	config.cwd = "/";
	int r = launch();
	printf("own %s %s\n", getenv("GONE"), getenv("ADDED") ? "set" : "unset");
	return r;
}

static void *launch_in_thread(void *arg)
{
	struct muster_result *result = NULL;
	*(int *)arg = muster_launch(&config, NULL, NULL, &result) < 0 ? -1 : result->exit_code;
	muster_result_free(result);
	return NULL;
}

static int from_threads(void)
{
	pthread_t threads[4];
	int codes[4];
	for (int i = 0; i < 4; i++)
		pthread_create(&threads[i], NULL, launch_in_thread, &codes[i]);
	for (int i = 0; i < 4; i++)
		pthread_join(threads[i], NULL);
	for (int i = 0; i < 4; i++)
		printf("code %d\n", codes[i]);
	return 0;
}

/* Signals the job when its worker runs, and follows it to the end step by step. */
static void stop_when_started(void *arg, const struct muster_event *event)
{
	if (strcmp(event->name, "worker.started") == 0)
		muster_job_signal(arg, SIGTERM);
}

static int in_steps(void)
{
	struct muster_job *job;
	if (muster_job_start(&config, &job) < 0)
		return 1;
	printf("pid %d result %d\n", muster_job_pid(job) > 0, muster_job_take_result(job) != NULL);
	int r;
	do {
		struct pollfd pfd = { .fd = muster_job_fd(job), .events = POLLIN };
		poll(&pfd, 1, -1);
		r = muster_job_step(job, stop_when_started, job);
	} while (r == 0);
	struct muster_result *result = muster_job_take_result(job);
	show_result(result);
	printf("step %d pid %d signal %d\n", muster_job_step(job, NULL, NULL),
	       (int)muster_job_pid(job), muster_job_signal(job, SIGTERM) == -ESRCH);
	muster_result_free(result);
	muster_job_free(job);
	return 0;
}

/* Frees a job that runs: it must be gone, and its child reaped. */
static void note_pid(void *arg, const struct muster_event *event)
{
	if (strcmp(event->name, "worker.started") == 0)
		*(pid_t *)arg = event->pid;
}

static int freed_while_running(void)
{
	struct muster_job *job;
	pid_t worker = 0;
	if (muster_job_start(&config, &job) < 0)
		return 1;
	while (!worker) {
		struct pollfd pfd = { .fd = muster_job_fd(job), .events = POLLIN };
		poll(&pfd, 1, -1);
		muster_job_step(job, note_pid, &worker);
	}
	muster_job_free(job);
	printf("worker %d children %d\n", (int)worker, waitpid(-1, NULL, WNOHANG) >= 0);
	return 0;
}

static const struct {
	const char *name;
	int (*run)(void);
} deeds[] = {
	{ "launch", launch },
	{ "sigchld", with_sigchld_ignored },
	{ "short", with_a_short_config },
	{ "sizeless", without_a_size },
	{ "stdio", with_stdio },
	{ "closed", with_nothing_open },
	{ "env", with_env },
	{ "threads", from_threads },
	{ "steps", in_steps },
	{ "free", freed_while_running },
};

int main(int argc, char **argv)
{
	const char *const options[] = { "--report=none", NULL };
	config.command = argc > 2 ? (const char *const *)argv + 2 : NULL;
	config.options = options;
	setvbuf(stdout, NULL, _IOLBF, 0);
	for (size_t i = 0; i < sizeof(deeds) / sizeof(*deeds); i++)
		if (argc > 1 && strcmp(argv[1], deeds[i].name) == 0)
			return deeds[i].run();
	return 2;
}
