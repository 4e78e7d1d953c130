#include "sim/deal_world.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/heap.h"
#include "base/mem.h"
#include "core/deal/hand.h"
#include "sim/rng.h"

#define MS ((uint64_t)1000000)
#define PERIOD_NS (100 * MS)
#define LEASE_NS (4 * PERIOD_NS)
#define LOST_NS (5 * PERIOD_NS)
#define FAULTS_END_NS (6000 * MS)
#define GIVE_UP_NS (600000 * MS)
#define HOSTS_MAX 6
#define ORDERS_MAX 48
#define KINDS 3
#define HELD_MAX 256

enum what {
	AT_COORDINATOR, /* a message, or the end of a link */
	AT_HOST,
	AT_TIMER, /* of the coordinator */
	AT_HOST_TIMER,
	AT_ORDER_END,
	AT_CONNECT,
	AT_FAULT,
	AT_THAW,
	AT_HEAL,
	AT_REBORN,
	AT_SUCCEED, /* the next coordinator */
	AT_STOP,
};

enum kind {
	M_HELLO,
	M_STARTED,
	M_RESULT,
	M_RETURNED,
	M_RECALLED,
	M_BEAT,
	M_DOWN, /* the link has ended: dead */
	M_WELCOME,
	M_GIVE,
	M_ACK,
	M_DROP,
	M_RECALL,
	M_STOP,
	M_ANSWERED,
};

struct message {
	enum kind kind;
	uint64_t link, term, cookie;
	uint32_t order, lease, number, count;
	bool final, ok, unrun, dead;
	enum deal_stop stop;
	struct agent_id id;
	uint32_t held[HELD_MAX];
	size_t held_count;
};

struct event {
	struct heap_node node;
	enum what what;
	int host;
	uint64_t stamp; /* valid only for this life, link or run */
	struct message *message;
};

struct task {
	uint32_t order, lease;
	bool runs, killed;
	uint64_t end_ns, stamp;
};

struct host {
	struct hand hand;
	bool alive, frozen, cut, local;
	uint64_t life; /* counts processes */
	uint64_t link; /* the present one; 0: none */
	uint64_t thaw_ns;
	uint64_t timer_ns; /* when its next AT_HOST_TIMER comes */
	struct deal_facts facts;
	struct task tasks[HELD_MAX];
	size_t task_count;
	uint64_t quiet_to, quiet_from; /* messages each way arrive in order: not before these */
	uint32_t number;	       /* as the coordinator has it */
	struct message *waiting[4096]; /* while frozen or cut */
	size_t waiting_count;
};

struct world {
	struct rng rng;
	const struct world_rules *rules;
	struct world_outcome *outcome;
	struct heap events;
	uint64_t now_ns, stamps;
	struct host hosts[HOSTS_MAX];
	int host_count;
	size_t order_count;
	uint64_t times[ORDERS_MAX];
	int32_t widths[ORDERS_MAX];
	/* the result file */
	int finals[ORDERS_MAX];
	uint32_t written[ORDERS_MAX];
	/* the coordinator */
	bool alive, frozen, over, stopped;
	uint64_t term;
	uint64_t timer_ns;
	struct deal deal;
	struct deal_order orders[ORDERS_MAX];
	uint32_t index[ORDERS_MAX]; /* of its orders in the list */
	struct deal_kind kinds[KINDS];
	struct message *at_hand;
	struct message *waiting[8192];
	int waiting_host[8192];
	size_t waiting_count;
	uint64_t host_of_link[65536];
	uint64_t links;
};

static void wrong(struct world *w, const char *fmt, ...)
{
	va_list args;
	if (*w->outcome->wrong)
		return;
	va_start(args, fmt);
	vsnprintf(w->outcome->wrong, sizeof(w->outcome->wrong), fmt, args);
	va_end(args);
}

static struct event *later(struct world *w, uint64_t at_ns, enum what what, int host)
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

