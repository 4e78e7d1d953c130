/* The lines of a discovery program, which name the coordinator of a job:
 *
 *     {"coordinator":"node1:40123","epoch":17}
 *
 * JSON objects with members in any order; unknown members are skipped. The epoch is a whole number
 * from 1 to 2^63 - 1. With a lease and an end of the job on record:
 *
 *     {"coordinator":"node1:40123","epoch":17,"until_ms":86400123,"ended_epoch":9,"ended":"done"}
 *
 * muster-discovery(7) has the whole contract. */
#ifndef PROTO_DISCOVERY_LINE_H
#define PROTO_DISCOVERY_LINE_H

#include "base/buf.h"
#include "base/err.h"
#include "core/rounds/msg.h"

#define DISCOVERY_LINE_MAX 4096	      /* bytes, without the newline */
#define DISCOVERY_COORDINATOR_MAX 272 /* a host name, brackets, a port and the NUL */

struct discovery_line {
	char coordinator[DISCOVERY_COORDINATOR_MAX]; /* printable ASCII; not yet parsed */
	uint64_t epoch;
	uint64_t until_ns; /* the end of the coordinator's lease, on this host's clock; 0: none */
	struct recorded_end past;
};

/* One line without its newline. -EINVAL: invalid, and `err` says why. */
int discovery_line_parse(const char *text, size_t len, struct discovery_line *ret_line,
			 struct err *err);

/* True if a text is a valid coordinator: 1 to DISCOVERY_COORDINATOR_MAX - 1 printable characters
 * without blanks. */
bool discovery_coordinator_ok(const char *text);

/* Appends the line, newline included. The lease is rounded down to milliseconds. */
void discovery_line_format(struct buf *out, const struct discovery_line *line);

/* The word for an end, in lines of either side: "done" or "failed". NULL for RULING_NONE. */
const char *discovery_end_name(enum ruling ruling);

/* RULING_NONE: it is neither. */
enum ruling discovery_end_parse(const char *word);

#endif
