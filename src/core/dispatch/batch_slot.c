/* The life of an order in a slot: its trials with the commands around them, its limits, how it is
 * stopped, and what its end means for the batch. */
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "core/dispatch/batch_private.h"

typedef void slot_fn(struct step *s, struct batch_slot *slot);

struct batch_action *batch_act(struct step *s, enum batch_action_type type, int slot)
{
	struct batch_action *action = batch_actions_add(s->actions);
	memset(action, 0, sizeof(*action));
	action->type = type;
	action->slot = slot;
	return action;
}

static int number_of(const struct batch *batch, const struct batch_slot *slot)
{
	return (int)(slot - batch->slots);
}

/* The limit on the wall time of an order; a percentage changes while the batch learns medians. */
static uint64_t limit_ns(const struct worklist *list, const struct batch_order *order)
{
	if (order->timeout_ns)
		return order->timeout_ns;
	uint64_t median = order->timeout_percent ? worklist_median_ns(list, order) : 0;
	return median ? (uint64_t)((double)median * order->timeout_percent / 100) : NS_NEVER;
}

static uint64_t wall_deadline(const struct batch_slot *slot)
{
	return ns_add(slot->since_ns, limit_ns(slot->list, slot->order));
}

/* ---- one slot ---- */

/* CPU time grows no faster than the number of cores; unpinned orders may use them all. */
static uint64_t cpu_check_after(const struct batch *batch, const struct batch_slot *slot,
				uint64_t used_ns)
{
	uint64_t left = slot->order->cpu_timeout_ns - used_ns;
	bool pinned = batch->pool->units[slot->placement.first].cpu_count > 0;
	uint64_t cores = (uint64_t)(pinned ? slot->placement.width : MAX(batch->pool->count, 1));
	return MAX(left / cores, BATCH_CPU_CHECK_MIN_NS);
}

static struct batch_trial trial_of(const struct batch_order *order)
{
	struct repeat_step step;
	if (order->repeat && repeat_next(order->repeat, &step))
		return (struct batch_trial){ order->attempt, (int)step.run, step.warmup,
					     step.variant, step.block };
	return (struct batch_trial){ order->attempt, order->run, order->warmup_left > 0,
				     .block = -1 };
}

static uint64_t next_memory_check(const struct step *s)
{
	uint64_t period = s->batch->opts.memory_period_ns;
	return period ? ns_add(s->now_ns, period) : NS_NEVER;
}

static struct batch_action *spawn(struct step *s, struct batch_slot *slot)
{
	struct batch_order *order = slot->order;
	slot->state = SLOT_RUNNING;
	slot->since_ns = s->now_ns;
	slot->why = REASON_OK;
	slot->timed = slot->oom = slot->suspect = false;
	slot->status = (struct exit_status){ .kind = EXIT_UNKNOWN };
	slot->cpu_check_ns = NS_NEVER;
	if (order->cpu_timeout_ns)
		slot->cpu_check_ns = ns_add(s->now_ns, cpu_check_after(s->batch, slot, 0));
	slot->memory_check_ns = next_memory_check(s);
	order->state = BATCH_RUNNING;
	struct batch_action *action = batch_act(s, BATCH_SPAWN, number_of(s->batch, slot));
	action->order = order;
	action->list = slot->list;
	action->cpus = corepool_cpus(s->batch->pool, &slot->placement);
	action->outcome.trial = trial_of(order);
	action->outcome.trial.hook = slot->hook;
	return action;
}

/* The next step of the ladder; the last one, KILL, ends it. */
static void climb(struct step *s, struct batch_slot *slot)
{
	bool last = slot->step + 1 >= slot->ladder->count;
	struct batch_action *action =
		batch_act(s, last ? BATCH_KILL : BATCH_SIGNAL, number_of(s->batch, slot));
	action->sig = slot->ladder->steps[slot->step].sig;
	slot->step_ns =
		last ? NS_NEVER : ns_add(s->now_ns, slot->ladder->steps[slot->step].wait_ns);
	slot->step++;
}

void batch_slot_stop(struct step *s, struct batch_slot *slot, enum reason why,
		     const struct ladder *ladder)
{
	if (slot->state != SLOT_RUNNING)
		return;
	slot->state = SLOT_STOPPING;
	slot->why = why;
	slot->ladder = ladder;
	slot->step = 0;
	climb(s, slot);
}