static void to_coordinator(struct world *w, int number, const struct message *message)
{
	struct host *host = &w->hosts[number];
	uint64_t at = w->now_ns + (host->local ? 0 : delay(w));
	at = host->quiet_to = MAX(at, host->quiet_to);
	int times = message->kind >= M_STARTED && message->kind <= M_RETURNED && w->rules->faults &&
				    rng_chance(&w->rng, 3)
			    ? 2
			    : 1;
	while (times--)
		later(w, at, AT_COORDINATOR, number)->message = copy(message);
}

static void to_host(struct world *w, int number, const struct message *message)
{
	struct host *host = &w->hosts[number];
	uint64_t at = w->now_ns + (host->local ? 0 : delay(w));
	at = host->quiet_from = MAX(at, host->quiet_from);
	later(w, at, AT_HOST, number)->message = copy(message);
}

/* ---- hosts ---- */

static void host_step(struct world *w, int number, const struct hand_event *event);

static bool runs_elsewhere(const struct world *w, int number, uint32_t order)
{
	for (int i = 0; i < w->host_count; i++)
		for (size_t t = 0; i != number && w->hosts[i].alive && !w->hosts[i].frozen &&
				   t < w->hosts[i].task_count;
		     t++)
			if (w->hosts[i].tasks[t].runs && w->hosts[i].tasks[t].order == order)
				return true;
	return false;
}

static int32_t used(const struct world *w, const struct host *host)
{
	int32_t sum = 0;
	for (size_t i = 0; i < host->task_count; i++)
		sum += host->tasks[i].runs ? w->widths[host->tasks[i].order] : 0;
	return sum;
}

static void start_tasks(struct world *w, int number)
{
	struct host *host = &w->hosts[number];
	for (size_t i = 0; i < host->task_count; i++) {
		struct task *task = &host->tasks[i];
		if (task->runs || used(w, host) + w->widths[task->order] > host->facts.cores)
			continue;
		if (runs_elsewhere(w, number, task->order))
			wrong(w, "order %u runs in two places", task->order);
		if (w->finals[task->order])
			wrong(w, "order %u runs again after its result", task->order);
		task->runs = true;
		task->stamp = ++w->stamps;
		task->end_ns = w->now_ns + w->times[task->order];
		later(w, task->end_ns, AT_ORDER_END, number)->stamp = task->stamp;
		host_step(w, number, &(struct hand_event){ HAND_EV_STARTED, .lease = task->lease });
		i = SIZE_MAX; /* the list may have changed */
	}
}

static void erase_task(struct host *host, uint32_t lease)
{
	for (size_t i = 0; i < host->task_count; i++)
		if (host->tasks[i].lease == lease) {
			memmove(&host->tasks[i], &host->tasks[i + 1],
				(host->task_count - i - 1) * sizeof(host->tasks[0]));
			host->task_count--;
			return;
		}
}

static struct task *find_task(struct host *host, uint64_t stamp)
{
	for (size_t i = 0; i < host->task_count; i++)
		if (host->tasks[i].stamp == stamp && host->tasks[i].runs)
			return &host->tasks[i];
	return NULL;
}

static void drop_link(struct world *w, int number, bool tell_coordinator, bool dead)
{
	struct host *host = &w->hosts[number];
	if (host->link && tell_coordinator)
		to_coordinator(w, number,
			       &(struct message){ M_DOWN, .link = host->link, .dead = dead });
	host->link = 0;
	host->number = DEAL_NO_HOST;
}

static void reconnect(struct world *w, int number)
{
	later(w, w->now_ns + rng_range(&w->rng, 1, 100) * MS, AT_CONNECT, number)->stamp =
		w->hosts[number].life;
}

