#include "deal_world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"
#include "deal_world_private.h"

void deal_wrong(struct world *w, const char *fmt, ...)
{
	va_list args;
	if (*w->outcome->wrong)
		return;
	va_start(args, fmt);
	vsnprintf(w->outcome->wrong, sizeof(w->outcome->wrong), fmt, args);
	va_end(args);
}

struct event *deal_later(struct world *w, uint64_t at_ns, enum what what, int host)
{
	struct event *event = NEW(struct event);
	event->what = what;
	event->host = host;
	heap_push(&w->events, &event->node, MAX(at_ns, w->now_ns));
	return event;
}

static struct message *copy(const struct message *message)
{
	struct message *made = NEW(struct message);
	*made = *message;
	return made;
}

static uint64_t delay(struct world *w)
{
	return rng_range(&w->rng, 1, rng_chance(&w->rng, 5) ? 60 : 3) * MS / 2;
}

/* ---- the network ---- */

void deal_to_coordinator(struct world *w, int number, const struct message *message)
{
	struct host *host = &w->hosts[number];
	uint64_t at = w->now_ns + delay(w);
	at = host->quiet_to = MAX(at, host->quiet_to);
	int times = message->kind >= M_STARTED && message->kind <= M_RETURNED && w->rules->faults &&
				    rng_chance(&w->rng, 3)
			    ? 2
			    : 1;
	while (times--)
		deal_later(w, at, AT_COORDINATOR, number)->message = copy(message);
}

void deal_to_host(struct world *w, int number, const struct message *message)
{
	struct host *host = &w->hosts[number];
	uint64_t at = w->now_ns + delay(w);
	at = host->quiet_from = MAX(at, host->quiet_from);
	deal_later(w, at, AT_HOST, number)->message = copy(message);
}

/* ---- the loop ---- */

/* A coordinator that is frozen has its host frozen, too. */
static bool is_still(const struct world *w, const struct host *host)
{
	return host->frozen || (host->local && w->frozen);
}

static void drain_host(struct world *w, int number)
{
	struct host *host = &w->hosts[number];
	size_t count = host->waiting_count;
	host->waiting_count = 0;
	for (size_t i = 0; i < count; i++)
		deal_host_take(w, number, host->waiting[i]);
}

static void drain_coordinator(struct world *w)
{
	size_t count = w->waiting_count, kept = 0;
	AUTO_FREE struct message **messages = NEW_ARRAY(struct message *, count + 1);
	AUTO_FREE int *hosts = NEW_ARRAY(int, count + 1);
	memcpy(messages, w->waiting, count * sizeof(messages[0]));
	memcpy(hosts, w->waiting_host, count * sizeof(hosts[0]));
	w->waiting_count = 0;
	for (size_t i = 0; i < count; i++) {
		if (w->hosts[hosts[i]].cut || !w->alive || w->frozen) {
			w->waiting[kept] = messages[i];
			w->waiting_host[kept++] = hosts[i];
			w->waiting_count = kept;
		} else {
			deal_head_take(w, hosts[i], messages[i]);
		}
	}
}

static void thaw(struct world *w, int number)
{
	if (number < 0) {
		w->frozen = false;
		deal_own_step(w, &(struct batch_event){ .type = BATCH_TICK, .slot = -1 });
		deal_head_step(w, &(struct deal_event){ DEAL_EV_TIMER });
		drain_coordinator(w);
		return;
	}
	struct host *host = &w->hosts[number];
	host->frozen = false;
	deal_host_step(w, number, &(struct hand_event){ HAND_EV_TIMER });
	drain_host(w, number);
	deal_host_start(w, number);
}

static void succeed(struct world *w)
{
	for (int i = 0; i < w->host_count; i++) {
		struct host *host = &w->hosts[i];
		if (!host->alive || host->frozen || host->cut)
			continue;
		host->local = true;
		deal_host_step(w, i, &(struct hand_event){ HAND_EV_COORDINATES });
		host->link = 0;
		host->task_count = 0;
		deal_head_begin(w, true);
		return;
	}
	deal_later(w, w->now_ns + 100 * MS, AT_SUCCEED, 0);
}

