/* Worlds for core/deal: a coordinator, hosts and a network in one process, with virtual time, all
 * from one seed. Processes die, freeze and come back, cables are cut, links break at one end or
 * both, messages are late or come twice, and the coordinator is replaced by one that knows only
 * what was written. */
#ifndef SIM_DEAL_WORLD_H
#define SIM_DEAL_WORLD_H

#include "base/util.h"

struct world_rules {
	bool faults;
	bool takeover;	/* the coordinator dies, too */
	bool stop;	/* the user stops the batch at some time */
	bool efficient; /* without faults: check the time that it takes */
};

struct world_outcome {
	char wrong[256]; /* "": nothing */
	uint64_t losses, late, takeovers, recalls, drops;
};

void world_play(uint64_t seed, const struct world_rules *rules, struct world_outcome *ret_outcome);

#endif
