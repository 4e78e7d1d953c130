/* A growing run of bytes with a read position: append at the end, consume at the front.
 *
 * Consuming moves the start; the space is reclaimed when the buffer runs empty or grows. Pointers
 * into a buffer are valid until the next append. A text in a buffer ends in a NUL that does not
 * count (buf_str). */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdarg.h>

#include "base/util.h"

struct buf {
	unsigned char *mem;
	size_t start;
	size_t end;
	size_t cap;
};

#define BUF_INIT ((struct buf){ .mem = NULL })

void buf_done(struct buf *buf); /* frees; leaves BUF_INIT */

static inline size_t buf_len(const struct buf *buf)
{
	return buf->end - buf->start;
}

static inline unsigned char *buf_data(const struct buf *buf)
{
	return buf->mem ? buf->mem + buf->start : NULL;
}

/* Room for `len` bytes at the end; write there, then buf_commit() what was written. */
unsigned char *buf_grow(struct buf *buf, size_t len); /* the slow way of buf_reserve() */

static inline unsigned char *buf_reserve(struct buf *buf, size_t len)
{
	return buf->mem && buf->cap - buf->end >= len ? buf->mem + buf->end : buf_grow(buf, len);
}

void buf_commit(struct buf *buf, size_t len);

void buf_append(struct buf *buf, const void *data, size_t len);
void buf_append_str(struct buf *buf, const char *text);
void buf_append_char(struct buf *buf, char c);
void buf_append_int(struct buf *buf, int64_t number); /* in decimal */
void buf_printf(struct buf *buf, const char *fmt, ...) PRINTF_LIKE(2, 3);
void buf_vprintf(struct buf *buf, const char *fmt, va_list args);

void buf_consume(struct buf *buf, size_t len); /* len <= buf_len() */
void buf_clear(struct buf *buf);	       /* forgets the bytes, keeps the memory */

/* The content as a C string; valid until the next change. An empty buffer gives "". */
const char *buf_str(struct buf *buf);

/* The content as a malloc'ed C string that the caller owns; the buffer is BUF_INIT afterwards. */
char *buf_take_str(struct buf *buf);

#endif
