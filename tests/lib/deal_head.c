/* The coordinator of a simulated batch, and its result file. */
#include <stdlib.h>

#include "base/clock.h"
#include "deal_world_private.h"

static bool is_able(const struct world *w, const struct host *host, uint32_t order)
{
	const struct needed *needed = deal_needed(w, order);
	return needed->width <= host->facts.max_width && needed->memory <= host->facts.memory &&
	       (needed->features & ~host->features) == 0 && (!needed->files || host->facts.files) &&
	       (!needed->named || host < &w->hosts[2]);
}

/* So many may be given to a host while the first in line that it can take does not fit. */
static void check_overtaking(struct world *w, struct host *host, uint32_t given)
{
	uint32_t first = UINT32_MAX;
	for (size_t i = 0; first == UINT32_MAX && i < w->list.count && w->index[i] < given; i++)
		if (w->orders[i].state == BATCH_QUEUED &&
		    !(w->orders[i].item.kind & WORKLIST_HERE) && is_able(w, host, w->index[i]))
			first = w->index[i];
	host->overtaken = first == host->first ? host->overtaken + 1 : 1;
	host->first = first;
	if (first != UINT32_MAX &&
	    host->overtaken > (uint32_t)(SCHEDULE_OVERTAKE * host->facts.cores))
		deal_wrong(w, "order %u waits for ever for %s", first, host->name);
}

void deal_head_check_start(struct world *w, struct host *host, uint32_t order)
{
	if (!is_able(w, host, order))
		deal_wrong(w, "order %u is given to %s, which cannot take it", order, host->name);
	if (w->finals[order])
		deal_wrong(w, "order %u is given after its result", order);
	check_overtaking(w, host, order);
}

static void check_recall(struct world *w, const struct deal_host *host)
{
	for (size_t i = 0; i < host->given_count; i++)
		if (!w->orders[host->given[i]].started)
			return;
	deal_wrong(w, "%s is asked to return orders, and has started all of them",
		   host->facts.name);
}

/* It is given nothing before it has answered. */
static void check_answers(struct world *w)
{
	for (int i = 0; i < w->host_count && !w->rules->faults; i++) {
		const struct host *host = &w->hosts[i];
		if (!host->local && host->number < w->deal.host_count &&
		    w->deal.hosts[host->number].recalling &&
		    w->now_ns > host->recalled_ns + 500 * MS)
			deal_wrong(w, "%s was asked to return orders, and has not answered",
				   host->name);
	}
}

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
		deal_to_host(w, number, &m);
		break;
	case DEAL_DO_GIVE:
		if (w->orders[action->order].item.kind & WORKLIST_HERE)
			deal_wrong(w, "order %u has begun elsewhere", listed);
		m.kind = M_GIVE;
		m.order = listed;
		m.files = w->pieces[listed] > 0;
		deal_head_check_start(w, &w->hosts[number], listed);
		deal_to_host(w, number, &m);
		break;
	case DEAL_DO_FEED:
		m.kind = M_PIECE;
		m.number = w->at_hand->number;
		m.order = listed;
		deal_to_host(w, number, &m);
		break;
	case DEAL_DO_RECALL:
		w->outcome->recalls++;
		w->hosts[number].recalled_ns = w->now_ns;
		check_recall(w, &w->deal.hosts[action->host]);
		m.kind = M_RECALL;
		deal_to_host(w, number, &m);
		break;
	case DEAL_DO_DROP:
		m.kind = M_DROP;
		deal_to_host(w, number, &m);
		break;
	case DEAL_DO_STOP:
		m.kind = M_STOP;
		deal_to_host(w, number, &m);
		break;
	case DEAL_DO_COUNT:
		w->written[listed]++;
		if (!w->at_hand->final || w->at_hand->unrun)
			break;
		*(w->at_hand->ok ? &w->ok : &w->failed) += 1;
		if (w->finals[listed]++)
			deal_wrong(w, "order %u has two final results", listed);
		break;
	case DEAL_DO_ACK:
		m.kind = M_ACK;
		deal_to_host(w, number, &m);
		break;
	case DEAL_DO_NOTE:
		w->outcome->late++;
		break;
	case DEAL_DO_LOSE:
		w->outcome->losses++;
		w->failed += action->final;
		if (action->final && w->finals[listed]++)
			deal_wrong(w, "order %u has two final results, one of them lost", listed);
		break;
	case DEAL_DO_UNFIT:
		deal_wrong(w, "order %u fits nowhere", listed);
		break;
	case DEAL_DO_HANG_UP:
		m.kind = M_DOWN;
		deal_to_host(w, number, &m);
		break;
	case DEAL_DO_AWAIT:
	case DEAL_DO_HOST_LOST:
		break;
	case DEAL_DO_BYE:
		if (!w->over)
			deal_wrong(w, "host %d is told that it is over", number);
		break;
	case DEAL_DO_END:
		w->over = true;
		break;
	}
}