static void host_act(struct world *w, int number, const struct hand_action *action)
{
	struct host *host = &w->hosts[number];
	struct message m = { .link = host->link, .order = action->order, .lease = action->lease };
	switch (action->type) {
	case HAND_DO_HELLO:
		m.kind = M_HELLO;
		m.id = (struct agent_id){ host->life, (uint64_t)number };
		m.term = host->hand.term;
		for (size_t i = 0; i < host->hand.count; i++)
			m.held[m.held_count++] = host->hand.leases[i].lease;
		to_coordinator(w, number, &m);
		break;
	case HAND_DO_BEAT:
		m.kind = M_BEAT;
		m.cookie = action->cookie;
		to_coordinator(w, number, &m);
		break;
	case HAND_DO_STARTED:
		m.kind = M_STARTED;
		to_coordinator(w, number, &m);
		break;
	case HAND_DO_RESULT: {
		const struct hand_lease *lease = NULL;
		for (size_t i = 0; i < host->hand.count; i++)
			if (host->hand.leases[i].lease == action->lease)
				lease = &host->hand.leases[i];
		m.kind = M_RESULT;
		m.number = action->number;
		m.final =
			lease && lease->state == HAND_ENDED && action->number + 1 == lease->results;
		m.ok = m.final;
		m.unrun = m.final && host->hand.stop >= DEAL_STOP;
		to_coordinator(w, number, &m);
		break;
	}
	case HAND_DO_RETURNED:
		m.kind = M_RETURNED;
		to_coordinator(w, number, &m);
		break;
	case HAND_DO_RECALLED:
		m.kind = M_RECALLED;
		to_coordinator(w, number, &m);
		break;
	case HAND_DO_RUN:
		host->tasks[host->task_count++] = (struct task){ action->order, action->lease };
		break;
	case HAND_DO_UNQUEUE:
	case HAND_DO_DISCARD:
		w->outcome->drops += action->type == HAND_DO_DISCARD;
		erase_task(host, action->lease);
		break;
	case HAND_DO_FORGET:
		break;
	case HAND_DO_STOP:
		for (size_t i = host->task_count; action->stop >= DEAL_STOP && i > 0; i--) {
			uint32_t lease = host->tasks[i - 1].lease;
			erase_task(host, lease);
			host_step(w, number,
				  &(struct hand_event){ HAND_EV_RESULT, .lease = lease,
							.final = true });
		}
		break;
	case HAND_DO_HANG_UP:
		drop_link(w, number, !host->cut, false);
		reconnect(w, number);
		break;
	}
}

static void arm_host(struct world *w, int number)
{
	struct host *host = &w->hosts[number];
	uint64_t at = hand_deadline_ns(&host->hand);
	if (at >= host->timer_ns)
		return;
	host->timer_ns = at;
	later(w, at, AT_HOST_TIMER, number)->stamp = host->life;
}

static void host_step(struct world *w, int number, const struct hand_event *event)
{
	struct hand_actions actions = { .items = NULL };
	struct host *host = &w->hosts[number];
	hand_step(&host->hand, event, w->now_ns, &actions);
	for (size_t i = 0; i < actions.count; i++)
		host_act(w, number, &actions.items[i]);
	hand_actions_done(&actions);
	arm_host(w, number);
}

static void born(struct world *w, int number)
{
	struct host *host = &w->hosts[number];
	hand_done(&host->hand);
	hand_init(&host->hand,
		  &(struct hand_config){ PERIOD_NS, host->local ? NS_NEVER : LEASE_NS });
	host->alive = true;
	host->frozen = false;
	host->life++;
	host->timer_ns = NS_NEVER;
	host->task_count = 0;
	host->link = 0;
	reconnect(w, number);
}

static void take_at_host(struct world *w, int number, struct message *m)
{
	struct host *host = &w->hosts[number];
	if (!host->alive || m->link != host->link) {
		free(m);
		return;
	}
	struct hand_event event = { .order = m->order,
				    .lease = m->lease,
				    .number = m->number,
				    .count = m->count,
				    .term = m->term,
				    .cookie = m->cookie,
				    .stop = m->stop };
	static const enum hand_event_type types[] = {
		[M_WELCOME] = HAND_EV_WELCOME,	 [M_GIVE] = HAND_EV_GIVEN,
		[M_ACK] = HAND_EV_ACK,		 [M_DROP] = HAND_EV_DROP,
		[M_RECALL] = HAND_EV_RECALL,	 [M_STOP] = HAND_EV_STOP,
		[M_ANSWERED] = HAND_EV_ANSWERED,
	};
	if (m->kind == M_DOWN) {
		host->link = 0;
		host->number = DEAL_NO_HOST;
		host_step(w, number, &(struct hand_event){ HAND_EV_LINK_DOWN });
		reconnect(w, number);
	} else {
		event.type = types[m->kind];
		host_step(w, number, &event);
	}
	start_tasks(w, number);
	free(m);
}

