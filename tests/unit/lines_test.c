#include "unit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/lines/line_split.h"
#include "core/lines/merge.h"
#include "core/lines/screen.h"
#include "core/lines/stream_map.h"
#include "core/lines/tail.h"
#include "core/lines/named_template.h"

/* "text<N|" for a newline, "text<R|" for a return, "text<O|" for no end. */
static void note(struct buf *out, const struct line *line)
{
	static const char ends[] = { 'N', 'R', 'O' };
	buf_append(out, line->text, line->len);
	buf_printf(out, "<%c|", ends[line->end]);
}

static void feed(struct line_split *split, const char *text, size_t len, struct buf *out)
{
	struct line line;
	line_split_push(split, text, len);
	while (line_split_next(split, &line))
		note(out, &line);
}

static void expect_split(const char *input, const char *expected)
{
	/* The result must not depend on how the bytes arrive. */
	for (size_t piece = 1; piece <= strlen(input); piece++) {
		struct line_split split = LINE_SPLIT_INIT;
		AUTO(buf_done) struct buf out = BUF_INIT;
		for (size_t at = 0; at < strlen(input); at += piece)
			feed(&split, input + at, MIN(piece, strlen(input) - at), &out);
		struct line line;
		if (line_split_finish(&split, &line))
			note(&out, &line);
		ck_assert_str_eq(buf_str(&out), expected);
		ck_assert(!line_split_finish(&split, &line));
		line_split_done(&split);
	}
}

TEST(lines_are_the_same_however_the_bytes_arrive)
{
	expect_split("one\ntwo\n", "one\n<N|two\n<N|");
	expect_split("partial", "partial<O|");
	expect_split("\n\n", "\n<N|\n<N|");
	expect_split("dos\r\nline\r\n", "dos\r\n<N|line\r\n<N|");
	expect_split("\r10%\r20%\rdone\n", "\r<R|10%\r<R|20%\r<R|done\n<N|");
	expect_split("a\r\r\nb\r", "a\r<R|\r\n<N|b\r<R|");
}

TEST(lines_too_long_are_given_in_pieces_that_say_so)
{
	struct line_split split = LINE_SPLIT_INIT;
	char *text = malloc(LINE_SPLIT_MAX);
	memset(text, 'x', LINE_SPLIT_MAX);
	struct line line;
	line_split_push(&split, text, LINE_SPLIT_MAX);
	ck_assert(line_split_next(&split, &line));
	ck_assert(line.end == LINE_OPEN && !line.continues && line.len == LINE_SPLIT_MAX);
	ck_assert(!line_split_next(&split, &line));
	line_split_push(&split, "y\nz\n", 4);
	ck_assert(line_split_next(&split, &line));
	ck_assert(line.end == LINE_NEWLINE && line.continues && line.len == 2);
	ck_assert(line_split_next(&split, &line));
	ck_assert(!line.continues);
	line_split_done(&split);
	free(text);
}

TEST(lines_in_blocks_lose_and_reorder_nothing)
{
	for (unsigned seed = 1; seed < 200; seed++) {
		char input[500];
		unsigned state = seed;
		for (size_t i = 0; i < sizeof(input); i++)
			input[i] = "ab\n\r\0c"[rand_r(&state) % 6];
		struct line_split split = { .blocks = seed % 2 };
		AUTO(buf_done) struct buf out = BUF_INIT;
		struct line line;
		for (size_t at = 0, len; at < sizeof(input); at += len) {
			size_t wanted = (size_t)rand_r(&state) % 40;
			len = MIN(wanted, sizeof(input) - at);
			line_split_push(&split, input + at, len);
			while (line_split_next(&split, &line)) {
				buf_append(&out, line.text, line.len);
				ck_assert(line.text[line.len - 1] ==
					  (line.end == LINE_NEWLINE ? '\n' : '\r'));
			}
		}
		if (line_split_finish(&split, &line))
			buf_append(&out, line.text, line.len);
		ck_assert_uint_eq(buf_len(&out), sizeof(input));
		ck_assert(memcmp(buf_data(&out), input, sizeof(input)) == 0);
		line_split_done(&split);
	}
}

static void put(struct screen *screen, uint64_t writer, const char *text, enum line_end end,
		struct buf *out)
{
	char prefix[8] = { '[', (char)('0' + writer), ']', 0 };
	struct line line = { (const unsigned char *)text, strlen(text), end, .continues = false };
	screen_put(screen, writer, prefix, &line, out);
}

