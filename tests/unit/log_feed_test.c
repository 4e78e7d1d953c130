/* The log of a whole job, for its page. */
#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "proto/dash/log_feed.h"
#include "proto/json_value.h"
#include "proto/log_block.h"

static void say(struct log_feed *feed, uint16_t slot, uint32_t rank, const char *text)
{
	AUTO(buf_done) struct buf block = BUF_INIT;
	log_block_head(&block, LOG_STDOUT, rank, strlen(text));
	buf_append_str(&block, text);
	ck_assert_int_eq(log_feed_take(feed, slot, bytes_of(buf_data(&block), buf_len(&block)),
				       false, NS_PER_S),
			 0);
}

/* What it tells, with the times taken out; "" for nothing. */
static char *told(struct log_feed *feed, uint64_t *at, size_t max)
{
	AUTO(buf_done) struct buf json = BUF_INIT, text = BUF_INIT;
	struct json_value root, line, item;
	struct json_in lines, items;
	log_feed_collect(feed, 10 * NS_PER_S, 1);
	if (!log_feed_put(feed, at, max, &json))
		return buf_take_str(&text);
	ck_assert_int_eq(json_value_parse(buf_str(&json), buf_len(&json), &root), 0);
	int64_t lost = 0;
	if (json_value_int(json_value_get(root, "lost"), &lost))
		buf_printf(&text, "-%d;", (int)lost);
	json_value_enter(json_value_get(root, "lines"), &lines);
	while (json_value_next(&lines, &line)) {
		json_value_enter(line, &items);
		json_value_next(&items, &item);
		for (int i = 0; i < 2 && json_value_next(&items, &item); i++) {
			char *word = json_value_text(item);
			buf_printf(&text, "%s%s", word, i ? ";" : ":");
			free(word);
		}
	}
	return buf_take_str(&text);
}

TEST(equal_lines_of_many_ranks_are_one_line_with_their_ranks)
{
	struct log_feed *feed = log_feed_new();
	uint64_t at = 0;
	for (uint32_t rank = 0; rank < 4; rank++)
		say(feed, (uint16_t)(rank / 2), rank, "hello\n");
	say(feed, 0, 1, "odd one\n");
	char *text = told(feed, &at, SIZE_MAX);
	ck_assert_str_eq(text, "0-3:hello;1:odd one;");
	free(text);
	text = told(feed, &at, SIZE_MAX);
	ck_assert_str_eq(text, "");
	free(text);
	log_feed_free(feed);
}

TEST(a_line_without_an_end_waits_for_it_and_long_ones_are_cut)
{
	struct log_feed *feed = log_feed_new();
	uint64_t at = 0;
	say(feed, 0, 0, "be");
	char *text = told(feed, &at, SIZE_MAX);
	ck_assert_str_eq(text, "");
	free(text);
	say(feed, 0, 0, "gin\nrest");
	log_feed_end(feed, NS_PER_S);
	text = told(feed, &at, SIZE_MAX);
	ck_assert_str_eq(text, "0:begin;0:rest;");
	free(text);
	char *line = malloc(3 * LOG_FEED_LINE_MAX + 1);
	memset(line, 'x', 3 * LOG_FEED_LINE_MAX);
	line[3 * LOG_FEED_LINE_MAX] = '\0';
	say(feed, 0, 7, line);
	log_feed_collect(feed, 10 * NS_PER_S, 1);
	text = told(feed, &at, SIZE_MAX);
	ck_assert_uint_ge(strlen(text), LOG_FEED_LINE_MAX);
	free(text);
	free(line);
	log_feed_free(feed);
}

TEST(lines_that_there_is_no_room_for_are_left_out_and_counted)
{
	struct log_feed *feed = log_feed_new();
	uint64_t at = 0, late = 0;
	for (int i = 0; i < 10; i++) {
		char line[16];
		snprintf(line, sizeof(line), "line %d\n", i);
		say(feed, 0, 0, line);
	}
	char *text = told(feed, &at, 40);
	ck_assert_str_eq(text, "-8;0:line 8;0:line 9;");
	free(text);
	text = told(feed, &late, SIZE_MAX); /* another reader */
	ck_assert(strstr(text, "0:line 0;") != NULL);
	free(text);
	log_feed_free(feed);
}

TEST(a_flood_costs_no_more_memory_than_is_kept)
{
	struct log_feed *feed = log_feed_new();
	uint64_t at = 0;
	for (int i = 0; i < 100000; i++) {
		char line[64];
		snprintf(line, sizeof(line), "a line of a worker that prints without end: %d\n", i);
		say(feed, 0, (uint32_t)(i % 8), line);
		if (i % 1000 == 0)
			log_feed_collect(feed, 10 * NS_PER_S, 1);
	}
	log_feed_collect(feed, 10 * NS_PER_S, 1);
	AUTO(buf_done) struct buf json = BUF_INIT;
	ck_assert(log_feed_put(feed, &at, SIZE_MAX, &json));
	ck_assert_uint_lt(buf_len(&json), LOG_FEED_KEPT_BYTES + LOG_FEED_KEPT_MAX + 64);
	log_feed_free(feed);
}

TEST(a_stream_that_is_none_is_refused)
{
	struct log_feed *feed = log_feed_new();
	ck_assert_int_eq(log_feed_take(feed, 0,
				       bytes_str("\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff"), false,
				       0),
			 -EPROTO);
	log_feed_free(feed);
}
