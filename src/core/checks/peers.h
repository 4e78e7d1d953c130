/* Compares a figure of many peers (the cores of a host, the nodes of a job) with each other.
 *
 * No fixed limit says what is slow: the peers do. One stands out when it is far from the median on
 * the bad side, by a share of it and by the spread of the others: so figures that all wobble name
 * no peer. */
#ifndef CORE_CHECKS_PEERS_H
#define CORE_CHECKS_PEERS_H

#include "base/util.h"

#define PEERS_LEAST 3	  /* among fewer, none stands out */
#define PEERS_SPREADS 4.0 /* standard deviations, by the median absolute deviation */

struct peers_rule {
	double share; /* 0 to 1: below this share of the median a peer stands out */
	bool less;    /* less is better: above the median divided by the share */
	double floor; /* a smaller distance from the median is noise */
	/* values wobble by a factor: their spread is that of their logarithms, so that a peer
	 * with next to nothing stands out among a few that differ much */
	bool by_factor;
};

struct peers_verdict {
	double median;
	double spread; /* standard deviation, as far as the middle half tells */
	size_t bad;    /* peers that stand out */
};

/* ret_bad[i] says whether values[i] stands out: by the rule, and PEERS_SPREADS from the median. A
 * peer without a figure has NAN and is not judged. */
struct peers_verdict peers_judge(const double *values, size_t count, const struct peers_rule *rule,
				 bool *ret_bad);

#endif
