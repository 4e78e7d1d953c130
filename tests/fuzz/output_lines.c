/* What workers print is any bytes at all: cut into lines and put on a screen with others' lines,
 * none of them may get lost, be changed, or share a line with another writer. */
#include <stdlib.h>
#include <string.h>

#include "core/lines/line_split.h"
#include "core/lines/screen.h"

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size);

static void check(bool ok)
{
	if (!ok)
		abort();
}

/* Cuts the input into pieces by its own first byte; returns the lines put together again. */
static void split(const unsigned char *data, size_t size, bool blocks, struct buf *all,
		  struct buf *shown)
{
	struct line_split split = { .blocks = blocks };
	struct screen screen = { .terminal = false };
	struct line line,
		other = { (const unsigned char *)"other\n", 6, LINE_NEWLINE, .continues = false };
	size_t piece = size ? 1 + data[0] % 37 : 1;
	for (size_t at = 0; at < size; at += piece) {
		line_split_push(&split, data + at, MIN(piece, size - at));
		while (line_split_next(&split, &line)) {
			check(line.len > 0);
			buf_append(all, line.text, line.len);
			screen_put(&screen, 1, "", &line, shown);
			if (line.len % 3 == 0)
				screen_put(&screen, 2, "", &other, shown);
		}
	}
	if (line_split_finish(&split, &line))
		buf_append(all, line.text, line.len);
	line_split_done(&split);
}

int LLVMFuzzerTestOneInput(const unsigned char *data, size_t size)
{
	if (size == 0)
		return 0;
	for (int blocks = 0; blocks < 2; blocks++) {
		AUTO(buf_done) struct buf all = BUF_INIT, shown = BUF_INIT;
		split(data, size, blocks, &all, &shown);
		check(buf_len(&all) == size && memcmp(buf_data(&all), data, size) == 0);
		if (buf_len(&shown) == 0)
			continue;
		const unsigned char *at = buf_data(&shown), *end = at + buf_len(&shown);
		for (; (at = memmem(at, (size_t)(end - at), "other\n", 6)); at += 6)
			check(at == buf_data(&shown) || at[-1] == '\n' ||
			      memmem(data, size, "other\n", 6));
	}
	return 0;
}
