#include "core/batch/batch.h"

#include <signal.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"
#include "core/batch/batch_private.h"

/* ---- the list ---- */

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
		batch_enqueue(batch, order);
	}
}

/* Which order is next, where it runs and whether it may start is the same when a slot finds out by
 * itself. */
static bool are_plain(const struct batch_opts *opts, const struct batch_order *orders, size_t count)
{
	if (opts->open || opts->start_delay_ns || opts->memory_free || opts->load > 0 ||
	    opts->memory_period_ns || opts->gates > 0 || opts->halt.when != HALT_NEVER)
		return false;
	for (int i = 0; i < BATCH_HOOK_COUNT; i++)
		if (opts->hooks[i])
			return false;
	for (size_t i = 0; i < count; i++) {
		const struct batch_order *order = &orders[i];
		if (order->item.width != 1 || order->timeout_ns || order->cpu_timeout_ns ||
		    order->timeout_percent || order->memory_limit || order->retries ||
		    order->runs > 1 || order->warmup || order->repeat)
			return false;
	}
	return true;
}

void batch_init(struct batch *batch, const struct batch_opts *opts, struct corepool *pool,
		struct batch_order *orders, size_t count)
{
	*batch = (struct batch){ .opts = *opts, .pool = pool, .orders = orders, .count = count };
	if (batch->opts.ahead && !are_plain(opts, orders, count))
		batch->opts.ahead = 0;
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

/* ---- the whole ---- */

static struct batch_slot *idle_slot(struct batch *batch)
{
	for (int i = 0; i < batch->opts.jobs; i++)
		if (batch->slots[i].state == SLOT_IDLE)
			return &batch->slots[i];
	return NULL;
}

static bool any_left(const struct batch *batch)
{
	return batch->schedule.queued > 0 || batch->ahead > 0 || batch->unlaid;
}

static bool can_start(const struct batch *batch)
{
	return batch->stop == BATCH_GO && batch->running < batch->opts.jobs && any_left(batch);
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
	if (batch->stop != BATCH_GO || batch->ahead >= batch->opts.ahead || batch->laying ||
	    batch->taking || batch->unlaid)
		return;
	struct schedule_item *item = schedule_first(&batch->schedule);
	struct batch_order *order = item ? container_of(item, struct batch_order, item) : NULL;
	if (!order || order->alone)
		return;
	schedule_remove(&batch->schedule, item);
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
	slot->placement = *placement;
	s->batch->running++;
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
			item = schedule_next(&batch->schedule, batch->pool, &placement);
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
	if (taking && batch->stop == BATCH_GO && batch->running < batch->opts.jobs &&
	    corepool_take(batch->pool, order->item.width, &placement))
		start_order(s, order, &placement);
	else
		batch_enqueue(batch, order);
}

static void on_laid(struct step *s)
{
	s->batch->laying = false;
	if (!s->event->refused)
		return;
	s->batch->ahead--;
	s->event->order->alone = true;
	if (s->batch->stop == BATCH_GO)
		s->batch->unlaid = s->event->order;
	else
		batch_enqueue(s->batch, s->event->order);
}

static void wake_orders(struct batch *batch, uint64_t now_ns)
{
	for (struct heap_node *node; (node = heap_top(&batch->waiting)) && node->key <= now_ns;) {
		heap_pop(&batch->waiting);
		batch_enqueue(batch, container_of(node, struct batch_order, wake));
	}
}

static void on_tick(struct step *s)
{
	wake_orders(s->batch, s->now_ns);
	if (s->batch->opts.deadline_ns <= s->now_ns && s->batch->stop == BATCH_GO)
		batch_stop_all(s, BATCH_STOP_DEADLINE);
	for (int i = 0; i < s->batch->opts.jobs; i++)
		batch_slot_event(s, i);
}

static void on_interrupt(struct step *s)
{
	if (s->batch->stop < BATCH_STOP_INTERRUPT)
		batch_stop_all(s, BATCH_STOP_INTERRUPT);
	else
		batch_kill_all(s, BATCH_STOP_INTERRUPT);
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
	batch_act(s, BATCH_FETCH, -1)->order = order;
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
			batch_slot_stop(s, &batch->slots[i], REASON_KILLED, &at_once);
	if (order->state != BATCH_RUNNING)
		order->state = BATCH_FREE;
}

static void maybe_end(struct step *s)
{
	bool more = s->batch->stop == BATCH_GO &&
		    (any_left(s->batch) || s->batch->waiting.count > 0 || is_open(s->batch));
	if (s->batch->ended || s->batch->running > 0 || more)
		return;
	s->batch->ended = true;
	batch_act(s, BATCH_END, -1);
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
		batch_set_stop(&s, BATCH_STOP_DRAIN);
		break;
	case BATCH_TAKEN_BACK:
		on_taken_back(&s);
		break;
	case BATCH_LAID:
		on_laid(&s);
		break;
	case BATCH_INTERRUPT:
		on_interrupt(&s);
		break;
	case BATCH_FATAL:
		batch_kill_all(&s, BATCH_STOP_FATAL);
		break;
	default:
		batch_slot_event(&s, event->slot);
		break;
	}
	start_orders(&s);
	lay_ahead(&s);
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
	for (int i = 0; i < batch->opts.jobs; i++)
		next = MIN(next, batch_slot_deadline(batch, &batch->slots[i]));
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
	return batch_expected_ns(arg, order) *
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
