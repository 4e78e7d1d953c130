#include "proto/stacks/native.h"

#include <ctype.h>
#include <string.h>

static void skip(struct bytes *text, size_t len)
{
	text->data += len;
	text->len -= len;
}

bool native_line(struct bytes *text, struct bytes *ret_line)
{
	if (text->len == 0)
		return false;
	const unsigned char *newline = memchr(text->data, '\n', text->len);
	size_t len = newline ? (size_t)(newline - text->data) : text->len;
	*ret_line = bytes_of(text->data, len);
	skip(text, MIN(len + 1, text->len));
	return true;
}

bool native_takes(struct bytes *line, const char *prefix)
{
	size_t len = strlen(prefix);
	if (line->len < len || memcmp(line->data, prefix, len) != 0)
		return false;
	skip(line, len);
	return true;
}

static void skip_blanks(struct bytes *line)
{
	while (line->len && (*line->data == ' ' || *line->data == '\t'))
		skip(line, 1);
}

uint32_t native_number(struct bytes *line)
{
	uint64_t number = 0;
	skip_blanks(line);
	while (line->len && isdigit(*line->data)) {
		number = MIN(number * 10 + (uint64_t)(*line->data - '0'), (uint64_t)INT32_MAX + 1);
		skip(line, 1);
	}
	return number > INT32_MAX ? 0 : (uint32_t)number;
}

bool native_frame(struct bytes *line)
{
	if (!native_takes(line, "#") || !line->len || !isdigit(*line->data))
		return false;
	native_number(line);
	skip_blanks(line);
	if (native_takes(line, "0x")) {
		while (line->len && isxdigit(*line->data))
			skip(line, 1);
		skip_blanks(line);
	}
	return true;
}

const unsigned char *native_find(struct bytes text, const char *word)
{
	return text.len ? memmem(text.data, text.len, word, strlen(word)) : NULL;
}

const unsigned char *native_find_last(struct bytes text, const char *word)
{
	const unsigned char *last = NULL, *at;
	while ((at = native_find(text, word))) {
		last = at;
		skip(&text, (size_t)(at + 1 - text.data));
	}
	return last;
}

struct bytes native_basename(struct bytes path)
{
	const unsigned char *slash = path.len ? memrchr(path.data, '/', path.len) : NULL;
	if (slash)
		skip(&path, (size_t)(slash + 1 - path.data));
	return path;
}

bool native_own(struct bytes name)
{
	return !bytes_eq(name, bytes_str("_start"));
}

struct bytes native_symbol(struct bytes name)
{
	const unsigned char *at = name.len ? memchr(name.data, '@', name.len) : NULL;
	if (at && at > name.data)
		name.len = (size_t)(at - name.data);
	return name;
}
