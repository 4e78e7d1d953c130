#include "core/batch/batch.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

enum slot_state {
	SLOT_IDLE,
	SLOT_RUNNING,
	SLOT_STOPPING, /* the ladder of signals is under way; `why` says why */
	SLOT_SWEEPING, /* the main process is gone, others are still alive */
	SLOT_STATE_COUNT,
};

struct batch_slot {
	enum slot_state state;
	struct batch_order *order;
	struct placement placement;
	uint64_t since_ns;     /* asked to start */
	uint64_t step_ns;      /* STOPPING: when the next step is due */
	uint64_t cpu_check_ns; /* RUNNING: when to look at its CPU time */
	uint64_t memory_check_ns;
	const struct ladder *ladder;
	size_t step;
	enum reason why; /* REASON_OK: it ended by itself */
	struct exit_status status;
	bool timed, oom, suspect;
	enum batch_hook hook; /* this runs instead of the order */
	bool order_ok;	      /* CLEANUP: how the order ended */
	bool was_timed;	      /* the TIMED run before this one is over; its times: */
	uint64_t timed_start_ns, timed_end_ns;
	uint64_t start_ns, end_ns;
};

/* One step's view: the handlers below all take it. */
struct step {
	struct batch *batch;
	const struct batch_event *event;
	uint64_t now_ns;
	struct batch_actions *actions;
};

typedef void slot_fn(struct step *s, struct batch_slot *slot);

void batch_actions_done(struct batch_actions *actions)
{
	free(actions->items);
	*actions = (struct batch_actions){ .items = NULL };
}

static struct batch_action *act(struct step *s, enum batch_action_type type, int slot)
{
	struct batch_actions *actions = s->actions;
	ARRAY_RESERVE(actions->items, actions->count, actions->cap);
	struct batch_action *action = &actions->items[actions->count++];
	memset(action, 0, sizeof(*action));
	action->type = type;
	action->slot = slot;
	return action;
}

static int number_of(const struct batch *batch, const struct batch_slot *slot)
{
	return (int)(slot - batch->slots);
}

/* ---- the list ---- */

static void enqueue(struct batch *batch, struct batch_order *order)
{
	order->state = BATCH_QUEUED;
	schedule_add(&batch->schedule, &order->item, order->key);
}

static void admit(struct batch *batch, struct batch_order *order)
{
	order->attempt = 1 + order->earlier;
	order->warmup_left = order->warmup;
	/* Those of an open list leave as they came. */
	order->key = batch->opts.open ? order->number
				      : schedule_key(&order->item, batch->opts.order,
						     order->estimate_ns, batch->opts.seed);
	batch->total += !order->is_canary;
	if (order->gate && !batch->gates[order->gate].open) {
		order->state = BATCH_HELD;
		batch->gates[order->gate].held++;
	} else {
		enqueue(batch, order);
	}
}

void batch_init(struct batch *batch, const struct batch_opts *opts, struct corepool *pool,
		struct batch_order *orders, size_t count)
{
	*batch = (struct batch){ .opts = *opts, .pool = pool, .orders = orders, .count = count };
	batch->slots = mem_alloc((size_t)opts->jobs * sizeof(*batch->slots));
	batch->learned = mem_alloc(((size_t)opts->groups + 1) * sizeof(*batch->learned));
	batch->gates = mem_alloc(((size_t)opts->gates + 1) * sizeof(*batch->gates));
	for (size_t i = 0; i < count; i++)
		if (opts->open)
			orders[i].state = BATCH_FREE;
		else
			admit(batch, &orders[i]);
}

void batch_done(struct batch *batch)
{
	schedule_done(&batch->schedule);
	heap_done(&batch->waiting);
	free(batch->slots);
	free(batch->learned);
	free(batch->gates);
	*batch = (struct batch){ .slots = NULL };
}

static void open_gate(struct batch *batch, uint32_t gate, bool ok)
{
	struct batch_gate *opened = &batch->gates[gate];
	opened->open = true;
	for (size_t i = 0; i < batch->count && opened->held > 0; i++) {
		struct batch_order *order = &batch->orders[i];
		if (order->state != BATCH_HELD || order->gate != gate)
			continue;
		opened->held--;
		if (ok) {
			enqueue(batch, order);
		} else {
			order->state = BATCH_SKIPPED;
			batch->skipped += !order->is_canary;
		}
	}
}

/* ---- what times are known ---- */

static uint64_t expected_ns(const struct batch *batch, const struct batch_order *order)
{
	uint64_t mean = learned_mean(&batch->learned[order->group]);
	if (order->estimate_ns)
		return order->estimate_ns;
	return mean ? mean : learned_mean(&batch->learned[0]);
}

