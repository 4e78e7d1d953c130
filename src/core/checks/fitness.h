/* Which nodes of a job are not fit, by what their checks say: each is compared with the others.
 *
 * A node is not fit if it says so itself, if a figure of it is far from that of the others
 * (peers.h), or if a fact differs from that of more than half of all nodes that state it. Where no
 * value has more than half, nodes only differ: nobody is named. */
#ifndef CORE_CHECKS_FITNESS_H
#define CORE_CHECKS_FITNESS_H

#include "core/checks/digest.h"

#define FITNESS_TEXT_MAX 160
#define FITNESS_NAMES_MAX 32 /* different figures, or facts, of all nodes together */

struct fitness {
	bool bad;
	char why[FITNESS_TEXT_MAX]; /* the first reason, with the figure and the median */
};

/* Fills in one for each node; a digest that is NULL or empty is fit. ret_difference: a fact that no
 * majority agrees on, "": none. */
void fitness_judge(const struct check_digest *const *digests, size_t count, struct fitness *ret_all,
		   char ret_difference[FITNESS_TEXT_MAX]);

#endif