/* ---- the coordinator ---- */

static void deal_act(struct world *w, const struct deal_action *action)
{
	int number = action->link ? (int)w->host_of_link[action->link] : -1;
	struct message m = { .link = action->link,
			     .lease = action->lease,
			     .number = action->number,
			     .count = action->count,
			     .stop = action->stop,
			     .term = w->term };
	uint32_t listed = w->index[action->order];
	switch (action->type) {
	case DEAL_DO_WELCOME:
		m.kind = M_WELCOME;
		w->hosts[number].number = action->host;
		to_host(w, number, &m);
		break;
	case DEAL_DO_GIVE:
		m.kind = M_GIVE;
		m.order = listed;
		if (w->finals[listed])
			wrong(w, "order %u is given after its result", listed);
		to_host(w, number, &m);
		break;
	case DEAL_DO_RECALL:
		w->outcome->recalls++;
		m.kind = M_RECALL;
		to_host(w, number, &m);
		break;
	case DEAL_DO_DROP:
		m.kind = M_DROP;
		to_host(w, number, &m);
		break;
	case DEAL_DO_STOP:
		m.kind = M_STOP;
		to_host(w, number, &m);
		break;
	case DEAL_DO_COUNT:
		w->written[listed]++;
		if (w->at_hand->final && !w->at_hand->unrun && w->finals[listed]++)
			wrong(w, "order %u has two final results", listed);
		break;
	case DEAL_DO_ACK:
		m.kind = M_ACK;
		to_host(w, number, &m);
		break;
	case DEAL_DO_NOTE:
		w->outcome->late++;
		break;
	case DEAL_DO_LOSE:
		w->outcome->losses++;
		if (action->final && w->finals[listed]++)
			wrong(w, "order %u has two final results, one of them lost", listed);
		break;
	case DEAL_DO_UNFIT:
		wrong(w, "order %u fits nowhere", listed);
		break;
	case DEAL_DO_HANG_UP:
		m.kind = M_DOWN;
		to_host(w, number, &m);
		break;
	case DEAL_DO_HOST_LOST:
		break;
	case DEAL_DO_END:
		w->over = true;
		break;
	}
}

static void deal_do(struct world *w, const struct deal_event *event)
{
	struct deal_actions actions = { .items = NULL };
	deal_step(&w->deal, event, w->now_ns, &actions);
	for (size_t i = 0; i < actions.count; i++)
		deal_act(w, &actions.items[i]);
	deal_actions_done(&actions);
	uint64_t at = deal_deadline_ns(&w->deal);
	if (at >= w->timer_ns)
		return;
	w->timer_ns = at;
	later(w, at, AT_TIMER, 0)->stamp = w->term;
}

static void begin_coordinator(struct world *w, bool again)
{
	size_t count = 0;
	for (size_t i = 0; i < KINDS; i++)
		w->kinds[i] = (struct deal_kind){ .width = (int32_t)i + 1 };
	for (size_t i = 0; i < w->order_count; i++) {
		if (w->finals[i])
			continue;
		w->index[count] = (uint32_t)i;
		w->orders[count++] =
			(struct deal_order){ .key = i, .kind = (uint32_t)w->widths[i] - 1 };
	}
	struct deal_config config = { .lost_after_ns = LOST_NS,
				      .hold_until_ns = again ? w->now_ns + LOST_NS : 0,
				      .patience_ns = 1000 * LOST_NS,
				      .deadline_ns = NS_NEVER,
				      .max_hosts = HOSTS_MAX - 1,
				      .retry_lost = true };
	w->term++;
	w->alive = true;
	w->frozen = false;
	w->timer_ns = NS_NEVER;
	deal_init(&w->deal, &config, w->orders, count, w->kinds, KINDS);
	deal_do(w, &(struct deal_event){ DEAL_EV_START });
	if (w->stopped)
		deal_do(w, &(struct deal_event){ DEAL_EV_STOP, .stop = DEAL_STOP,
						 .why = DEAL_WHY_USER });
}

