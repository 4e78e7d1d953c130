#include "batch/show/failures.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/str.h"
#include "base/utf8.h"

#define TAIL_MAX ((uint64_t)2048)
#define INDENT "    "

void failures_done(struct failures *failures)
{
	for (size_t i = 0; i < MIN(failures->count, (size_t)FAILURES_SHOWN); i++)
		free(failures->texts[i]);
	*failures = FAILURES_INIT;
}

/* Where the last FAILURE_LINES lines of a text begin. */
static const char *last_lines(const char *text, size_t len)
{
	size_t lines = 0;
	while (len > 0 && text[len - 1] == '\n')
		len--;
	for (; len > 0; len--)
		if (text[len - 1] == '\n' && ++lines == FAILURE_LINES)
			break;
	return text + len;
}

char *failures_tail(int fd, uint64_t bytes)
{
	char tail[TAIL_MAX + 1];
	uint64_t size = MIN(bytes, TAIL_MAX);
	ssize_t n = fd < 0 ? 0 : pread(fd, tail, (size_t)size, (off_t)(bytes - size));
	if (n <= 0)
		return NULL;
	tail[n] = '\0';
	return mem_strdup(last_lines(tail, (size_t)n));
}

static void add_tail(struct buf *out, const char *tail)
{
	const char *line;
	for (size_t len; (line = str_split(&tail, '\n', &len));) {
		if (len == 0)
			continue;
		AUTO_FREE char *text = mem_strndup(line, len);
		str_make_printable(text);
		buf_printf(out, INDENT "%s\n", text);
	}
}

void failures_add(struct failures *failures, const char *heading, const char *tail)
{
	if (failures->count++ >= FAILURES_SHOWN)
		return;
	struct buf text = BUF_INIT;
	buf_printf(&text, "  %s\n", heading);
	utf8_make_rest_printable(&text, 0, "\n");
	if (tail)
		add_tail(&text, tail);
	failures->texts[failures->count - 1] = buf_take_str(&text);
}

void failures_format(const struct failures *failures, struct buf *out)
{
	if (failures->count == 0)
		return;
	buf_printf(out, "failed:\n");
	for (size_t i = 0; i < MIN(failures->count, (size_t)FAILURES_SHOWN); i++)
		buf_append_str(out, failures->texts[i]);
	if (failures->count > FAILURES_SHOWN)
		buf_printf(out, "  and %zu more\n", failures->count - FAILURES_SHOWN);
}
