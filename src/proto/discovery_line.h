/* The lines of a discovery program, which says who coordinates a job:
 *
 *     {"coordinator":"node1:40123","epoch":17}
 *
 * JSON objects in any order of members; members that we do not know are skipped. The epoch is a
 * whole number from 1 to 2^63 - 1. muster-discovery(7) has the whole contract.
 */
#ifndef PROTO_DISCOVERY_LINE_H
#define PROTO_DISCOVERY_LINE_H

#include "base/buf.h"
#include "base/err.h"

#define DISCOVERY_LINE_MAX 4096	      /* bytes, without the newline */
#define DISCOVERY_COORDINATOR_MAX 272 /* a host name, brackets, a port and the NUL */

struct discovery_line {
	char coordinator[DISCOVERY_COORDINATOR_MAX]; /* printable ASCII; not yet taken apart */
	uint64_t epoch;
};

/* One line without its newline. -EINVAL: not such a line, and `err` says what is wrong with it. */
int discovery_line_parse(const char *text, size_t len, struct discovery_line *ret_line,
			 struct err *err);

/* True if a text can stand as coordinator: 1 to DISCOVERY_COORDINATOR_MAX - 1 printable characters,
 * none of them blank. */
bool discovery_coordinator_ok(const char *text);

/* Appends the line, newline included. */
void discovery_line_format(struct buf *out, const char *coordinator, uint64_t epoch);

#endif
