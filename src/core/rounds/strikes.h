/* Failures by host and rank: is it the host, or the code?
 *
 * A rank that fails on different hosts is the code's fault, and no host is struck for it. A host on
 * which different ranks fail, or the only rank it has, collects strikes. With enough of them it is
 * of last resort until it has been quiet for the cool-down. rule: strikes */
#ifndef CORE_ROUNDS_STRIKES_H
#define CORE_ROUNDS_STRIKES_H

#include "core/rounds/msg.h"

#define STRIKES_KEPT 64 /* failures, the last ones */

struct strike {
	char host[MSG_NAME_MAX];
	int32_t rank;
	uint64_t when_ns;
};

struct strikes {
	struct strike items[STRIKES_KEPT];
	size_t count; /* so far; only the last STRIKES_KEPT are here */
};

void strikes_add(struct strikes *strikes, const char *host, int32_t rank, uint64_t now_ns);

struct strikes_rule {
	uint32_t limit; /* strikes until a host is of last resort; 0: never */
	uint64_t cool_down_ns;
	bool one_rank; /* the host has one rank only, which need not be a different one */
};

/* How many strikes count against the host; 0: too few, or too long ago. ret_until_ns: the end of
 * its cool-down. */
uint32_t strikes_against(const struct strikes *strikes, const char *host,
			 const struct strikes_rule *rule, uint64_t now_ns, uint64_t *ret_until_ns);

#endif