/* The numbers of its orders are those of the list; those of a coordinator's are its own. */
static uint32_t own_number(const struct world *w, uint32_t listed)
{
	for (size_t i = 0; i < w->deal.count; i++)
		if (w->index[i] == listed)
			return (uint32_t)i;
	return UINT32_MAX;
}

static void take_at_coordinator(struct world *w, int number, struct message *m)
{
	static const enum deal_event_type types[] = {
		[M_HELLO] = DEAL_EV_HELLO,	 [M_STARTED] = DEAL_EV_STARTED,
		[M_RESULT] = DEAL_EV_RESULT,	 [M_RETURNED] = DEAL_EV_RETURNED,
		[M_RECALLED] = DEAL_EV_RECALLED, [M_BEAT] = DEAL_EV_BEAT,
		[M_DOWN] = DEAL_EV_LINK_DOWN,
	};
	struct deal_event event = { .type = types[m->kind],
				    .link = m->link,
				    .host = w->hosts[number].number,
				    .order = own_number(w, m->order),
				    .lease = m->lease };
	/* Who has which link is known from HELLO on, even when the host has another by now. */
	for (size_t i = 0; i < w->deal.host_count; i++)
		if (w->deal.hosts[i].link == m->link)
			event.host = (uint32_t)i;
	if (m->kind == M_HELLO) {
		event.id = m->id;
		event.facts = w->hosts[number].facts;
		event.local = w->hosts[number].local;
		event.held = m->held;
		event.held_count = m->term == w->term ? m->held_count : 0;
	} else if (m->kind == M_RESULT) {
		event.number = m->number;
		event.final = m->final;
		event.ok = m->ok;
		event.unrun = m->unrun;
	} else if (m->kind == M_DOWN) {
		event.dead = m->dead;
	}
	w->at_hand = m;
	deal_do(w, &event);
	bool known = event.host < w->deal.host_count && w->deal.hosts[event.host].link == m->link;
	if (m->kind == M_BEAT && known)
		to_host(w, number,
			&(struct message){ M_ANSWERED, .link = m->link, .cookie = m->cookie });
	free(m);
}

/* ---- faults ---- */

static void kill_host(struct world *w, int number)
{
	struct host *host = &w->hosts[number];
	if (!host->alive || host->local)
		return;
	drop_link(w, number, !host->cut, true);
	host->alive = false;
	for (size_t i = 0; i < host->waiting_count; i++)
		free(host->waiting[i]);
	host->waiting_count = 0;
	if (w->rules->takeover || rng_chance(&w->rng, 70))
		later(w, w->now_ns + rng_range(&w->rng, 1, 2000) * MS, AT_REBORN, number);
}

/* The process of the coordinator has a host in it, too. */
static void kill_coordinator(struct world *w)
{
	if (!w->alive || w->over)
		return;
	w->outcome->takeovers++;
	w->alive = false;
	deal_done(&w->deal);
	for (size_t i = 0; i < w->waiting_count; i++)
		free(w->waiting[i]);
	w->waiting_count = 0;
	for (int i = 0; i < w->host_count; i++) {
		struct host *host = &w->hosts[i];
		if (host->local) {
			host->alive = host->local = false;
			host->link = 0;
			later(w, w->now_ns + rng_range(&w->rng, 500, 3000) * MS, AT_REBORN, i);
		} else if (host->link && !host->cut) {
			to_host(w, i, &(struct message){ M_DOWN, .link = host->link });
		}
	}
	later(w, w->now_ns + rng_range(&w->rng, 10, 1500) * MS, AT_SUCCEED, 0);
}

static void freeze(struct world *w, int number)
{
	struct host *host = &w->hosts[number];
	if (!host->alive || host->frozen || host->local)
		return;
	host->frozen = true;
	host->thaw_ns = w->now_ns + rng_range(&w->rng, 1, 1500) * MS;
	later(w, host->thaw_ns, AT_THAW, number)->stamp = host->life;
}

