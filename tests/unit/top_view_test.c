/* The picture of `muster top`. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "cli/jobs/top_view.h"

static const char *step = ""; /* the member of workers that tell one */

/* The state of a host with `count` workers from rank `base` on; each has used rank * `cpu_s`. */
static void put_host(struct buf *out, const char *run_id, const char *host, int base, int count,
		     double cpu_s)
{
	buf_printf(out,
		   "%s{\"run_id\":\"%s\",\"host\":\"%s\",\"state\":\"running\",\"uptime_s\":10,"
		   "\"nodes\":2,\"world_size\":%d,\"restarts\":1,\"max_restarts\":3,\"workers\":[",
		   buf_len(out) > 1 ? "," : "", run_id, host, count);
	for (int i = base; i < base + count; i++)
		buf_printf(out,
			   "%s{\"rank\":%d,\"pid\":%d,\"state\":\"%s\",\"uptime_s\":10,"
			   "\"cpu_s\":%g,\"resident_bytes\":%d,\"last_line\":\"line of %d\"%s}",
			   i > base ? "," : "", i, 100 + i, i == 3 ? "ended" : "running", i * cpu_s,
			   (9 - i % 10) << 20, i, step);
	buf_append_str(out, "]}");
}

static void take(struct top_view *view, struct buf *text, uint64_t now_ns)
{
	buf_append_char(text, ']');
	ck_assert_int_eq(top_view_take(view, buf_str(text), buf_len(text), now_ns, NULL), 0);
	buf_clear(text);
	buf_append_char(text, '[');
}

static struct buf drawn(struct top_view *view, struct top_screen screen)
{
	struct buf picture = BUF_INIT;
	top_view_draw(view, screen, &picture);
	return picture;
}

static size_t count_lines(struct buf *picture)
{
	size_t count = 0;
	for (const char *at = buf_str(picture); *at; at++)
		count += *at == '\n';
	return count;
}

TEST(top_shows_jobs_ranks_and_workers)
{
	AUTO(top_view_done) struct top_view view = TOP_VIEW_INIT;
	AUTO(buf_done) struct buf text = BUF_INIT;
	buf_append_char(&text, '[');
	put_host(&text, "a", "one", 0, 4, 2);
	put_host(&text, "a", "two", 4, 2, 2);
	take(&view, &text, NS_PER_S);
	AUTO(buf_done) struct buf picture = drawn(&view, (struct top_screen){ .width = 0 });
	ck_assert_ptr_nonnull(strstr(buf_str(&picture),
				     "a  running  up 10.0 s  hosts 2  workers 4  "
				     "restarts 1 of 3\n      0 024e89\n"));
	ck_assert_ptr_nonnull(strstr(buf_str(&picture), "     5 two             105 running   100.0"
							"       4  line of 5\n"));
	ck_assert_ptr_null(strstr(buf_str(&picture), "\033"));
}

TEST(top_shows_the_steps_that_workers_tell)
{
	AUTO(top_view_done) struct top_view view = TOP_VIEW_INIT;
	AUTO(buf_done) struct buf text = BUF_INIT;
	buf_append_char(&text, '[');
	put_host(&text, "a", "one", 0, 1, 1);
	step = ",\"step\":17";
	put_host(&text, "a", "two", 1, 1, 1);
	take(&view, &text, NS_PER_S);
	AUTO(buf_done) struct buf one = drawn(&view, (struct top_screen){ .width = 0 });
	ck_assert_ptr_nonnull(strstr(buf_str(&one), " of 3  step 17\n"));
	ck_assert_ptr_nonnull(strstr(buf_str(&one), "        17  line of 1\n"));
	ck_assert_ptr_nonnull(strstr(buf_str(&one), "         -  line of 0\n"));
	put_host(&text, "a", "one", 0, 1, 1);
	step = ",\"step\":19";
	put_host(&text, "a", "two", 1, 1, 1);
	take(&view, &text, NS_PER_S);
	AUTO(buf_done) struct buf two = drawn(&view, (struct top_screen){ .width = 0 });
	ck_assert_ptr_nonnull(strstr(buf_str(&two), " of 3  steps 17-19\n"));
}

