/* Prints numbers as ranges: "0-2,5". They come in ascending order, one by one.
 *
 *     struct ranges ranges = RANGES(&out, ",", 2);
 *     ranges_add(&ranges, 0); ...
 *     ranges_end(&ranges);
 */
#ifndef CORE_LINES_RANGES_H
#define CORE_LINES_RANGES_H

#include "base/buf.h"

struct ranges {
	struct buf *out;
	const char *separator;
	uint64_t least; /* numbers in a row that become a range */
	uint64_t first, last;
	bool open; /* first to last are not printed yet */
	bool printed;
};

#define RANGES(buffer, between, shortest) \
	((struct ranges){ .out = (buffer), .separator = (between), .least = (shortest) })

void ranges_add(struct ranges *ranges, uint64_t number);
void ranges_end(struct ranges *ranges);

#endif
