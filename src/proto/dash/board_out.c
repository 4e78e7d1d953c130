/* What the page is told. */
#include <stdlib.h>
#include <string.h>

#include "proto/dash/board.h"
#include "proto/json_out.h"

static const char *const column_names[] = {
	[BOARD_HOST] = "host",	   [BOARD_STATE] = "state", [BOARD_PID] = "pid",
	[BOARD_CPU] = "cpu",	   [BOARD_MEMORY] = "mem",  [BOARD_STEP] = "step",
	[BOARD_SILENT] = "silent",
};
static_assert(ARRAY_LEN(column_names) == BOARD_COLUMN_COUNT, "every column needs a name");

static const char *const part_names[] = {
	[BOARD_JOB] = "job",
	[BOARD_ATTEMPTS] = "attempts",
	[BOARD_ABOUT] = "about",
};
static_assert(ARRAY_LEN(part_names) == BOARD_PART_COUNT, "every part needs a name");

static bool is_new(const struct board_text *text)
{
	size_t len = buf_len(&text->now);
	return len != buf_len(&text->told) ||
	       (len && memcmp(buf_data(&text->now), buf_data(&text->told), len) != 0);
}

static void mark_told(struct board_text *text)
{
	buf_clear(&text->told);
	buf_append(&text->told, buf_data(&text->now), buf_len(&text->now));
}

static void put_text(struct json_out *out, const char *key, const struct board_text *text)
{
	if (buf_len(&text->now))
		json_out_raw(out, key, (const char *)buf_data(&text->now), buf_len(&text->now));
}

static void put_host(struct json_out *out, const struct board *board, size_t i)
{
	json_out_open(out, NULL, '[');
	json_out_int(out, NULL, (int64_t)i);
	put_text(out, NULL, &board->hosts[i]);
	json_out_close(out, ']');
}

static void put_sample(struct json_out *out, const struct board_sample *sample)
{
	json_out_int(out, NULL, sample->when_ms);
	json_out_int(out, NULL, sample->running);
	json_out_int(out, NULL, sample->cpu);
	json_out_int(out, NULL, sample->memory);
	json_out_int(out, NULL, sample->step);
	json_out_int(out, NULL, (int64_t)(sample->rate * 1000));
}

static void put_column(struct json_out *out, const struct board *board, enum board_column column)
{
	json_out_open(out, column_names[column], '[');
	for (size_t i = 0; i < board->count; i++)
		json_out_int(out, NULL, board->ranks[i].now[column]);
	json_out_close(out, ']');
}

void board_put_all(struct board *board, struct buf *text)
{
	struct json_out json = JSON_OUT(text), *out = &json;
	json_out_open(out, NULL, '{');
	json_out_bool(out, "all", true);
	json_out_int(out, "now", (int64_t)board->wall_ms);
	json_out_int(out, "n", (int64_t)board->count);
	json_out_int(out, "base", board->base);
	json_out_open(out, "c", '{');
	for (size_t i = 0; i < BOARD_COLUMN_COUNT; i++)
		put_column(out, board, (enum board_column)i);
	json_out_close(out, '}');
	json_out_open(out, "hosts", '[');
	for (size_t i = 0; i < board->host_count; i++)
		put_host(out, board, i);
	json_out_close(out, ']');
	for (size_t i = 0; i < BOARD_PART_COUNT; i++)
		put_text(out, part_names[i], &board->parts[i]);
	put_text(out, "progress", &board->progress);
	json_out_open(out, "samples", '[');
	for (size_t i = 0; i < board->sample_count; i++)
		put_sample(out, &board->samples[i]);
	json_out_close(out, ']');
	json_out_close(out, '}');
}

/* ---- changes ---- */

static size_t count_changes(const struct board *board, enum board_column column)
{
	size_t count = 0;
	for (size_t i = 0; i < board->count; i++)
		count += board->ranks[i].now[column] != board->ranks[i].told[column];
	return count;
}

static void put_pairs(struct json_out *out, const struct board *board, enum board_column column)
{
	char key[16] = "~";
	size_t next = 0;
	strncpy(key + 1, column_names[column], sizeof(key) - 2);
	json_out_open(out, key, '[');
	for (size_t i = 0; i < board->count; i++) {
		if (board->ranks[i].now[column] == board->ranks[i].told[column])
			continue;
		json_out_int(out, NULL, (int64_t)(i - next));
		json_out_int(out, NULL, board->ranks[i].now[column]);
		next = i + 1;
	}
	json_out_close(out, ']');
}

static bool put_columns(struct json_out *out, struct board *board)
{
	size_t counts[BOARD_COLUMN_COUNT], sum = 0;
	for (size_t i = 0; i < BOARD_COLUMN_COUNT; i++)
		sum += counts[i] = count_changes(board, (enum board_column)i);
	if (sum == 0)
		return false;
	json_out_open(out, "c", '{');
	for (size_t i = 0; i < BOARD_COLUMN_COUNT; i++)
		if (counts[i] * 2 > board->count)
			put_column(out, board, (enum board_column)i);
		else if (counts[i])
			put_pairs(out, board, (enum board_column)i);
	json_out_close(out, '}');
	return true;
}

static bool put_hosts(struct json_out *out, struct board *board)
{
	bool any = false;
	for (size_t i = 0; i < board->host_count; i++) {
		if (!is_new(&board->hosts[i]))
			continue;
		if (!any)
			json_out_open(out, "hosts", '[');
		any = true;
		put_host(out, board, i);
	}
	if (any)
		json_out_close(out, ']');
	return any;
}

static bool put_new_text(struct json_out *out, const char *key, struct board_text *text)
{
	bool new = is_new(text);
	if (new)
		put_text(out, key, text);
	return new;
}

static void all_told(struct board *board)
{
	for (size_t i = 0; i < board->count; i++)
		memcpy(board->ranks[i].told, board->ranks[i].now, sizeof(board->ranks[i].told));
	for (size_t i = 0; i < board->host_count; i++)
		mark_told(&board->hosts[i]);
	for (size_t i = 0; i < BOARD_PART_COUNT; i++)
		mark_told(&board->parts[i]);
	mark_told(&board->progress);
	board->told_base = board->base;
	board->reshaped = board->sampled = false;
}

bool board_put_changes(struct board *board, struct buf *text)
{
	if (board->reshaped) {
		board_put_all(board, text);
		all_told(board);
		return true;
	}
	AUTO(buf_done) struct buf changes = BUF_INIT;
	struct json_out json = JSON_OUT(&changes), *out = &json;
	bool any = false;
	json_out_open(out, NULL, '{');
	json_out_int(out, "now", (int64_t)board->wall_ms);
	if (board->base != board->told_base) {
		json_out_int(out, "base", board->base);
		any = true;
	}
	any |= put_columns(out, board);
	any |= put_hosts(out, board);
	for (size_t i = 0; i < BOARD_PART_COUNT; i++)
		any |= put_new_text(out, part_names[i], &board->parts[i]);
	any |= put_new_text(out, "progress", &board->progress);
	if (board->sampled) {
		json_out_open(out, "sample", '[');
		put_sample(out, &board->samples[board->sample_count - 1]);
		json_out_close(out, ']');
		any = true;
	}
	json_out_close(out, '}');
	if (any)
		buf_append(text, buf_data(&changes), buf_len(&changes));
	all_told(board);
	return any;
}
