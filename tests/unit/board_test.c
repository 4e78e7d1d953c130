/* What the page of a job is told: everything, and changes. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "proto/dash/board.h"
#include "proto/dash/secret.h"
#include "proto/dash/wish.h"
#include "proto/json_value.h"

#define RANKS_MAX 1000

static const char *const columns[] = { "host", "state", "pid", "cpu", "mem", "step", "silent" };

/* A page: it knows nothing but what it is told. */
struct page {
	int64_t n, base;
	int64_t c[ARRAY_LEN(columns)][RANKS_MAX];
	size_t hosts;
};

static int64_t number(struct json_value value)
{
	int64_t number = INT64_MIN;
	json_value_int(value, &number);
	return number;
}

static void take_column(struct page *page, size_t column, struct json_value told, bool pairs)
{
	struct json_value item;
	struct json_in in;
	int64_t at = 0;
	for (json_value_enter(told, &in); json_value_next(&in, &item); at++) {
		if (pairs) {
			at += number(item);
			ck_assert(json_value_next(&in, &item));
		}
		ck_assert_int_lt(at, page->n);
		page->c[column][at] = number(item);
	}
	ck_assert(pairs || at == page->n);
}

static void take(struct page *page, struct buf *text)
{
	struct json_value root, host;
	struct json_in in;
	ck_assert_int_eq(json_value_parse(buf_str(text), buf_len(text), &root), 0);
	if (json_value_is_true(json_value_get(root, "all"))) {
		*page = (struct page){ .n = number(json_value_get(root, "n")) };
		ck_assert_int_le(page->n, RANKS_MAX);
	}
	if (json_value_get(root, "base").kind != JSON_NONE)
		page->base = number(json_value_get(root, "base"));
	struct json_value told = json_value_get(root, "c");
	for (size_t i = 0; i < ARRAY_LEN(columns); i++) {
		char pairs[16];
		snprintf(pairs, sizeof(pairs), "~%s", columns[i]);
		struct json_value whole = json_value_get(told, columns[i]);
		if (whole.kind != JSON_NONE)
			take_column(page, i, whole, false);
		take_column(page, i, json_value_get(told, pairs),
			    json_value_get(told, pairs).kind != JSON_NONE || page->n > 0);
	}
	for (json_value_enter(json_value_get(root, "hosts"), &in); json_value_next(&in, &host);)
		page->hosts = MAX(page->hosts, (size_t)number(json_value_first(host)) + 1);
}

static void assert_page_is_right(const struct page *page, const struct board *board)
{
	ck_assert_int_eq(page->n, (int64_t)board->count);
	ck_assert_int_eq(page->base, board->base);
	ck_assert_uint_eq(page->hosts, board->host_count);
	for (size_t column = 0; column < ARRAY_LEN(columns); column++)
		for (size_t i = 0; i < board->count; i++)
			ck_assert_int_eq(page->c[column][i], board->ranks[i].now[column]);
}

/* The state of a host with workers from rank `base` on. */
static void put_state(struct buf *out, int base, int count, int step, double cpu_s, int mib)
{
	buf_printf(out, "{\"state\":\"running\",\"progress\":{\"steps_per_s\":2.5,\"left_s\":9.0,"
			"\"total_steps\":100},\"workers\":[");
	for (int i = base; i < base + count; i++)
		buf_printf(out,
			   "%s{\"rank\":%d,\"pid\":%d,\"state\":\"running\",\"cpu_s\":%.3f,"
			   "\"resident_bytes\":%lld,\"step\":%d,\"silent_s\":0.5}",
			   i > base ? "," : "", i, 1000 + i, cpu_s * (1 + i % 7),
			   (long long)mib << 20, step + i % 3);
	buf_append_str(out, "]}");
}

/* All hosts tell their states, with `per_host` workers each. */
static void look(struct board *board, int ranks, int per_host, uint64_t now_s, int step,
		 double cpu_s, int mib)
{
	board_begin(board, (size_t)ranks, now_s * NS_PER_S, now_s * 1000);
	for (int base = 0, node = 0; base < ranks; base += per_host, node++) {
		AUTO(buf_done) struct buf text = BUF_INIT;
		char name[16];
		snprintf(name, sizeof(name), "node%d", node);
		put_state(&text, base, MIN(per_host, ranks - base), step, cpu_s, mib);
		ck_assert_int_eq(board_take(board, name, node, false,
					    bytes_of(buf_data(&text), buf_len(&text))),
				 0);
	}
	board_end(board);
}

static size_t tell(struct board *board, struct page *page)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	if (board_put_changes(board, &text))
		take(page, &text);
	assert_page_is_right(page, board);
	return buf_len(&text);
}

