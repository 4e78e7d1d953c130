/* The job's one log: bounded on the way, counted when something is lost, lines as they were. */
#include "unit.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "core/lines/line_queue.h"
#include "core/lines/log_wait.h"
#include "proto/joblog/job_log.h"

/* ---- the queue ---- */

TEST(lines_leave_the_queue_in_order_with_their_numbers)
{
	AUTO(line_queue_done) struct line_queue queue = LINE_QUEUE_INIT;
	struct queued_line line;
	line_queue_put(&queue, 3, 1, "ab", 2);
	line_queue_put(&queue, 70000, 0, "", 0);
	ck_assert(line_queue_first(&queue, &line));
	ck_assert_uint_eq(line.number, 0);
	ck_assert_uint_eq(line.rank, 3);
	ck_assert_uint_eq(line.stream, 1);
	ck_assert_mem_eq(line.text, "ab", 2);
	line_queue_drop(&queue);
	ck_assert(line_queue_first(&queue, &line));
	ck_assert_uint_eq(line.number, 1);
	ck_assert_uint_eq(line.rank, 70000);
	ck_assert_uint_eq(line.len, 0);
	line_queue_drop(&queue);
	ck_assert(!line_queue_first(&queue, &line));
	ck_assert_uint_eq(queue.dropped, 0);
}

TEST(a_flood_costs_no_more_than_the_bound_and_each_lost_line_has_a_number)
{
	AUTO(line_queue_done) struct line_queue queue = LINE_QUEUE_INIT;
	char text[100] = { 0 };
	uint64_t kept = 0;
	struct queued_line line;
	for (int i = 0; i < 1000000; i++)
		line_queue_put(&queue, 0, 0, text, sizeof(text));
	ck_assert_uint_le(buf_len(&queue.bytes), LINE_QUEUE_BYTES);
	ck_assert_uint_eq(queue.next, 1000000);
	for (; line_queue_first(&queue, &line); line_queue_drop(&queue))
		ck_assert_uint_eq(line.number, kept++);
	ck_assert_uint_gt(kept, LINE_QUEUE_BYTES / 200);
	ck_assert_uint_eq(queue.dropped, 1000000 - kept);
	line_queue_put(&queue, 0, 0, "x", 1);
	ck_assert(line_queue_first(&queue, &line));
	ck_assert_uint_eq(line.number, 1000000);
}

TEST(a_long_line_becomes_several)
{
	AUTO(line_queue_done) struct line_queue queue = LINE_QUEUE_INIT;
	AUTO_FREE char *text = mem_alloc(2 * LINE_QUEUE_LINE_MAX + 1);
	size_t sum = 0, count = 0;
	struct queued_line line;
	line_queue_put(&queue, 0, 0, text, 2 * LINE_QUEUE_LINE_MAX + 1);
	for (; line_queue_first(&queue, &line); line_queue_drop(&queue), count++)
		sum += line.len;
	ck_assert_uint_eq(count, 3);
	ck_assert_uint_eq(sum, 2 * LINE_QUEUE_LINE_MAX + 1);
}

TEST(hosts_share_the_rate_and_each_has_its_least)
{
	ck_assert_uint_eq(line_pace_rate(1), LINE_PACE_TOTAL);
	ck_assert_uint_eq(line_pace_rate(8), LINE_PACE_TOTAL / 8);
	ck_assert_uint_eq(line_pace_rate(100000), LINE_PACE_LEAST);
	ck_assert_uint_eq(line_pace_rate(0), LINE_PACE_TOTAL);
}

