#include "unit.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/str.h"
#include "run/tell/report.h"
#include "run/tell/text.h"

static struct history history;
static struct run_config config;
static struct report report;
static struct buf out;

static void begin(void)
{
	setenv("TZ", "UTC", 1);
	history_begin(&history, 0);
	history.wall_offset_ns = 1794771762 * NS_PER_S; /* 2026-11-15 19:42:42 */
	strcpy(history.host, "localhost");
	history_begin_attempt(&history, 0, 4, 0);
	config = (struct run_config){ .run_id = strdup("job"), .role = "default", .nproc = 4 };
	config.entry = (struct entry){ .path = strdup("/usr/bin/python"),
				       .title = strdup("exit3.py"),
				       .python = true };
	report = (struct report){ &config, &history, NULL };
}

static void end(void)
{
	history_done(&history);
	run_config_done(&config);
	buf_done(&out);
}

static struct history_failure *add(uint32_t rank, enum exit_kind kind, int value, bool stopped)
{
	bool first = !stopped && !history_cause(history_last(&history));
	struct history_failure *failure = history_add(&history);
	failure->first = first;
	failure->rank = failure->local_rank = rank;
	failure->pid = (pid_t)(20022 + rank);
	failure->status = (struct exit_status){ kind, value, false };
	failure->stopped = stopped;
	failure->started_ns = 1;
	failure->ended_ns = 1 + 500 * NS_PER_MS + rank;
	return failure;
}

static void finish(enum attempt_end how)
{
	history_end_attempt(&history, how, 800 * NS_PER_MS);
	history_end(&history, NS_PER_S);
}

TEST(torchrun_table_is_byte_exact)
{
	begin();
	add(1, EXIT_CODE, 3, false);
	add(0, EXIT_SIGNAL, SIGTERM, true);
	finish(ATTEMPT_FAILED);
	report_torchrun(&report, &out);
	ck_assert_str_eq(buf_str(&out),
			 "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n"
			 "============================================================\n"
			 "exit3.py FAILED\n"
			 "------------------------------------------------------------\n"
			 "Failures:\n"
			 "[1]:\n"
			 "  time      : 2026-11-15_19:42:42\n"
			 "  host      : localhost\n"
			 "  rank      : 0 (local_rank: 0)\n"
			 "  exitcode  : -15 (pid: 20022)  (SIGTERM)\n"
			 "  error_file: <N/A>\n"
			 "  traceback : Signal 15 (SIGTERM) received by PID 20022\n"
			 "------------------------------------------------------------\n"
			 "Root Cause (first observed failure):\n"
			 "[0]:\n"
			 "  time      : 2026-11-15_19:42:42\n"
			 "  host      : localhost\n"
			 "  rank      : 1 (local_rank: 1)\n"
			 "  exitcode  : 3 (pid: 20023) \n"
			 "  error_file: <N/A>\n"
			 "  traceback : To enable traceback see: "
			 "https://pytorch.org/docs/stable/elastic/errors.html\n"
			 "============================================================\n");
	end();
}

TEST(torchrun_table_is_as_wide_as_it_must_be)
{
	begin();
	add(0, EXIT_SIGNAL, SIGKILL, false);
	finish(ATTEMPT_FAILED);
	report_torchrun(&report, &out);
	ck_assert_ptr_nonnull(strstr(buf_str(&out),
				     "\n======================================================\n"));
	ck_assert_ptr_nonnull(strstr(buf_str(&out), "Failures:\n  <NO_OTHER_FAILURES>\n-"));
	end();
}

