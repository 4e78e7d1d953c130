#include "batch/markup.h"

#include <string.h>

static const char *entity(char c)
{
	switch (c) {
	case '&':
		return "&amp;";
	case '<':
		return "&lt;";
	case '>':
		return "&gt;";
	case '"':
		return "&quot;";
	case '\'':
		return "&#39;";
	}
	return NULL;
}

void markup_escape(struct buf *out, const char *text)
{
	for (; *text; text++) {
		const char *name = entity(*text);
		bool forbidden = (unsigned char)*text < 0x20 && !strchr("\t\n\r", *text);
		if (name)
			buf_append_str(out, name);
		else
			buf_append_char(out, forbidden ? '?' : *text);
	}
}

void markup_markdown(struct buf *out, const char *text)
{
	buf_append_char(out, '`');
	for (; *text; text++) {
		if (*text == '|')
			buf_append_str(out, "\\|");
		else
			buf_append_char(out, *text == '`'		   ? '\''
					     : (unsigned char)*text < 0x20 ? ' '
									   : *text);
	}
	buf_append_char(out, '`');
}

void markup_csv(struct buf *out, const char *text)
{
	if (!strpbrk(text, ",\"\r\n")) {
		buf_append_str(out, text);
		return;
	}
	buf_append_char(out, '"');
	for (; *text; text++) {
		if (*text == '"')
			buf_append_char(out, '"');
		buf_append_char(out, *text);
	}
	buf_append_char(out, '"');
}