static uint64_t median_ns(const struct batch *batch, const struct batch_order *order)
{
	uint64_t median = learned_median(&batch->learned[order->group]);
	if (order->estimate_ns)
		return order->estimate_ns;
	return median ? median : learned_median(&batch->learned[0]);
}

static void learn(struct batch *batch, const struct batch_order *order, uint64_t ns)
{
	learned_add(&batch->learned[0], ns);
	if (order->group > 0)
		learned_add(&batch->learned[order->group], ns);
}

/* The limit on the wall time of an order; a percentage changes while the batch learns medians. */
static uint64_t limit_ns(const struct batch *batch, const struct batch_order *order)
{
	if (order->timeout_ns)
		return order->timeout_ns;
	uint64_t median = order->timeout_percent ? median_ns(batch, order) : 0;
	return median ? (uint64_t)((double)median * order->timeout_percent / 100) : NS_NEVER;
}

static uint64_t wall_deadline(const struct batch *batch, const struct batch_slot *slot)
{
	return ns_add(slot->since_ns, limit_ns(batch, slot->order));
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

static void spawn(struct step *s, struct batch_slot *slot)
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
	struct batch_action *action = act(s, BATCH_SPAWN, number_of(s->batch, slot));
	action->order = order;
	action->cpus = corepool_cpus(s->batch->pool, &slot->placement);
	action->outcome.trial = trial_of(order);
	action->outcome.trial.hook = slot->hook;
}

/* The next step of the ladder; the last one, KILL, ends it. */
static void climb(struct step *s, struct batch_slot *slot)
{
	bool last = slot->step + 1 >= slot->ladder->count;
	struct batch_action *action =
		act(s, last ? BATCH_KILL : BATCH_SIGNAL, number_of(s->batch, slot));
	action->sig = slot->ladder->steps[slot->step].sig;
	slot->step_ns =
		last ? NS_NEVER : ns_add(s->now_ns, slot->ladder->steps[slot->step].wait_ns);
	slot->step++;
}

