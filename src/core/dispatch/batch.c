#include "core/dispatch/batch.h"

#include <signal.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "core/dispatch/batch_private.h"

uint64_t batch_memory_of(const struct worklist *list, const struct schedule_item *item)
{
	const struct order_kind *kind = worklist_kind(list, item);
	return kind ? kind->memory : 0;
}

/* Which order is next, where it runs and whether it may start is the same when a slot finds out by
 * itself. */
static bool are_plain(const struct batch_opts *opts, const struct worklist *list)
{
	const struct worklist_opts *rules = &list->opts;
	if (rules->open || rules->shared || rules->gates > 0 || rules->halt.when != HALT_NEVER ||
	    opts->start_delay_ns || opts->memory_free || opts->load > 0 || opts->memory_period_ns)
		return false;
	for (int i = 0; i < BATCH_HOOK_COUNT; i++)
		if (opts->hooks[i])
			return false;
	for (size_t i = 0; i < list->count; i++) {
		const struct batch_order *order = &list->orders[i];
		if (order->item.width != 1 || batch_memory_of(list, &order->item) ||
		    order->timeout_ns || order->cpu_timeout_ns || order->timeout_percent ||
		    order->memory_limit || order->retries || order->runs > 1 || order->warmup ||
		    order->repeat)
			return false;
	}
	return true;
}

static enum schedule_fit fit(void *arg, const struct schedule_item *item)
{
	const struct batch *batch = arg;
	const struct order_kind *kind = worklist_kind(batch->list, item);
	if (batch_has_had_one(batch) || (kind && !needs_host_able(&batch->opts.facts, kind)))
		return SCHEDULE_NEVER;
	if (kind && kind->memory && batch->memory + kind->memory > batch->opts.facts.memory)
		return SCHEDULE_LATER;
	return corepool_fits(batch->pool, item->width) ? SCHEDULE_NOW : SCHEDULE_LATER;
}

void batch_init(struct batch *batch, const struct batch_opts *opts, struct corepool *pool,
		struct worklist *list)
{
	*batch = (struct batch){ .opts = *opts, .pool = pool, .list = list };
	batch->taker = (struct schedule_taker){ .fit = fit,
						.arg = batch,
						.cores = corepool_max_width(pool) };
	if (batch->opts.ahead && !are_plain(opts, list))
		batch->opts.ahead = 0;
	batch->slots = mem_alloc((size_t)opts->jobs * sizeof(*batch->slots));
}

void batch_done(struct batch *batch)
{
	free(batch->slots);
	*batch = (struct batch){ .slots = NULL };
}

/* ---- the whole ---- */

void batch_adopt(struct batch *batch, struct worklist *list)
{
	batch->list = list;
	batch->halt = WORKLIST_GO;
	batch->stop = BATCH_GO;
	batch->ended = batch->had_one = false;
	batch->taker.first = NULL;
	batch->taker.overtaken = 0;
}

static struct batch_slot *idle_slot(struct batch *batch)
{
	for (int i = 0; i < batch->opts.jobs; i++)
		if (batch->slots[i].state == SLOT_IDLE)
			return &batch->slots[i];
	return NULL;
}

static bool any_left(const struct batch *batch)
{
	return batch->list->schedule.queued > 0 || batch->ahead > 0 || batch->unlaid;
}

static bool can_start(const struct batch *batch)
{
	return batch->list->stop == BATCH_GO && !worklist_is_held(batch->list) &&
	       batch->running < batch->opts.jobs && any_left(batch);
}

