#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/mem.h"
#include "sys/disk.h"
#include "sys/output.h"

/* Replaces our stdout (and stderr) by a pipe, whose reading end is returned. */
static int capture(bool both)
{
	int fds[2];
	ck_assert_int_eq(pipe2(fds, O_CLOEXEC), 0);
	ck_assert_int_ge(dup2(fds[1], STDOUT_FILENO), 0);
	if (both)
		ck_assert_int_ge(dup2(fds[1], STDERR_FILENO), 0);
	close(fds[1]);
	return fds[0];
}

static void wait_for(struct output *output, enum output_event_type type)
{
	struct output_event event;
	for (;;) {
		struct pollfd waiting = { .fd = output_fd(output), .events = POLLIN };
		ck_assert_int_eq(poll(&waiting, 1, 5000), 1);
		while (output_next(output, &event))
			if (event.type == type)
				return;
	}
}

/* Frees a finished output and gives back what came out of `fd`. */
static char *collect(struct output *output, int fd)
{
	output_free(output);
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	dup2(null, STDOUT_FILENO);
	dup2(null, STDERR_FILENO);
	close(null);
	struct buf text = BUF_INIT;
	ck_assert_int_eq(fd_read_all(fd, 1 << 20, &text, NULL), 0);
	close(fd);
	return buf_take_str(&text);
}

static char *finish(struct output *output, int fd)
{
	output_finish(output);
	wait_for(output, OUTPUT_FINISHED);
	return collect(output, fd);
}

static struct output *new_output(const struct output_config *config)
{
	struct output *output;
	ck_assert_int_eq(output_new(config, &output, NULL), 0);
	return output;
}

static void say(int fd, const char *text)
{
	ck_assert_int_eq(fd_write_all(fd, text, strlen(text)), 0);
}

static void close_both(int fds[2])
{
	fd_close(&fds[0]);
	fd_close(&fds[1]);
}

static char *temporary_directory(void)
{
	char *path = mem_strdup("/tmp/muster-test-XXXXXX");
	ck_assert_ptr_nonnull(mkdtemp(path));
	return path;
}

static void expect_file(const char *directory, const char *name, const char *expected)
{
	AUTO_FREE char *path = mem_printf("%s/%s", directory, name);
	AUTO(buf_done) struct buf text = BUF_INIT;
	ck_assert_int_eq(file_read(path, 1 << 20, &text, NULL), 0);
	ck_assert_str_eq(buf_str(&text), expected);
	unlink(path);
}

TEST(output_prefixes_whole_lines_and_keeps_a_partial_last_one)
{
	int fd = capture(true);
	struct output *output = new_output(&(struct output_config){ 0 });
	struct output_worker a = { .id = 1,
				   .route = { { .console = true, .prefix = true } },
				   .role_name = "default" };
	struct output_worker b = a;
	b.id = 2;
	b.local_rank = b.rank = 1;
	a.route[1] = b.route[1] = (struct output_route){ .console = true };
	int a_fds[2], b_fds[2];
	ck_assert_int_eq(output_add(output, &a, a_fds, NULL), 0);
	ck_assert_int_eq(output_add(output, &b, b_fds, NULL), 0);
	ck_assert_int_eq(a_fds[1], -1);
	say(a_fds[0], "par");
	say(b_fds[0], "from b\n");
	output_worker_ended(output, 2);
	close_both(b_fds);
	wait_for(output, OUTPUT_DRAINED);
	say(a_fds[0], "tial\nno end");
	close_both(a_fds);
	AUTO_FREE char *text = finish(output, fd);
	ck_assert_str_eq(text, "[default1]:from b\n[default0]:partial\n[default0]:no end");
}

TEST(output_keeps_the_order_of_both_streams_when_they_are_one_file)
{
	int fd = capture(true);
	struct output *output = new_output(&(struct output_config){ 0 });
	struct output_worker worker = { .id = 1,
					.route = { { .console = true }, { .console = true } },
					.keep_tail = { [OUTPUT_STDERR] = true } };
	int fds[2];
	ck_assert_int_eq(output_add(output, &worker, fds, NULL), 0);
	for (int i = 0; i < 100; i++)
		say(fds[i % 2], i % 2 ? "e\n" : "o\n");
	close_both(fds);
	AUTO_FREE char *text = finish(output, fd);
	for (int i = 0; i < 100; i++)
		ck_assert_int_eq(text[2 * i], i % 2 ? 'e' : 'o');
}

