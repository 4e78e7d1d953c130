#include "unit.h"

#include <math.h>

#include "base/mem.h"
#include "core/checks/figure.h"
#include "core/checks/pairs.h"

/* Numbers from 0 to 1 that look random and are the same in each run. */
static double draw(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005u + 1442695040888963407u;
	return (double)(*seed >> 11) / (double)(1ull << 53);
}

enum { HOSTS_MAX = 64 };

struct lab {
	uint32_t count;
	bool slow[HOSTS_MAX];
	double lost; /* share of the measurements that fail */
	uint64_t seed;
	uint32_t rounds;
};

static void check_round(const struct pairs *pairs, uint32_t round)
{
	uint32_t out = 0;
	for (uint32_t i = 0; i < pairs->count; i++) {
		uint32_t other = pairs->nodes[i].partner[round];
		if (other == PAIRS_NOBODY) {
			out++;
			ck_assert(!pairs->nodes[i].calls[round]);
			continue;
		}
		ck_assert_uint_ne(other, i);
		ck_assert_uint_eq(pairs->nodes[other].partner[round], i);
		ck_assert(pairs->nodes[i].calls[round] != pairs->nodes[other].calls[round]);
		for (uint32_t before = 0; before < round; before++)
			ck_assert_uint_ne(pairs->nodes[i].partner[before], other);
	}
	if (round == 0)
		ck_assert_uint_eq(out, pairs->count % 2);
}

static void play(struct lab *lab, struct pair_figures *ret_all)
{
	struct pairs pairs;
	pairs_init(&pairs, lab->count);
	while (pairs_next(&pairs)) {
		uint32_t round = pairs.rounds - 1;
		check_round(&pairs, round);
		for (uint32_t i = 0; i < lab->count; i++) {
			uint32_t other = pairs.nodes[i].partner[round];
			struct pair_figures found = PAIR_FIGURES_NONE;
			if (!pairs.nodes[i].calls[round])
				continue;
			bool slow = lab->slow[i] || lab->slow[other];
			if (draw(&lab->seed) >= lab->lost)
				found = (struct pair_figures){
					(slow ? 2 : 1000) * (0.7 + 0.6 * draw(&lab->seed)),
					50 * (0.7 + 0.6 * draw(&lab->seed))
				};
			ck_assert(pairs_note(&pairs, i, &found));
		}
	}
	lab->rounds = pairs.rounds;
	pairs_conclude(&pairs, ret_all);
	pairs_done(&pairs);
}

/* As the coordinator judges what it has. */
static size_t judge(const struct lab *lab, const struct pair_figures *all, bool *ret_bad)
{
	double values[HOSTS_MAX];
	for (uint32_t i = 0; i < lab->count; i++)
		values[i] = all[i].bandwidth;
	return peers_judge(values, lab->count, &figure_rule(PAIRS_BANDWIDTH)->peers, ret_bad).bad;
}

TEST(the_slow_node_is_told_from_its_partners_whichever_it_is)
{
	struct pair_figures all[HOSTS_MAX];
	bool bad[HOSTS_MAX];
	for (uint32_t count = PAIRS_LEAST; count <= 33; count++)
		for (uint32_t slow = 0; slow < count; slow++) {
			struct lab lab = { .count = count, .seed = count * 100 + slow };
			lab.slow[slow] = true;
			play(&lab, all);
			ck_assert_uint_eq(lab.rounds, count % 2 ? 3 : 2);
			ck_assert_msg(judge(&lab, all, bad) == 1 && bad[slow], "%u of %u", slow,
				      count);
		}
}

TEST(several_slow_nodes_are_found_as_long_as_they_are_few)
{
	struct pair_figures all[HOSTS_MAX];
	bool bad[HOSTS_MAX];
	for (uint64_t seed = 1; seed <= 500; seed++) {
		struct lab lab = { .count = 16 + 2 * (uint32_t)(seed % 20), .seed = seed };
		for (int i = 0; i < 3; i++)
			lab.slow[(size_t)(draw(&lab.seed) * lab.count)] = true;
		play(&lab, all);
		judge(&lab, all, bad);
		for (uint32_t i = 0; i < lab.count; i++)
			ck_assert_msg(bad[i] == lab.slow[i], "seed %lu: %u", (unsigned long)seed,
				      i);
	}
}

/* Where measurements fail, a slow node may be missed; a good one is never named for it. */
TEST(nobody_is_named_for_a_slow_partner_or_for_a_measurement_that_fails)
{
	struct pair_figures all[HOSTS_MAX];
	bool bad[HOSTS_MAX];
	for (uint64_t seed = 1; seed <= 5000; seed++) {
		struct lab lab = { .count = PAIRS_LEAST + (uint32_t)(seed % 30),
				   .seed = seed,
				   .lost = 0.4 };
		lab.slow[(size_t)(draw(&lab.seed) * lab.count)] = true;
		play(&lab, all);
		judge(&lab, all, bad);
		for (uint32_t i = 0; i < lab.count; i++)
			ck_assert_msg(!bad[i] || lab.slow[i], "seed %lu: %u", (unsigned long)seed,
				      i);
	}
}

TEST(a_node_that_nobody_can_call_is_called_again)
{
	struct pairs pairs;
	pairs_init(&pairs, 4);
	ck_assert(pairs_next(&pairs));
	ck_assert(pairs.nodes[0].calls[0] && !pairs.nodes[1].calls[0]);
	pairs_note(&pairs, 0, &(struct pair_figures){ 0, NAN });
	pairs_note(&pairs, 2, &(struct pair_figures){ 1000, 50 });
	ck_assert(!pairs_note(&pairs, 1, &(struct pair_figures){ 1000, 50 }));
	ck_assert(pairs_next(&pairs));
	ck_assert(pairs.nodes[0].calls[1] && !pairs.nodes[1].calls[1]);
	ck_assert_uint_ne(pairs.nodes[0].partner[1], 1);
	ck_assert(!pairs_next(&pairs));
	pairs_done(&pairs);
}

TEST(a_pair_counts_once_in_each_round)
{
	const struct pair_figures good = { 1000, 50 }, bad = { 1, 9000 };
	struct pairs pairs;
	pairs_init(&pairs, 4);
	for (int round = 0; pairs_next(&pairs); round++)
		for (uint32_t i = 0; i < 4; i++) {
			if (!pairs.nodes[i].calls[round])
				continue;
			ck_assert(pairs_note(&pairs, i, &good));
			ck_assert(!pairs_note(&pairs, i, &bad));
			ck_assert_double_eq(pairs.nodes[i].found[round].bandwidth, 1000);
		}
	pairs_done(&pairs);
}

TEST(two_nodes_are_not_compared)
{
	struct pairs pairs;
	pairs_init(&pairs, 2);
	ck_assert(!pairs_next(&pairs));
	pairs_done(&pairs);
}
