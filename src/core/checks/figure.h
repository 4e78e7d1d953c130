/* The figures that checks measure: how nodes are compared by each. */
#ifndef CORE_CHECKS_FIGURE_H
#define CORE_CHECKS_FIGURE_H

#include "core/checks/peers.h"

struct figure_rule {
	const char *name;
	const char *unit;
	bool judged; /* false: shown only */
	struct peers_rule peers;
};

/* Of a user's own figure more is better, unless its name ends in a unit of time, or in "_time",
 * "_latency" or "_errors". Never NULL. */
const struct figure_rule *figure_rule(const char *name);

#endif
