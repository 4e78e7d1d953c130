#include "core/dispatch/worklist.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/mem.h"

void worklist_init(struct worklist *list, const struct worklist_opts *opts,
		   struct batch_order *orders, size_t count)
{
	*list = (struct worklist){ .opts = *opts, .orders = orders, .count = count };
	list->learned = mem_alloc(((size_t)opts->groups + 1) * sizeof(*list->learned));
	list->gates = mem_alloc(((size_t)opts->gates + 1) * sizeof(*list->gates));
	for (size_t i = 0; i < count; i++)
		if (opts->open)
			orders[i].state = BATCH_FREE;
		else
			worklist_admit(list, &orders[i]);
}

void worklist_done(struct worklist *list)
{
	schedule_done(&list->schedule);
	heap_done(&list->waiting);
	free(list->learned);
	free(list->gates);
	*list = (struct worklist){ .orders = NULL };
}

/* ---- what may start ---- */

void worklist_enqueue(struct worklist *list, struct batch_order *order)
{
	order->state = BATCH_QUEUED;
	list->added++;
	list->changes++;
	schedule_add(&list->schedule, &order->item, order->key);
}

void worklist_postpone(struct worklist *list, struct batch_order *order, uint64_t until_ns)
{
	order->state = BATCH_WAITING;
	heap_push(&list->waiting, &order->wake, until_ns);
}

void worklist_withdraw(struct worklist *list, struct batch_order *order)
{
	if (order->state == BATCH_QUEUED)
		schedule_remove(&list->schedule, &order->item);
	else if (order->state == BATCH_WAITING)
		heap_remove(&list->waiting, &order->wake);
}

static void begin_anew(struct batch_order *order)
{
	order->attempt = 1 + order->losses;
	order->warmup_left = order->warmup;
}

void worklist_bind(struct worklist *list, struct batch_order *order)
{
	if (list->opts.shared)
		order->item.kind |= WORKLIST_HERE;
}

void worklist_lose(struct worklist *list, struct batch_order *order)
{
	order->losses++;
	list->changes++;
	begin_anew(order);
}

void worklist_admit(struct worklist *list, struct batch_order *order)
{
	begin_anew(order);
	/* Those of an open list leave as they came. */
	order->key = list->opts.open ? order->number
				     : schedule_key(&order->item, list->opts.order,
						    order->estimate_ns, list->opts.seed);
	list->total += !order->is_canary;
	if (order->gate && !list->gates[order->gate].open) {
		order->state = BATCH_HELD;
		list->gates[order->gate].held++;
	} else {
		worklist_enqueue(list, order);
	}
}

bool worklist_has_more(const struct worklist *list)
{
	return list->schedule.queued > 0 || list->waiting.count > 0 || worklist_is_open(list);
}

/* ---- what is over ---- */

static void open_gate(struct worklist *list, uint32_t gate, bool ok)
{
	struct worklist_gate *opened = &list->gates[gate];
	opened->open = true;
	for (size_t i = 0; i < list->count && opened->held > 0; i++) {
		struct batch_order *order = &list->orders[i];
		if (order->state != BATCH_HELD || order->gate != gate)
			continue;
		opened->held--;
		if (ok) {
			worklist_enqueue(list, order);
		} else {
			order->state = BATCH_SKIPPED;
			list->skipped += !order->is_canary;
		}
	}
}

void worklist_settle(struct worklist *list, struct batch_order *order, bool ok)
{
	const struct halt_rule *rule = &list->opts.halt;
	order->state = ok ? BATCH_OK : BATCH_FAILED;
	list->changes++;
	if (!order->is_canary)
		*(ok ? &list->ok : &list->failed) += 1;
	if (order->opens)
		open_gate(list, order->opens, ok);
	if (list->stop != BATCH_GO || order->is_canary ||
	    !halt_rule_met(rule, list->failed, list->ok, list->total))
		return;
	worklist_stop(list, rule->when == HALT_NOW ? WORKLIST_STOP : WORKLIST_DRAIN,
		      BATCH_STOP_HALT);
}

void worklist_leave(struct worklist *list, struct batch_order *order)
{
	order->state = BATCH_HELD;
	list->changes++;
}

void worklist_stop(struct worklist *list, enum worklist_halt halt, enum batch_stop why)
{
	list->changes += halt > list->halt || why > list->stop;
	list->halt = MAX(list->halt, halt);
	list->stop = MAX(list->stop, why);
}

