/* All unit tests in one program, with mutants of core in it that are switched on one at a time; in
 * place of tests/unit/unit.c. Each test runs in a process of its own, forked from one in which
 * nothing has happened yet.
 *
 *     runner cover COUNT    a line a test: number, name, milliseconds of CPU and in all, and which
 *                           of the mutants 1 to COUNT it reaches; "-" in place of times if it fails
 *     runner find           for each line "MUTANT TEST:CPU_S:WALL_S:AGAIN ..." of stdin: which of
 *                           the tests fails first, or that none does. AGAIN 1: the failure counts
 *                           only if the test does not fail without the mutant, too.
 */
#include <check.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/clock.h"
#include "unit.h"
#include "mutant.h"

#define TESTS_MAX 4096
#define MEMORY_MAX ((rlim_t)4 << 30)
#define SKIPPED 77

static const TTest *tests[TESTS_MAX];
static size_t test_count;
const char *unit_running;
int mutant_on;
static unsigned char *reached;

void mutant_reach(int number)
{
	reached[number] = 1;
}

void unit_register(const TTest *test)
{
	if (test_count == TESTS_MAX)
		abort();
	tests[test_count++] = test;
}

void unit_skip(const char *reason UNUSED)
{
	_exit(SKIPPED);
}

/* What Check has for the macros of tests. */
void tcase_fn_start(const char *name UNUSED, const char *file UNUSED, int line UNUSED)
{
}

void _ck_assert_failed(const char *file UNUSED, int line UNUSED, const char *expr UNUSED,
		       const char *msg UNUSED, ...)
{
	_exit(EXIT_FAILURE);
}

#undef _mark_point
void _mark_point(const char *file UNUSED, int line UNUSED)
{
}

struct limits {
	unsigned cpu_s, wall_s;
};

static _Noreturn void be_test(const TTest *test, int mutant, const struct limits *limits)
{
	int null = open("/dev/null", O_RDWR);
	const struct rlimit cpu = { limits->cpu_s, limits->cpu_s + 1 };
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	setpgid(0, 0);
	dup2(null, STDIN_FILENO);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	close(null);
	setrlimit(RLIMIT_CPU, &cpu);
	if (!getenv("SAN"))
		setrlimit(RLIMIT_AS, &(struct rlimit){ MEMORY_MAX, MEMORY_MAX });
	setrlimit(RLIMIT_CORE, &(struct rlimit){ 0, 0 });
	mutant_on = mutant;
	test->fn(0);
	exit(EXIT_SUCCESS);
}

/* The exit status, or -1 if it died or took too long. */
static int run(size_t number, int mutant, const struct limits *limits, struct rusage *ret_usage)
{
	fflush(stdout);
	pid_t pid = fork();
	if (pid < 0)
		abort();
	if (pid == 0)
		be_test(tests[number], mutant, limits);
	int status, fd = (int)syscall(SYS_pidfd_open, pid, 0);
	struct pollfd end = { .fd = fd, .events = POLLIN };
	if (poll(&end, 1, (int)limits->wall_s * 1000) == 0)
		kill(pid, SIGKILL);
	close(fd);
	wait4(pid, &status, 0, ret_usage);
	kill(-pid, SIGKILL); /* what it left */
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static unsigned long cpu_ms(const struct rusage *usage)
{
	return (unsigned long)(usage->ru_utime.tv_sec + usage->ru_stime.tv_sec) * 1000 +
	       (unsigned long)(usage->ru_utime.tv_usec + usage->ru_stime.tv_usec) / 1000;
}

static void cover(size_t count)
{
	reached = mmap(NULL, count + 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	for (size_t i = 0; i < test_count; i++) {
		struct rusage usage;
		uint64_t start_ns = clock_now_ns();
		memset(reached, 0, count + 1);
		int status = run(i, -1, &(struct limits){ 120, 120 }, &usage);
		if (status == EXIT_SUCCESS)
			printf("%zu %s %lu %llu", i, tests[i]->name, cpu_ms(&usage),
			       (unsigned long long)((clock_now_ns() - start_ns) / NS_PER_MS));
		else
			printf("%zu %s %s -", i, tests[i]->name, status == SKIPPED ? "skip" : "-");
		for (size_t n = 1; n <= count; n++)
			if (reached[n])
				printf(" %zu", n);
		printf("\n");
	}
}

static const char *find(int mutant, char *list)
{
	char *rest;
	for (char *word = strtok_r(list, " \n", &rest); word; word = strtok_r(NULL, " \n", &rest)) {
		size_t number;
		struct limits limits;
		struct rusage usage;
		int again;
		if (sscanf(word, "%zu:%u:%u:%d", &number, &limits.cpu_s, &limits.wall_s, &again) !=
		    4)
			abort();
		if (run(number, mutant, &limits, &usage) == EXIT_SUCCESS)
			continue;
		if (!again || run(number, 0, &limits, &usage) == EXIT_SUCCESS)
			return tests[number]->name;
	}
	return "-";
}

int main(int argc, char **argv)
{
	char *line = NULL;
	size_t cap = 0;
	if (argc == 3 && strcmp(argv[1], "cover") == 0) {
		cover((size_t)atol(argv[2]));
		return EXIT_SUCCESS;
	}
	while (getline(&line, &cap, stdin) > 0) {
		char *rest;
		int mutant = (int)strtol(line, &rest, 10);
		printf("%d %s\n", mutant, find(mutant, rest));
		fflush(stdout);
	}
	free(line);
	return EXIT_SUCCESS;
}
