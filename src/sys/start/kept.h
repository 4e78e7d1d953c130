/* What a warden has kept of earlier starts, for one that is to be like them: environment and
 * standard streams (WARDEN_KEEP, WARDEN_SAME), and where the last one ran (WARDEN_STAY). */
#ifndef SYS_START_KEPT_H
#define SYS_START_KEPT_H

#include "base/buf.h"
#include "sys/spawn.h"

struct kept {
	struct buf env, pointers; /* the strings, and where they begin; empty: nothing is kept */
	int stdio[3];		  /* ours, or enum spawn_stdio */
	/* of the last start */
	uint64_t id;
	struct buf cpus, mem_nodes;
	int mem_mode;
};

#define KEPT_INIT \
	{ \
		.stdio = { -1, -1, -1 } \
	}

void kept_close(struct kept *kept); /* the descriptors */

/* Keeps the environment and the streams of a start: for each of `stdio` that is a descriptor it
 * takes the next of `fds`. */
void kept_put(struct kept *kept, const int stdio[3], int *fds, char *const *envp);

/* Gives them to another; `stdio` is for SPAWN_INHERIT. -EPROTO if nothing is kept. */
int kept_get(const struct kept *kept, const int stdio[3], struct spawn_spec *spec);

/* Whether something is kept, and nobody has written to its files. */
bool kept_is_fresh(const struct kept *kept);

void kept_put_spot(struct kept *kept, uint64_t id, const struct spawn_spec *spec);
void kept_get_spot(const struct kept *kept, uint64_t *ret_id, struct spawn_spec *spec);

#endif