TEST(the_pace_allows_a_burst_and_then_the_rate)
{
	struct line_pace pace = { 0 };
	uint64_t now_ns = 5 * NS_PER_S, rate = 1000000, sent = 0;
	ck_assert_uint_eq(line_pace_room(&pace, rate, now_ns), LINE_PACE_BURST);
	for (uint64_t end_ns = now_ns + 10 * NS_PER_S; now_ns < end_ns;) {
		uint64_t room = line_pace_room(&pace, rate, now_ns);
		line_pace_spend(&pace, room);
		sent += room;
		uint64_t due_ns = line_pace_due_ns(&pace, rate);
		ck_assert_uint_gt(due_ns, now_ns);
		now_ns = due_ns;
	}
	ck_assert_uint_le(sent, LINE_PACE_BURST + 10 * rate);
	ck_assert_uint_ge(sent, 9 * rate);
	now_ns += 3600 * NS_PER_S;
	ck_assert_uint_eq(line_pace_room(&pace, rate, now_ns), LINE_PACE_BURST);
}

/* ---- the end of a round ---- */

TEST(the_end_waits_until_the_lines_are_taken)
{
	struct log_wait last_lines = { 0 };
	log_wait_round(&last_lines);
	ck_assert_uint_eq(log_wait_deadline_ns(&last_lines), NS_NEVER);
	ck_assert(log_wait_begin(&last_lines, 100));
	ck_assert_uint_eq(log_wait_deadline_ns(&last_lines), 100 + LOG_WAIT_UNASKED_NS);
	ck_assert(!log_wait_over(&last_lines, true, 101)); /* the question may be on its way */
	log_wait_asked(&last_lines);
	ck_assert_uint_eq(log_wait_deadline_ns(&last_lines), 100 + LOG_WAIT_NS);
	ck_assert(!log_wait_over(&last_lines, false, 100 + LOG_WAIT_UNASKED_NS));
	ck_assert(log_wait_over(&last_lines, true, 103));
	ck_assert(!log_wait_over(&last_lines, true, 104)); /* once */
}

TEST(the_end_does_not_wait_for_ever_and_not_twice_for_one_who_never_asks)
{
	struct log_wait last_lines = { 0 };
	ck_assert(log_wait_begin(&last_lines, 100));
	ck_assert(!log_wait_over(&last_lines, false, 99 + LOG_WAIT_UNASKED_NS));
	ck_assert(log_wait_over(&last_lines, false, 100 + LOG_WAIT_UNASKED_NS));
	log_wait_round(&last_lines);
	ck_assert(!log_wait_begin(&last_lines, 100 + LOG_WAIT_NS));
	log_wait_asked(&last_lines); /* another coordinator, which does */
	ck_assert(log_wait_begin(&last_lines, 200 + LOG_WAIT_NS));
	ck_assert(log_wait_over(&last_lines, false, 200 + 2 * LOG_WAIT_NS));
	log_wait_round(&last_lines); /* a slow one that asks is waited for the next time */
	ck_assert(log_wait_begin(&last_lines, 300 + 2 * LOG_WAIT_NS));
}

/* ---- blocks and the log ---- */

static void put(struct buf *out, enum line_kind kind, uint32_t rank, uint64_t number,
		const char *text)
{
	line_block_put(&(struct line_block){ kind, rank, number, bytes_str(text) }, out);
}

static void begin(struct buf *out, uint64_t id, uint64_t from)
{
	put(out, LINE_BEGIN, 0, id, "");
	put(out, LINE_FROM, 0, from, "");
}

static void take(struct job_log *log, uint16_t slot, struct buf *in, size_t piece, struct buf *out)
{
	for (size_t at = 0; at < buf_len(in); at += piece)
		ck_assert_int_eq(
			job_log_take(log, slot, slot == 0 ? "h0" : "h1",
				     bytes_of(buf_data(in) + at, MIN(piece, buf_len(in) - at)),
				     false, out),
			0);
	buf_clear(in);
}