static void happen(struct world *w, struct event *event)
{
	int number = event->host;
	struct host *host = number >= 0 ? &w->hosts[number] : NULL;
	switch (event->what) {
	case AT_COORDINATOR:
		if (!w->alive) {
			free(event->message);
		} else if (w->frozen || host->cut) {
			w->waiting[w->waiting_count] = event->message;
			w->waiting_host[w->waiting_count++] = number;
		} else {
			deal_head_take(w, number, event->message);
		}
		break;
	case AT_HOST:
		if (is_still(w, host) || host->cut)
			host->waiting[host->waiting_count++] = event->message;
		else
			deal_host_take(w, number, event->message);
		break;
	case AT_TIMER:
		if (!w->alive || event->stamp != w->term)
			break;
		w->timer_ns = NS_NEVER; /* one that is frozen looks when it thaws */
		if (w->frozen)
			break;
		deal_own_step(w, &(struct batch_event){ .type = BATCH_TICK, .slot = -1 });
		deal_head_step(w, &(struct deal_event){ DEAL_EV_TIMER });
		break;
	case AT_HOST_TIMER:
		if (event->stamp != host->life || !host->alive)
			break;
		host->timer_ns = NS_NEVER;
		if (!is_still(w, host))
			deal_host_step(w, number, &(struct hand_event){ HAND_EV_TIMER });
		break;
	case AT_ORDER_END:
		if (is_still(w, host)) /* it is frozen, too */
			deal_later(w, w->now_ns + 10 * MS, AT_ORDER_END, number)->stamp =
				event->stamp;
		else if (host->alive && host->local)
			deal_own_end(w, event->stamp);
		else if (host->alive)
			deal_host_end(w, number, event->stamp);
		break;
	case AT_RETRY:
		if (is_still(w, host))
			deal_later(w, w->now_ns + 10 * MS, AT_RETRY, number);
		else if (host->alive)
			deal_host_start(w, number);
		break;
	case AT_CONNECT:
		if (event->stamp != host->life || !host->alive)
			break;
		if (is_still(w, host))
			deal_host_reconnect(w, number);
		else
			deal_host_connect(w, number);
		break;
	case AT_FAULT:
		deal_fault(w);
		break;
	case AT_THAW:
		if (number < 0 ? w->alive && event->stamp == w->term
			       : host->alive && event->stamp == host->life)
			thaw(w, number);
		break;
	case AT_HEAL:
		host->cut = false;
		if (!is_still(w, host))
			drain_host(w, number);
		drain_coordinator(w);
		break;
	case AT_REBORN:
		deal_host_born(w, number);
		break;
	case AT_SUCCEED:
		succeed(w);
		break;
	case AT_STOP:
		w->stopped = true;
		if (w->alive)
			deal_head_step(w, &(struct deal_event){ DEAL_EV_STOP, .stop = WORKLIST_STOP,
								.why = BATCH_STOP_INTERRUPT });
		break;
	}
}

/* Not all hosts serve kinds that need more than cores, so a world that is to be efficient has none:
 * they would need a bound of their own. */
static void draw_needs(struct world *w)
{
	struct rng *rng = &w->rng;
	int32_t width_max = (int32_t)rng_range(rng, 1, WIDTH_MAX);
	for (size_t i = 0; i < KINDS; i++) {
		struct needed *needed = &w->needs[i];
		needed->width = (int32_t)rng_range(rng, 1, (uint64_t)width_max);
		needed->files = rng_chance(rng, 30);
		if (w->rules->efficient)
			continue;
		if (rng_chance(rng, 40))
			needed->memory = rng_range(rng, 1, MEMORY_MAX);
		if (rng_chance(rng, 30))
			needed->features = (unsigned)rng_range(rng, 1, FEATURE_ALL);
		needed->named = rng_chance(rng, 10);
	}
}

static void draw_orders(struct world *w)
{
	struct rng *rng = &w->rng;
	uint64_t longest = rng_chance(rng, 50) ? 20 : 400;
	w->order_count = rng_range(rng, 1, ORDERS_MAX);
	for (size_t i = 0; i < w->order_count; i++) {
		w->times[i] =
			rng_range(rng, 1, i > w->order_count / 2 ? 10 * longest : longest) * MS;
		w->kind_of[i] = (uint32_t)rng_range(rng, 0, KINDS - 1);
		if (deal_needed(w, (uint32_t)i)->files)
			w->pieces[i] = (uint32_t)rng_range(rng, 1, w->rules->efficient ? 1 : 40);
		if (!w->rules->efficient && rng_chance(rng, 20))
			w->failures[i] = (uint32_t)rng_range(rng, 1, 3);
		w->fails[i] = rng_chance(rng, 20);
	}
}