/* What a slot starts by itself, it has started before it is signalled. */
void batch_stop_all(struct step *s)
{
	for (int i = 0; i < s->batch->opts.jobs; i++)
		batch_slot_stop(s, &s->batch->slots[i], REASON_KILLED, &s->batch->opts.stop_ladder);
}

void batch_kill_all(struct step *s)
{
	for (int i = 0; i < s->batch->opts.jobs; i++) {
		struct batch_slot *slot = &s->batch->slots[i];
		if (slot->state == SLOT_IDLE)
			continue;
		if (slot->state == SLOT_RUNNING)
			slot->why = REASON_KILLED;
		if (slot->state != SLOT_SWEEPING)
			slot->state = SLOT_STOPPING;
		slot->step_ns = NS_NEVER;
		batch_act(s, BATCH_KILL, i);
	}
}

/* The order runs, not a command around it. */
static bool is_run(const struct batch_slot *slot)
{
	return slot->hook == BATCH_HOOK_NONE || slot->hook == BATCH_HOOK_TIMED;
}

static enum reason reason_of(const struct batch *batch, const struct batch_slot *slot)
{
	if (slot->why != REASON_OK)
		return slot->why;
	bool any_code = batch->opts.ignore_exit && is_run(slot) && !slot->order->is_canary;
	switch (slot->status.kind) {
	case EXIT_CODE:
		if (slot->status.value == 0 || any_code)
			return REASON_OK;
		return slot->oom && exit_status_killed(&slot->status) ? REASON_OOM : REASON_EXIT;
	case EXIT_SIGNAL:
		return slot->oom ? REASON_OOM : REASON_SIGNAL;
	case EXIT_UNKNOWN:
		break;
	}
	return REASON_LOST;
}

uint64_t batch_retry_delay_ns(uint64_t first_ns, int attempt)
{
	uint64_t delay = first_ns;
	for (int i = 1; i < attempt && delay < BATCH_RETRY_DELAY_MAX_NS; i++)
		delay *= 2;
	return MIN(delay, MAX(BATCH_RETRY_DELAY_MAX_NS, first_ns));
}

/* Counts a trial that went well: true if the order must run once more. */
static bool count_trial(const struct batch_slot *slot)
{
	struct batch_order *order = slot->order;
	struct repeat_step step;
	order->attempt = 1 + order->losses;
	if (order->repeat) {
		repeat_record(order->repeat, slot->end_ns - slot->start_ns, !slot->suspect);
		return repeat_next(order->repeat, &step);
	}
	if (order->warmup_left > 0)
		order->warmup_left--;
	else
		order->run++;
	return order->run < order->runs;
}

/* Moves the order on after a trial: true if another one follows at once in the same slot. */
static bool advance(struct step *s, struct batch_slot *slot, struct batch_outcome *outcome)
{
	struct batch_order *order = slot->order;
	if (outcome->reason == REASON_OK) {
		if (count_trial(slot))
			return slot->list->stop == BATCH_GO;
		outcome->final = true;
		return false;
	}
	outcome->retry =
		slot->list->stop == BATCH_GO && is_run(slot) &&
		order->attempt <= order->retries + order->losses &&
		retry_rule_matches(&s->batch->opts.retry_on, outcome->reason, &outcome->status);
	if (!outcome->retry) {
		outcome->final = outcome->reason != REASON_KILLED;
		return false;
	}
	outcome->retry_in_ns = batch_retry_delay_ns(s->batch->opts.retry_delay_ns, order->attempt);
	order->attempt++;
	worklist_bind(slot->list, order);
	worklist_postpone(slot->list, order, ns_add(s->now_ns, outcome->retry_in_ns));
	return false;
}

/* What comes after `last` on the way to the run itself, which is NONE. */
static enum batch_hook hook_after(const struct batch *batch, const struct batch_slot *slot,
				  enum batch_hook last)
{
	const bool *exists = batch->opts.hooks;
	if (slot->order->is_canary)
		return BATCH_HOOK_NONE;
	if (exists[BATCH_HOOK_SETUP] && !slot->order->is_set_up)
		return BATCH_HOOK_SETUP;
	if (exists[BATCH_HOOK_PREPARE] && last != BATCH_HOOK_PREPARE)
		return BATCH_HOOK_PREPARE;
	return exists[BATCH_HOOK_TIMED] && !slot->was_timed ? BATCH_HOOK_TIMED : BATCH_HOOK_NONE;
}

