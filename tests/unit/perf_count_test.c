#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "sys/perf_count.h"

/* A starter as the warden is one: for every byte it gets it runs a shell that runs another, reaps
 * it and answers; before that it burns CPU time of its own. */
struct starter {
	pid_t pid;
	int to, from;
};

static void burn(uint64_t ns)
{
	for (uint64_t end = clock_now_ns() + ns; clock_now_ns() < end;)
		;
}

static void run_child(void)
{
	pid_t pid = fork();
	if (pid == 0) {
		execl("/bin/sh", "sh", "-c",
		      "i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done; sh -c 'exit 0'", NULL);
		_exit(127);
	}
	waitpid(pid, NULL, 0);
}

static struct starter starter_new(void)
{
	int in[2], out[2];
	ck_assert_int_eq(pipe(in) | pipe(out), 0);
	pid_t pid = fork();
	if (pid == 0) {
		close(in[1]);
		for (char c; read(in[0], &c, 1) == 1;) {
			if (c == 'b')
				burn(5 * NS_PER_MS);
			else
				run_child();
			if (write(out[1], &c, 1) != 1)
				break;
		}
		_exit(0);
	}
	close(in[0]);
	return (struct starter){ pid, in[1], out[0] };
}

static void starter_do(const struct starter *starter, char what)
{
	ck_assert_int_eq(write(starter->to, &what, 1), 1);
	ck_assert_int_eq(read(starter->from, &what, 1), 1);
}

static void starter_end(struct starter *starter)
{
	close(starter->to);
	waitpid(starter->pid, NULL, 0);
}

TEST(what_the_starter_starts_is_counted_and_the_starter_is_not)
{
	struct starter starter = starter_new();
	for (int run = 0; run < 5; run++) {
		struct err err = ERR_INIT;
		AUTO(fd_close) int fd = perf_count_open(starter.pid, PERF_TASK_CLOCK, &err);
		if (fd == -EACCES || fd == -EPERM || fd == -ENOSYS)
			break; /* forbidden here: that it says so is all there is to see */
		ck_assert_msg(fd >= 0, "%s", err.msg);
		struct perf_reading burnt, ran;
		uint64_t count = 0;
		bool scaled;
		starter_do(&starter, 'b');
		ck_assert_int_eq(perf_count_read(fd, &burnt, &err), 0);
		ck_assert_uint_eq(burnt.value, 0);
		starter_do(&starter, 'r');
		ck_assert_int_eq(perf_count_read(fd, &ran, &err), 0);
		ck_assert(perf_count_value(&ran, &count, &scaled));
		ck_assert_uint_gt(count, 0);
		ck_assert(!scaled);
	}
	starter_end(&starter);
}

TEST(a_machine_without_counters_says_so)
{
	struct err err = ERR_INIT;
	AUTO(fd_close) int fd = perf_count_open(getpid(), PERF_INSTRUCTIONS, &err);
	if (fd < 0) {
		ck_assert_int_eq(err.code, -fd);
		ck_assert_ptr_nonnull(strstr(err.msg, "instructions"));
	}
}

TEST(a_shared_counter_is_scaled_and_says_so)
{
	struct perf_reading reading = { 500, 100, 50 };
	uint64_t count;
	bool scaled;
	ck_assert(perf_count_value(&reading, &count, &scaled));
	ck_assert_uint_eq(count, 1000);
	ck_assert(scaled);
	reading.running_ns = 0;
	ck_assert(!perf_count_value(&reading, &count, &scaled));
}