TEST(lines_are_written_as_they_came_whatever_the_pieces)
{
	for (size_t piece = 1; piece <= 80; piece++) {
		AUTO(buf_done) struct buf in = BUF_INIT, out = BUF_INIT;
		AUTO(job_log_done) struct job_log log = JOB_LOG_INIT;
		begin(&in, 11, 0);
		put(&in, LINE_STDOUT, 3, 0, "a <b> \t");
		put(&in, LINE_STDERR, 70000, 1, "");
		put(&in, LINE_BOTH, 0, 2, "c\r");
		take(&log, 0, &in, piece, &out);
		ck_assert_str_eq(buf_str(&out), "[3]: a <b> \t\n[70000!]: \n[0]: c\r\n");
		ck_assert_uint_eq(log.lines, 3);
		ck_assert_uint_eq(log.missing, 0);
	}
}

TEST(missing_lines_are_told_where_they_are_missing_and_in_all)
{
	AUTO(buf_done) struct buf in = BUF_INIT, out = BUF_INIT;
	AUTO(job_log_done) struct job_log log = JOB_LOG_INIT;
	begin(&in, 11, 0);
	put(&in, LINE_STDOUT, 3, 0, "a");
	put(&in, LINE_STDOUT, 3, 5, "b");
	put(&in, LINE_NEXT, 0, 9, "");
	take(&log, 0, &in, 1000, &out);
	job_log_sum(&log, &out);
	ck_assert_str_eq(buf_str(&out), "[3]: a\nmuster: 4 lines of h0 are missing here\n[3]: b\n"
					"muster: 3 lines of h0 are missing here\n"
					"muster: 7 lines are missing in this log, of 9\n");
}

TEST(a_stream_that_begins_again_goes_on_and_what_was_under_way_is_counted)
{
	AUTO(buf_done) struct buf in = BUF_INIT, out = BUF_INIT;
	AUTO(job_log_done) struct job_log log = JOB_LOG_INIT;
	begin(&in, 11, 40); /* another coordinator had the first ones */
	put(&in, LINE_STDOUT, 3, 40, "a");
	buf_append_str(&in, "\1\2"); /* the beginning of a block that never comes */
	take(&log, 0, &in, 1000, &out);
	job_log_restart(&log);
	begin(&in, 11, 43); /* 41 and 42 were sent, and lost with the connection */
	put(&in, LINE_STDOUT, 3, 43, "b");
	take(&log, 1, &in, 1000, &out);
	ck_assert_str_eq(buf_str(&out), "[3]: a\nmuster: 2 lines of h1 are missing here\n[3]: b\n");
	ck_assert_uint_eq(log.missing, 2);
}

TEST(hosts_are_told_apart_and_hold_no_more_than_a_block)
{
	AUTO(buf_done) struct buf in = BUF_INIT, out = BUF_INIT;
	AUTO(job_log_done) struct job_log log = JOB_LOG_INIT;
	begin(&in, 11, 0);
	take(&log, 0, &in, 1000, &out);
	begin(&in, 12, 7);
	put(&in, LINE_STDOUT, 1, 7, "x");
	take(&log, 1, &in, 1000, &out);
	put(&in, LINE_STDOUT, 0, 0, "y");
	take(&log, 0, &in, 1000, &out);
	ck_assert_str_eq(buf_str(&out), "[1]: x\n[0]: y\n");
}

TEST(what_no_sender_would_send_ends_its_stream_alone)
{
	AUTO(buf_done) struct buf in = BUF_INIT, out = BUF_INIT;
	AUTO(job_log_done) struct job_log log = JOB_LOG_INIT;
	put(&in, LINE_STDOUT, 0, 0, "x");
	buf_data(&in)[15] = 1; /* a length of 64 KiB */
	struct bytes bad = bytes_of(buf_data(&in), buf_len(&in));
	ck_assert_int_eq(job_log_take(&log, 0, "h0", bad, false, &out), -EPROTO);
	ck_assert_int_eq(job_log_take(&log, 0, "h0", bad, false, &out), 0);
	buf_clear(&in);
	put(&in, LINE_STDOUT, 1, 0, "x");
	take(&log, 1, &in, 1000, &out);
	ck_assert_str_eq(buf_str(&out), "[1]: x\n");
}
