#include "sim/sim.h"

#include "sim/world.h"

void sim_run(const struct sim_options *options, struct buf *trace, struct sim_result *ret_result)
{
	struct world world;
	world_init(&world, options, trace, ret_result);
	world_run(&world);
	world_done(&world);
}