TEST(output_leaves_stdout_alone_when_only_stderr_is_kept)
{
	int fd = capture(false);
	struct output *output = new_output(&(struct output_config){ 0 });
	struct output_worker worker = { .id = 1,
					.route = { { .console = true }, { .console = true } },
					.keep_tail = { [OUTPUT_STDERR] = true } };
	int fds[2];
	ck_assert_int_eq(output_add(output, &worker, fds, NULL), 0);
	ck_assert_int_eq(fds[0], -1);
	ck_assert_int_ge(fds[1], 0);
	close_both(fds);
	free(finish(output, fd));
}

TEST(output_keeps_the_tails_of_both_streams_apart)
{
	int fd = capture(false);
	struct output *output = new_output(&(struct output_config){ 0 });
	struct output_worker worker = { .id = 1, .keep_tail = { true, true } };
	int fds[2];
	ck_assert_int_eq(output_add(output, &worker, fds, NULL), 0);
	ck_assert(!output_shares_pipe(output, 1));
	say(fds[OUTPUT_STDOUT], "epoch 1\n");
	say(fds[OUTPUT_STDERR], "warning\n");
	close_both(fds);
	output_worker_ended(output, 1);
	wait_for(output, OUTPUT_DRAINED);
	AUTO(buf_done) struct buf out = BUF_INIT, error = BUF_INIT;
	uint64_t seen = strlen("epoch ");
	ck_assert_int_eq(output_tail_since(output, 1, OUTPUT_STDOUT, &seen, &out), 0);
	ck_assert_str_eq(buf_str(&out), "1\n");
	ck_assert_uint_eq(seen, strlen("epoch 1\n"));
	ck_assert_int_eq(output_tail(output, 1, OUTPUT_STDERR, &error), 0);
	ck_assert_str_eq(buf_str(&error), "warning\n");
	free(finish(output, fd));
}

TEST(output_keeps_one_tail_of_streams_that_share_a_pipe)
{
	int fd = capture(true);
	struct output *output = new_output(&(struct output_config){ 0 });
	struct output_worker worker = { .id = 1,
					.route = { { .console = true }, { .console = true } },
					.keep_tail = { true, true } };
	int fds[2];
	ck_assert_int_eq(output_add(output, &worker, fds, NULL), 0);
	ck_assert(output_shares_pipe(output, 1));
	say(fds[OUTPUT_STDOUT], "epoch 1\n");
	say(fds[OUTPUT_STDERR], "warning\n");
	close_both(fds);
	output_worker_ended(output, 1);
	wait_for(output, OUTPUT_DRAINED);
	AUTO(buf_done) struct buf both = BUF_INIT;
	ck_assert_int_eq(output_tail(output, 1, OUTPUT_STDOUT, &both), -ENOENT);
	ck_assert_int_eq(output_tail(output, 1, OUTPUT_STDERR, &both), 0);
	ck_assert_str_eq(buf_str(&both), "epoch 1\nwarning\n");
	free(finish(output, fd));
}

TEST(output_keeps_the_tail_of_a_worker_that_has_ended)
{
	int fd = capture(true);
	struct output *output = new_output(&(struct output_config){ 0 });
	struct output_worker worker = { .id = 7, .keep_tail = { [OUTPUT_STDERR] = true } };
	int fds[2];
	ck_assert_int_eq(output_add(output, &worker, fds, NULL), 0);
	say(fds[1], "Traceback\nboom");
	close_both(fds);
	output_worker_ended(output, 7);
	wait_for(output, OUTPUT_DRAINED);
	AUTO(buf_done) struct buf tail = BUF_INIT;
	ck_assert_int_eq(output_tail(output, 7, OUTPUT_STDERR, &tail), 0);
	ck_assert_str_eq(buf_str(&tail), "Traceback\nboom");
	output_forget(output, 7);
	ck_assert_int_eq(output_tail(output, 7, OUTPUT_STDERR, &tail), -ENOENT);
	AUTO_FREE char *text = finish(output, fd);
	ck_assert_str_eq(text, "");
}

