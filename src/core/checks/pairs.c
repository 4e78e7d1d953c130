#include "core/checks/pairs.h"

#include <math.h>
#include <stdlib.h>

#include "base/mem.h"
#include "core/checks/figure.h"

void pairs_init(struct pairs *pairs, uint32_t count)
{
	*pairs = (struct pairs){ .nodes = NEW_ARRAY(struct pairs_node, MAX(count, 1u)),
				 .count = count };
	for (uint32_t i = 0; i < count; i++)
		for (size_t r = 0; r < PAIRS_ROUNDS; r++) {
			pairs->nodes[i].partner[r] = PAIRS_NOBODY;
			pairs->nodes[i].calls[r] = false;
			pairs->nodes[i].told[r] = false;
			pairs->nodes[i].found[r] = PAIR_FIGURES_NONE;
		}
}

void pairs_done(struct pairs *pairs)
{
	free(pairs->nodes);
	*pairs = PAIRS_INIT;
}

static void join(struct pairs *pairs, uint32_t caller, uint32_t other)
{
	uint32_t round = pairs->rounds - 1;
	pairs->nodes[caller].partner[round] = other;
	pairs->nodes[caller].calls[round] = true;
	pairs->nodes[other].partner[round] = caller;
}

/* ---- what is known ---- */

static double figure(const struct pairs_node *node, size_t round, bool less)
{
	return less ? node->found[round].latency : node->found[round].bandwidth;
}

/* NAN: it has not been measured. */
static double best(const struct pairs *pairs, uint32_t index, bool less)
{
	double found = NAN;
	for (size_t r = 0; r < pairs->rounds; r++) {
		double value = figure(&pairs->nodes[index], r, less);
		if (isnan(found) || (less ? value < found : value > found))
			found = value;
	}
	return found;
}

/* Far worse than another. */
static bool is_worse(double value, double other, const struct peers_rule *rule)
{
	return rule->less ? value * rule->share > other && value - other >= rule->floor
			  : value < other * rule->share;
}

/* Two partners had a bad wire to it, and one of them has a good one to another node: then the fault
 * is its own. One pair alone may have met with a partner that was just about to die. */
static bool is_its_own(const struct pairs *pairs, uint32_t index, const double *all,
		       const struct peers_rule *rule)
{
	const struct pairs_node *node = &pairs->nodes[index];
	uint32_t measured = 0, better = 0;
	for (size_t r = 0; r < pairs->rounds; r++) {
		if (node->partner[r] == PAIRS_NOBODY || isnan(figure(node, r, rule->less)))
			continue;
		measured++;
		better += is_worse(all[index], all[node->partner[r]], rule);
	}
	return measured >= 2 && better > 0;
}

static void conclude(const struct pairs *pairs, const struct peers_rule *rule, double *ret_best)
{
	AUTO_FREE double *all = NEW_ARRAY(double, pairs->count + 1);
	double top = NAN;
	for (uint32_t i = 0; i < pairs->count; i++) {
		all[i] = best(pairs, i, rule->less);
		if (isnan(top) || (rule->less ? all[i] < top : all[i] > top))
			top = all[i];
	}
	for (uint32_t i = 0; i < pairs->count; i++)
		ret_best[i] = is_worse(all[i], top, rule) && !is_its_own(pairs, i, all, rule)
				      ? NAN
				      : all[i];
}

void pairs_conclude(const struct pairs *pairs, struct pair_figures *ret_all)
{
	AUTO_FREE double *bandwidth = NEW_ARRAY(double, pairs->count + 1);
	AUTO_FREE double *latency = NEW_ARRAY(double, pairs->count + 1);
	conclude(pairs, &figure_rule(PAIRS_BANDWIDTH)->peers, bandwidth);
	conclude(pairs, &figure_rule(PAIRS_LATENCY)->peers, latency);
	for (uint32_t i = 0; i < pairs->count; i++)
		ret_all[i] = (struct pair_figures){ bandwidth[i], latency[i] };
}

/* ---- the pairs ---- */

struct ranked {
	uint32_t node;
	double bandwidth, latency; /* unknown ones as the fastest: they are to meet others */
};

static int by_speed(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;
	if (x->bandwidth != y->bandwidth)
		return x->bandwidth < y->bandwidth ? -1 : 1;
	if (x->latency != y->latency)
		return x->latency > y->latency ? -1 : 1;
	return x->node < y->node ? -1 : x->node > y->node;
}

static bool have_met(const struct pairs *pairs, uint32_t a, uint32_t b)
{
	for (size_t r = 0; r + 1 < pairs->rounds; r++)
		if (pairs->nodes[a].partner[r] == b)
			return true;
	return false;
}

/* The slower one keeps its part, so that a node that nobody can call is not saved by calling. */
static void join_again(struct pairs *pairs, uint32_t slow, uint32_t fast)
{
	bool calls =
		pairs->nodes[slow].calls[0] ||
		(pairs->nodes[slow].partner[0] == PAIRS_NOBODY && !pairs->nodes[fast].calls[0]);
	join(pairs, calls ? slow : fast, calls ? fast : slow);
}

/* The slowest with the fastest that it has not met, and so on inwards. */
static void join_ranked(struct pairs *pairs)
{
	AUTO_FREE struct ranked *order = NEW_ARRAY(struct ranked, pairs->count);
	AUTO_FREE bool *taken = NEW_ARRAY(bool, pairs->count);
	for (uint32_t i = 0; i < pairs->count; i++) {
		double bandwidth = best(pairs, i, false), latency = best(pairs, i, true);
		taken[i] = false;
		order[i] = (struct ranked){ i, isnan(bandwidth) ? INFINITY : bandwidth,
					    isnan(latency) ? 0 : latency };
	}
	qsort(order, pairs->count, sizeof(*order), by_speed);
	for (uint32_t low = 0, high = pairs->count; low < pairs->count; low++) {
		if (taken[low])
			continue;
		while (high > low + 1 && taken[high - 1])
			high--;
		uint32_t other = high;
		while (other > low + 1 && (taken[other - 1] ||
					   have_met(pairs, order[low].node, order[other - 1].node)))
			other--;
		if (other <= low + 1)
			continue; /* it sits out */
		taken[low] = taken[other - 1] = true;
		join_again(pairs, order[low].node, order[other - 1].node);
	}
}

/* Neighbours: they are often under one switch, whose fault is then that of both. */
static void join_neighbours(struct pairs *pairs)
{
	for (uint32_t i = 0; i + 1 < pairs->count; i += 2)
		join(pairs, i, i + 1);
}

bool pairs_next(struct pairs *pairs)
{
	if (pairs->count < PAIRS_LEAST || pairs->rounds == (pairs->count % 2 ? 3 : 2))
		return false;
	if (++pairs->rounds == 1)
		join_neighbours(pairs);
	else
		join_ranked(pairs);
	return true;
}

bool pairs_note(struct pairs *pairs, uint32_t node, const struct pair_figures *found)
{
	if (pairs->rounds == 0 || node >= pairs->count)
		return false;
	uint32_t round = pairs->rounds - 1, other = pairs->nodes[node].partner[round];
	if (other == PAIRS_NOBODY || !pairs->nodes[node].calls[round] ||
	    pairs->nodes[node].told[round])
		return false;
	pairs->nodes[node].told[round] = true;
	pairs->nodes[node].found[round] = *found;
	pairs->nodes[other].found[round] = *found;
	return true;
}
