/* Put before each source of core that has mutants (gcc -include): M(n) is whether mutant n is
 * switched on. */
#ifndef MUTANT_H
#define MUTANT_H

#include <stdbool.h>
#include <stddef.h>

extern int mutant_on; /* 0: none; below: none, but those that are reached are noted */
void mutant_reach(int number);

static inline bool mutant_is(int number)
{
	if (mutant_on < 0)
		mutant_reach(number);
	return mutant_on == number;
}

#define M(number) __builtin_expect(mutant_is(number), 0)

#endif