TEST(top_says_that_a_job_stands_still)
{
	AUTO(top_view_done) struct top_view view = TOP_VIEW_INIT;
	AUTO(buf_done) struct buf text = BUF_INIT;
	buf_append_char(&text, '[');
	step = ",\"step\":17,\"still_s\":150,\"usual_step_s\":0.25";
	put_host(&text, "a", "one", 0, 2, 1);
	take(&view, &text, NS_PER_S);
	AUTO(buf_done) struct buf picture = drawn(&view, (struct top_screen){ .width = 0 });
	const char *told =
		strstr(buf_str(&picture), "  step 17  no step for 2 min 30 s (usually 250 ms)\n");
	ck_assert_ptr_nonnull(told);
	ck_assert_ptr_nonnull(strstr(told, " 2 min 30 s        17  line of 1\n"));
	step = "";
}

TEST(top_counts_cpu_time_since_the_last_look)
{
	AUTO(top_view_done) struct top_view view = TOP_VIEW_INIT;
	AUTO(buf_done) struct buf text = BUF_INIT;
	buf_append_char(&text, '[');
	put_host(&text, "a", "one", 0, 3, 1);
	take(&view, &text, 10 * NS_PER_S);
	put_host(&text, "a", "one", 0, 3, 1.5);
	take(&view, &text, 12 * NS_PER_S); /* rank 2: 1 s in 2 s */
	AUTO(buf_done) struct buf picture = drawn(&view, (struct top_screen){ .width = 0 });
	ck_assert_ptr_nonnull(strstr(buf_str(&picture), "      0 025\n"));
}

TEST(top_sorts_by_what_the_key_says)
{
	AUTO(top_view_done) struct top_view view = TOP_VIEW_INIT;
	AUTO(buf_done) struct buf text = BUF_INIT;
	buf_append_char(&text, '[');
	put_host(&text, "a", "one", 0, 6, 1);
	take(&view, &text, NS_PER_S);
	top_view_key(&view, TOP_KEY_NEXT_SORT);
	ck_assert_int_eq(view.sort, TOP_SORT_CPU);
	AUTO(buf_done) struct buf by_cpu = drawn(&view, (struct top_screen){ .width = 80 });
	const char *five = strstr(buf_str(&by_cpu), "line of 5");
	ck_assert(five && five < strstr(buf_str(&by_cpu), "line of 4"));
	top_view_key(&view, TOP_KEY_LAST_SORT);
	top_view_key(&view, TOP_KEY_LAST_SORT);
	ck_assert_int_eq(view.sort, TOP_SORT_HOST);
}

TEST(top_fits_any_screen)
{
	AUTO(top_view_done) struct top_view view = TOP_VIEW_INIT;
	AUTO(buf_done) struct buf text = BUF_INIT;
	buf_append_char(&text, '[');
	for (int i = 0; i < 250; i++)
		put_host(&text, "a", "one", 8 * i, 8, 1);
	take(&view, &text, NS_PER_S);
	static const int sizes[][2] = { { 80, 24 }, { 200, 50 }, { 20, 5 }, { 1, 1 } };
	for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
		struct top_screen screen = { sizes[i][0], sizes[i][1], .terminal = true };
		AUTO(buf_done) struct buf picture = drawn(&view, screen);
		ck_assert_uint_lt(count_lines(&picture), (size_t)sizes[i][1]);
		top_view_key(&view, TOP_KEY_END);
		AUTO(buf_done) struct buf end = drawn(&view, screen);
		ck_assert_uint_lt(count_lines(&end), (size_t)sizes[i][1]);
		if (sizes[i][0] >= 80)
			ck_assert_ptr_nonnull(strstr(buf_str(&end), "line of 1999"));
		top_view_key(&view, TOP_KEY_HOME);
	}
	AUTO(buf_done) struct buf all = drawn(&view, (struct top_screen){ .width = 0 });
	ck_assert_uint_gt(count_lines(&all), 2000);
}

TEST(top_keeps_the_last_picture_when_the_answer_is_not_json)
{
	AUTO(top_view_done) struct top_view view = TOP_VIEW_INIT;
	AUTO(buf_done) struct buf text = BUF_INIT;
	buf_append_char(&text, '[');
	put_host(&text, "a", "one", 0, 2, 1);
	take(&view, &text, NS_PER_S);
	static const char *const wrong[] = { "", "[", "{}", "17" };
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		ck_assert_int_eq(top_view_take(&view, wrong[i], strlen(wrong[i]), NS_PER_S, NULL),
				 -EINVAL);
	AUTO(buf_done) struct buf picture = drawn(&view, (struct top_screen){ .width = 80 });
	ck_assert_ptr_nonnull(strstr(buf_str(&picture), "line of 1"));
}
