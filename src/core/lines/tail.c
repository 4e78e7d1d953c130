#include "core/lines/tail.h"

#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define TAIL_MIN ((size_t)1024)

void tail_done(struct tail *tail)
{
	free(tail->ring);
	*tail = TAIL_INIT;
}

/* Until the ring has its full size it has never wrapped, so it can grow in place. */
static void make_room(struct tail *tail, size_t len)
{
	size_t wanted = tail->total > TAIL_MAX - len ? TAIL_MAX : (size_t)tail->total + len;
	if (wanted <= tail->cap)
		return;
	size_t cap = MAX(tail->cap, TAIL_MIN);
	while (cap < wanted)
		cap *= 2;
	tail->ring = mem_grow(tail->ring, cap, 1);
	tail->cap = cap;
}

void tail_write(struct tail *tail, const void *data, size_t len)
{
	if (len == 0)
		return;
	const unsigned char *from = data;
	size_t kept = MIN(len, TAIL_MAX);
	make_room(tail, kept);
	from += len - kept;
	tail->total += len - kept;

	size_t at = (size_t)(tail->total % tail->cap);
	size_t first = MIN(kept, tail->cap - at);
	memcpy(tail->ring + at, from, first);
	memcpy(tail->ring, from + first, kept - first);
	tail->total += kept;
}

void tail_copy_since(const struct tail *tail, uint64_t seen, struct buf *out)
{
	uint64_t unseen = tail->total - MIN(seen, tail->total);
	size_t kept = (size_t)MIN(unseen, (uint64_t)tail->cap);
	if (kept == 0)
		return;
	size_t start = (size_t)((tail->total - kept) % tail->cap);
	size_t first = MIN(kept, tail->cap - start);
	buf_append(out, tail->ring + start, first);
	buf_append(out, tail->ring, kept - first);
}
