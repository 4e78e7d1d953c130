/* Tells Kubeflow's Trainer of the progress. */
#include "run/tell/happening.h"

static void on_formed(struct telling *telling, const struct happening *happening)
{
	trainer_begin(telling->trainer, happening->formed->group_rank, happening->formed->restarts);
}

static void on_decided(struct telling *telling, const struct happening *happening)
{
	const struct outcome *outcome = happening->outcome;
	trainer_end(telling->trainer, outcome->kind == OUTCOME_DONE && !outcome->left);
}

const struct listener listen_trainer = {
	.on = {
		[HAPPENED_ROUND_FORMED] = on_formed,
		[HAPPENED_JOB_DECIDED] = on_decided,
	},
};