TEST(people_read_the_cause_first_and_what_to_try_last)
{
	begin();
	config.max_restarts = 1;
	config.entry.fixed = 2;
	static char *const words[] = { "python", "-u", "exit3.py", "--lr", "0.1\n", NULL };
	strv_add_all(&config.entry.argv, words);
	add(2, EXIT_CODE, 1, false);
	finish(ATTEMPT_FAILED);
	history_begin_attempt(&history, 1, 4, 900 * NS_PER_MS);
	struct history_failure *cause = add(1, EXIT_SIGNAL, SIGKILL, false);
	cause->captured = true;
	buf_append_str(&cause->tail, "step 1\r\x1b[32mstep 2\x1b[0m\r\nlast \xff words\n");
	add(3, EXIT_SIGNAL, SIGTERM, true);
	add(2, EXIT_SIGNAL, SIGTERM, true);
	add(0, EXIT_CODE, 7, false)->ended_ns = 600 * NS_PER_MS;
	finish(ATTEMPT_FAILED);
	report.log_dir = "/logs/job_x";
	report_people(&report, false, &out);
	ck_assert_str_eq(
		buf_str(&out),
		"muster: job failed: rank 1 of 4 ended with SIGKILL after 500 ms\n"
		"  first cause     rank 1 (local rank 1) on localhost, pid 20023, 2026-11-15 "
		"19:42:42\n"
		"  command         exit3.py --lr 0.1 \n"
		"  output          the end of its stderr\n"
		"                  step 2\n"
		"                  last \xef\xbf\xbd words\n"
		"  other failures  2 ended with SIGTERM when the group was stopped (ranks 2, 3)\n"
		"                  1 ended with exit code 7 (rank 0)\n"
		"  attempts        1: 800 ms, rank 2 ended with exit code 1\n"
		"                  2: 0 ms, rank 1 ended with SIGKILL\n"
		"  report          /logs/job_x/report.json\n"
		"  try             muster did not send it: most often the kernel's out-of-memory "
		"killer; look at "
		"'dmesg -T | grep -i oom' and lower the memory a worker needs\n");
	end();
}

TEST(people_get_one_line_for_a_start_that_failed)
{
	begin();
	struct history_failure *cause = add(0, EXIT_UNKNOWN, 0, false);
	cause->reason = FAILURE_SPAWN;
	cause->spawn_errno = ENOEXEC;
	finish(ATTEMPT_FAILED);
	report_people(&report, false, &out);
	ck_assert_str_eq(buf_str(&out),
			 "muster: job failed: rank 0 of 4 could not be started: '/usr/bin/python': "
			 "neither a program for this machine nor a script with a #! line\n");
	end();
}

TEST(people_get_one_line_for_a_job_they_stopped)
{
	begin();
	history.stop_signal = SIGINT;
	add(0, EXIT_SIGNAL, SIGKILL, true);
	finish(ATTEMPT_STOPPED);
	report_people(&report, false, &out);
	ck_assert_str_eq(buf_str(&out),
			 "muster: stopped by SIGINT after 1.0 s; 1 worker had to be killed\n");
	end();
}

TEST(people_read_the_error_of_a_worker_that_was_stopped_while_it_failed)
{
	begin();
	char path[] = "/tmp/report_test_XXXXXX";
	int fd = mkstemp(path);
	static const char error[] = "{\"message\": \"ValueError: too\\nlong\"}";
	ck_assert_int_eq(fd_write_all(fd, error, sizeof(error) - 1), 0);
	close(fd);
	add(0, EXIT_CODE, 1, false);
	add(1, EXIT_SIGNAL, SIGTERM, true)->error_file = strdup(path);
	add(2, EXIT_SIGNAL, SIGTERM, true)->error_file = strdup("/nowhere/error.json");
	finish(ATTEMPT_FAILED);
	report_people(&report, false, &out);
	ck_assert_ptr_nonnull(strstr(
		buf_str(&out),
		"  other failures  2 ended with SIGTERM when the group was stopped (ranks 1, 2)\n"
		"                  rank 1 left an error: ValueError: too\n"));
	unlink(path);
	end();
}

TEST(people_read_what_is_wrong_with_an_error_file)
{
	begin();
	char path[] = "/tmp/report_test_XXXXXX";
	int fd = mkstemp(path);
	ck_assert_int_eq(fd_write_all(fd, "{\"mess", 6), 0);
	close(fd);
	struct history_failure *cause = add(0, EXIT_CODE, 1, false);
	cause->error_file = strdup(path);
	finish(ATTEMPT_FAILED);
	report_people(&report, false, &out);
	ck_assert_ptr_nonnull(strstr(buf_str(&out), " is cut short; its output is above\n"));
	unlink(path);
	end();
}

TEST(hint_names_the_interpreter_that_lacks_a_module)
{
	begin();
	struct history_failure *cause = add(0, EXIT_CODE, 1, false);
	cause->captured = true;
	buf_append_str(&cause->tail, "ModuleNotFoundError: No module named 'x'\n");
	finish(ATTEMPT_FAILED);
	report_people(&report, true, &out);
	ck_assert_ptr_nonnull(
		strstr(buf_str(&out), "install the module for /usr/bin/python, or name another"));
	ck_assert_ptr_nonnull(strstr(buf_str(&out), "\x1b[1;31mmuster: job failed\x1b[0m"));
	end();
}

