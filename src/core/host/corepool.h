/* The cores of a host, handed out to orders.
 *
 * The pool is cut into units, as a rule physical cores, in topological order. An order gets a
 * contiguous, aligned range of them:
 *   - within one L3 group if some group is large enough, else within one NUMA node, else anywhere;
 *   - in a group the ranges of one width start at multiples of it, so that narrow orders do not
 *     break up the places of wide ones; a range larger than a group starts where a group starts;
 *   - the first free one (compact), or one where least is going on (spread);
 *   - one without cores that others keep busy, if there is such a one.
 * No unit is in two ranges at a time. A width that fits the pool at all is always granted when the
 * pool is empty.
 */
#ifndef CORE_HOST_COREPOOL_H
#define CORE_HOST_COREPOOL_H

#include "core/host/topology.h"

#define COREPOOL_THREADS_MAX 8 /* hardware threads of a core that we use */

enum corepool_smt {
	COREPOOL_SMT_AVOID, /* one CPU a core; its twins stay idle */
	COREPOOL_SMT_USE,   /* all CPUs of a core, for one and the same order */
	COREPOOL_SMT_SHARE, /* every CPU for itself; orders that share a core are marked */
};

enum corepool_place {
	COREPOOL_COMPACT,
	COREPOOL_SPREAD,
};

struct corepool_opts {
	enum corepool_smt smt;
	enum corepool_place place;
	int reserve; /* units to keep out of the pool, busy ones first, then the last */
	struct cpuset busy;
};

struct corepool_unit {
	int cpus[COREPOOL_THREADS_MAX];
	int cpu_count; /* 0: an anonymous unit, nothing is pinned */
	int core, l3, node;
	bool used;
	bool busy;
	bool shared; /* an order has used a twin since it was taken */
};

struct corepool {
	struct corepool_unit *units;
	int count;
	int threads; /* CPUs a unit */
	enum corepool_place place;
	int used;
	struct cpuset reserved; /* the CPUs kept out */
};

#define COREPOOL_INIT ((struct corepool){ .units = NULL })

/* Units `first` … `first + count - 1`. */
struct placement {
	int first, count;
	int width;
};

/* From the allowed CPUs of a topology, as many as its quota lets us use. At least one unit stays;
 * without any allowed CPU: -ENODEV. */
int corepool_init(struct corepool *pool, const struct topology *topology,
		  const struct corepool_opts *opts, struct err *err);

/* `count` places without CPUs: orders are counted, not pinned. */
void corepool_init_anonymous(struct corepool *pool, int count);

void corepool_copy(const struct corepool *from, struct corepool *ret_to);
void corepool_done(struct corepool *pool);

/* The largest width that can ever be granted, in CPUs. */
int corepool_max_width(const struct corepool *pool);

/* Takes a range for `width` CPUs. False when there is none now. */
bool corepool_fits(const struct corepool *pool, int width);
bool corepool_take(struct corepool *pool, int width, struct placement *ret_placement);

/* Was a core of it shared with another order since it was taken? */
bool corepool_shared(const struct corepool *pool, const struct placement *placement);

void corepool_give(struct corepool *pool, const struct placement *placement);

/* The CPUs of a range: exactly `width` of them; none in an anonymous pool. */
struct cpuset corepool_cpus(const struct corepool *pool, const struct placement *placement);

#endif
