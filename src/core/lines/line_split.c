#include "core/lines/line_split.h"

#include <string.h>

void line_split_done(struct line_split *split)
{
	buf_done(&split->partial);
}

static void forget_given(struct line_split *split)
{
	if (split->partial_given)
		buf_clear(&split->partial);
	split->partial_given = false;
}

void line_split_push(struct line_split *split, const void *data, size_t len)
{
	forget_given(split);
	split->data = data;
	split->len = len;
	split->newline_known = false;
}

static void advance(struct line_split *split, size_t len)
{
	split->data += len;
	split->len -= len;
	if (split->newline && split->data > split->newline)
		split->newline_known = false;
}

static bool give(struct line_split *split, const unsigned char *text, size_t len, enum line_end end,
		 struct line *ret_line)
{
	*ret_line = (struct line){ text, len, end, .continues = split->continues };
	split->continues = end == LINE_OPEN;
	return true;
}

static bool give_partial(struct line_split *split, enum line_end end, struct line *ret_line)
{
	split->partial_given = true;
	return give(split, buf_data(&split->partial), buf_len(&split->partial), end, ret_line);
}

static const unsigned char *find_newline(struct line_split *split)
{
	if (!split->newline_known) {
		split->newline = split->blocks ? memrchr(split->data, '\n', split->len)
					       : memchr(split->data, '\n', split->len);
		split->newline_known = true;
	}
	return split->newline;
}

/* Length of the data up to the first line end, 0 if there is none. A return at the very end of the
 * data stays for later: a newline may follow it. */
static size_t find_end(struct line_split *split, enum line_end *ret_end)
{
	const unsigned char *newline = find_newline(split);
	size_t until = newline ? (size_t)(newline - split->data) : split->len;
	*ret_end = LINE_NEWLINE;
	if (newline && split->blocks)
		return until + 1;

	size_t searched = until > 0 ? until - 1 : 0;
	const unsigned char *cr = split->blocks ? memrchr(split->data, '\r', searched)
						: memchr(split->data, '\r', searched);
	if (cr) {
		*ret_end = LINE_RETURN;
		return (size_t)(cr - split->data) + 1;
	}
	return newline ? until + 1 : 0;
}

/* The partial line ends in a return; the next byte decides whether that ends the line. */
static bool partial_ends_in_return(const struct line_split *split)
{
	size_t len = buf_len(&split->partial);
	return len > 0 && buf_data(&split->partial)[len - 1] == '\r';
}

static void keep(struct line_split *split, size_t len)
{
	buf_append(&split->partial, split->data, len);
	advance(split, len);
}

bool line_split_next(struct line_split *split, struct line *ret_line)
{
	forget_given(split);
	if (split->len == 0)
		return false;
	if (partial_ends_in_return(split) && split->data[0] != '\n')
		return give_partial(split, LINE_RETURN, ret_line);

	enum line_end end;
	size_t len = find_end(split, &end);
	if (len > 0 && buf_len(&split->partial) == 0) {
		const unsigned char *text = split->data;
		advance(split, len);
		return give(split, text, len, end, ret_line);
	}
	if (len > 0) {
		keep(split, len);
		return give_partial(split, end, ret_line);
	}
	keep(split, split->len);
	return buf_len(&split->partial) >= LINE_SPLIT_MAX &&
	       give_partial(split, LINE_OPEN, ret_line);
}

bool line_split_finish(struct line_split *split, struct line *ret_line)
{
	forget_given(split);
	if (buf_len(&split->partial) == 0)
		return false;
	return give_partial(split, partial_ends_in_return(split) ? LINE_RETURN : LINE_OPEN,
			    ret_line);
}
