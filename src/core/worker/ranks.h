/* All rank arithmetic of a round, done once, by the coordinator. rule: ranks
 *
 * Group ranks are stable where possible. A node with a node rank below the number of nodes gets
 * exactly that; then nodes that had a group rank keep it; then the preferred node takes 0; the rest
 * fill the gaps in the order given. Worker ranks run through the nodes in group-rank order, and so
 * do the ranks within each role; nodes may differ in nproc and role. */
#ifndef CORE_WORKER_RANKS_H
#define CORE_WORKER_RANKS_H

#include "base/util.h"

struct ranks_node {
	/* in */
	int32_t node_rank; /* as requested, -1: any */
	int32_t last_rank; /* group rank in the previous round, -1: none */
	bool preferred;	   /* takes rank 0 if no node has a better claim: the coordinator's host */
	uint32_t nproc;
	const char *role; /* borrowed */
	/* out */
	uint32_t group_rank;
	uint32_t rank_base;
	uint32_t role_rank_base, role_world_size;
};

/* Fills in the results and returns the world size. `count` is at least 1; of two nodes with one
 * node rank the first gets it. */
uint32_t ranks_assign(struct ranks_node *nodes, size_t count);

#endif
