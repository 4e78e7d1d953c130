#include "core/rounds/kept.h"

int kept_compare(const struct kept_state *a, const struct kept_state *b)
{
	int by_round = ballot_compare(a->ballot, b->ballot);
	if (by_round != 0)
		return by_round;
	return a->step < b->step ? -1 : a->step > b->step;
}

static bool has(const struct kept_state states[KEPT_STATES], const struct kept_state *state)
{
	for (size_t i = 0; i < KEPT_STATES; i++)
		if (kept_compare(&states[i], state) == 0)
			return true;
	return false;
}

void kept_meet(struct kept_state states[KEPT_STATES], const struct kept_state others[KEPT_STATES])
{
	for (size_t i = 0; i < KEPT_STATES; i++)
		if (!has(others, &states[i]))
			states[i] = KEPT_STATE_NONE;
	if (kept_compare(&states[0], &states[1]) < 0) {
		struct kept_state newer = states[1];
		states[1] = states[0];
		states[0] = newer;
	}
}
