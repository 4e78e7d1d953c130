#include "batch/progress.h"

#include <string.h>
#include <wchar.h>

#include "base/clock.h"
#include "base/utf8.h"

#define BAR_MIN 10
#define BAR_MAX 40
#define COLUMNS_MIN 20
#define ORDER_MIN 8    /* columns below which a command is not worth showing */
#define ORDER_USUAL 28 /* columns from which a second command is worth showing */

static void put_bar(const struct progress *progress, int width, struct buf *out)
{
	uint64_t total = MAX(progress->total, (uint64_t)1);
	int full = progress->open ? 0 : (int)(MIN(progress->done, total) * (uint64_t)width / total);
	buf_append_char(out, '[');
	for (int i = 0; i < width; i++)
		buf_append_char(out, i < full ? '=' : i == full ? '>' : ' ');
	buf_append_char(out, ']');
}

/* Whole seconds: fractions in a line that changes all the time would flicker. */
static void put_time(uint64_t ns, struct buf *out)
{
	char text[CLOCK_HUMAN_MAX];
	if (ns < 60 * NS_PER_S) {
		buf_printf(out, "%llu s", (unsigned long long)(ns / NS_PER_S));
		return;
	}
	clock_human(ns, text);
	buf_append_str(out, text);
}

static void put_times(const struct progress *progress, struct buf *out)
{
	buf_append_str(out, ", ");
	put_time(progress->elapsed_ns, out);
	if (progress->eta_ns == NS_NEVER || progress->done >= progress->total)
		return;
	buf_append_str(out, ", ETA ");
	put_time(MAX(progress->eta_ns, NS_PER_S), out);
}

void progress_plain(const struct progress *progress, struct buf *out)
{
	buf_printf(out, "%llu", (unsigned long long)progress->done);
	if (!progress->open)
		buf_printf(out, " of %llu", (unsigned long long)progress->total);
	buf_printf(out, " done, %llu failed, %llu running", (unsigned long long)progress->failed,
		   (unsigned long long)progress->running);
	put_times(progress, out);
}

/* Appends at most `columns` cells of a text; returns how many. Wide characters count double. */
static int put_cells(const char *text, int columns, struct buf *out)
{
	mbstate_t state = { 0 };
	int used = 0;
	for (const char *p = text, *end = text + strlen(text); p < end;) {
		wchar_t c;
		size_t len = mbrtowc(&c, p, (size_t)(end - p), &state);
		bool bad = len == (size_t)-1 || len == (size_t)-2 || len == 0;
		int width = bad || utf8_is_unseen((uint32_t)c) ? -1 : wcwidth(c);
		if (used + MAX(width, 1) > columns)
			break;
		if (width < 0)
			buf_append_char(out, '?');
		else
			buf_append(out, p, len);
		used += width < 0 ? 1 : width;
		p += bad ? 1 : len;
		if (bad)
			memset(&state, 0, sizeof(state));
	}
	return used;
}

/* " (12 s)" after each command; leaves out what does not fit. */
static void put_orders(const struct progress *progress, int columns, struct buf *out)
{
	const char *separator = ": ";
	size_t count = MIN(progress->order_count, (size_t)MAX(columns / ORDER_USUAL, 1));
	for (size_t i = 0; i < count; i++) {
		AUTO(buf_done) struct buf time = BUF_INIT;
		buf_append_str(&time, " (");
		put_time(progress->orders[i].since_ns, &time);
		buf_append_char(&time, ')');
		int around = (int)(strlen(separator) + buf_len(&time));
		/* The commands share the room; one that needs less leaves it to the next. */
		int room = columns / (int)(count - i) - around;
		if (room < ORDER_MIN)
			return;
		buf_append_str(out, separator);
		columns -= around + put_cells(progress->orders[i].command, room, out);
		buf_append_str(out, buf_str(&time));
		separator = ", ";
	}
}

void progress_render(const struct progress *progress, int columns, bool colour, struct buf *out)
{
	AUTO(buf_done) struct buf counts = BUF_INIT, tail = BUF_INIT;
	columns = MAX(columns, COLUMNS_MIN) - 1;
	buf_printf(&counts, progress->open ? " %llu done" : " %llu/%llu",
		   (unsigned long long)progress->done, (unsigned long long)progress->total);
	AUTO(buf_done) struct buf failed = BUF_INIT;
	if (progress->failed > 0)
		buf_printf(&failed, ", %llu failed", (unsigned long long)progress->failed);
	buf_printf(&tail, ", %llu running", (unsigned long long)progress->running);
	put_times(progress, &tail);

	int fixed = (int)(buf_len(&counts) + buf_len(&failed) + buf_len(&tail));
	int bar = MIN(MAX(columns / 8, BAR_MIN), BAR_MAX);
	if (fixed + bar + 2 > columns)
		bar = columns - fixed - 2;
	if (bar < 3) { /* too narrow for everything: keep the counts */
		put_cells(buf_str(&counts) + 1, columns, out);
		return;
	}
	put_bar(progress, bar, out);
	buf_append_str(out, buf_str(&counts));
	if (buf_len(&failed) > 0)
		buf_printf(out, colour ? ", \033[31m%s\033[0m" : ", %s", buf_str(&failed) + 2);
	buf_append_str(out, buf_str(&tail));
	put_orders(progress, columns - fixed - bar - 2, out);
}
