/* A borrowed run of bytes: where it is and how long. It owns nothing and has no NUL at its end. */
#ifndef BASE_BYTES_H
#define BASE_BYTES_H

#include <string.h>

#include "base/util.h"

struct bytes {
	const unsigned char *data;
	size_t len;
};

static inline struct bytes bytes_of(const void *data, size_t len)
{
	return (struct bytes){ .data = data, .len = len };
}

static inline struct bytes bytes_str(const char *text)
{
	return bytes_of(text, strlen(text));
}

static inline bool bytes_eq(struct bytes a, struct bytes b)
{
	return a.len == b.len && (a.len == 0 || memcmp(a.data, b.data, a.len) == 0);
}

#endif