TEST(report_file_is_one_json_object_whatever_was_written)
{
	begin();
	strv_add(&config.entry.argv, "odd \xfe \"word\"\n");
	struct history_failure *cause = add(0, EXIT_CODE, 1, false);
	cause->captured = true;
	buf_append(&cause->tail, "a\0b\xff", 4);
	finish(ATTEMPT_FAILED);
	report_json(&report, 1, &out);
	const char *text = buf_str(&out);
	ck_assert_ptr_nonnull(strstr(text, "\"stderr_tail\":\"a?b\\udcff\""));
	ck_assert_ptr_nonnull(strstr(text, "\"command\":[\"odd \\udcfe \\\"word\\\"\\n\"]"));
	ck_assert_ptr_nonnull(strstr(text, "\"first_cause\":0,\"failures\":[{\"rank\":0,"));
	ck_assert(str_ends(text, "]}]}\n"));
	end();
}

TEST(text_tail_counts_lines)
{
	ck_assert_str_eq(text_tail("a\nb\nc\n", 2), "b\nc\n");
	ck_assert_str_eq(text_tail("a\nb\nc", 1), "c");
	ck_assert_str_eq(text_tail("a\nb", 5), "a\nb");
	ck_assert_str_eq(text_tail("", 3), "");
	ck_assert_str_eq(text_tail("\n", 3), "\n");
}

TEST(last_words_are_the_exception_or_the_last_line)
{
	static const char *const cases[][2] = {
		{ "", "" },
		{ "\n  \n", "" },
		{ "one\n  two \n\n", "two" },
		{ "Traceback (most recent call last):\n  File \"a.py\"\n    raise\n"
		  "ValueError: boom\nsome noise at exit\n",
		  "ValueError: boom" },
		{ "Traceback (most recent call last):\n  File \"a.py\"\nKeyError: 1\n\n"
		  "During handling of the above exception, another exception occurred:\n\n"
		  "Traceback (most recent call last):\n  File \"a.py\"\nOSError: 2\n",
		  "OSError: 2" },
		{ "Traceback (most recent call last):\n  File \"a.py\"\n", "" },
		{ "0123456789012345678\xc3\xa9tait", "0123456789012345678" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		char words[21];
		text_last_words(cases[i][0], words, sizeof(words));
		ck_assert_str_eq(words, cases[i][1]);
	}
}

TEST(text_is_harmless_after_cleaning)
{
	static const char *const cases[][2] = {
		{ "plain\ttext\n", "plain\ttext\n" },
		{ "\x1b]0;title\atext\x1b]8;;x\x1b\\link", "textlink" },
		{ "10%\r20%\r30%", "30%" },
		{ "win\r\n", "win\n" },
		{ "a\b\ab", "ab" },
		{ "\xc3\xa9 \xc3 \xed\xa0\x80",
		  "\xc3\xa9 \xef\xbf\xbd \xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd" },
		{ "\xc2\x9b"
		  "31mred \xe2\x80\xaetxt \xe2\x80\x8dok",
		  "31mred txt \xe2\x80\x8dok" },
		{ "cut\x1b[3", "cut" },
		{ "cut\x1b", "cut" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(buf_done) struct buf text = BUF_INIT;
		text_clean(&text, cases[i][0], strlen(cases[i][0]));
		ck_assert_str_eq(buf_str(&text), cases[i][1]);
	}
}

TEST(times_that_nobody_knows_are_not_printed)
{
	begin();
	add(1, EXIT_UNKNOWN, 0, false)->first = true;
	struct history_failure *lost = &history_last(&history)->failures[0];
	lost->reason = FAILURE_WARDEN;
	lost->started_ns = 0;
	finish(ATTEMPT_FAILED);
	report_people(&report, false, &out);
	ck_assert_ptr_null(strstr(buf_str(&out), " after "));
	buf_clear(&out);
	report_json(&report, 1, &out);
	const char *failures = strstr(buf_str(&out), "\"failures\"");
	ck_assert_ptr_nonnull(failures);
	ck_assert_ptr_null(strstr(failures, "started"));
	ck_assert_ptr_null(strstr(failures, "duration"));
	end();
}
