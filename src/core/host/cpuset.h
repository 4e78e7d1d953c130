/* A set of CPUs by the kernel's numbers, as a plain value. Its text is the kernel's list format:
 * "0-3,8,10-11". */
#ifndef CORE_HOST_CPUSET_H
#define CORE_HOST_CPUSET_H

#include "base/buf.h"
#include "base/err.h"

#define CPUSET_MAX 4096 /* numbers 0 … CPUSET_MAX - 1 */
#define CPUSET_WORDS (CPUSET_MAX / 64)

struct cpuset {
	uint64_t words[CPUSET_WORDS];
};

#define CPUSET_INIT ((struct cpuset){ .words = { 0 } })

static inline bool cpuset_has(const struct cpuset *set, int cpu)
{
	return cpu >= 0 && cpu < CPUSET_MAX && (set->words[cpu / 64] >> (cpu % 64) & 1);
}

static inline void cpuset_add(struct cpuset *set, int cpu)
{
	assert(cpu >= 0 && cpu < CPUSET_MAX);
	set->words[cpu / 64] |= (uint64_t)1 << (cpu % 64);
}

static inline void cpuset_remove(struct cpuset *set, int cpu)
{
	if (cpuset_has(set, cpu))
		set->words[cpu / 64] &= ~((uint64_t)1 << (cpu % 64));
}

int cpuset_count(const struct cpuset *set);
bool cpuset_empty(const struct cpuset *set);
bool cpuset_intersects(const struct cpuset *a, const struct cpuset *b);
void cpuset_union(struct cpuset *set, const struct cpuset *other);    /* set |= other */
void cpuset_subtract(struct cpuset *set, const struct cpuset *other); /* set &= ~other */

/* The smallest member that is at least `from`, or -1. */
int cpuset_next(const struct cpuset *set, int from);

#define cpuset_foreach(cpu, set) \
	for (int cpu = cpuset_next((set), 0); cpu >= 0; cpu = cpuset_next((set), cpu + 1))

/* Appends "0-3,8"; an empty set appends nothing. */
void cpuset_format(const struct cpuset *set, struct buf *out);

/* From "0-3,8"; blanks around it are skipped, an empty text is an empty set. */
int cpuset_parse(const char *text, struct cpuset *ret_set, struct err *err);

#endif