TEST(screen_puts_one_prefix_before_each_line)
{
	struct screen screen = { .terminal = false };
	AUTO(buf_done) struct buf out = BUF_INIT;
	put(&screen, 1, "a\n", LINE_NEWLINE, &out);
	put(&screen, 2, "b\n", LINE_NEWLINE, &out);
	put(&screen, 1, "long ", LINE_OPEN, &out);
	put(&screen, 1, "line\n", LINE_NEWLINE, &out);
	ck_assert_str_eq(buf_str(&out), "[1]a\n[2]b\n[1]long line\n");
}

TEST(screen_never_lets_two_writers_share_a_line)
{
	struct screen screen = { .terminal = false };
	AUTO(buf_done) struct buf out = BUF_INIT;
	put(&screen, 1, "last words", LINE_OPEN, &out);
	put(&screen, 2, "b\n", LINE_NEWLINE, &out);
	put(&screen, 1, "10%\r", LINE_RETURN, &out);
	put(&screen, 2, "c\n", LINE_NEWLINE, &out);
	ck_assert_str_eq(buf_str(&out), "[1]last words\n[2]b\n[1]10%\r\n[2]c\n");
}

TEST(screen_wipes_a_bar_on_a_terminal_when_another_writer_speaks)
{
	struct screen screen = { .terminal = true };
	AUTO(buf_done) struct buf out = BUF_INIT;
	put(&screen, 1, "\r", LINE_RETURN, &out);
	put(&screen, 1, "10%\r", LINE_RETURN, &out);
	put(&screen, 1, "20%\r", LINE_RETURN, &out);
	put(&screen, 2, "hello\n", LINE_NEWLINE, &out);
	put(&screen, 1, "30%\n", LINE_NEWLINE, &out);
	ck_assert_str_eq(buf_str(&out), "\r[1]10%\r[1]20%\r\r\033[K[2]hello\n[1]30%\n");
}

TEST(screen_shows_an_unfinished_line_and_then_only_adds_to_it)
{
	struct screen screen = { .terminal = true };
	AUTO(buf_done) struct buf out = BUF_INIT;
	AUTO(buf_done) struct buf partial = BUF_INIT;
	buf_append_str(&partial, "name? ");
	screen_show(&screen, 1, "[1]", &partial, &out);
	buf_append_str(&partial, "really? ");
	screen_show(&screen, 1, "[1]", &partial, &out);
	put(&screen, 1, "name? really? yes\n", LINE_NEWLINE, &out);
	ck_assert_str_eq(buf_str(&out), "[1]name? really? yes\n");

	buf_clear(&out);
	screen_show(&screen, 1, "[1]", &partial, &out);
	put(&screen, 2, "b\n", LINE_NEWLINE, &out);
	put(&screen, 1, "name? really? yes\n", LINE_NEWLINE, &out);
	ck_assert_str_eq(buf_str(&out), "[1]name? really? \r\033[K[2]b\n[1]name? really? yes\n");
}

TEST(screen_shows_nothing_unfinished_in_a_pipe)
{
	struct screen screen = { .terminal = false };
	AUTO(buf_done) struct buf out = BUF_INIT;
	AUTO(buf_done) struct buf partial = BUF_INIT;
	buf_append_str(&partial, "name? ");
	screen_show(&screen, 1, "[1]", &partial, &out);
	ck_assert_uint_eq(buf_len(&out), 0);
}

TEST(tail_keeps_the_last_bytes_only)
{
	static unsigned char stream[6 * TAIL_MAX];
	for (size_t i = 0; i < sizeof(stream); i++)
		stream[i] = (unsigned char)(i * 7919 >> 3);
	for (size_t piece = 1; piece < 3 * TAIL_MAX; piece = piece * 5 + 1) {
		struct tail tail = TAIL_INIT;
		size_t total = 0;
		for (int i = 0; total + piece <= sizeof(stream); i++) {
			tail_write(&tail, stream + total, piece);
			total += piece;
			if (i % 1009 != 0 && total + piece <= sizeof(stream))
				continue;
			AUTO(buf_done) struct buf kept = BUF_INIT;
			tail_copy_since(&tail, 0, &kept);
			ck_assert_uint_eq(buf_len(&kept), MIN(total, TAIL_MAX));
			ck_assert(memcmp(buf_data(&kept), stream + total - buf_len(&kept),
					 buf_len(&kept)) == 0);
		}
		tail_done(&tail);
	}
}

TEST(template_replaces_known_names_and_leaves_the_rest)
{
	const struct template_name names[] = { { "rank", "7" }, { "role_name", "trainer" } };
	AUTO(buf_done) struct buf out = BUF_INIT;
	template_render("[${role_name}$rank] $rankx ${other} $$ ${rank $5 $", names,
			ARRAY_LEN(names), &out);
	ck_assert_str_eq(buf_str(&out), "[trainer7] $rankx ${other} $ ${rank $5 $");
}

