#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define BUF_MIN_CAP 64
#define INT_DIGITS_MAX 20 /* of a 64-bit number with its sign */

void buf_done(struct buf *buf)
{
	free(buf->mem);
	*buf = BUF_INIT;
}

static void move_to_front(struct buf *buf)
{
	size_t len = buf_len(buf);
	if (buf->start > 0 && len > 0)
		memmove(buf->mem, buf->mem + buf->start, len);
	buf->start = 0;
	buf->end = len;
}

unsigned char *buf_grow(struct buf *buf, size_t len)
{
	/* Move only when most of the buffer is dead space at the front; otherwise a long queue
	 * would be copied again and again. */
	if (buf->start >= buf_len(buf))
		move_to_front(buf);
	if (buf->cap - buf->end < len || !buf->mem) {
		size_t cap = MAX(buf->cap, (size_t)BUF_MIN_CAP);
		while (cap - buf->end < len)
			cap *= 2;
		buf->mem = mem_grow(buf->mem, cap, 1);
		buf->cap = cap;
	}
	return buf->mem + buf->end;
}

void buf_commit(struct buf *buf, size_t len)
{
	assert(len <= buf->cap - buf->end);
	buf->end += len;
}

void buf_append(struct buf *buf, const void *data, size_t len)
{
	if (len == 0)
		return;
	memcpy(buf_reserve(buf, len), data, len);
	buf->end += len;
}

void buf_append_str(struct buf *buf, const char *text)
{
	buf_append(buf, text, strlen(text));
}

void buf_append_char(struct buf *buf, char c)
{
	*buf_reserve(buf, 1) = (unsigned char)c;
	buf->end++;
}

void buf_append_int(struct buf *buf, int64_t number)
{
	char digits[INT_DIGITS_MAX], *p = digits + sizeof(digits);
	uint64_t left = number < 0 ? -(uint64_t)number : (uint64_t)number;
	do
		*--p = (char)('0' + left % 10);
	while ((left /= 10) > 0);
	if (number < 0)
		*--p = '-';
	buf_append(buf, p, (size_t)(digits + sizeof(digits) - p));
}

void buf_vprintf(struct buf *buf, const char *fmt, va_list args)
{
	va_list again;
	va_copy(again, args);
	/* Most texts fit into the room that is there, and are formatted once. */
	size_t room = buf->mem ? buf->cap - buf->end : 0;
	int len = vsnprintf(room ? (char *)buf->mem + buf->end : NULL, room, fmt, args);
	if (len > 0) {
		if ((size_t)len >= room)
			vsnprintf((char *)buf_reserve(buf, (size_t)len + 1), (size_t)len + 1, fmt,
				  again);
		buf->end += (size_t)len;
	}
	va_end(again);
}

void buf_printf(struct buf *buf, const char *fmt, ...)
{
	va_list args;
	va_start(args, fmt);
	buf_vprintf(buf, fmt, args);
	va_end(args);
}

void buf_consume(struct buf *buf, size_t len)
{
	assert(len <= buf_len(buf));
	buf->start += len;
	if (buf->start == buf->end)
		buf->start = buf->end = 0;
}

void buf_clear(struct buf *buf)
{
	buf->start = buf->end = 0;
}

const char *buf_str(struct buf *buf)
{
	*buf_reserve(buf, 1) = '\0';
	return (const char *)buf_data(buf);
}

char *buf_take_str(struct buf *buf)
{
	buf_str(buf);
	move_to_front(buf);
	buf->mem[buf->end] = '\0';
	char *text = (char *)buf->mem;
	*buf = BUF_INIT;
	return text;
}
