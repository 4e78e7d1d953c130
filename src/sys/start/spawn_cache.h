/* What a warden has cache of earlier starts, for one that is to be like them: environment and
 * standard streams (WARDEN_KEEP, WARDEN_SAME), and where the last one ran (WARDEN_STAY). */
#ifndef SYS_START_SPAWN_CACHE_H
#define SYS_START_SPAWN_CACHE_H

#include "base/buf.h"
#include "sys/spawn.h"

struct spawn_cache {
	struct buf env, pointers; /* the strings, and where they begin; empty: nothing is cache */
	int stdio[3];		  /* ours, or enum spawn_stdio */
	/* of the last start */
	uint64_t id;
	struct buf cpus, mem_nodes;
	int mem_mode;
};

#define SPAWN_CACHE_INIT \
	{ \
		.stdio = { -1, -1, -1 } \
	}

void spawn_cache_close(struct spawn_cache *cache); /* the descriptors */

/* Keeps the environment and the streams of a start: for each of `stdio` that is a descriptor it
 * takes the next of `fds`. */
void spawn_cache_put(struct spawn_cache *cache, const int stdio[3], int *fds, char *const *envp);

/* Gives them to another; `stdio` is for SPAWN_INHERIT. -EPROTO if nothing is cache. */
int spawn_cache_get(const struct spawn_cache *cache, const int stdio[3], struct spawn_spec *spec);

/* Whether something is cache, and nobody has written to its files. */
bool spawn_cache_is_fresh(const struct spawn_cache *cache);

void spawn_cache_put_spot(struct spawn_cache *cache, uint64_t id, const struct spawn_spec *spec);
void spawn_cache_get_spot(const struct spawn_cache *cache, uint64_t *ret_id,
			  struct spawn_spec *spec);

#endif
