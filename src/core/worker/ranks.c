#include "core/worker/ranks.h"

#include <stdlib.h>

#include "base/map.h"
#include "base/mem.h"
#include "base/str.h"

#define NOBODY UINT32_MAX

/* slots[r] is the index of the node with group rank r. */
struct seating {
	struct ranks_node *nodes;
	size_t count;
	uint32_t *slots;
	bool *seated;
};

static bool seat(struct seating *s, size_t index, int64_t rank)
{
	if (s->seated[index] || rank < 0 || (size_t)rank >= s->count || s->slots[rank] != NOBODY)
		return false;
	s->slots[rank] = (uint32_t)index;
	s->nodes[index].group_rank = (uint32_t)rank;
	s->seated[index] = true;
	return true;
}

static void assign_group_ranks(struct seating *s)
{
	for (size_t i = 0; i < s->count; i++)
		seat(s, i, s->nodes[i].node_rank);
	for (size_t i = 0; i < s->count; i++)
		if (s->nodes[i].node_rank < 0)
			seat(s, i, s->nodes[i].last_rank);
	for (size_t i = 0; i < s->count; i++)
		if (s->nodes[i].preferred)
			seat(s, i, 0);
	size_t rank = 0;
	for (size_t i = 0; i < s->count; i++) {
		if (s->seated[i])
			continue;
		while (!seat(s, i, (int64_t)rank))
			rank++;
	}
}

/* Worker ranks in group-rank order; a role's size so far is the next node's base in it. */
static uint32_t assign_worker_ranks(struct seating *s)
{
	AUTO(map_done) struct map roles = MAP_INIT;
	uint32_t world_size = 0;
	for (size_t rank = 0; rank < s->count; rank++) {
		struct ranks_node *node = &s->nodes[s->slots[rank]];
		size_t len = strlen(node->role);
		uintptr_t in_role = (uintptr_t)map_get(&roles, node->role, len);
		node->rank_base = world_size;
		node->role_rank_base = (uint32_t)in_role;
		world_size += node->nproc;
		map_put(&roles, node->role, len, (void *)(in_role + node->nproc));
	}
	for (size_t i = 0; i < s->count; i++)
		s->nodes[i].role_world_size = (uint32_t)(uintptr_t)map_get(
			&roles, s->nodes[i].role, strlen(s->nodes[i].role));
	return world_size;
}

uint32_t ranks_assign(struct ranks_node *nodes, size_t count)
{
	AUTO_FREE uint32_t *slots = NEW_ARRAY(uint32_t, count);
	AUTO_FREE bool *seated = NEW_ARRAY(bool, count);
	for (size_t i = 0; i < count; i++) {
		slots[i] = NOBODY;
		seated[i] = false;
	}
	struct seating seating = { nodes, count, slots, seated };
	assign_group_ranks(&seating);
	return assign_worker_ranks(&seating);
}