static void cut(struct world *w, int number)
{
	struct host *host = &w->hosts[number];
	if (host->cut || host->local)
		return;
	host->cut = true;
	later(w, w->now_ns + rng_range(&w->rng, 1, 1500) * MS, AT_HEAL, number);
}

/* The connection breaks, and each end notices when it likes, or only from the other's silence. */
static void break_link(struct world *w, int number)
{
	struct host *host = &w->hosts[number];
	uint64_t link = host->link;
	if (!link || host->local || !host->alive)
		return;
	if (rng_chance(&w->rng, 70))
		to_coordinator(w, number, &(struct message){ M_DOWN, .link = link });
	if (rng_chance(&w->rng, 70))
		to_host(w, number, &(struct message){ M_DOWN, .link = link });
}

static void fault(struct world *w)
{
	int number = (int)rng_range(&w->rng, 0, (uint64_t)w->host_count - 1);
	switch (rng_range(&w->rng, 0, w->rules->takeover ? 5 : 4)) {
	case 0:
		kill_host(w, number);
		break;
	case 1:
		freeze(w, number);
		break;
	case 2:
		cut(w, number);
		break;
	case 3:
		break_link(w, number);
		break;
	case 4:
		if (w->alive && !w->frozen) {
			w->frozen = true;
			later(w, w->now_ns + rng_range(&w->rng, 1, 900) * MS, AT_THAW, -1)->stamp =
				w->term;
		}
		break;
	default:
		kill_coordinator(w);
		break;
	}
	uint64_t at = w->now_ns + rng_range(&w->rng, 1, 600) * MS;
	if (at < FAULTS_END_NS)
		later(w, at, AT_FAULT, 0);
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
		take_at_host(w, number, host->waiting[i]);
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
			take_at_coordinator(w, hosts[i], messages[i]);
		}
	}
}

static void connect_host(struct world *w, int number)
{
	struct host *host = &w->hosts[number];
	if (host->link)
		return;
	if (!w->alive || w->frozen || host->cut || w->over) {
		if (!w->over)
			reconnect(w, number);
		return;
	}
	host->link = ++w->links;
	w->host_of_link[host->link] = (uint64_t)number;
	host_step(w, number, &(struct hand_event){ HAND_EV_LINK_UP });
}

static void end_task(struct world *w, int number, uint64_t stamp)
{
	struct host *host = &w->hosts[number];
	struct task *task = find_task(host, stamp);
	if (!task)
		return;
	uint32_t lease = task->lease;
	/* A failed attempt before the last, now and then. */
	if (rng_chance(&w->rng, 10))
		host_step(w, number, &(struct hand_event){ HAND_EV_RESULT, .lease = lease });
	erase_task(host, lease);
	host_step(w, number, &(struct hand_event){ HAND_EV_RESULT, .lease = lease, .final = true });
	start_tasks(w, number);
}

static void thaw(struct world *w, int number)
{
	if (number < 0) {
		w->frozen = false;
		deal_do(w, &(struct deal_event){ DEAL_EV_TIMER });
		for (int i = 0; i < w->host_count; i++)
			if (w->hosts[i].local && w->hosts[i].alive) {
				host_step(w, i, &(struct hand_event){ HAND_EV_TIMER });
				drain_host(w, i);
			}
		drain_coordinator(w);
		return;
	}
	struct host *host = &w->hosts[number];
	host->frozen = false;
	host_step(w, number, &(struct hand_event){ HAND_EV_TIMER });
	drain_host(w, number);
	start_tasks(w, number);
}

