#include "unit.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "sys/start/start_ring.h"
#include "sys/warden.h"

#define PATIENCE_NS (20 * NS_PER_S)

/* ---- the ring ---- */

static void lay(struct start_ring *ring, uint64_t number, const char *text)
{
	AUTO(buf_done) struct buf request = BUF_INIT;
	buf_append(&request, text, strlen(text));
	ck_assert(start_ring_lay(ring, number, &request));
}

static const char *take(struct start_ring *ring, uint64_t number)
{
	static struct buf request;
	buf_clear(&request);
	ck_assert_uint_eq(start_ring_take(ring, 0, &request), number);
	return buf_str(&request);
}

TEST(requests_are_taken_in_the_order_of_their_numbers)
{
	struct start_ring *ring = start_ring_new();
	take(ring, 0);
	lay(ring, 1, "one");
	lay(ring, 2, "two");
	ck_assert_str_eq(take(ring, 1), "one");
	lay(ring, 3, "three");
	ck_assert_str_eq(take(ring, 2), "two");
	ck_assert_str_eq(take(ring, 3), "three");
	take(ring, 0);
	start_ring_free(ring);
}

TEST(what_was_taken_back_is_not_taken_and_the_other_way_round)
{
	struct start_ring *ring = start_ring_new();
	lay(ring, 1, "one");
	lay(ring, 2, "two");
	ck_assert(start_ring_take_back(ring, 1));
	ck_assert(!start_ring_take_back(ring, 1));
	ck_assert_str_eq(take(ring, 2), "two");
	ck_assert(!start_ring_take_back(ring, 2));
	ck_assert(start_ring_is_taken_by(ring, 2, 0));
	ck_assert(!start_ring_is_taken_by(ring, 2, 1));
	ck_assert(!start_ring_is_taken_by(ring, 1, 0));
	start_ring_free(ring);
}

TEST(a_place_is_used_again_and_again)
{
	struct start_ring *ring = start_ring_new();
	for (uint64_t number = 1; number <= 10 * START_RING_PLACES; number++) {
		lay(ring, number, "again");
		if (number % 3 == 0)
			ck_assert(start_ring_take_back(ring, number));
		else
			ck_assert_str_eq(take(ring, number), "again");
	}
	take(ring, 0);
	start_ring_free(ring);
}

TEST(a_request_that_is_too_long_is_refused)
{
	struct start_ring *ring = start_ring_new();
	AUTO(buf_done) struct buf request = BUF_INIT;
	memset(buf_reserve(&request, START_RING_REQUEST_MAX + 1), 'x', START_RING_REQUEST_MAX + 1);
	buf_commit(&request, START_RING_REQUEST_MAX + 1);
	ck_assert(!start_ring_lay(ring, 1, &request));
	take(ring, 0);
	start_ring_free(ring);
}

#define TAKERS 4
#define REQUESTS 2000

/* Takes until it gets a request to end; counts what it got. */
static void take_many(struct start_ring *ring, int taker, unsigned char *counts)
{
	AUTO(buf_done) struct buf request = BUF_INIT;
	for (uint64_t last = 0;;) {
		buf_clear(&request);
		uint64_t number = start_ring_take(ring, taker, &request);
		if (number == 0) {
			sched_yield();
			continue;
		}
		uint64_t text = strtoull(buf_str(&request), NULL, 10);
		if (text == 0)
			_exit(0);
		if (text != number || number <= last)
			_exit(1);
		last = number;
		__atomic_add_fetch(&counts[number], 1, __ATOMIC_SEQ_CST);
	}
}