bool batch_is_idle(const struct batch *batch)
{
	return batch->list->stop == BATCH_GO && !worklist_is_held(batch->list) &&
	       !any_left(batch) && batch->running < batch->opts.jobs &&
	       corepool_fits(batch->pool, 1);
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
		batch_act(s, BATCH_QUERY_HOST, -1);
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

/* ---- orders that lie ahead ---- */

/* True if what lies there comes first: asks for it. */
static bool wait_for_laid(struct step *s)
{
	struct batch *batch = s->batch;
	if (batch->ahead == 0 || batch->all_taken || !corepool_fits(batch->pool, 1))
		return false;
	if (!batch->taking)
		batch_act(s, BATCH_TAKE_ONE, -1);
	batch->taking = true;
	return true;
}

/* When all slots are busy: what they would get next. One by one, because what is behind one that
 * cannot be laid must not be laid either. */
static void lay_ahead(struct step *s)
{
	struct batch *batch = s->batch;
	if (batch->list->stop != BATCH_GO || batch->ahead >= batch->opts.ahead || batch->laying ||
	    batch->taking || batch->unlaid)
		return;
	struct schedule_item *item = schedule_first(&batch->list->schedule);
	struct batch_order *order = item ? container_of(item, struct batch_order, item) : NULL;
	if (!order || order->alone)
		return;
	schedule_remove(&batch->list->schedule, item);
	order->state = BATCH_AHEAD;
	batch->ahead++;
	batch->laying = true;
	batch->all_taken = false;
	batch_act(s, BATCH_LAY, -1)->order = order;
}

/* The host looks different after a start. */
static void note_start(struct step *s)
{
	s->batch->host_ok = false;
	if (s->batch->opts.start_delay_ns)
		s->batch->hold_ns = ns_add(s->now_ns, s->batch->opts.start_delay_ns);
}

static void start_order(struct step *s, struct batch_order *order,
			const struct placement *placement)
{
	struct batch_slot *slot = idle_slot(s->batch);
	slot->order = order;
	slot->list = s->batch->list;
	slot->placement = *placement;
	s->batch->running++;
	s->batch->had_one = true;
	s->batch->memory += batch_memory_of(s->batch->list, &order->item);
	note_start(s);
	batch_slot_begin(s, slot);
}

static void start_orders(struct step *s)
{
	struct placement placement;
	struct batch *batch = s->batch;
	while (can_start(batch) && may_start(s) && !wait_for_laid(s)) {
		struct batch_order *order = batch->unlaid;
		struct schedule_item *item = NULL;
		if (order && !corepool_take(batch->pool, order->item.width, &placement))
			return;
		if (!order)
			item = schedule_place(&batch->list->schedule, &batch->taker, batch->pool,
					      &placement);
		if (!order && !item)
			return;
		batch->unlaid = NULL;
		start_order(s, order ? order : container_of(item, struct batch_order, item),
			    &placement);
	}
}

static void on_taken_back(struct step *s)
{
	struct batch *batch = s->batch;
	struct batch_order *order = s->event->order;
	struct placement placement;
	batch->all_taken = !order;
	bool taking = batch->taking;
	batch->taking = false;
	if (!order)
		return;
	batch->ahead--;
	if (taking && batch->list->stop == BATCH_GO && batch->running < batch->opts.jobs &&
	    corepool_take(batch->pool, order->item.width, &placement))
		start_order(s, order, &placement);
	else
		worklist_enqueue(batch->list, order);
}

static void on_laid(struct step *s)
{
	s->batch->laying = false;
	if (!s->event->refused)
		return;
	s->batch->ahead--;
	s->event->order->alone = true;
	if (s->batch->list->stop == BATCH_GO)
		s->batch->unlaid = s->event->order;
	else
		worklist_enqueue(s->batch->list, s->event->order);
}

/* What the list says of the end. */
static void heed_stop(struct step *s)
{
	struct batch *batch = s->batch;
	const struct worklist *list = batch->list;
	if (list->halt == batch->halt && list->stop == batch->stop)
		return;
	batch->halt = list->halt;
	batch->stop = list->stop;
	if (batch->ahead > 0)
		batch_act(s, BATCH_TAKE_ALL, -1);
	if (batch->halt == WORKLIST_STOP)
		batch_stop_all(s);
	else if (batch->halt == WORKLIST_KILL)
		batch_kill_all(s);
}

static void on_tick(struct step *s)
{
	worklist_tick(s->batch->list, s->now_ns);
	heed_stop(s);
	for (int i = 0; i < s->batch->opts.jobs; i++)
		batch_slot_event(s, i);
}

/* Has one order ahead for every job, so that none waits for the input. */
static void fetch_more(struct step *s)
{
	struct batch_order *order = worklist_fetch(s->batch->list, (size_t)s->batch->opts.jobs);
	if (order)
		batch_act(s, BATCH_FETCH, -1)->order = order;
}

/* Another host has it by now: what runs is of no use. */
static void on_discard(struct step *s)
{
	static const struct ladder at_once = { .steps = { { .sig = SIGKILL } }, .count = 1 };
	struct batch *batch = s->batch;
	struct batch_order *order = s->event->order;
	worklist_withdraw(batch->list, order);
	for (int i = 0; order->state == BATCH_RUNNING && i < batch->opts.jobs; i++)
		if (batch->slots[i].order == order)
			batch_slot_stop(s, &batch->slots[i], REASON_KILLED, &at_once);
	if (order->state != BATCH_RUNNING)
		order->state = BATCH_FREE;
}

static void maybe_end(struct step *s)
{
	struct batch *batch = s->batch;
	bool more = batch->list->stop == BATCH_GO &&
		    (any_left(batch) || worklist_has_more(batch->list));
	bool over = batch->running == 0 && !more;
	if (over && !batch->ended)
		batch_act(s, BATCH_END, -1);
	batch->ended = over;
}

void batch_step(struct batch *batch, const struct batch_event *event, uint64_t now_ns,
		struct batch_actions *actions)
{
	struct step s = { batch, event, now_ns, actions };
	switch (event->type) {
	case BATCH_START:
	case BATCH_LOOK:
		break;
	case BATCH_TICK:
		on_tick(&s);
		break;
	case BATCH_HOST:
		on_host(&s);
		break;
	case BATCH_OFFER:
		worklist_offer(batch->list, event->order);
		break;
	case BATCH_CLOSED:
		worklist_close(batch->list);
		break;
	case BATCH_DISCARD:
		on_discard(&s);
		break;
	case BATCH_DRAIN:
		worklist_stop(batch->list, WORKLIST_DRAIN, BATCH_STOP_DRAIN);
		break;
	case BATCH_TAKEN_BACK:
		on_taken_back(&s);
		break;
	case BATCH_LAID:
		on_laid(&s);
		break;
	case BATCH_INTERRUPT:
		worklist_interrupt(batch->list);
		break;
	case BATCH_FATAL:
		worklist_stop(batch->list, WORKLIST_KILL, BATCH_STOP_FATAL);
		break;
	default:
		batch_slot_event(&s, event->slot);
		break;
	}
	heed_stop(&s);
	start_orders(&s);
	lay_ahead(&s);
	fetch_more(&s);
	maybe_end(&s);
}

uint64_t batch_next_deadline(const struct batch *batch)
{
	uint64_t next = worklist_deadline_ns(batch->list);
	if (batch->hold_ns && can_start(batch))
		next = MIN(next, batch->hold_ns);
	for (int i = 0; i < batch->opts.jobs; i++)
		next = MIN(next, batch_slot_deadline(&batch->slots[i]));
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

size_t batch_left(const struct batch *batch, uint64_t now_ns, struct schedule_running *ret_running)
{
	size_t count = 0;
	for (int i = 0; i < batch->opts.jobs; i++) {
		const struct batch_slot *slot = &batch->slots[i];
		if (slot->state == SLOT_IDLE || slot->list != batch->list)
			continue;
		ret_running[count++] =
			(struct schedule_running){ slot->placement,
						   worklist_left_ns(batch->list, slot->order,
								    now_ns - slot->since_ns) };
	}
	return count;
}

uint64_t batch_eta(const struct batch *batch, uint64_t now_ns)
{
	AUTO_FREE struct schedule_running *running =
		NEW_ARRAY(struct schedule_running, (size_t)batch->opts.jobs);
	size_t count = batch_left(batch, now_ns, running);
	return worklist_eta(batch->list, batch->pool, running, count, batch->opts.jobs);
}