/* The first two have all that there is: one of them may be a spare. */
static void draw_host(struct world *w, int number)
{
	static const char *const lists[] = { NULL, "ssd", "gpu", "gpu,ssd" };
	struct rng *rng = &w->rng;
	struct host *host = &w->hosts[number];
	bool rich = number < 2 || w->rules->efficient;
	int32_t cores = (int32_t)rng_range(rng, rich ? WIDTH_MAX : 1, CORES_MAX);
	int32_t jobs = (int32_t)rng_range(rng, 1, (uint64_t)cores);
	host->local = number == 0 && !w->apart;
	host->features = rich ? FEATURE_ALL : (unsigned)rng_range(rng, 0, FEATURE_ALL);
	snprintf(host->name, sizeof(host->name), "node%d", number);
	host->facts = (struct host_facts){
		.cores = cores,
		.max_width = cores,
		.jobs = w->rules->efficient || rng_chance(rng, 70) ? cores : jobs,
		.memory = rich ? MEMORY_MAX : rng_range(rng, 1, MEMORY_MAX),
		.name = host->name,
		.features = lists[host->features],
		.files = rich || rng_chance(rng, 70),
	};
}

static void make(struct world *w)
{
	struct rng *rng = &w->rng;
	w->host_count = (int)rng_range(rng, 2, HOSTS_MAX);
	w->apart = !w->rules->takeover && rng_chance(rng, 50);
	draw_needs(w);
	draw_orders(w);
	for (int i = 0; i < w->host_count; i++) {
		draw_host(w, i);
		deal_host_born(w, i);
	}
	deal_head_begin(w, false);
	if (w->rules->faults)
		deal_later(w, rng_range(rng, 1, 500) * MS, AT_FAULT, 0);
	if (w->rules->stop)
		deal_later(w, rng_range(rng, 1, 3000) * MS, AT_STOP, 0);
}

static void check_end(struct world *w)
{
	uint64_t work = 0, longest = 0;
	int64_t cores = 0;
	if (!w->over)
		deal_wrong(w, "it does not end: %zu wait, %zu are given", w->list.schedule.queued,
			   w->deal.given);
	for (size_t i = 0; i < w->order_count && !w->rules->stop; i++)
		if (w->finals[i] != 1)
			deal_wrong(w, "order %zu has %d final results", i, w->finals[i]);
	for (size_t i = 0; i < w->order_count; i++) {
		work += w->times[i] * (uint64_t)deal_needed(w, (uint32_t)i)->width;
		longest = MAX(longest, w->times[i]);
	}
	for (int i = 0; i < w->host_count; i++)
		cores += w->hosts[i].facts.cores;
	if (w->alive && (w->list.ok != w->ok || w->list.failed != w->failed))
		deal_wrong(w,
			   "of %llu that went well and %llu that did not it counts %llu and %llu",
			   (unsigned long long)w->ok, (unsigned long long)w->failed,
			   (unsigned long long)w->list.ok, (unsigned long long)w->list.failed);
	/* Widths leave gaps, hosts come a little late, and the last one may begin last. */
	if (w->rules->efficient && w->now_ns > 3 * work / (uint64_t)cores + 2 * longest + 400 * MS)
		deal_wrong(w, "it took %llu ms, for %llu ms of work on %lld cores",
			   (unsigned long long)(w->now_ns / MS), (unsigned long long)(work / MS),
			   (long long)cores);
}

static void destroy(struct world *w)
{
	for (struct heap_node *node; (node = heap_pop(&w->events));) {
		struct event *event = container_of(node, struct event, node);
		free(event->message);
		free(event);
	}
	heap_done(&w->events);
	for (int i = 0; i < w->host_count; i++) {
		for (size_t m = 0; m < w->hosts[i].waiting_count; m++)
			free(w->hosts[i].waiting[m]);
		hand_done(&w->hosts[i].hand);
	}
	for (size_t i = 0; i < w->waiting_count; i++)
		free(w->waiting[i]);
	if (w->alive) {
		deal_own_done(w);
		deal_done(&w->deal);
		worklist_done(&w->list);
	}
	free(w);
}

void world_play(uint64_t seed, const struct world_rules *rules, struct world_outcome *ret_outcome)
{
	struct world *w = NEW(struct world);
	*ret_outcome = (struct world_outcome){ .losses = 0 };
	w->rng.state = seed;
	w->rules = rules;
	w->outcome = ret_outcome;
	make(w);
	for (int steps = 0; !w->over && !*ret_outcome->wrong && w->now_ns < GIVE_UP_NS &&
			    steps < GIVE_UP_STEPS && w->events.count > 0;
	     steps++) {
		struct event *event = container_of(heap_pop(&w->events), struct event, node);
		w->now_ns = event->node.key;
		happen(w, event);
		free(event);
	}
	check_end(w);
	destroy(w);
}
