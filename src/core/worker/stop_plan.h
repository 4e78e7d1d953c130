/* The step after which all workers of a job leave, or save: what a worker and its agent write into
 * the page that they share (muster-page(7)) to agree on it.
 *
 * The agent shows a plan: somebody asks (ASKED), a step is proposed (PROPOSED), or agreed on
 * (COMMITTED). A worker asks after each step. Once somebody asks, it writes down after which step
 * it has gone on, and waits after the proposed one until the plan changes. So an agent that has
 * shown a proposal and then finds that no worker is past it can promise that none will be, and all
 * workers act after the same step. While there is no plan, a worker reads one word and writes none.
 *
 * Pure, but for the page, which two processes use at once. The agent trusts nothing in it. */
#ifndef CORE_WORKER_STOP_PLAN_H
#define CORE_WORKER_STOP_PLAN_H

#include "core/worker/worker_page.h"

enum plan_phase {
	PLAN_NONE,
	PLAN_ASKED,	/* workers tell where they are */
	PLAN_PROPOSED,	/* nobody goes on after `step` until it is decided */
	PLAN_COMMITTED, /* act after `step` */
	PLAN_PHASE_COUNT,
};

enum plan_kind {
	PLAN_LEAVE, /* save, then end */
	PLAN_SAVE,  /* save, then go on */
	PLAN_KIND_COUNT,
};

#define PLAN_STEP_MAX (((uint64_t)1 << 48) - 2)

struct stop_plan {
	uint32_t serial; /* of the notice within the round; 0: none */
	enum plan_phase phase;
	enum plan_kind kind;
	uint64_t step; /* PROPOSED and COMMITTED */
};

static inline bool plan_eq(const struct stop_plan *a, const struct stop_plan *b)
{
	return a->serial == b->serial && a->phase == b->phase && a->kind == b->kind &&
	       a->step == b->step;
}

/* ---- the worker's side ---- */

enum plan_answer {
	PLAN_GO_ON,
	PLAN_ACT,  /* save, or leave */
	PLAN_WAIT, /* ask again when the page's plan is no longer *ret_seen */
};

/* The worker is done with `step`. It asks whether to leave, or (with `saves`) whether to save,
 * which it asks first if it asks both. */
enum plan_answer plan_ask(struct worker_page *page, uint64_t step, bool saves, uint64_t *ret_seen);

/* ---- the agent's side ---- */

/* The word for the page; 0 without a plan. */
uint64_t plan_word(const struct stop_plan *plan);

/* What the workers of a host do about a plan. */
struct plan_positions {
	uint32_t pending; /* workers that run, ask, and have neither left nor saved because of it */
	/* of these: not heard of since they can see the plan; to save: also those that do not ask
	 */
	uint32_t unknown;
	uint64_t at; /* 1 + the highest step that any of them has gone on after; 0: none */
};

/* Adds one worker; one that has ended does not count. `page` may be NULL. Call it after the page
 * has the plan's word. */
void plan_look(const struct worker_page *page, const struct stop_plan *plan, bool runs,
	       struct plan_positions *positions);

/* Whether the worker asks for this kind of plan, and whether, and after which step, it left. */
bool plan_is_asked_for(const struct worker_page *page, enum plan_kind kind);
bool plan_has_left(const struct worker_page *page, uint64_t *ret_step);

/* Who of a host's workers left as agreed. */
struct plan_leavers {
	uint32_t left;
	uint32_t lost; /* neither ended well nor told that they have saved the step they left after
			*/
};

/* Adds one worker, whose end is known. `page` may be NULL. */
void plan_count(const struct worker_page *page, bool ended_well, struct plan_leavers *leavers);

/* Some left, and the state of all is safe. */
static inline bool plan_all_left(const struct plan_leavers *leavers)
{
	return leavers->left > 0 && leavers->lost == 0;
}

#endif