void deal_head_step(struct world *w, const struct deal_event *event)
{
	struct deal_actions actions = { .items = NULL };
	check_answers(w);
	deal_step(&w->deal, event, w->now_ns, &actions);
	for (size_t i = 0; i < actions.count; i++)
		deal_act(w, &actions.items[i]);
	deal_actions_done(&actions);
	if (w->list.changes != w->seen) {
		w->seen = w->list.changes;
		deal_own_step(w, &(struct batch_event){ .type = BATCH_LOOK, .slot = -1 });
	}
	deal_head_arm(w);
}

void deal_head_arm(struct world *w)
{
	uint64_t at = deal_deadline_ns(&w->deal);
	if (!w->apart)
		at = MIN(at, batch_next_deadline(&w->own));
	if (at >= w->timer_ns)
		return;
	w->timer_ns = at;
	deal_later(w, at, AT_TIMER, 0)->stamp = w->term;
}

void deal_head_begin(struct world *w, bool again)
{
	static char *ssd[] = { "ssd", NULL }, *gpu[] = { "gpu", NULL },
		    *all[] = { "ssd", "gpu", NULL }, *hosts[] = { "node0", "node1", NULL };
	static char **const lists[] = { NULL, ssd, gpu, all };
	size_t count = 0;
	for (size_t i = 0; i < KINDS; i++) {
		const struct needed *needed = &w->needs[i];
		w->kinds[i] = (struct order_kind){ .width = needed->width,
						   .memory = needed->memory,
						   .files = needed->files,
						   .needs.features = lists[needed->features],
						   .needs.hosts = needed->named ? hosts : NULL };
	}
	for (size_t i = 0; i < w->order_count; i++) {
		if (w->finals[i])
			continue;
		w->index[count] = (uint32_t)i;
		w->orders[count++] =
			(struct batch_order){ .item = { .index = (uint32_t)i,
							.width = deal_needed(w, (uint32_t)i)->width,
							.kind = w->kind_of[i] },
					      .retries = (int32_t)w->failures[i],
					      .runs = 1 };
	}
	const struct worklist_opts opts = { .order = SCHEDULE_LISTED,
					    .deadline_ns = NS_NEVER,
					    .hold_until_ns = again ? w->now_ns + LOST_NS : 0,
					    .shared = true,
					    .kinds = w->kinds };
	struct deal_config config = { .lost_after_ns = LOST_NS,
				      .patience_ns = 1000 * LOST_NS,
				      .max_hosts = HOSTS_MAX - 1,
				      .own = w->apart ? NULL : &w->own,
				      .retry_lost = true };
	w->term++;
	w->alive = true;
	w->frozen = false;
	w->timer_ns = NS_NEVER;
	w->ok = w->failed = 0;
	worklist_init(&w->list, &opts, w->orders, count);
	w->seen = w->list.changes;
	deal_own_begin(w);
	deal_init(&w->deal, &config, &w->list);
	deal_head_step(w, &(struct deal_event){ DEAL_EV_START });
	deal_own_step(w, &(struct batch_event){ .type = BATCH_START, .slot = -1 });
	if (w->stopped)
		deal_head_step(w, &(struct deal_event){ DEAL_EV_STOP, .stop = WORKLIST_STOP,
							.why = BATCH_STOP_INTERRUPT });
}

/* The numbers of its orders are those of the list; those of a coordinator's are its own. */
static uint32_t own_number(const struct world *w, uint32_t listed)
{
	for (size_t i = 0; i < w->list.count; i++)
		if (w->index[i] == listed)
			return (uint32_t)i;
	return UINT32_MAX;
}

void deal_head_take(struct world *w, int number, struct message *m)
{
	static const enum deal_event_type types[] = {
		[M_HELLO] = DEAL_EV_HELLO,	 [M_STARTED] = DEAL_EV_STARTED,
		[M_RESULT] = DEAL_EV_RESULT,	 [M_RETURNED] = DEAL_EV_RETURNED,
		[M_RECALLED] = DEAL_EV_RECALLED, [M_BEAT] = DEAL_EV_BEAT,
		[M_DOWN] = DEAL_EV_LINK_DOWN,	 [M_FETCH] = DEAL_EV_FETCH,
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
	deal_head_step(w, &event);
	bool known = event.host < w->deal.host_count && w->deal.hosts[event.host].link == m->link;
	if (m->kind == M_BEAT && known)
		deal_to_host(w, number,
			     &(struct message){ M_ANSWERED, .link = m->link, .cookie = m->cookie });
	free(m);
}
