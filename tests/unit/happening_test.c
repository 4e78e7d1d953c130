/* What happens in a job is told in order, once the job has acted. */
#include "unit.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "run/tell/happening.h"

struct told {
	struct run_config config;
	struct group group;
	struct workers workers;
	struct history history;
	struct buf log;
	struct telling telling;
};

static void take_line(void *arg, enum log_level level UNUSED, const char *line, size_t len)
{
	struct told *told = arg;
	buf_append(&told->log, line, len);
}

static void told_open(struct told *told)
{
	*told = (struct told){ .config.shutdown_ns = 30 * NS_PER_S,
			       .group.alive = 1,
			       .log = BUF_INIT };
	told->telling = (struct telling){ .config = &told->config,
					  .workers = &told->workers,
					  .group = &told->group,
					  .history = &told->history };
	history_begin(&told->history, 1);
	log_set_level(LOG_INFO);
	log_set_sink(take_line, told);
}

static void told_close(struct told *told)
{
	log_set_sink(NULL, NULL);
	history_done(&told->history);
	free(told->telling.later);
	buf_done(&told->log);
}

static size_t count(struct told *told, const char *words)
{
	size_t times = 0;
	for (const char *at = buf_str(&told->log); (at = strstr(at, words)); at++)
		times++;
	return times;
}

/* The line asks whether a stop has been recorded before. */
TEST(the_first_ctrl_c_says_what_a_second_one_does_and_the_second_says_nothing)
{
	struct told told;
	told_open(&told);
	TELL(&told.telling, HAPPENED_STOP_REQUESTED, .signal = SIGINT);
	ck_assert_uint_eq(count(&told, "Ctrl-C again kills them"), 1);
	ck_assert_int_eq(told.history.stop_signal, SIGINT);
	TELL(&told.telling, HAPPENED_STOP_REQUESTED, .signal = SIGINT);
	ck_assert_uint_eq(count(&told, "Ctrl-C again"), 1);
	told_close(&told);
}

TEST(what_is_told_later_keeps_its_order_and_what_it_points_to)
{
	struct told told;
	told_open(&told);
	struct warden_event survivor = { .pid = 7, .comm = "nfs", .error = EPERM };
	char text[] = "rank 3 came with something else\n";
	history_begin_attempt(&told.history, 0, 4, 1);
	TELL_LATER(&told.telling, HAPPENED_SURVIVOR, .ended = &survivor);
	TELL_LATER(&told.telling, HAPPENED_HANG_EXPLAINED, .text = text);
	survivor.pid = 8;
	text[0] = '!';
	ck_assert_uint_eq(buf_len(&told.log), 0);
	happening_flush(&told.telling);
	ck_assert_str_eq(buf_str(&told.log),
			 "muster: warning: process 7 (nfs) may not be signalled (no permission) "
			 "and stays\n"
			 "muster: warning: rank 3 came with something else\n");
	ck_assert_str_eq(history_last(&told.history)->collectives,
			 "rank 3 came with something else\n");
	told_close(&told);
}

TEST(what_is_told_at_once_comes_after_what_waits_and_nothing_is_told_twice)
{
	struct told told;
	told_open(&told);
	TELL_LATER(&told.telling, HAPPENED_WARDEN_LOST);
	TELL(&told.telling, HAPPENED_STOP_REQUESTED, .signal = SIGINT);
	happening_flush(&told.telling);
	const char *log = buf_str(&told.log);
	ck_assert_ptr_nonnull(strstr(log, "the warden was killed"));
	ck_assert_uint_eq(count(&told, "the warden was killed"), 1);
	ck_assert(strstr(log, "the warden was killed") < strstr(log, "Ctrl-C again"));
	told_close(&told);
}
