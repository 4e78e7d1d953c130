/* Whatever bytes come through the FIFO, in whatever pieces: no crash, and what is accepted is
 * sane. */
#include <stdlib.h>
#include <string.h>

#include "proto/timer_line.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (size < 1)
		return 0;
	size_t step = data[0] + 1;
	struct timer_splitter splitter = TIMER_SPLITTER_INIT;
	struct timer_line line = TIMER_LINE_INIT;
	for (size_t at = 1; at < size; at += step) {
		timer_splitter_feed(&splitter, data + at, MIN(step, size - at));
		const char *text;
		size_t len;
		for (enum timer_split what; (what = timer_splitter_next(&splitter, &text, &len));) {
			if (what != TIMER_SPLIT_LINE)
				continue;
			if (memchr(text, '\n', len) || len > TIMER_LINE_MAX)
				abort();
			if (timer_line_parse(text, len, &line) == TIMER_FAULT_NONE &&
			    strlen(buf_str(&line.scope)) != buf_len(&line.scope))
				abort();
		}
	}
	timer_line_done(&line);
	timer_splitter_done(&splitter);
	return 0;
}
