#include "base/utf8.h"

#include <string.h>

static size_t len_by_first(unsigned char first)
{
	if (first < 0x80)
		return 1;
	if (first < 0xc2 || first > 0xf4)
		return 0;
	return first < 0xe0 ? 2 : first < 0xf0 ? 3 : 4;
}

size_t utf8_len(const void *text, size_t left)
{
	const unsigned char *p = text;
	size_t len = len_by_first(p[0]);
	if (len <= 1 || len > left)
		return len > left ? 0 : len;
	for (size_t i = 1; i < len; i++)
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	bool overlong = (p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xf0 && p[1] < 0x90);
	bool surrogate = p[0] == 0xed && p[1] >= 0xa0;
	bool beyond = p[0] == 0xf4 && p[1] >= 0x90;
	return overlong || surrogate || beyond ? 0 : len;
}

bool utf8_valid(const void *text, size_t len)
{
	const unsigned char *p = text;
	for (size_t i = 0, step; i < len; i += step)
		if (!(step = utf8_len(p + i, len - i)))
			return false;
	return true;
}

uint32_t utf8_decode(const void *text, size_t len)
{
	const unsigned char *p = text;
	uint32_t code = len == 1 ? p[0] : p[0] & (0x7fu >> len);
	for (size_t i = 1; i < len; i++)
		code = code << 6 | (p[i] & 0x3f);
	return code;
}

void utf8_append(struct buf *out, uint32_t code)
{
	if (code < 0x80) {
		buf_append_char(out, (char)code);
		return;
	}
	unsigned more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
	buf_append_char(out, (char)(0xff00 >> (more + 1) | code >> 6 * more));
	while (more-- > 0)
		buf_append_char(out, (char)(0x80 | (code >> 6 * more & 0x3f)));
}

static const struct {
	uint32_t first, last;
} unseen[] = {
	{ 0x00, 0x1f },	    { 0x7f, 0x9f },	{ 0x61c, 0x61c },
	{ 0x200e, 0x200f }, { 0x2028, 0x202e }, { 0x2066, 0x2069 },
	{ 0xfeff, 0xfeff }, { 0xfff9, 0xfffb }, { 0xfffe, 0xffff },
};

bool utf8_is_unseen(uint32_t code)
{
	for (size_t i = 0; i < ARRAY_LEN(unseen); i++)
		if (code >= unseen[i].first && code <= unseen[i].last)
			return true;
	return false;
}

size_t utf8_make_printable(char *text, size_t len, const char *kept)
{
	size_t to = 0;
	for (size_t at = 0, step; at < len; at += step) {
		step = utf8_len(text + at, len - at);
		uint32_t code = step ? utf8_decode(text + at, step) : 0;
		bool seen = !utf8_is_unseen(code) || (step == 1 && code && strchr(kept, (int)code));
		step = MAX(step, (size_t)1);
		if (!seen) {
			text[to++] = '?';
			continue;
		}
		memmove(text + to, text + at, step);
		to += step;
	}
	return to;
}

void utf8_make_rest_printable(struct buf *buf, size_t from, const char *kept)
{
	size_t start = buf->start + from, len = buf_len(buf) - from;
	if (len > 0)
		buf->end = start + utf8_make_printable((char *)buf->mem + start, len, kept);
}