TEST(a_page_that_is_told_changes_knows_what_one_knows_that_is_told_all)
{
	struct board *board = board_new();
	struct page *page = calloc(1, sizeof(*page)), *late = calloc(1, sizeof(*late));
	for (int i = 1; i <= 20; i++) {
		look(board, 24, 8, (uint64_t)i, i * 2, i * (i % 3) * 0.3, 100 + i % 5 * 20);
		tell(board, page);
	}
	AUTO(buf_done) struct buf all = BUF_INIT;
	board_put_all(board, &all);
	take(late, &all);
	assert_page_is_right(late, board);
	ck_assert_int_eq(page->base, 40);
	free(page);
	free(late);
	board_free(board);
}

TEST(the_page_of_1000_busy_ranks_gets_less_than_16_kB_a_second)
{
	struct board *board = board_new();
	struct page *page = calloc(1, sizeof(*page));
	look(board, 1000, 8, 1, 0, 0, 100);
	tell(board, page);
	for (int i = 2; i <= 10; i++) {
		/* every rank: another step, another share of a CPU, other memory */
		look(board, 1000, 8, (uint64_t)i, i * 3, i * i * 0.1, 100 + i * 30);
		size_t len = tell(board, page);
		ck_assert_uint_gt(len, 0);
		ck_assert_uint_lt(len, 16000);
	}
	free(page);
	board_free(board);
}

TEST(a_board_says_nothing_while_nothing_changes)
{
	struct board *board = board_new();
	struct page *page = calloc(1, sizeof(*page));
	look(board, 8, 8, 1, 5, 0, 100);
	tell(board, page);
	look(board, 8, 8, 1, 5, 0, 100);
	ck_assert_uint_eq(tell(board, page), 0);
	look(board, 8, 8, 1, 5, 0, 101); /* a tremble */
	ck_assert_uint_eq(tell(board, page), 0);
	look(board, 8, 8, 1, 5, 0, 110);
	ck_assert_uint_gt(tell(board, page), 0);
	free(page);
	board_free(board);
}

TEST(a_board_marks_ranks_whose_host_does_not_answer)
{
	struct board *board = board_new();
	struct page *page = calloc(1, sizeof(*page));
	look(board, 8, 4, 1, 5, 0, 100);
	tell(board, page);
	board_begin(board, 8, 2 * NS_PER_S, 2000);
	AUTO(buf_done) struct buf text = BUF_INIT;
	put_state(&text, 0, 4, 6, 0, 100);
	board_take(board, "node0", 0, false, bytes_of(buf_data(&text), buf_len(&text)));
	board_take(board, "node1", 1, true, bytes_str("its connection is lost"));
	board_end(board);
	tell(board, page);
	ck_assert_int_eq(page->c[1][3], BOARD_RUNNING);
	ck_assert_int_eq(page->c[1][4], BOARD_UNKNOWN);
	free(page);
	board_free(board);
}

TEST(a_board_says_that_a_job_stands_still_while_none_of_its_ranks_goes_on)
{
	struct board *board = board_new();
	AUTO(buf_done) struct buf still = BUF_INIT, goes_on = BUF_INIT, out = BUF_INIT;
	buf_append_str(&still, "{\"workers\":[{\"rank\":0,\"state\":\"running\",\"step\":9,"
			       "\"still_s\":150.5,\"usual_step_s\":0.25},"
			       "{\"rank\":1,\"state\":\"ended\",\"step\":9}]}");
	buf_append_str(&goes_on, "{\"workers\":[{\"rank\":2,\"state\":\"running\",\"step\":9}]}");
	board_begin(board, 3, NS_PER_S, 1000);
	board_take(board, "a", 0, false, bytes_of(buf_data(&still), buf_len(&still)));
	board_end(board);
	board_put_all(board, &out);
	ck_assert_ptr_nonnull(strstr(buf_str(&out), "\"still_s\":150,\"usual_ms\":250"));
	ck_assert_int_eq(board->ranks[0].now[BOARD_SILENT], 128);
	board_begin(board, 3, 2 * NS_PER_S, 2000);
	board_take(board, "a", 0, false, bytes_of(buf_data(&still), buf_len(&still)));
	board_take(board, "b", 1, false, bytes_of(buf_data(&goes_on), buf_len(&goes_on)));
	board_end(board);
	buf_clear(&out);
	board_put_all(board, &out);
	ck_assert_ptr_null(strstr(buf_str(&out), "still_s"));
	ck_assert_int_eq(board->ranks[0].now[BOARD_SILENT], 128);
	board_free(board);
}