static void add(struct merge *merge, uint32_t writer, const char *text, uint64_t now_ns)
{
	struct line line = { (const unsigned char *)text, strlen(text), LINE_NEWLINE,
			     .continues = false };
	merge_add(merge, writer, &line, now_ns);
}

/* Everything that is ready, as "0-2:text|". */
static void expect_merged(struct merge *merge, uint32_t alive, uint64_t now_ns,
			  const char *expected)
{
	AUTO(buf_done) struct buf out = BUF_INIT;
	for (struct merge_line *line; (line = merge_next(merge, alive, now_ns));) {
		merge_line_writers(line, 10, &out);
		buf_append_char(&out, ':');
		buf_append(&out, line->text, line->len);
		buf_append_char(&out, '|');
		merge_line_free(line);
	}
	ck_assert_str_eq(buf_str(&out), expected);
}

TEST(merge_shows_a_line_of_all_writers_once_and_at_once)
{
	AUTO(merge_done) struct merge merge;
	merge_init(&merge);
	for (uint32_t i = 0; i < 3; i++)
		add(&merge, 2 - i, "same", 0);
	expect_merged(&merge, 3, 0, "10-12:same|");
	ck_assert(merge_due_ns(&merge) == NS_NEVER);
}

TEST(merge_waits_a_moment_for_the_others_and_not_longer)
{
	AUTO(merge_done) struct merge merge;
	merge_init(&merge);
	add(&merge, 0, "a", 5);
	add(&merge, 3, "a", 6);
	add(&merge, 1, "b", 7);
	expect_merged(&merge, 4, 7, "");
	ck_assert_uint_eq(merge_due_ns(&merge), 5 + MERGE_WAIT_NS);
	expect_merged(&merge, 4, 5 + MERGE_WAIT_NS, "10,13:a|");
	expect_merged(&merge, 4, NS_NEVER, "11:b|");
}

TEST(merge_keeps_the_order_of_each_writer)
{
	AUTO(merge_done) struct merge merge;
	merge_init(&merge);
	add(&merge, 0, "a", 0);
	add(&merge, 0, "b", 0);
	add(&merge, 1, "b", 0);
	add(&merge, 1, "a", 0); /* comes after writer 1's b, so it cannot join the first a */
	add(&merge, 0, "a", 0);
	expect_merged(&merge, 2, NS_NEVER, "10:a|10-11:b|10-11:a|");
}

TEST(merge_is_bounded)
{
	AUTO(merge_done) struct merge merge;
	merge_init(&merge);
	char text[1000];
	for (int i = 0; i < 2000; i++) {
		memset(text, 'x', sizeof(text) - 1);
		text[sizeof(text) - 1] = '\0';
		snprintf(text, sizeof(text) - 1, "%d", i);
		text[strlen(text)] = 'x';
		add(&merge, 0, text, 0);
		for (struct merge_line *line; (line = merge_next(&merge, 9, 0));)
			merge_line_free(line);
		ck_assert_uint_le(merge.bytes, MERGE_BYTES_MAX);
	}
}

TEST(stream_map_takes_one_mask_or_a_list_of_ranks_of_any_size)
{
	uint8_t masks[13];
	ck_assert_int_eq(stream_map_parse("3", 13, masks, NULL), 0);
	ck_assert(masks[0] == 3 && masks[12] == 3);
	ck_assert_int_eq(stream_map_parse("0:1,12:2,99:3", 13, masks, NULL), 0);
	ck_assert(masks[0] == 1 && masks[1] == 0 && masks[12] == 2);
	static const char *const wrong[] = { "",   "4",	 "33",	 "0:4",	    "a:1",
					     "1:", ":1", "0:1,", "0:1;1:1", "-1:1" };
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		ck_assert_int_eq(stream_map_parse(wrong[i], 13, masks, NULL), -EINVAL);
}

TEST(stream_ranks_choose_all_when_none_is_named)
{
	bool chosen[12];
	ck_assert_int_eq(stream_ranks_parse("", 12, chosen, NULL), 0);
	ck_assert(chosen[0] && chosen[11]);
	ck_assert_int_eq(stream_ranks_parse("0, 11,500", 12, chosen, NULL), 0);
	ck_assert(chosen[0] && !chosen[1] && chosen[11]);
	ck_assert_int_eq(stream_ranks_parse("0,x", 12, chosen, NULL), -EINVAL);
}

TEST(stream_filters_know_a_doubled_comma)
{
	AUTO(strv_done) struct strv filters = STRV_INIT;
	stream_filters_parse("a,b,,c,", &filters);
	ck_assert_uint_eq(filters.count, 3);
	ck_assert_str_eq(filters.items[1], "b,c");
	ck_assert_str_eq(filters.items[2], "");
}