TEST(each_request_goes_to_exactly_one_of_many_processes)
{
	struct start_ring *ring = start_ring_new();
	unsigned char *counts =
		mmap(NULL, REQUESTS + 1, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	ck_assert(counts != MAP_FAILED);
	pid_t takers[TAKERS];
	for (int i = 0; i < TAKERS; i++)
		if ((takers[i] = fork()) == 0)
			take_many(ring, i, counts);
	char text[32];
	for (uint64_t number = 1; number <= REQUESTS + TAKERS; number++) {
		bool last = number > REQUESTS;
		snprintf(text, sizeof(text), "%llu", last ? 0ull : (unsigned long long)number);
		/* The place must have been read: here its count says so, or it was taken back. */
		uint64_t before = number > START_RING_PLACES ? number - START_RING_PLACES : 0;
		while (before && __atomic_load_n(&counts[before], __ATOMIC_SEQ_CST) == 0)
			sched_yield();
		lay(ring, number, text);
		if (!last && number % 7 == 0 && start_ring_take_back(ring, number))
			__atomic_add_fetch(&counts[number], 1, __ATOMIC_SEQ_CST);
	}
	for (int i = 0; i < TAKERS; i++) {
		int status;
		ck_assert_int_eq(waitpid(takers[i], &status, 0), takers[i]);
		ck_assert_int_eq(status, 0);
	}
	for (uint64_t number = 1; number <= REQUESTS; number++)
		ck_assert_uint_eq(counts[number], 1);
	munmap(counts, REQUESTS + 1);
	start_ring_free(ring);
}

/* ---- wardens that take from it ---- */

static struct start_ring *ring;
static int output; /* the file that their programs write to */

static struct warden *new_warden(int taker)
{
	struct warden *warden;
	const struct warden_opts opts = { .ring = ring, .taker = taker };
	ck_assert_int_eq(warden_new(&opts, &warden, NULL), 0);
	return warden;
}

static void begin(void)
{
	ring = start_ring_new();
	output = memfd_create("output", MFD_CLOEXEC);
	ck_assert_int_ge(output, 0);
}

static void end(struct warden *warden)
{
	warden_free(warden);
	start_ring_free(ring);
	close(output);
}

static struct warden_event next_event(struct warden *warden)
{
	struct warden_event event;
	uint64_t deadline_ns = clock_now_ns() + PATIENCE_NS;
	do
		while (!warden_next(warden, &event))
			ck_assert_int_eq(warden_wait(warden, deadline_ns), 0);
	while (event.type == WARDEN_SURVIVOR); /* on a busy host dying takes a while */
	return event;
}

static struct warden_event expect(struct warden *warden, enum warden_event_type type)
{
	struct warden_event event = next_event(warden);
	ck_assert_int_eq(event.type, type);
	return event;
}

static struct spawn_spec shell(const char *script)
{
	static char *argv[] = { (char *)"sh", (char *)"-c", NULL, NULL };
	static char *env[] = { (char *)"WORD=kept", NULL };
	argv[2] = (char *)script;
	return (struct spawn_spec){ .path = "/bin/sh",
				    .argv = argv,
				    .envp = env,
				    .stdio = { SPAWN_NULL, output, SPAWN_NULL } };
}

static void start(struct warden *warden, uint64_t id, const char *script)
{
	struct spawn_spec spec = shell(script);
	ck_assert_int_eq(warden_spawn(warden, id, &spec, WARDEN_QUIET | WARDEN_KEEP, NULL), 0);
}

static void lay_script(uint64_t number, const char *script)
{
	struct spawn_spec spec = shell(script);
	ck_assert(warden_lay(ring, number, &spec));
}

static void expect_output(const char *text)
{
	AUTO(buf_done) struct buf out = BUF_INIT;
	ck_assert_int_eq(lseek(output, 0, SEEK_SET), 0);
	ck_assert_int_eq(fd_read_all(output, 1000, &out, NULL), 0);
	ck_assert_str_eq(buf_str(&out), text);
}

TEST(a_warden_goes_on_with_the_shelf_when_its_program_has_ended_well)
{
	begin();
	struct warden *warden = new_warden(0);
	lay_script(1, "exit 0");
	lay_script(2, "echo $WORD");
	start(warden, 7, "exit 0");
	struct warden_event first = expect(warden, WARDEN_EXITED);
	struct warden_event second = expect(warden, WARDEN_EXITED);
	struct warden_event third = expect(warden, WARDEN_EXITED);
	expect(warden, WARDEN_EMPTY);
	ck_assert_uint_eq(first.next, 1);
	ck_assert_uint_eq(second.next, 2);
	ck_assert_uint_eq(third.next, 0);
	ck_assert(first.id == 7 && second.id == 7 && third.id == 7);
	ck_assert(first.pid != second.pid && second.pid != third.pid);
	ck_assert(first.ns <= second.start_ns && second.ns <= third.start_ns);
	expect_output("kept\n");
	end(warden);
}

TEST(a_warden_leaves_the_shelf_alone_after_a_failure_an_output_or_with_a_process_left)
{
	static const char *const scripts[] = { "exit 3", "kill -9 $$", "echo words",
					       "sleep 600 & exit 0" };
	for (size_t i = 0; i < ARRAY_LEN(scripts); i++) {
		begin();
		struct warden *warden = new_warden(0);
		lay_script(1, "exit 0");
		start(warden, 1, scripts[i]);
		ck_assert_uint_eq(expect(warden, WARDEN_EXITED).next, 0);
		warden_kill_all(warden);
		expect(warden, WARDEN_EMPTY);
		/* Not even now. */
		warden_sync(warden);
		while (next_event(warden).type != WARDEN_SYNCED)
			;
		ck_assert(start_ring_take_back(ring, 1));
		end(warden);
	}
}

TEST(a_program_from_the_shelf_that_cannot_be_executed_is_a_failed_start)
{
	begin();
	struct warden *warden = new_warden(0);
	char *argv[] = { (char *)"nothing", NULL };
	struct spawn_spec spec = { .path = "/nowhere/nothing", .argv = argv };
	ck_assert(warden_lay(ring, 1, &spec));
	start(warden, 5, "exit 0");
	ck_assert_uint_eq(expect(warden, WARDEN_EXITED).next, 1);
	struct warden_event failed = expect(warden, WARDEN_SPAWN_FAILED);
	ck_assert_uint_eq(failed.id, 5);
	ck_assert_int_eq(failed.step, SPAWN_EXEC);
	expect(warden, WARDEN_EMPTY);
	end(warden);
}

TEST(nothing_is_taken_while_everything_is_killed_and_it_goes_on_after_that)
{
	begin();
	struct warden *warden = new_warden(0);
	start(warden, 1, "exec sleep 600");
	lay_script(1, "exit 0");
	warden_kill_all(warden);
	ck_assert_uint_eq(expect(warden, WARDEN_EXITED).next, 0);
	expect(warden, WARDEN_EMPTY);
	start(warden, 1, "exit 0");
	ck_assert_uint_eq(expect(warden, WARDEN_EXITED).next, 1);
	ck_assert_uint_eq(expect(warden, WARDEN_EXITED).next, 0);
	end(warden);
}

static void one_cpu(cpu_set_t *cpus)
{
	ck_assert_int_eq(sched_getaffinity(0, sizeof(*cpus), cpus), 0);
	int last = CPU_SETSIZE - 1;
	while (!CPU_ISSET(last, cpus))
		last--;
	CPU_ZERO(cpus);
	CPU_SET(last, cpus);
}

/* Two programs on one CPU, the second one from the ring. */
static void run_bound(unsigned flags)
{
	begin();
	cpu_set_t cpus, found;
	one_cpu(&cpus);
	struct warden *warden = new_warden(0);
	lay_script(1, "grep Cpus_allowed_list /proc/self/status");
	struct spawn_spec spec = shell("exit 0");
	spec.cpus = &cpus;
	spec.cpus_size = sizeof(cpus);
	flags |= WARDEN_QUIET | WARDEN_KEEP;
	ck_assert_int_eq(warden_spawn(warden, 1, &spec, flags, NULL), 0);
	ck_assert_uint_eq(expect(warden, WARDEN_EXITED).next, 1);
	expect(warden, WARDEN_EXITED);
	char line[64];
	int cpu = 0;
	while (!CPU_ISSET(cpu, &cpus))
		cpu++;
	snprintf(line, sizeof(line), "Cpus_allowed_list:\t%d\n", cpu);
	expect_output(line);
	ck_assert_int_eq(sched_getaffinity(warden_pid(warden), sizeof(found), &found), 0);
	if (flags & WARDEN_ALONG)
		ck_assert(CPU_EQUAL(&cpus, &found));
	end(warden);
}

TEST(a_program_from_the_shelf_runs_on_the_cpus_of_the_one_before)
{
	run_bound(0);
}

TEST(a_warden_goes_along_to_the_cpus_of_its_programs)
{
	run_bound(WARDEN_ALONG);
}

TEST(a_program_whose_cpus_do_not_exist_is_a_failed_start_with_its_warden_along_too)
{
	begin();
	struct warden *warden = new_warden(0);
	cpu_set_t none;
	CPU_ZERO(&none);
	struct spawn_spec spec = shell("exit 0");
	spec.cpus = &none;
	spec.cpus_size = sizeof(none);
	unsigned flags = WARDEN_QUIET | WARDEN_KEEP | WARDEN_ALONG;
	ck_assert_int_eq(warden_spawn(warden, 1, &spec, flags, NULL), 0);
	ck_assert_int_eq(expect(warden, WARDEN_SPAWN_FAILED).step, SPAWN_CPUS);
	end(warden);
}
