#include "core/worker/stop_plan.h"

/* A word of the page: a step in the upper 48 bits, then 12 bits of the plan's serial number, one
 * for its kind and three for its phase. */
#define STEP_SHIFT 16
#define SERIAL_SHIFT 4
#define SERIAL_MASK 0xfffu
#define KIND_SHIFT 3
#define PHASE_MASK 7u

static uint64_t pack(uint64_t step, uint64_t serial, unsigned low)
{
	return MIN(step, PLAN_STEP_MAX + 1) << STEP_SHIFT | (serial & SERIAL_MASK) << SERIAL_SHIFT |
	       low;
}

static uint64_t serial_of(uint64_t word)
{
	return word >> SERIAL_SHIFT & SERIAL_MASK;
}

uint64_t plan_word(const struct stop_plan *plan)
{
	if (plan->phase == PLAN_NONE)
		return 0;
	return pack(plan->step, plan->serial,
		    (unsigned)plan->kind << KIND_SHIFT | (unsigned)plan->phase);
}

static struct stop_plan unpack(uint64_t word)
{
	return (struct stop_plan){
		.serial = (uint32_t)serial_of(word),
		.phase = (enum plan_phase)(word & PHASE_MASK),
		.kind = (enum plan_kind)(word >> KIND_SHIFT & 1),
		.step = word >> STEP_SHIFT,
	};
}

/* ---- the worker's side ---- */

static enum plan_answer act(struct worker_page *page, const struct stop_plan *plan, uint64_t step,
			    bool saves)
{
	/* Who leaves asks whether to save first, and is gone only with the second question. */
	if (saves == (plan->kind == PLAN_SAVE))
		atomic_store(&page->acted, pack(step, plan->serial, 1u + (unsigned)plan->kind));
	return PLAN_ACT;
}

enum plan_answer plan_ask(struct worker_page *page, uint64_t step, bool saves, uint64_t *ret_seen)
{
	for (;;) {
		uint64_t word = atomic_load(&page->plan);
		struct stop_plan plan = unpack(word);
		uint64_t acted = atomic_load(&page->acted);
		bool has_saved = plan.kind == PLAN_SAVE && acted && serial_of(acted) == plan.serial;
		if (plan.phase == PLAN_NONE || (plan.kind == PLAN_SAVE && !saves) || has_saved)
			return PLAN_GO_ON;
		bool reached = plan.phase != PLAN_ASKED && step >= plan.step;
		if (reached && plan.phase == PLAN_COMMITTED)
			return act(page, &plan, step, saves);
		if (reached) {
			/* If this is the first question, the agent learns where we are. */
			atomic_store(&page->at, pack(step, plan.serial, 0));
			*ret_seen = word;
			return PLAN_WAIT;
		}
		/* The agent writes the plan, then reads this; we write this, then read the plan. So
		 * it sees that we went on, or we see what it proposed. */
		atomic_store(&page->at, pack(step + 1, plan.serial, 0));
		if (atomic_load(&page->plan) == word)
			return PLAN_GO_ON;
	}
}

/* ---- the agent's side ---- */

bool plan_is_asked_for(const struct worker_page *page, enum plan_kind kind)
{
	return page && (atomic_load(&page->asks) >> kind & 1);
}

bool plan_has_left(const struct worker_page *page, uint64_t *ret_step)
{
	uint64_t acted = page ? atomic_load(&page->acted) : 0;
	if ((acted & PHASE_MASK) != 1u + PLAN_LEAVE)
		return false;
	*ret_step = acted >> STEP_SHIFT;
	return true;
}

void plan_count(const struct worker_page *page, bool ended_well, struct plan_leavers *leavers)
{
	uint64_t step;
	bool left = plan_has_left(page, &step);
	bool saved = left && atomic_load(&page->saved) > step;
	leavers->left += left;
	leavers->lost += !ended_well && !saved;
}

void plan_look(const struct worker_page *page, const struct stop_plan *plan, bool runs,
	       struct plan_positions *positions)
{
	uint64_t serial = plan->serial & SERIAL_MASK;
	bool asks = plan_is_asked_for(page, plan->kind);
	uint64_t acted = page ? atomic_load(&page->acted) : 0;
	uint64_t at = page ? atomic_load(&page->at) : 0;
	bool has_acted = acted && serial_of(acted) == serial;
	/* Who does not ask yet would miss a save, and then it would be worth nothing. To leave, one
	 * that never asks must not keep the others. */
	if (runs && !asks && plan->kind == PLAN_SAVE)
		positions->unknown++;
	if (!runs || !asks)
		return;
	if (has_acted)
		return;
	positions->pending++;
	if (at && serial_of(at) == serial)
		positions->at = MAX(positions->at, at >> STEP_SHIFT);
	else
		positions->unknown++;
}
