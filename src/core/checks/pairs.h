/* Who measures the wire to whom, and which node a slow one belongs to.
 *
 * Nodes measure in pairs, all pairs at once, in two rounds of changed pairs: a pair is as slow as
 * its worse node, so one slow pair says nothing about either of the two. In the second round the
 * slowest nodes measure with the fastest. Whoever had one good pair is well; whoever had two bad
 * ones, though a partner is well, is the slow one. An odd number of nodes takes three rounds,
 * because in each one of them sits out. */
#ifndef CORE_CHECKS_PAIRS_H
#define CORE_CHECKS_PAIRS_H

#include <math.h>

#include "base/util.h"

#define PAIRS_LEAST 3 /* among fewer nodes nobody stands out */
#define PAIRS_ROUNDS 3
#define PAIRS_NOBODY UINT32_MAX

#define PAIRS_BANDWIDTH "pair_bandwidth"
#define PAIRS_LATENCY "pair_latency"

/* NAN: not known. */
struct pair_figures {
	double bandwidth; /* MB/s, of the slower direction; 0: nothing got through */
	double latency;	  /* us, there and back */
};

#define PAIR_FIGURES_NONE ((struct pair_figures){ .bandwidth = NAN, .latency = NAN })

struct pairs_node {
	uint32_t partner[PAIRS_ROUNDS]; /* PAIRS_NOBODY: it sits out */
	bool calls[PAIRS_ROUNDS];	/* it connects to its partner, and tells what it found */
	bool told[PAIRS_ROUNDS];	/* the pair's figures have come */
	struct pair_figures found[PAIRS_ROUNDS];
};

struct pairs {
	struct pairs_node *nodes;
	uint32_t count;
	uint32_t rounds; /* begun so far */
};

#define PAIRS_INIT ((struct pairs){ .nodes = NULL })
void pairs_init(struct pairs *pairs, uint32_t count);
void pairs_done(struct pairs *pairs);

/* Chooses the pairs of the next round; false: no more is to be learned. */
bool pairs_next(struct pairs *pairs);

/* What a node that calls found in the last round. False: it does not call, or has told already. */
bool pairs_note(struct pairs *pairs, uint32_t node, const struct pair_figures *found);

/* The best that each node had. A bad figure of a node that may be its partners' is left out. */
void pairs_conclude(const struct pairs *pairs, struct pair_figures *ret_all);

#endif
