/* The hosts of a simulated batch: what their hand wants is done, and orders take their time. */
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "deal_world_private.h"

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

/* What runs takes no more than there is. Whether it may start for want of cores the host finds out;
 * its memory only the coordinator adds up. */
bool deal_host_has_room(struct world *w, const struct host *host, uint32_t order)
{
	const struct needed *needed = deal_needed(w, order);
	int32_t jobs = 1, width = needed->width;
	uint64_t memory = needed->memory;
	for (size_t i = 0; i < host->task_count; i++) {
		if (!host->tasks[i].runs)
			continue;
		jobs++;
		width += deal_needed(w, host->tasks[i].order)->width;
		memory += deal_needed(w, host->tasks[i].order)->memory;
	}
	if (jobs > host->facts.jobs || width > host->facts.cores)
		return false;
	if (memory > host->facts.memory)
		deal_wrong(w, "orders run on %s with more memory than it has", host->name);
	return true;
}

void deal_host_check_alone(struct world *w, int number, uint32_t order)
{
	if (runs_elsewhere(w, number, order))
		deal_wrong(w, "order %u runs in two places", order);
	if (w->finals[order])
		deal_wrong(w, "order %u runs again after its result", order);
}

void deal_host_start(struct world *w, int number)
{
	struct host *host = &w->hosts[number];
	for (size_t i = 0; i < host->task_count; i++) {
		struct task *task = &host->tasks[i];
		if (task->runs || task->not_before_ns > w->now_ns ||
		    !deal_host_has_room(w, host, task->order))
			continue;
		deal_host_check_alone(w, number, task->order);
		task->runs = true;
		task->stamp = ++w->stamps;
		deal_later(w, w->now_ns + w->times[task->order], AT_ORDER_END, number)->stamp =
			task->stamp;
		deal_host_step(w, number,
			       &(struct hand_event){ HAND_EV_STARTED, .lease = task->lease });
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

void deal_host_drop_link(struct world *w, int number, bool tell_coordinator, bool dead)
{
	struct host *host = &w->hosts[number];
	if (host->link && tell_coordinator)
		deal_to_coordinator(w, number,
				    &(struct message){ M_DOWN, .link = host->link, .dead = dead });
	host->link = 0;
	host->number = DEAL_NO_HOST;
}

void deal_host_reconnect(struct world *w, int number)
{
	deal_later(w, w->now_ns + rng_range(&w->rng, 1, 100) * MS, AT_CONNECT, number)->stamp =
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
		deal_to_coordinator(w, number, &m);
		break;
	case HAND_DO_BEAT:
		m.kind = M_BEAT;
		m.cookie = action->cookie;
		deal_to_coordinator(w, number, &m);
		break;
	case HAND_DO_STARTED:
		m.kind = M_STARTED;
		deal_to_coordinator(w, number, &m);
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
		m.ok = m.final && !w->fails[action->order];
		m.unrun = m.final && host->hand.stop >= WORKLIST_STOP;
		deal_to_coordinator(w, number, &m);
		break;
	}
	case HAND_DO_RETURNED:
		m.kind = M_RETURNED;
		deal_to_coordinator(w, number, &m);
		break;
	case HAND_DO_RECALLED:
		m.kind = M_RECALLED;
		deal_to_coordinator(w, number, &m);
		break;
	case HAND_DO_FETCH:
		m.kind = M_FETCH;
		deal_to_coordinator(w, number, &m);
		break;
	case HAND_DO_RUN:
		if (w->pieces[action->order] &&
		    host->here[action->lease % LEASES_MAX] != host->hand.term)
			deal_wrong(w, "order %u runs without its files", action->order);
		host->tasks[host->task_count++] =
			(struct task){ .order = action->order, .lease = action->lease };
		break;
	case HAND_DO_UNQUEUE:
	case HAND_DO_DISCARD:
		w->outcome->drops += action->type == HAND_DO_DISCARD;
		erase_task(host, action->lease);
		break;
	case HAND_DO_FORGET:
		break;
	case HAND_DO_STOP:
		for (size_t i = host->task_count; action->stop >= WORKLIST_STOP && i > 0; i--) {
			uint32_t lease = host->tasks[i - 1].lease;
			erase_task(host, lease);
			deal_host_step(w, number,
				       &(struct hand_event){ HAND_EV_RESULT, .lease = lease,
							     .final = true });
		}
		break;
	case HAND_DO_HANG_UP:
		deal_host_drop_link(w, number, !host->cut, false);
		deal_host_reconnect(w, number);
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
	deal_later(w, at, AT_HOST_TIMER, number)->stamp = host->life;
}

void deal_host_step(struct world *w, int number, const struct hand_event *event)
{
	struct hand_actions actions = { .items = NULL };
	struct host *host = &w->hosts[number];
	hand_step(&host->hand, event, w->now_ns, &actions);
	for (size_t i = 0; i < actions.count; i++)
		host_act(w, number, &actions.items[i]);
	hand_actions_done(&actions);
	arm_host(w, number);
}

void deal_host_born(struct world *w, int number)
{
	struct host *host = &w->hosts[number];
	hand_done(&host->hand);
	hand_init(&host->hand, &(struct hand_config){ PERIOD_NS, LEASE_NS });
	host->alive = true;
	host->frozen = false;
	host->life++;
	host->timer_ns = NS_NEVER;
	host->task_count = 0;
	memset(host->here, 0, sizeof(host->here));
	host->link = 0;
	deal_host_reconnect(w, number);
}

void deal_host_take(struct world *w, int number, struct message *m)
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
		[M_ANSWERED] = HAND_EV_ANSWERED, [M_PIECE] = HAND_EV_FILES,
	};
	if (m->kind == M_PIECE && m->number + 1 < w->pieces[m->order]) {
		deal_to_coordinator(w, number,
				    &(struct message){ M_FETCH, .link = m->link, .order = m->order,
						       .lease = m->lease,
						       .number = m->number + 1 });
		free(m);
		return;
	}
	if (m->kind == M_DOWN) {
		host->link = 0;
		host->number = DEAL_NO_HOST;
		deal_host_step(w, number, &(struct hand_event){ HAND_EV_LINK_DOWN });
		deal_host_reconnect(w, number);
	} else {
		event.type = types[m->kind];
		event.files = m->files;
		if (m->kind == M_PIECE)
			host->here[m->lease % LEASES_MAX] = m->term;
		deal_host_step(w, number, &event);
	}
	deal_host_start(w, number);
	free(m);
}

void deal_host_connect(struct world *w, int number)
{
	struct host *host = &w->hosts[number];
	if (host->link || host->local)
		return;
	if (!w->alive || w->frozen || host->cut || w->over) {
		if (!w->over)
			deal_host_reconnect(w, number);
		return;
	}
	host->link = ++w->links;
	w->host_of_link[host->link] = (uint64_t)number;
	deal_host_step(w, number, &(struct hand_event){ HAND_EV_LINK_UP });
}

void deal_host_end(struct world *w, int number, uint64_t stamp)
{
	struct host *host = &w->hosts[number];
	struct task *task = find_task(host, stamp);
	if (!task)
		return;
	uint32_t lease = task->lease;
	bool final = task->failures == w->failures[task->order];
	if (final) {
		erase_task(host, lease);
	} else {
		task->runs = false;
		task->failures++;
		task->not_before_ns = w->now_ns + rng_range(&w->rng, 0, 100) * MS;
		deal_later(w, task->not_before_ns, AT_RETRY, number);
	}
	deal_host_step(w, number,
		       &(struct hand_event){ HAND_EV_RESULT, .lease = lease, .final = final });
	deal_host_start(w, number);
}