/* The next trial of the order in a slot. */
void batch_slot_begin(struct step *s, struct batch_slot *slot)
{
	slot->was_timed = false;
	slot->hook = hook_after(s->batch, slot, BATCH_HOOK_NONE);
	spawn(s, slot);
}

static void leave_slot(struct batch *batch, struct batch_slot *slot)
{
	corepool_give(batch->pool, &slot->placement);
	batch->memory -= batch_memory_of(slot->list, &slot->order->item);
	slot->state = SLOT_IDLE;
	slot->order = NULL;
	slot->hook = BATCH_HOOK_NONE;
	batch->running--;
}

/* The slot has started another one in place of its order: in the middle of a stop that one is
 * stopped, too. */
static void pass_on(struct step *s, struct batch_slot *slot, struct batch_order *next)
{
	enum slot_state state = slot->state;
	enum reason why = slot->why;
	s->batch->ahead--;
	slot->order = next;
	spawn(s, slot)->runs = true;
	if (state == SLOT_STOPPING) {
		slot->state = state;
		slot->why = why;
	}
}

/* After a hook: true if it was the last step, or if what it prepared has started. Else its failure
 * ends the order. */
static bool pass_hook(struct step *s, struct batch_slot *slot)
{
	struct batch_order *order = slot->order;
	bool ok = reason_of(s->batch, slot) == REASON_OK;
	if (slot->hook == BATCH_HOOK_CLEANUP) {
		leave_slot(s->batch, slot);
		worklist_settle(slot->list, order, slot->order_ok && ok);
		return true;
	}
	if (!ok || slot->list->stop != BATCH_GO)
		return false;
	order->is_set_up = order->is_set_up || slot->hook == BATCH_HOOK_SETUP;
	if (slot->hook == BATCH_HOOK_TIMED) {
		slot->was_timed = true;
		slot->timed_start_ns = slot->start_ns;
		slot->timed_end_ns = slot->end_ns;
	}
	slot->hook = hook_after(s->batch, slot, slot->hook);
	spawn(s, slot);
	return true;
}

static void finish(struct step *s, struct batch_slot *slot)
{
	struct batch_order *order = slot->order;
	if (slot->hook && pass_hook(s, slot))
		return;
	if (slot->was_timed && reason_of(s->batch, slot) == REASON_OK) {
		slot->start_ns = slot->timed_start_ns;
		slot->end_ns = slot->timed_end_ns;
	}
	struct batch_outcome outcome = {
		.trial = trial_of(order),
		.reason = reason_of(s->batch, slot),
		.status = slot->status,
		.timed = slot->timed,
		.start_ns = slot->start_ns,
		.end_ns = slot->end_ns,
	};
	outcome.trial.hook = slot->hook;
	if (slot->hook && outcome.reason == REASON_OK)
		outcome.reason = REASON_KILLED; /* stopped before the order itself could start */
	if (order->is_canary && outcome.reason != REASON_OK && outcome.reason != REASON_KILLED) {
		outcome.canary = outcome.reason;
		outcome.reason = REASON_CANARY;
	}
	if (outcome.reason == REASON_OK && slot->timed && !order->is_canary)
		worklist_learn(slot->list, order, slot->end_ns - slot->start_ns);
	bool again = advance(s, slot, &outcome);
	outcome.shared = corepool_shared(s->batch->pool, &slot->placement);

	struct batch_action *action = batch_act(s, BATCH_FINISH, number_of(s->batch, slot));
	action->order = order;
	action->list = slot->list;
	action->outcome = outcome;
	if (again) {
		batch_slot_begin(s, slot);
		return;
	}
	if (outcome.final && s->batch->opts.hooks[BATCH_HOOK_CLEANUP] && !order->is_canary &&
	    slot->list->halt != WORKLIST_KILL) {
		slot->hook = BATCH_HOOK_CLEANUP;
		slot->order_ok = outcome.reason == REASON_OK;
		spawn(s, slot);
		return;
	}
	if (s->event->next)
		pass_on(s, slot, s->event->next);
	else
		leave_slot(s->batch, slot);
	if (outcome.final)
		worklist_settle(slot->list, order, outcome.reason == REASON_OK);
	else if (!outcome.retry)
		worklist_leave(slot->list, order);
}

