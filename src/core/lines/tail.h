/* The last TAIL_MAX bytes of a stream. Memory grows with what was written, up to that. */
#ifndef CORE_LINES_TAIL_H
#define CORE_LINES_TAIL_H

#include "base/buf.h"

#define TAIL_MAX ((size_t)64 * 1024)

struct tail {
	unsigned char *ring;
	size_t cap;
	uint64_t total; /* bytes ever written */
};

#define TAIL_INIT ((struct tail){ .ring = NULL })

void tail_done(struct tail *tail);
void tail_write(struct tail *tail, const void *data, size_t len);
/* Appends, oldest byte first, but nothing of the first `seen` bytes ever written. */
void tail_copy_since(const struct tail *tail, uint64_t seen, struct buf *out);

#endif