TEST(output_does_not_wait_for_ever_for_a_child_that_holds_the_pipe)
{
	int fd = capture(true);
	struct output *output = new_output(&(struct output_config){ 0 });
	struct output_worker worker = { .id = 7, .route = { { .console = true, .prefix = true } } };
	int fds[2];
	ck_assert_int_eq(output_add(output, &worker, fds, NULL), 0);
	say(fds[0], "before\n");
	output_worker_ended(output, 7);
	wait_for(output, OUTPUT_DRAINED); /* though fds[0] is still open */
	signal(SIGPIPE, SIG_IGN);
	ck_assert_int_eq(fd_write_all(fds[0], "after\n", 6), -EPIPE);
	close_both(fds);
	AUTO_FREE char *text = finish(output, fd);
	ck_assert_str_eq(text, "[0]:before\n");
}

TEST(output_of_a_worker_that_needs_nothing_makes_no_pipe)
{
	struct output *output = new_output(&(struct output_config){ 0 });
	struct output_worker worker = { .id = 1,
					.route = { { .console = true }, { .console = true } } };
	int fds[2];
	ck_assert_int_eq(output_add(output, &worker, fds, NULL), 0);
	ck_assert_int_eq(fds[0], -1);
	ck_assert_int_eq(fds[1], -1);
	output_worker_ended(output, 1);
	wait_for(output, OUTPUT_DRAINED);
	output_finish(output);
	wait_for(output, OUTPUT_FINISHED);
	output_free(output);
}

TEST(output_prints_messages_in_order_even_after_the_end)
{
	int fd = capture(true);
	struct output *output = new_output(&(struct output_config){ 0 });
	output_log(output, LOG_WARN, "one\n", 4);
	output_print(output, "two\n", 4);
	output_finish(output);
	wait_for(output, OUTPUT_FINISHED);
	output_log(output, LOG_WARN, "three\n", 6);
	AUTO_FREE char *text = collect(output, fd);
	ck_assert_str_eq(text, "one\ntwo\nthree\n");
}

/* A child that holds a copy of every descriptor but `fds`, as a look-up or a new warden does. */
static pid_t fork_holder(int fds[2])
{
	int ready[2];
	ck_assert_int_eq(pipe2(ready, O_CLOEXEC), 0);
	pid_t pid = fork();
	if (pid == 0) {
		close_both(fds);
		close_both(ready);
		for (;;)
			pause();
	}
	close(ready[1]);
	char byte;
	ck_assert_int_eq(read(ready[0], &byte, 1), 0);
	close(ready[0]);
	return pid;
}

TEST(output_of_a_worker_ends_while_another_process_has_a_copy_of_its_pipes)
{
	int fd = capture(true);
	struct output *output = new_output(&(struct output_config){ 0 });
	struct output_route shown = { .console = true, .prefix = true };
	struct output_worker first = { .id = 1, .route = { shown } };
	struct output_worker second = { .id = 2, .route = { shown } };
	int fds[2], others[2];
	ck_assert_int_eq(output_add(output, &first, fds, NULL), 0);
	pid_t holder = fork_holder(fds);
	say(fds[0], "first\n");
	close_both(fds);
	/* The first one's pipe has ended and is closed before the second one's line is read. */
	ck_assert_int_eq(output_add(output, &second, others, NULL), 0);
	say(others[0], "second\n");
	close_both(others);
	output_worker_ended(output, 2);
	wait_for(output, OUTPUT_DRAINED);
	output_worker_ended(output, 1);
	wait_for(output, OUTPUT_DRAINED);
	output_finish(output);
	wait_for(output, OUTPUT_FINISHED);
	kill(holder, SIGKILL); /* it has a copy of the captured stdout too */
	waitpid(holder, NULL, 0);
	AUTO_FREE char *text = collect(output, fd);
	ck_assert_str_eq(text, "[0]:first\n[0]:second\n");
}

static void *log_a_line(void *output)
{
	output_log(output, LOG_WARN, "line\n", 5);
	return NULL;
}