static void on_exited(struct step *s, struct batch_slot *slot)
{
	slot->status = s->event->status;
	slot->timed = true;
	slot->start_ns = s->event->start_ns;
	slot->end_ns = s->event->end_ns;
	slot->oom = s->event->oom;
	slot->suspect = s->event->suspect;
	if (s->event->empty) {
		finish(s, slot);
		return;
	}
	slot->state = SLOT_SWEEPING;
	batch_act(s, BATCH_KILL, number_of(s->batch, slot));
}

static void on_spawn_failed(struct step *s, struct batch_slot *slot)
{
	if (slot->why == REASON_OK)
		slot->why = REASON_SPAWN;
	finish(s, slot);
}

static void on_empty(struct step *s, struct batch_slot *slot)
{
	finish(s, slot);
}

static void on_lost(struct step *s, struct batch_slot *slot)
{
	if (slot->why == REASON_OK && !slot->timed)
		slot->why = REASON_LOST;
	finish(s, slot);
}

static void on_cpu_used(struct step *s, struct batch_slot *slot)
{
	if (!slot->order->cpu_timeout_ns)
		return;
	if (s->event->cpu_ns >= slot->order->cpu_timeout_ns)
		batch_slot_stop(s, slot, REASON_CPU_TIMEOUT, &s->batch->opts.timeout_ladder);
	else
		slot->cpu_check_ns =
			ns_add(s->now_ns, cpu_check_after(s->batch, slot, s->event->cpu_ns));
}

/* Its memory is needed now: no time to ask it to end. */
static void on_memory_used(struct step *s, struct batch_slot *slot)
{
	static const struct ladder at_once = { .steps = { { .sig = SIGKILL } }, .count = 1 };
	uint64_t limit = slot->order->memory_limit;
	slot->memory_check_ns = next_memory_check(s);
	if (limit && s->event->memory > limit)
		batch_slot_stop(s, slot, REASON_OOM, &at_once);
}

static void running_tick(struct step *s, struct batch_slot *slot)
{
	int number = number_of(s->batch, slot);
	if (wall_deadline(slot) <= s->now_ns) {
		batch_slot_stop(s, slot, REASON_TIMEOUT, &s->batch->opts.timeout_ladder);
		return;
	}
	if (slot->cpu_check_ns <= s->now_ns) {
		slot->cpu_check_ns = NS_NEVER;
		batch_act(s, BATCH_QUERY_CPU, number);
	}
	if (slot->memory_check_ns <= s->now_ns) {
		slot->memory_check_ns = NS_NEVER;
		batch_act(s, BATCH_QUERY_MEMORY, number);
	}
}

static void stopping_tick(struct step *s, struct batch_slot *slot)
{
	if (slot->step_ns <= s->now_ns)
		climb(s, slot);
}

/* An empty cell cannot happen in that state or does not matter: an EMPTY that crossed our order to
 * kill belongs to the previous tree. */
static slot_fn *const slot_table[SLOT_STATE_COUNT][BATCH_EVENT_COUNT] = {
	[SLOT_RUNNING] = {
		[BATCH_EXITED] = on_exited,
		[BATCH_SPAWN_FAILED] = on_spawn_failed,
		[BATCH_LOST] = on_lost,
		[BATCH_CPU_USED] = on_cpu_used,
		[BATCH_MEMORY_USED] = on_memory_used,
		[BATCH_TICK] = running_tick,
	},
	[SLOT_STOPPING] = {
		[BATCH_EXITED] = on_exited,
		[BATCH_SPAWN_FAILED] = on_spawn_failed,
		[BATCH_LOST] = on_lost,
		[BATCH_TICK] = stopping_tick,
	},
	[SLOT_SWEEPING] = {
		[BATCH_EMPTY] = on_empty,
		[BATCH_LOST] = on_lost,
	},
};

void batch_slot_event(struct step *s, int number)
{
	struct batch_slot *slot = &s->batch->slots[number];
	slot_fn *handler = slot_table[slot->state][s->event->type];
	if (handler)
		handler(s, slot);
}

uint64_t batch_slot_deadline(const struct batch_slot *slot)
{
	if (slot->state == SLOT_RUNNING)
		return MIN(wall_deadline(slot), MIN(slot->cpu_check_ns, slot->memory_check_ns));
	return slot->state == SLOT_STOPPING ? slot->step_ns : NS_NEVER;
}