static void stop_slot(struct step *s, struct batch_slot *slot, enum reason why,
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

static void stop_all(struct step *s, enum batch_stop stop)
{
	s->batch->stop = MAX(s->batch->stop, stop);
	for (int i = 0; i < s->batch->opts.jobs; i++)
		stop_slot(s, &s->batch->slots[i], REASON_KILLED, &s->batch->opts.stop_ladder);
}

static void kill_all(struct step *s, enum batch_stop stop)
{
	s->batch->stop = MAX(s->batch->stop, stop);
	s->batch->killing = true;
	for (int i = 0; i < s->batch->opts.jobs; i++) {
		struct batch_slot *slot = &s->batch->slots[i];
		if (slot->state == SLOT_IDLE)
			continue;
		if (slot->state == SLOT_RUNNING)
			slot->why = REASON_KILLED;
		if (slot->state != SLOT_SWEEPING)
			slot->state = SLOT_STOPPING;
		slot->step_ns = NS_NEVER;
		act(s, BATCH_KILL, i);
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

static uint64_t retry_delay(const struct batch *batch, int attempt)
{
	uint64_t delay = batch->opts.retry_delay_ns;
	for (int i = 1; i < attempt && delay < BATCH_RETRY_DELAY_MAX_NS; i++)
		delay *= 2;
	return MIN(delay, MAX(BATCH_RETRY_DELAY_MAX_NS, batch->opts.retry_delay_ns));
}

/* Counts an order that is over, opens the gate that it guards, and checks --halt. */
static void settle(struct step *s, struct batch_order *order, bool ok)
{
	order->state = ok ? BATCH_OK : BATCH_FAILED;
	if (!order->is_canary)
		*(ok ? &s->batch->ok : &s->batch->failed) += 1;
	if (order->opens)
		open_gate(s->batch, order->opens, ok);
	if (s->batch->stop != BATCH_GO || order->is_canary ||
	    !halt_rule_met(&s->batch->opts.halt, s->batch->failed, s->batch->ok, s->batch->total))
		return;
	if (s->batch->opts.halt.when == HALT_NOW)
		stop_all(s, BATCH_STOP_HALT);
	else
		s->batch->stop = BATCH_STOP_HALT;
}

/* Counts a trial that went well: true if the order must run once more. */
static bool count_trial(const struct batch_slot *slot)
{
	struct batch_order *order = slot->order;
	struct repeat_step step;
	order->attempt = 1 + order->earlier;
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
			return s->batch->stop == BATCH_GO;
		outcome->final = true;
		return false;
	}
	outcome->retry =
		s->batch->stop == BATCH_GO && is_run(slot) && order->attempt <= order->retries &&
		retry_rule_matches(&s->batch->opts.retry_on, outcome->reason, &outcome->status);
	if (!outcome->retry) {
		outcome->final = outcome->reason != REASON_KILLED;
		return false;
	}
	outcome->retry_in_ns = retry_delay(s->batch, order->attempt);
	order->attempt++;
	order->state = BATCH_WAITING;
	heap_push(&s->batch->waiting, &order->wake, ns_add(s->now_ns, outcome->retry_in_ns));
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
static void begin_trial(struct step *s, struct batch_slot *slot)
{
	slot->was_timed = false;
	slot->hook = hook_after(s->batch, slot, BATCH_HOOK_NONE);
	spawn(s, slot);
}

static void leave_slot(struct batch *batch, struct batch_slot *slot)
{
	corepool_give(batch->pool, &slot->placement);
	slot->state = SLOT_IDLE;
	slot->order = NULL;
	slot->hook = BATCH_HOOK_NONE;
	batch->running--;
}

/* After a hook: true if it was the last step, or if what it prepared has started. Else its failure
 * ends the order. */
static bool pass_hook(struct step *s, struct batch_slot *slot)
{
	struct batch_order *order = slot->order;
	bool ok = reason_of(s->batch, slot) == REASON_OK;
	if (slot->hook == BATCH_HOOK_CLEANUP) {
		leave_slot(s->batch, slot);
		settle(s, order, slot->order_ok && ok);
		return true;
	}
	if (!ok || s->batch->stop != BATCH_GO)
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
		learn(s->batch, order, slot->end_ns - slot->start_ns);
	bool again = advance(s, slot, &outcome);
	outcome.shared = corepool_shared(s->batch->pool, &slot->placement);

	struct batch_action *action = act(s, BATCH_FINISH, number_of(s->batch, slot));
	action->order = order;
	action->outcome = outcome;
	if (again) {
		begin_trial(s, slot);
		return;
	}
	if (outcome.final && s->batch->opts.hooks[BATCH_HOOK_CLEANUP] && !order->is_canary &&
	    !s->batch->killing) {
		slot->hook = BATCH_HOOK_CLEANUP;
		slot->order_ok = outcome.reason == REASON_OK;
		spawn(s, slot);
		return;
	}
	leave_slot(s->batch, slot);
	if (outcome.final)
		settle(s, order, outcome.reason == REASON_OK);
	else if (!outcome.retry) /* we stopped it: it counts as not run */
		order->state = BATCH_HELD;
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
	act(s, BATCH_KILL, number_of(s->batch, slot));
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
		stop_slot(s, slot, REASON_CPU_TIMEOUT, &s->batch->opts.timeout_ladder);
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
		stop_slot(s, slot, REASON_OOM, &at_once);
}

static void running_tick(struct step *s, struct batch_slot *slot)
{
	int number = number_of(s->batch, slot);
	if (wall_deadline(s->batch, slot) <= s->now_ns) {
		stop_slot(s, slot, REASON_TIMEOUT, &s->batch->opts.timeout_ladder);
		return;
	}
	if (slot->cpu_check_ns <= s->now_ns) {
		slot->cpu_check_ns = NS_NEVER;
		act(s, BATCH_QUERY_CPU, number);
	}
	if (slot->memory_check_ns <= s->now_ns) {
		slot->memory_check_ns = NS_NEVER;
		act(s, BATCH_QUERY_MEMORY, number);
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

static void slot_event(struct step *s, int number)
{
	struct batch_slot *slot = &s->batch->slots[number];
	slot_fn *handler = slot_table[slot->state][s->event->type];
	if (handler)
		handler(s, slot);
}

/* ---- the whole ---- */

static struct batch_slot *idle_slot(struct batch *batch)
{
	for (int i = 0; i < batch->opts.jobs; i++)
		if (batch->slots[i].state == SLOT_IDLE)
			return &batch->slots[i];
	return NULL;
}

static bool can_start(const struct batch *batch)
{
	return batch->stop == BATCH_GO && batch->running < batch->opts.jobs &&
	       batch->schedule.queued > 0;
}

static bool is_guarded(const struct batch *batch)
{
	return batch->opts.memory_free > 0 || batch->opts.load > 0;
}

/* Whether --delay, --memfree and --load let the next order start now. If the host must be looked at
 * first, asks for that. */
static bool may_start(struct step *s)
{
	struct batch *batch = s->batch;
	if (s->now_ns < batch->hold_ns)
		return false;
	batch->hold_ns = 0;
	if (!is_guarded(batch) || batch->host_ok)
		return true;
	if (!batch->host_asked) {
		batch->host_asked = true;
		act(s, BATCH_QUERY_HOST, -1);
	}
	return false;
}

static void on_host(struct step *s)
{
	struct batch *batch = s->batch;
	const struct batch_opts *opts = &batch->opts;
	bool enough = s->event->memory_free >= opts->memory_free;
	bool idle = opts->load <= 0 || s->event->load < opts->load;
	batch->host_asked = false;
	batch->host_ok = enough && idle;
	if (!batch->host_ok)
		batch->hold_ns = ns_add(s->now_ns, BATCH_HOST_PERIOD_NS);
}

/* The host looks different after a start. */
static void note_start(struct step *s)
{
	s->batch->host_ok = false;
	if (s->batch->opts.start_delay_ns)
		s->batch->hold_ns = ns_add(s->now_ns, s->batch->opts.start_delay_ns);
}

static void start_orders(struct step *s)
{
	struct placement placement;
	while (can_start(s->batch) && may_start(s)) {
		struct schedule_item *item =
			schedule_next(&s->batch->schedule, s->batch->pool, &placement);
		if (!item)
			return;
		struct batch_slot *slot = idle_slot(s->batch);
		slot->order = container_of(item, struct batch_order, item);
		slot->placement = placement;
		s->batch->running++;
		note_start(s);
		begin_trial(s, slot);
	}
}

static void wake_orders(struct batch *batch, uint64_t now_ns)
{
	for (struct heap_node *node; (node = heap_top(&batch->waiting)) && node->key <= now_ns;) {
		heap_pop(&batch->waiting);
		enqueue(batch, container_of(node, struct batch_order, wake));
	}
}

static void on_tick(struct step *s)
{
	wake_orders(s->batch, s->now_ns);
	if (s->batch->opts.deadline_ns <= s->now_ns && s->batch->stop == BATCH_GO)
		stop_all(s, BATCH_STOP_DEADLINE);
	for (int i = 0; i < s->batch->opts.jobs; i++)
		slot_event(s, i);
}

static void on_interrupt(struct step *s)
{
	if (s->batch->stop < BATCH_STOP_INTERRUPT)
		stop_all(s, BATCH_STOP_INTERRUPT);
	else
		kill_all(s, BATCH_STOP_INTERRUPT);
}

/* ---- an open list ---- */

static bool is_open(const struct batch *batch)
{
	return batch->opts.open && !batch->closed;
}

/* A place whose order is over, or that had none. */
static struct batch_order *free_order(struct batch *batch)
{
	for (size_t i = 0; i < batch->count; i++) {
		struct batch_order *order = &batch->orders[i];
		if (order->state == BATCH_FREE || order->state == BATCH_OK ||
		    order->state == BATCH_FAILED)
			return order;
	}
	return NULL;
}

/* Has one order ahead for every job, so that none waits for the input. */
static void fetch_more(struct step *s)
{
	struct batch *batch = s->batch;
	if (!is_open(batch) || batch->fetching || batch->stop != BATCH_GO ||
	    batch->schedule.queued >= (size_t)batch->opts.jobs)
		return;
	struct batch_order *order = free_order(batch);
	if (!order)
		return;
	batch->fetching = true;
	act(s, BATCH_FETCH, -1)->order = order;
}

static void on_offer(struct step *s)
{
	s->batch->fetching = false;
	admit(s->batch, s->event->order);
}

/* Another host has it by now: what runs is of no use. */
static void on_discard(struct step *s)
{
	static const struct ladder at_once = { .steps = { { .sig = SIGKILL } }, .count = 1 };
	struct batch *batch = s->batch;
	struct batch_order *order = s->event->order;
	if (order->state == BATCH_QUEUED)
		schedule_remove(&batch->schedule, &order->item);
	else if (order->state == BATCH_WAITING)
		heap_remove(&batch->waiting, &order->wake);
	for (int i = 0; order->state == BATCH_RUNNING && i < batch->opts.jobs; i++)
		if (batch->slots[i].order == order)
			stop_slot(s, &batch->slots[i], REASON_KILLED, &at_once);
	if (order->state != BATCH_RUNNING)
		order->state = BATCH_FREE;
}

static void maybe_end(struct step *s)
{
	bool more =
		s->batch->stop == BATCH_GO &&
		(s->batch->schedule.queued > 0 || s->batch->waiting.count > 0 || is_open(s->batch));
	if (s->batch->ended || s->batch->running > 0 || more)
		return;
	s->batch->ended = true;
	act(s, BATCH_END, -1);
}

void batch_step(struct batch *batch, const struct batch_event *event, uint64_t now_ns,
		struct batch_actions *actions)
{
	struct step s = { batch, event, now_ns, actions };
	switch (event->type) {
	case BATCH_START:
		break;
	case BATCH_TICK:
		on_tick(&s);
		break;
	case BATCH_HOST:
		on_host(&s);
		break;
	case BATCH_OFFER:
		on_offer(&s);
		break;
	case BATCH_CLOSED:
		batch->fetching = false;
		batch->closed = true;
		break;
	case BATCH_DISCARD:
		on_discard(&s);
		break;
	case BATCH_DRAIN:
		batch->stop = MAX(batch->stop, BATCH_STOP_DRAIN);
		break;
	case BATCH_INTERRUPT:
		on_interrupt(&s);
		break;
	case BATCH_FATAL:
		kill_all(&s, BATCH_STOP_FATAL);
		break;
	default:
		slot_event(&s, event->slot);
		break;
	}
	start_orders(&s);
	fetch_more(&s);
	maybe_end(&s);
}

uint64_t batch_next_deadline(const struct batch *batch)
{
	uint64_t next = batch->stop == BATCH_GO ? batch->opts.deadline_ns : NS_NEVER;
	const struct heap_node *waiting = heap_top(&batch->waiting);
	if (waiting && batch->stop == BATCH_GO)
		next = MIN(next, waiting->key);
	if (batch->hold_ns && can_start(batch))
		next = MIN(next, batch->hold_ns);
	for (int i = 0; i < batch->opts.jobs; i++) {
		const struct batch_slot *slot = &batch->slots[i];
		if (slot->state == SLOT_RUNNING)
			next = MIN(next, MIN(wall_deadline(batch, slot),
					     MIN(slot->cpu_check_ns, slot->memory_check_ns)));
		if (slot->state == SLOT_STOPPING)
			next = MIN(next, slot->step_ns);
	}
	return next;
}

bool batch_waits_for_host(const struct batch *batch)
{
	return is_guarded(batch) && can_start(batch) && !batch->host_ok && !batch->host_asked &&
	       batch->hold_ns > 0;
}

const struct batch_order *batch_running(const struct batch *batch, int number,
					uint64_t *ret_since_ns)
{
	const struct batch_slot *slot = &batch->slots[number];
	if (slot->state == SLOT_IDLE)
		return NULL;
	*ret_since_ns = slot->since_ns;
	return slot->order;
}

/* All runs of an order that are still to come. */
static uint64_t order_estimate(void *arg, const struct schedule_item *item)
{
	const struct batch_order *order = container_of(item, const struct batch_order, item);
	return expected_ns(arg, order) *
	       (uint64_t)MAX(order->runs - order->run + order->warmup_left, 1);
}

uint64_t batch_eta(const struct batch *batch, uint64_t now_ns)
{
	AUTO_FREE struct schedule_running *running =
		NEW_ARRAY(struct schedule_running, (size_t)batch->opts.jobs);
	size_t count = 0;
	if (batch->learned[0].count == 0 || is_open(batch))
		return NS_NEVER;
	for (int i = 0; i < batch->opts.jobs; i++) {
		const struct batch_slot *slot = &batch->slots[i];
		if (slot->state == SLOT_IDLE)
			continue;
		uint64_t whole = order_estimate((void *)batch, &slot->order->item);
		uint64_t passed = now_ns - slot->since_ns;
		/* One that is over its estimate has more ahead: the longer it took, the more. */
		uint64_t left = whole > passed ? whole - passed : passed / 10;
		running[count++] = (struct schedule_running){ slot->placement, left };
	}
	return schedule_eta(&batch->schedule, batch->pool, running, count, batch->opts.jobs,
			    order_estimate, (void *)batch);
}

#define PARALLEL_FAILED_MAX 100 /* a larger number does not fit into an exit status */

int batch_exit_parallel(const struct batch *batch, int failed_code)
{
	const struct halt_rule *halt = &batch->opts.halt;
	bool by_failure = batch->stop == BATCH_STOP_HALT && halt->when == HALT_NOW &&
			  halt->what == HALT_FAIL && halt->count == 1;
	if (by_failure)
		return failed_code;
	return (int)MIN(batch->failed, (uint64_t)PARALLEL_FAILED_MAX + 1);
}