TEST(output_thread_is_one_however_many_threads_log_first)
{
	for (int run = 0; run < 100; run++) {
		int fd = capture(true);
		struct output *output = new_output(&(struct output_config){ 0 });
		pthread_t threads[4];
		for (size_t i = 0; i < ARRAY_LEN(threads); i++)
			ck_assert_int_eq(pthread_create(&threads[i], NULL, log_a_line, output), 0);
		struct output_worker worker = { .id = 1, .keep_tail = { [OUTPUT_STDERR] = true } };
		int fds[2];
		ck_assert_int_eq(output_add(output, &worker, fds, NULL), 0);
		close_both(fds);
		for (size_t i = 0; i < ARRAY_LEN(threads); i++)
			pthread_join(threads[i], NULL);
		AUTO_FREE char *text = finish(output, fd);
		ck_assert_str_eq(text, "line\nline\nline\nline\n");
	}
}

TEST(output_prints_what_comes_after_an_end_without_a_thread)
{
	int fd = capture(true);
	struct output *output = new_output(&(struct output_config){ 0 });
	output_finish(output);
	wait_for(output, OUTPUT_FINISHED);
	output_log(output, LOG_WARN, "late\n", 5);
	AUTO_FREE char *text = collect(output, fd);
	ck_assert_str_eq(text, "late\n");
}

TEST(output_shows_a_line_that_all_print_once)
{
	int fd = capture(true);
	struct output *output = new_output(&(struct output_config){ .merge = 3 });
	int fds[3][2];
	for (uint32_t i = 0; i < 3; i++) {
		struct output_route shown = { .console = true, .prefix = true };
		struct output_worker worker = { .id = i,
						.local_rank = i,
						.rank = 4 + i,
						.role_name = "w",
						.route = { shown, shown } };
		ck_assert_int_eq(output_add(output, &worker, fds[i], NULL), 0);
	}
	for (int i = 0; i < 3; i++)
		say(fds[i][0], "alike\n");
	say(fds[1][0], "alone\n");
	for (int i = 0; i < 3; i++)
		close_both(fds[i]);
	AUTO_FREE char *text = finish(output, fd);
	ck_assert_str_eq(text, "3x [w0-2]:alike\n[w1]:alone\n");
}

TEST(output_writes_log_files_raw_and_copies_lines_that_match)
{
	int fd = capture(true);
	AUTO_FREE char *directory = temporary_directory();
	AUTO_FREE char *log = mem_printf("%s/stdout.log", directory);
	AUTO_FREE char *filtered = mem_printf("%s/filtered.log", directory);
	struct output_config config = { .prefix = "<$rank@$host> " };
	strv_add(&config.filters[OUTPUT_STDOUT], "loss");
	struct output *output = new_output(&config);
	strv_done(&config.filters[OUTPUT_STDOUT]);
	struct output_worker worker = { .id = 1,
					.rank = 12,
					.host = "n1",
					.route = { { .file = log, .filter_file = filtered } } };
	int fds[2];
	ck_assert_int_eq(output_add(output, &worker, fds, NULL), 0);
	say(fds[0], "loss 3\nother\r50%\rloss 2");
	close_both(fds);
	AUTO_FREE char *text = finish(output, fd);
	ck_assert_str_eq(text, "");
	expect_file(directory, "stdout.log", "loss 3\nother\r50%\rloss 2");
	expect_file(directory, "filtered.log", "<12@n1> loss 3\n<12@n1> loss 2\n");
	rmdir(directory);
}

TEST(output_keeps_a_shared_file_between_workers_that_use_it_one_after_the_other)
{
	int fd = capture(true);
	AUTO_FREE char *directory = temporary_directory();
	AUTO_FREE char *filtered = mem_printf("%s/filtered.log", directory);
	struct output_config config = { .prefix = "$rank " };
	strv_add(&config.filters[OUTPUT_STDOUT], "x");
	struct output *output = new_output(&config);
	strv_done(&config.filters[OUTPUT_STDOUT]);
	for (uint32_t rank = 0; rank < 3; rank++) {
		struct output_worker worker = { .id = rank,
						.rank = rank,
						.local_rank = rank,
						.route = { { .filter_file = filtered } } };
		int fds[2];
		ck_assert_int_eq(output_add(output, &worker, fds, NULL), 0);
		say(fds[0], "x\n");
		close_both(fds);
		output_worker_ended(output, rank);
		wait_for(output, OUTPUT_DRAINED);
	}
	AUTO_FREE char *text = finish(output, fd);
	expect_file(directory, "filtered.log", "0 x\n1 x\n2 x\n");
	rmdir(directory);
}