TEST(a_board_of_a_job_that_is_over_shows_no_rank_as_running)
{
	struct board *board = board_new();
	struct page *page = calloc(1, sizeof(*page));
	board_finish(board, &(struct board_over){ .count = 8 }, 500); /* nobody has looked yet */
	look(board, 8, 4, 1, 5, 0, 100);
	tell(board, page);
	board_finish(board, &(struct board_over){ .first = 4, .count = 4 }, 1100);
	board_mark(board, 6, BOARD_FAILED);
	board_mark(board, 8, BOARD_FAILED);
	tell(board, page);
	ck_assert_int_eq(page->c[1][3], BOARD_UNKNOWN);
	ck_assert_int_eq(page->c[1][4], BOARD_ENDED);
	ck_assert_int_eq(page->c[1][6], BOARD_FAILED);
	ck_assert_int_eq(board->samples[board->sample_count - 1].running, 0);
	look(board, 8, 4, 2, 5, 0, 100);
	board->ranks[3].now[BOARD_STATE] = BOARD_UNKNOWN; /* its host did not answer in time */
	board_finish(board, &(struct board_over){ .first = 4, .count = 4, .everywhere = true },
		     2100);
	tell(board, page);
	ck_assert_int_eq(page->c[1][3], BOARD_ENDED);
	free(page);
	board_free(board);
}

TEST(a_board_tells_everything_when_the_job_changes_its_size)
{
	struct board *board = board_new();
	struct page *page = calloc(1, sizeof(*page));
	look(board, 16, 8, 1, 5, 0, 100);
	tell(board, page);
	look(board, 8, 8, 2, 5, 0, 100);
	tell(board, page);
	look(board, 24, 8, 3, 5, 0, 100);
	tell(board, page);
	ck_assert_int_eq(page->n, 24);
	ck_assert_uint_eq(page->hosts, 3);
	free(page);
	board_free(board);
}

TEST(a_board_takes_what_is_not_a_state_as_a_host_without_one)
{
	struct board *board = board_new();
	struct page *page = calloc(1, sizeof(*page));
	board_begin(board, 2, NS_PER_S, 1000);
	ck_assert_int_eq(board_take(board, "a", 0, false, bytes_str("<b>nonsense")), -EINVAL);
	ck_assert_int_eq(board_take(board, "b", 1, false,
				    bytes_str("{\"workers\":[{\"rank\":-1},{\"rank\":1e9},"
					      "{\"rank\":99999999999},{\"rank\":\"0\"},7]}")),
			 0);
	board_end(board);
	tell(board, page);
	ck_assert_int_eq(page->n, 2);
	ck_assert_int_eq(page->c[1][0], BOARD_UNKNOWN);
	free(page);
	board_free(board);
}

TEST(charts_keep_a_bounded_number_of_samples_over_the_whole_time)
{
	struct board *board = board_new();
	struct page *page = calloc(1, sizeof(*page));
	for (int i = 1; i <= 3 * BOARD_SAMPLES_MAX; i++) {
		look(board, 1, 1, (uint64_t)i, i, 0, 10);
		tell(board, page);
	}
	ck_assert_uint_le(board->sample_count, BOARD_SAMPLES_MAX);
	ck_assert_uint_ge(board->sample_count, BOARD_SAMPLES_MAX / 4);
	ck_assert_int_eq(board->samples[0].when_ms, 1000);
	ck_assert_int_gt(board->samples[board->sample_count - 1].when_ms, 2900 * BOARD_SAMPLES_MAX);
	free(page);
	board_free(board);
}

/* ---- wishes ---- */

TEST(a_wish_names_what_to_do_and_ranks)
{
	struct wish wish;
	ck_assert_int_eq(
		wish_parse(bytes_str("{\"do\":\"workers\",\"ranks\":[3,17]}"), &wish, NULL), 0);
	ck_assert_int_eq(wish.kind, WISH_WORKERS);
	ck_assert_uint_eq(wish.rank_count, 2);
	ck_assert_uint_eq(wish.ranks[1], 17);
	ck_assert_int_eq(wish_parse(bytes_str("{\"do\":\"stop\"}"), &wish, NULL), 0);
	ck_assert_int_eq(wish.kind, WISH_STOP);
}

TEST(what_is_not_a_wish_is_refused)
{
	static const char *const texts[] = {
		"",
		"stop",
		"[]",
		"{}",
		"{\"do\":\"nothing\"}",
		"{\"do\":[\"stop\"]}",
		"{\"do\":\"stop\"",
		"{\"do\":\"stacks\",\"ranks\":7}",
		"{\"do\":\"stacks\",\"ranks\":[-1]}",
		"{\"do\":\"stacks\",\"ranks\":[\"x\"]}",
		"{\"do\":\"stacks\",\"ranks\":[0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,"
		"0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0,0]}",
	};
	struct wish wish;
	for (size_t i = 0; i < ARRAY_LEN(texts); i++)
		ck_assert_int_eq(wish_parse(bytes_str(texts[i]), &wish, NULL), -EINVAL);
}

TEST(variables_with_secrets_are_known_by_their_names)
{
	ck_assert(secret_is_name("AWS_SECRET_ACCESS_KEY=x"));
	ck_assert(secret_is_name("wandb_api_key=x"));
	ck_assert(secret_is_name("HF_TOKEN=x"));
	ck_assert(secret_is_name("MUSTER_TOKEN=x"));
	ck_assert(!secret_is_name("PATH=/secret"));
	ck_assert(!secret_is_name("MASTER_ADDR=token"));
}
