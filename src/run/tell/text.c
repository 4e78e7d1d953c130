#include "run/tell/text.h"

#include <stdio.h>
#include <string.h>

#include "base/str.h"
#include "base/utf8.h"

/* The length of the escape sequence at `p`: ESC [ … letter, ESC ] … BEL or ST, ESC and one more. */
static size_t escape_len(const unsigned char *p, size_t left)
{
	size_t i = 2;
	if (left < 2)
		return left;
	if (p[1] == '[') {
		while (i < left && (p[i] < 0x40 || p[i] > 0x7e))
			i++;
		return i < left ? i + 1 : left;
	}
	if (p[1] != ']')
		return 2;
	while (i < left && p[i] != '\a' && p[i] != 0x1b)
		i++;
	if (i < left && p[i] == 0x1b)
		i++;
	return i < left ? i + 1 : left;
}

/* Discards the line since `start`, as a carriage return does. */
static void restart_line(struct buf *out, size_t start)
{
	out->end -= buf_len(out) - start;
}

void text_clean(struct buf *out, const void *data, size_t len)
{
	const unsigned char *p = data;
	size_t line = buf_len(out);
	bool redraw = false; /* the next character draws over the line */
	while (len > 0) {
		bool escape = *p == 0x1b;
		size_t used = escape ? escape_len(p, len) : utf8_len(p, len);
		bool visible = !escape && !(used && utf8_is_unseen(utf8_decode(p, used)));
		if (*p == '\r') {
			redraw = true;
		} else if (visible || *p == '\t' || *p == '\n') {
			if (redraw && *p != '\n')
				restart_line(out, line);
			redraw = false;
			if (used)
				buf_append(out, p, used);
			else
				utf8_append(out, UTF8_REPLACEMENT);
			if (*p == '\n')
				line = buf_len(out);
		}
		used = used ? used : 1;
		p += used;
		len -= used;
	}
}

const char *text_tail(const char *text, unsigned lines)
{
	const char *p = text + strlen(text);
	if (p > text && p[-1] == '\n')
		p--;
	for (; p > text; p--)
		if (p[-1] == '\n' && --lines == 0)
			break;
	return p;
}

void text_indent(struct buf *out, const char *prefix, const char *text)
{
	while (*text) {
		size_t len = strcspn(text, "\n");
		buf_printf(out, "%s%.*s\n", len ? prefix : "", (int)len, text);
		text += len + (text[len] == '\n');
	}
}

void text_last_words(const char *text, char *ret_words, size_t size)
{
	static const char traceback[] = "Traceback (most recent call last):";
	const char *words = "", *rest = text;
	size_t words_len = 0, len;
	bool in_traceback = false, is_exception = false;
	for (const char *line; (line = str_split(&rest, '\n', &len));) {
		bool begins = len == sizeof(traceback) - 1 && memcmp(line, traceback, len) == 0;
		bool indented = len > 0 && (*line == ' ' || *line == '\t');
		const char *trimmed = str_trim(line, &len);
		if (begins) {
			in_traceback = true;
		} else if (len > 0 && !(in_traceback && indented)) {
			if (in_traceback || !is_exception) {
				words = trimmed;
				words_len = len;
			}
			is_exception |= in_traceback;
			in_traceback = false;
		}
	}
	if (words_len >= size)
		for (words_len = size - 1; words_len > 0 && !utf8_valid(words, words_len);)
			words_len--;
	snprintf(ret_words, size, "%.*s", (int)words_len, words);
	str_make_printable(ret_words);
}

size_t text_width(const char *text, size_t len)
{
	size_t width = 0;
	for (size_t i = 0; i < len; i++)
		width += (text[i] & 0xc0) != 0x80;
	return width;
}