static void succeed(struct world *w)
{
	for (int i = 0; i < w->host_count; i++) {
		struct host *host = &w->hosts[i];
		if (!host->alive || host->frozen || host->cut)
			continue;
		host->local = true;
		host_step(w, i, &(struct hand_event){ HAND_EV_COORDINATES });
		if (host->link)
			reconnect(w, i);
		host->link = 0;
		begin_coordinator(w, true);
		return;
	}
	later(w, w->now_ns + 100 * MS, AT_SUCCEED, 0);
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
			take_at_coordinator(w, number, event->message);
		}
		break;
	case AT_HOST:
		if (is_still(w, host) || host->cut)
			host->waiting[host->waiting_count++] = event->message;
		else
			take_at_host(w, number, event->message);
		break;
	case AT_TIMER:
		if (!w->alive || event->stamp != w->term)
			break;
		w->timer_ns = NS_NEVER; /* one that is frozen looks when it thaws */
		if (!w->frozen)
			deal_do(w, &(struct deal_event){ DEAL_EV_TIMER });
		break;
	case AT_HOST_TIMER:
		if (event->stamp != host->life || !host->alive)
			break;
		host->timer_ns = NS_NEVER;
		if (!is_still(w, host))
			host_step(w, number, &(struct hand_event){ HAND_EV_TIMER });
		break;
	case AT_ORDER_END:
		if (is_still(w, host)) /* it is frozen, too */
			later(w, w->now_ns + 10 * MS, AT_ORDER_END, number)->stamp = event->stamp;
		else if (host->alive)
			end_task(w, number, event->stamp);
		break;
	case AT_CONNECT:
		if (event->stamp != host->life || !host->alive)
			break;
		if (is_still(w, host))
			reconnect(w, number);
		else
			connect_host(w, number);
		break;
	case AT_FAULT:
		fault(w);
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
		born(w, number);
		break;
	case AT_SUCCEED:
		succeed(w);
		break;
	case AT_STOP:
		w->stopped = true;
		if (w->alive)
			deal_do(w, &(struct deal_event){ DEAL_EV_STOP, .stop = DEAL_STOP,
							 .why = DEAL_WHY_USER });
		break;
	}
}

static void make(struct world *w)
{
	struct rng *rng = &w->rng;
	w->host_count = (int)rng_range(rng, 2, HOSTS_MAX);
	w->order_count = rng_range(rng, 1, ORDERS_MAX);
	uint64_t longest = rng_chance(rng, 50) ? 20 : 400;
	for (size_t i = 0; i < w->order_count; i++) {
		w->times[i] =
			rng_range(rng, 1, i > w->order_count / 2 ? 10 * longest : longest) * MS;
		w->widths[i] = (int32_t)rng_range(rng, 1, KINDS);
	}
	for (int i = 0; i < w->host_count; i++) {
		int32_t cores = (int32_t)rng_range(rng, KINDS, 6);
		w->hosts[i].local = i == 0;
		w->hosts[i].facts = (struct deal_facts){ cores, cores, cores, 1 };
		born(w, i);
	}
	begin_coordinator(w, false);
	if (w->rules->faults)
		later(w, rng_range(rng, 1, 500) * MS, AT_FAULT, 0);
	if (w->rules->stop)
		later(w, rng_range(rng, 1, 3000) * MS, AT_STOP, 0);
}

static void check_end(struct world *w)
{
	uint64_t work = 0, longest = 0;
	int64_t cores = 0;
	if (!w->over)
		wrong(w, "it does not end: %zu wait, %zu are given", w->deal.waiting,
		      w->deal.given);
	for (size_t i = 0; i < w->order_count && !w->rules->stop; i++)
		if (w->finals[i] != 1)
			wrong(w, "order %zu has %d final results", i, w->finals[i]);
	for (size_t i = 0; i < w->order_count; i++) {
		work += w->times[i] * (uint64_t)w->widths[i];
		longest = MAX(longest, w->times[i]);
	}
	for (int i = 0; i < w->host_count; i++)
		cores += w->hosts[i].facts.cores;
	/* Widths leave gaps, hosts come a little late, and the last one may begin last. */
	if (w->rules->efficient && w->now_ns > 3 * work / (uint64_t)cores + 2 * longest + 400 * MS)
		wrong(w, "it took %llu ms, for %llu ms of work on %lld cores",
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
	if (w->alive)
		deal_done(&w->deal);
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
	while (!w->over && !*ret_outcome->wrong && w->now_ns < GIVE_UP_NS && w->events.count > 0) {
		struct event *event = container_of(heap_pop(&w->events), struct event, node);
		w->now_ns = event->node.key;
		happen(w, event);
		free(event);
	}
	check_end(w);
	destroy(w);
}
