/* A worker that tries to leave something behind.
 *
 * usage: escape KIND RECORD exit|crash|wait
 *
 * Starts processes that escape in one of the ways of the table below, then ends as told. Each of
 * them first appends "PID START-TIME" to the file RECORD (the start time in clock ticks, as in
 * /proc/PID/stat, tells it from a later process of that number). When all are in place the worker
 * appends "ready".
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define ESCAPERS 2	/* of each kind */
#define CHAIN_MAX_S 120 /* longer than any test waits */

static const char *record_path;
static char **arguments;
static int ready_pipe[2]; /* escapers write a byte when they are in place */

static void append(const char *text)
{
	int fd = open(record_path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0666);
	if (fd < 0 || write(fd, text, strlen(text)) < 0)
		_exit(99);
	close(fd);
}

static void record_self(void)
{
	char stat[1024], line[64];
	int fd = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -1 : read(fd, stat, sizeof(stat) - 1);
	if (n <= 0)
		_exit(98);
	close(fd);
	stat[n] = '\0';
	char *field = strrchr(stat, ')') + 1; /* before field 3; the start time is field 22 */
	for (int i = 3; i < 22; i++)
		field = strchr(field + 1, ' ');
	snprintf(line, sizeof(line), "%d %lld\n", (int)getpid(), atoll(field));
	append(line);
}

static void in_place(void)
{
	if (write(ready_pipe[1], "x", 1) != 1)
		_exit(97);
}

__attribute__((noreturn)) static void stay(void)
{
	for (;;)
		pause();
}

__attribute__((noreturn)) static void settle(void)
{
	record_self();
	in_place();
	stay();
}

static void fork_off(void (*run)(void))
{
	pid_t pid = fork();
	if (pid == 0) {
		run();
		_exit(0);
	}
	if (pid < 0)
		_exit(96);
}

static void run_group(void)
{
	setpgid(0, 0);
	settle();
}

static void run_session(void)
{
	setsid();
	settle();
}

static void run_daemon(void)
{
	setsid();
	fork_off(settle);
}

static void wipe(char **strings)
{
	for (; *strings; strings++)
		memset(*strings, 0, strlen(*strings));
}

/* Nothing of it points to its origin any more: no environment, arguments, descriptors. */
static void settle_bare(void)
{
	wipe(environ);
	wipe(arguments);
	prctl(PR_SET_NAME, "bare");
	if (chdir("/") < 0)
		_exit(95);
	record_self();
	in_place();
	for (int fd = 0; fd < 64; fd++)
		close(fd);
	stay();
}

static void run_bare(void)
{
	setsid();
	fork_off(settle_bare);
}

static void ignore_signals(void)
{
	for (int sig = 1; sig < NSIG; sig++)
		if (sig != SIGCHLD && sig != SIGSEGV)
			signal(sig, SIG_IGN);
}

static void run_deaf(void)
{
	ignore_signals();
	settle();
}

static bool is_late(time_t since)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec - since > CHAIN_MAX_S;
}

/* Each process lives for one fork: gone before anyone can look it up and signal it. Ends by itself
 * in the end, or a test that fails would burn the machine's processes for good. */
static void run_chain(void)
{
	struct timespec start;
	clock_gettime(CLOCK_MONOTONIC, &start);
	setsid();
	record_self();
	in_place();
	while (!is_late(start.tv_sec)) {
		pid_t pid = fork();
		if (pid > 0)
			_exit(0);
		if (pid == 0) {
			setsid();
			append("."); /* shows that it goes on */
		}
	}
}

static void run_stopped(void)
{
	record_self();
	in_place();
	raise(SIGSTOP);
	stay();
}

static void run_stopped_daemon(void)
{
	setsid();
	fork_off(run_stopped);
}

/* The worker itself takes in the orphans below it. */
static void be_reaper(void)
{
	prctl(PR_SET_CHILD_SUBREAPER, 1);
}

static const struct kind {
	const char *name;
	void (*prepare)(void); /* in the worker itself */
	void (*escape)(void);  /* in a child of it */
} kinds[] = {
	{ "child", NULL, settle },	  { "group", NULL, run_group },
	{ "session", NULL, run_session }, { "daemon", NULL, run_daemon },
	{ "bare", NULL, run_bare },	  { "deaf", ignore_signals, run_deaf },
	{ "chain", NULL, run_chain },	  { "reaper", be_reaper, run_daemon },
	{ "stopped", NULL, run_stopped }, { "stopped-daemon", NULL, run_stopped_daemon },
};

static const struct kind *find_kind(const char *name)
{
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(kinds[i].name, name) == 0)
			return &kinds[i];
	return NULL;
}

static void end(const char *how)
{
	if (strcmp(how, "crash") == 0) {
		setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
		signal(SIGSEGV, SIG_DFL); /* a sanitizer catches it */
		raise(SIGSEGV);
	}
	if (strcmp(how, "exit") != 0)
		stay();
}

int main(int argc, char **argv)
{
	const struct kind *kind = argc == 4 ? find_kind(argv[1]) : NULL;
	if (!kind) {
		fprintf(stderr, "usage: escape KIND RECORD exit|crash|wait\n");
		return 2;
	}
	arguments = argv;
	record_path = strdup(argv[2]); /* `bare` wipes the arguments */
	static char *how;	       /* static: nothing leaks */
	how = strdup(argv[3]);
	if (pipe2(ready_pipe, O_CLOEXEC) < 0)
		return 94;
	record_self();
	if (kind->prepare)
		kind->prepare();
	for (int i = 0; i < ESCAPERS; i++)
		fork_off(kind->escape);
	for (int i = 0; i < ESCAPERS; i++) {
		char byte;
		if (read(ready_pipe[0], &byte, 1) != 1)
			return 93;
	}
	append("ready\n");
	end(how);
	return 0;
}
