/* The schedule and the ETA of a batch in virtual time: 8 cores, 200 orders of widths 1, 2, 4 and 8,
 * log-normal times. Prints "makespan MEDIAN P90" against the lower bound with times known, and
 * "eta PERCENT_DONE MEDIAN P90" of |predicted / actual - 1| with nothing known before. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "core/dispatch/batch.h"

#define ORDERS 200
#define CORES 8
#define SEEDS 101
#define GROUPS 4

static struct batch_order orders[ORDERS];
static uint64_t times[ORDERS];

static double uniform(void)
{
	return (rand() + 1.0) / (RAND_MAX + 2.0);
}

static double normal(void)
{
	return sqrt(-2 * log(uniform())) * cos(2 * M_PI * uniform());
}

/* Returns the lower bound: all cores busy all the time, or the longest order. */
static double make_orders(unsigned seed, bool known)
{
	double area = 0, longest = 0;
	srand(seed);
	memset(orders, 0, sizeof(orders));
	for (uint32_t i = 0; i < ORDERS; i++) {
		uint32_t group = 1 + (uint32_t)rand() % GROUPS;
		times[i] = (uint64_t)(1e9 * group * exp(normal() * 0.5));
		orders[i] = (struct batch_order){ .item = { .index = i, .width = 1 << rand() % 4 },
						  .runs = 1,
						  .group = group,
						  .estimate_ns = known ? times[i] : 0 };
		area += (double)times[i] * orders[i].item.width;
		longest = MAX(longest, (double)times[i]);
	}
	return MAX(area / CORES, longest);
}

struct look {
	uint64_t at_ns, eta_ns;
};

/* Plays a batch to its end; looks at the ETA when 25, 50 and 75 % are done. */
static uint64_t play(struct look looks[3])
{
	struct corepool pool;
	struct worklist list;
	struct batch batch;
	struct batch_actions actions = { .items = NULL };
	struct batch_opts opts = { .jobs = CORES,
				   .list = { .deadline_ns = NS_NEVER, .groups = GROUPS } };
	struct batch_event event = { .type = BATCH_START };
	uint64_t ends[CORES], now = 0;
	bool ended = false;
	memset(ends, 0xff, sizeof(ends));
	corepool_init_anonymous(&pool, CORES);
	worklist_init(&list, &opts.list, orders, ORDERS);
	batch_init(&batch, &opts, &pool, &list);
	while (!ended) {
		actions.count = 0;
		batch_step(&batch, &event, now, &actions);
		for (size_t i = 0; i < actions.count; i++) {
			const struct batch_action *action = &actions.items[i];
			if (action->type == BATCH_SPAWN)
				ends[action->slot] = now + times[action->order->item.index];
			ended = ended || action->type == BATCH_END;
		}
		for (unsigned i = 0; looks && i < 3; i++)
			if (looks[i].at_ns == 0 && list.ok >= ORDERS * (i + 1) / 4)
				looks[i] = (struct look){ now, batch_eta(&batch, now) };
		int first = 0;
		for (int i = 1; i < CORES; i++)
			first = ends[i] < ends[first] ? i : first;
		if (ended)
			break;
		uint64_t since = 0;
		const struct batch_order *order = batch_running(&batch, first, &since);
		now = ends[first];
		ends[first] = NS_NEVER;
		event = (struct batch_event){ .type = BATCH_EXITED,
					      .slot = first,
					      .status = { .kind = EXIT_CODE },
					      .start_ns = now - times[order->item.index],
					      .end_ns = now,
					      .empty = true };
	}
	batch_done(&batch);
	worklist_done(&list);
	corepool_done(&pool);
	batch_actions_done(&actions);
	return now;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

static void print(const char *what, double *values)
{
	qsort(values, SEEDS, sizeof(*values), compare);
	printf("%s %.4f %.4f\n", what, values[SEEDS / 2], values[SEEDS * 9 / 10]);
}

int main(void)
{
	static double ratios[SEEDS], errors[3][SEEDS];
	for (unsigned seed = 0; seed < SEEDS; seed++) {
		double bound = make_orders(seed + 1, true);
		ratios[seed] = (double)play(NULL) / bound;
		struct look looks[3] = { { 0, 0 } };
		make_orders(seed + 1, false);
		uint64_t end = play(looks);
		for (int i = 0; i < 3; i++)
			errors[i][seed] =
				fabs((double)looks[i].eta_ns / (double)(end - looks[i].at_ns) - 1);
	}
	print("makespan", ratios);
	print("eta 25", errors[0]);
	print("eta 50", errors[1]);
	print("eta 75", errors[2]);
	return 0;
}