void worklist_interrupt(struct worklist *list)
{
	bool second = list->stop >= BATCH_STOP_INTERRUPT;
	worklist_stop(list, second ? WORKLIST_KILL : WORKLIST_STOP, BATCH_STOP_INTERRUPT);
}

/* ---- time ---- */

void worklist_tick(struct worklist *list, uint64_t now_ns)
{
	if (list->opts.hold_until_ns && list->opts.hold_until_ns <= now_ns) {
		list->opts.hold_until_ns = 0;
		list->changes++;
	}
	for (struct heap_node *node; (node = heap_top(&list->waiting)) && node->key <= now_ns;) {
		heap_pop(&list->waiting);
		worklist_enqueue(list, container_of(node, struct batch_order, wake));
	}
	if (list->opts.deadline_ns <= now_ns && list->stop == BATCH_GO)
		worklist_stop(list, WORKLIST_STOP, BATCH_STOP_DEADLINE);
}

uint64_t worklist_deadline_ns(const struct worklist *list)
{
	const struct heap_node *waiting = heap_top(&list->waiting);
	uint64_t next = list->opts.deadline_ns;
	if (list->stop != BATCH_GO)
		return NS_NEVER;
	if (worklist_is_held(list) && list->schedule.queued > 0)
		next = MIN(next, list->opts.hold_until_ns);
	return waiting ? MIN(waiting->key, next) : next;
}

/* ---- an open list ---- */

/* A place whose order is over, or that had none. */
static struct batch_order *free_order(struct worklist *list)
{
	for (size_t i = 0; i < list->count; i++) {
		struct batch_order *order = &list->orders[i];
		if (order->state == BATCH_FREE || order->state == BATCH_OK ||
		    order->state == BATCH_FAILED)
			return order;
	}
	return NULL;
}

struct batch_order *worklist_fetch(struct worklist *list, size_t ahead)
{
	if (!worklist_is_open(list) || list->fetching || list->stop != BATCH_GO ||
	    list->schedule.queued >= ahead)
		return NULL;
	struct batch_order *order = free_order(list);
	list->fetching = order;
	return order;
}

void worklist_offer(struct worklist *list, struct batch_order *order)
{
	list->fetching = false;
	worklist_admit(list, order);
}

void worklist_close(struct worklist *list)
{
	list->fetching = false;
	list->closed = true;
}

/* ---- what times are known ---- */

uint64_t worklist_expected_ns(const struct worklist *list, const struct batch_order *order)
{
	uint64_t mean = learned_mean(&list->learned[order->group]);
	if (order->estimate_ns)
		return order->estimate_ns;
	return mean ? mean : learned_mean(&list->learned[0]);
}

uint64_t worklist_median_ns(const struct worklist *list, const struct batch_order *order)
{
	uint64_t median = learned_median(&list->learned[order->group]);
	if (order->estimate_ns)
		return order->estimate_ns;
	return median ? median : learned_median(&list->learned[0]);
}

void worklist_learn(struct worklist *list, const struct batch_order *order, uint64_t ns)
{
	learned_add(&list->learned[0], ns);
	if (order->group > 0)
		learned_add(&list->learned[order->group], ns);
}

uint64_t worklist_estimate_ns(const struct worklist *list, const struct batch_order *order)
{
	return worklist_expected_ns(list, order) *
	       (uint64_t)MAX(order->runs - order->run + order->warmup_left, 1);
}

uint64_t worklist_left_ns(const struct worklist *list, const struct batch_order *order,
			  uint64_t passed_ns)
{
	uint64_t whole = worklist_estimate_ns(list, order);
	/* One that is over its estimate has more ahead: the longer it took, the more. */
	return whole > passed_ns ? whole - passed_ns : passed_ns / 10;
}

static uint64_t estimate(void *arg, const struct schedule_item *item)
{
	return worklist_estimate_ns(arg, container_of(item, const struct batch_order, item));
}

uint64_t worklist_eta(const struct worklist *list, const struct corepool *pool,
		      const struct schedule_running *running, size_t running_count, int jobs)
{
	if (list->learned[0].count == 0 || worklist_is_open(list))
		return NS_NEVER;
	return schedule_eta(&list->schedule, pool, running, running_count, jobs, estimate,
			    (void *)list);
}
