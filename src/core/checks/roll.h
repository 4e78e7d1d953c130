/* The hosts that tell one of them what their checks found (muster doctor, in a step of Slurm or
 * with --nnodes): who has come, and who is missing at the end. */
#ifndef CORE_CHECKS_ROLL_H
#define CORE_CHECKS_ROLL_H

#include "base/strv.h"
#include "core/checks/across.h"

struct roll {
	uint32_t expected;    /* hosts */
	struct strv names;    /* of all of them; empty: unknown */
	struct strv seen;     /* addresses of those that came and told nothing */
	struct across across; /* those that came, and once it is closed the others */
};

#define ROLL_INIT ((struct roll){ .names = STRV_INIT, .seen = STRV_INIT, .across = ACROSS_INIT })
void roll_done(struct roll *roll);

/* A host has told; takes over the results. False: one more than expected, which does not count. */
bool roll_add(struct roll *roll, const char *name, struct check_list *results);
bool roll_is_complete(const struct roll *roll);

/* Nobody else comes: names those that are missing, as far as it knows them, compares the others,
 * and puts all in the order of their names. `remedy` is for a host that is missing. */
void roll_close(struct roll *roll, uint64_t waited_ns, const char *remedy);

#endif