TEST(output_goes_on_when_a_log_cannot_be_written_and_says_what_is_missing)
{
	int fd = capture(true);
	struct output *output = new_output(&(struct output_config){ 0 });
	struct output_worker worker = {
		.id = 1,
		.route = { { .console = true, .prefix = true, .file = "/dev/full" },
			   { .file = "/dev/null/nowhere" } }
	};
	int fds[2];
	ck_assert_int_eq(output_add(output, &worker, fds, NULL), 0);
	say(fds[0], "hello\n");
	say(fds[1], "four");
	wait_for(output, OUTPUT_TROUBLE);
	close_both(fds);
	output_finish(output);
	wait_for(output, OUTPUT_FINISHED);
	AUTO(buf_done) struct buf missing = BUF_INIT;
	output_missing(output, &missing);
	ck_assert_ptr_nonnull(strstr(buf_str(&missing),
				     "/dev/full: 6 bytes are missing (No space left on device)"));
	ck_assert_ptr_nonnull(strstr(buf_str(&missing), "/dev/null/nowhere: 4 bytes are missing"));
	AUTO_FREE char *text = collect(output, fd);
	ck_assert_str_eq(text, "[0]:hello\n");
}

TEST(output_goes_on_when_its_stdout_is_not_read)
{
	int fd = capture(false);
	close(fd);
	struct output *output = new_output(&(struct output_config){ 0 });
	struct output_worker worker = { .id = 1, .route = { { .console = true, .prefix = true } } };
	int fds[2];
	ck_assert_int_eq(output_add(output, &worker, fds, NULL), 0);
	say(fds[0], "hello\n");
	wait_for(output, OUTPUT_TROUBLE);
	say(fds[0], "again\n");
	close_both(fds);
	output_finish(output);
	wait_for(output, OUTPUT_FINISHED);
	AUTO(buf_done) struct buf missing = BUF_INIT;
	output_missing(output, &missing);
	ck_assert_str_eq(buf_str(&missing), "stdout: 20 bytes are missing (Broken pipe)\n");
	output_free(output);
}

static void count_trouble(void *arg, const char *text UNUSED)
{
	++*(int *)arg;
}

TEST(disk_rotates_between_lines)
{
	AUTO_FREE char *directory = temporary_directory();
	AUTO_FREE char *path = mem_printf("%s/log", directory);
	int troubles = 0;
	struct disk *disk = disk_new(20, DISK_HANG_NS, count_trouble, &troubles);
	struct disk_file *file = disk_open(disk, path);
	for (int i = 0; i < 5; i++)
		disk_write(disk, file, "eight..\n", 8);
	disk_close(disk, file);
	disk_flush(disk);
	disk_free(disk);
	ck_assert_int_eq(troubles, 0);
	expect_file(directory, "log", "eight..\n");
	expect_file(directory, "log.1", "eight..\neight..\n");
	rmdir(directory);
}

TEST(disk_that_hangs_stops_nothing_and_is_reported_once)
{
	AUTO_FREE char *directory = temporary_directory();
	AUTO_FREE char *path = mem_printf("%s/fifo", directory);
	ck_assert_int_eq(mkfifo(path, 0600), 0); /* opening it waits for a reader who never comes */
	int troubles = 0;
	struct disk *disk = disk_new(0, 20 * NS_PER_MS, count_trouble, &troubles);
	struct disk_file *file = disk_open(disk, path);
	static char data[256 * 1024];
	size_t sent = 0;
	for (; sent <= DISK_BACKLOG_MAX + 3 * sizeof(data); sent += sizeof(data))
		disk_write(disk, file, data, sizeof(data));
	disk_close(disk, file);
	disk_flush(disk);
	ck_assert_int_eq(troubles, 1);
	AUTO(buf_done) struct buf missing = BUF_INIT;
	AUTO_FREE char *expected = mem_printf(
		"%s: %zu bytes are missing (the file system does not answer)\n", path, sent);
	disk_missing(disk, &missing);
	ck_assert_str_eq(buf_str(&missing), expected);
	disk_free(disk);
	unlink(path);
	rmdir(directory);
}
