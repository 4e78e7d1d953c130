#include "core/deal/deal.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/mem.h"

/* One step's view: the handlers below all take it. */
struct step {
	struct deal *deal;
	const struct deal_event *event;
	uint64_t now_ns;
	struct deal_actions *actions;
};

static struct deal_action *act(struct step *s, enum deal_action_type type)
{
	struct deal_action *action = deal_actions_add(s->actions);
	*action = (struct deal_action){ .type = type, .host = DEAL_NO_HOST };
	return action;
}

static uint32_t host_number(const struct deal *deal, const struct deal_host *host)
{
	return (uint32_t)(host - deal->hosts);
}

static struct deal_action *act_on(struct step *s, enum deal_action_type type,
				  const struct deal_host *host)
{
	struct deal_action *action = act(s, type);
	action->host = host_number(s->deal, host);
	action->link = host->link;
	return action;
}

/* ---- orders ---- */

static const struct order_kind *kind_of(const struct deal *deal, const struct batch_order *order)
{
	return worklist_kind(deal->list, &order->item);
}

static uint32_t order_number(const struct deal *deal, const struct batch_order *order)
{
	return (uint32_t)(order - deal->list->orders);
}

static struct batch_order *order_at(const struct deal *deal, uint32_t number)
{
	return &deal->list->orders[number];
}

static void wait_again(struct deal *deal, struct batch_order *order)
{
	order->started = false;
	worklist_enqueue(deal->list, order);
}

void deal_init(struct deal *deal, const struct deal_config *config, struct worklist *list)
{
	*deal = (struct deal){ .config = *config, .list = list };
}

static void free_facts(struct deal_host *host)
{
	free((char *)host->facts.name);
	free((char *)host->facts.features);
}

void deal_done(struct deal *deal)
{
	for (size_t i = 0; i < deal->host_count; i++) {
		free(deal->hosts[i].given);
		free_facts(&deal->hosts[i]);
	}
	free(deal->hosts);
	*deal = (struct deal){ .list = NULL };
}

/* Out of the hands of its host. */
static void take_back(struct deal *deal, struct batch_order *order)
{
	struct deal_host *host = &deal->hosts[order->host];
	const struct order_kind *kind = kind_of(deal, order);
	uint32_t last = host->given[--host->given_count];
	host->given[order->at] = last;
	order_at(deal, last)->at = order->at;
	host->started_count -= order->started;
	host->given_width -= kind->width;
	host->given_memory -= kind->memory;
	deal->given--;
}

static void give(struct step *s, struct deal_host *host, struct batch_order *order)
{
	struct deal *deal = s->deal;
	const struct order_kind *kind = kind_of(deal, order);
	order->state = BATCH_GIVEN;
	order->started = false;
	order->results = 0;
	order->lease = ++deal->last_lease;
	order->host = host_number(deal, host);
	order->at = (uint32_t)host->given_count;
	ARRAY_RESERVE(host->given, host->given_count, host->given_cap);
	host->given[host->given_count++] = order_number(deal, order);
	host->given_width += kind->width;
	host->given_memory += kind->memory;
	deal->given++;
	if (!host->last_ns)
		host->last_ns = s->now_ns;
	struct deal_action *action = act_on(s, DEAL_DO_GIVE, host);
	action->order = order_number(deal, order);
	action->lease = order->lease;
}

static void note_started(const struct step *s, struct deal_host *host, struct batch_order *order)
{
	if (order->started)
		return;
	host->started_count++;
	order->started = true;
	order->since_ns = s->now_ns;
}

/* ---- stopping ---- */

static void tell_stop(struct step *s, const struct deal_host *host)
{
	if (host->state == DEAL_HERE)
		act_on(s, DEAL_DO_STOP, host)->stop = s->deal->list->halt;
}

/* What the list says of the end. */
static void heed_stop(struct step *s)
{
	struct deal *deal = s->deal;
	if (deal->list->halt <= deal->told)
		return;
	deal->told = deal->list->halt;
	for (size_t i = 0; i < deal->host_count; i++)
		tell_stop(s, &deal->hosts[i]);
}

/* ---- giving ---- */

/* Orders beyond what its cores take. The last ones go to the hosts that can start them. */
static int64_t ahead(const struct deal *deal, const struct deal_host *host)
{
	if (!host->pace_ns || deal->list->schedule.queued <= deal->jobs)
		return 0;
	return (int64_t)MIN(DEAL_AHEAD_NS / host->pace_ns, (uint64_t)DEAL_AHEAD_MAX);
}

static bool has_room(const struct deal *deal, const struct deal_host *host,
		     const struct order_kind *kind)
{
	int64_t more = ahead(deal, host);
	return (int64_t)host->given_count < host->facts.jobs + more &&
	       host->given_width + kind->width <= host->facts.cores + more * kind->width &&
	       (kind->memory == 0 || host->given_memory + kind->memory <= host->facts.memory);
}

static bool has_had_one(const struct deal *deal, const struct deal_host *host)
{
	return deal->list->opts.once && host->given_count + host->done > 0;
}

struct place {
	const struct deal *deal;
	const struct deal_host *host;
};

static enum schedule_fit fit(void *arg, const struct schedule_item *item)
{
	const struct place *place = arg;
	const struct order_kind *kind = worklist_kind(place->deal->list, item);
	if (item->kind & WORKLIST_HERE || has_had_one(place->deal, place->host) ||
	    !needs_host_able(&place->host->facts, kind))
		return SCHEDULE_NEVER;
	return has_room(place->deal, place->host, kind) ? SCHEDULE_NOW : SCHEDULE_LATER;
}

static bool may_give(const struct step *s, const struct deal_host *host)
{
	return host->state == DEAL_HERE && !host->spare && !host->recalling &&
	       s->deal->list->stop == BATCH_GO && !worklist_is_held(s->deal->list);
}

static void fill_host(struct step *s, struct deal_host *host)
{
	struct schedule *schedule = &s->deal->list->schedule;
	struct place place = { s->deal, host };
	struct schedule_item *item;
	host->taker.fit = fit;
	host->taker.arg = &place;
	host->taker.cores = host->facts.cores;
	while (may_give(s, host) && (item = schedule_next(schedule, &host->taker)))
		give(s, host, container_of(item, struct batch_order, item));
}

/* What it has beyond what it can run: less than nothing if it can run more. */
static int64_t surplus(const struct deal_host *host)
{
	return (int64_t)host->given_count - host->facts.jobs;
}

/* Of that, what it can return: one that waits for its retry has started. */
static int64_t returnable(const struct deal_host *host)
{
	return MIN(surplus(host), (int64_t)(host->given_count - host->started_count));
}

static bool is_idle(const struct step *s, const struct deal_host *host)
{
	return may_give(s, host) && surplus(host) < 0 && host->given_width < host->facts.cores;
}

static bool own_is_idle(const struct deal *deal)
{
	return deal->config.own && batch_is_idle(deal->config.own);
}

/* A host has free cores and nothing is left to give: others may have more than they run. */
static void recall_some(struct step *s)
{
	struct deal *deal = s->deal;
	struct deal_host *rich = NULL;
	bool idle = own_is_idle(deal);
	if (deal->given == 0 || deal->list->stop != BATCH_GO || deal->list->schedule.queued > 0)
		return;
	for (size_t i = 0; i < deal->host_count; i++) {
		struct deal_host *host = &deal->hosts[i];
		idle |= is_idle(s, host);
		if (may_give(s, host) && returnable(host) > 0 &&
		    (!rich || returnable(host) > returnable(rich)))
			rich = host;
	}
	if (!idle || !rich)
		return;
	rich->recalling = true;
	act_on(s, DEAL_DO_RECALL, rich)->count = (uint32_t)(returnable(rich) + 1) / 2;
}

/* ---- hosts ---- */

/* What runs there is gone, or will be before anyone else gets it. */
static void lose_order(struct step *s, const struct deal_host *host, struct batch_order *order)
{
	struct deal *deal = s->deal;
	bool ran = order->started && deal->list->stop == BATCH_GO;
	take_back(deal, order);
	if (!ran) {
		wait_again(deal, order);
		return;
	}
	worklist_lose(deal->list, order);
	bool final = !deal->config.retry_lost || order->losses >= DEAL_LOSSES_MAX;
	struct deal_action *action = act_on(s, DEAL_DO_LOSE, host);
	action->order = order_number(deal, order);
	action->final = final;
	if (final)
		worklist_settle(deal->list, order, false);
	else
		wait_again(deal, order);
}

/* Spares take the place of hosts that are lost. */
static void count_hosts(struct step *s)
{
	struct deal *deal = s->deal;
	const struct batch *own = deal->config.own;
	uint32_t used = own ? 1 : 0;
	deal->jobs = own ? (size_t)own->opts.jobs : 0;
	for (size_t i = 0; i < deal->host_count; i++)
		used += deal->hosts[i].state != DEAL_LOST && !deal->hosts[i].spare;
	for (size_t i = 0; i < deal->host_count; i++) {
		struct deal_host *host = &deal->hosts[i];
		if (host->state == DEAL_LOST)
			continue;
		if (host->spare && used < deal->config.max_hosts) {
			host->spare = false;
			used++;
		}
		deal->jobs += host->spare ? 0 : (size_t)host->facts.jobs;
	}
	deal->complete_ns = used >= deal->config.max_hosts ? s->now_ns : 0;
}

static void lose_host(struct step *s, struct deal_host *host)
{
	act_on(s, DEAL_DO_HOST_LOST, host)->count = (uint32_t)host->given_count;
	if (host->link)
		act_on(s, DEAL_DO_HANG_UP, host);
	host->state = DEAL_LOST;
	host->link = 0;
	host->recalling = false;
	while (host->given_count > 0)
		lose_order(s, host, order_at(s->deal, host->given[host->given_count - 1]));
	count_hosts(s);
}

static struct deal_host *find_host(const struct deal *deal, struct agent_id id)
{
	for (size_t i = 0; i < deal->host_count; i++)
		if (agent_id_eq(deal->hosts[i].id, id))
			return &deal->hosts[i];
	return NULL;
}

static struct deal_host *add_host(struct deal *deal, struct agent_id id)
{
	ARRAY_RESERVE(deal->hosts, deal->host_count, deal->host_cap);
	struct deal_host *host = &deal->hosts[deal->host_count++];
	*host = (struct deal_host){ .id = id, .spare = true };
	return host;
}

static bool holds(const struct deal_event *hello, uint32_t lease)
{
	for (size_t i = 0; i < hello->held_count; i++)
		if (hello->held[i] == lease)
			return true;
	return false;
}

/* What it was given on a link that has ended may never have arrived. */
static void miss_orders(struct step *s, const struct deal_host *host)
{
	for (size_t i = host->given_count; i > 0; i--) {
		struct batch_order *order = order_at(s->deal, host->given[i - 1]);
		if (holds(s->event, order->lease))
			continue;
		take_back(s->deal, order);
		wait_again(s->deal, order);
	}
}

static bool has_lease(const struct deal *deal, const struct deal_host *host, uint32_t lease)
{
	for (size_t i = 0; i < host->given_count; i++)
		if (order_at(deal, host->given[i])->lease == lease)
			return true;
	return false;
}

static void set_facts(struct deal_host *host, const struct host_facts *facts)
{
	free_facts(host);
	host->facts = *facts;
	host->facts.name = mem_strdup(facts->name ? facts->name : "");
	host->facts.features = facts->features ? mem_strdup(facts->features) : NULL;
}

static void note_twins(const struct deal *deal, struct deal_host *host)
{
	for (size_t i = 0; i < deal->host_count; i++) {
		struct deal_host *other = &deal->hosts[i];
		if (other == host || other->state == DEAL_LOST ||
		    strcmp(other->facts.name, host->facts.name) != 0)
			continue;
		other->twin = host->twin = true;
	}
}

static void on_hello(struct step *s)
{
	struct deal *deal = s->deal;
	const struct deal_event *event = s->event;
	struct deal_host *host = find_host(deal, event->id);
	if (!host && deal->host_count == DEAL_HOSTS_MAX) {
		act(s, DEAL_DO_HANG_UP)->link = event->link;
		return;
	}
	if (!host)
		host = add_host(deal, event->id);
	if (host->link && host->link != event->link)
		act_on(s, DEAL_DO_HANG_UP, host);
	if (host->state == DEAL_LOST)
		host->spare = true;
	host->state = DEAL_HERE;
	host->link = event->link;
	set_facts(host, &event->facts);
	note_twins(deal, host);
	host->heard_ns = s->now_ns;
	host->recalling = false;
	count_hosts(s);
	act_on(s, DEAL_DO_WELCOME, host);
	miss_orders(s, host);
	for (size_t i = 0; i < event->held_count; i++)
		if (!has_lease(deal, host, event->held[i])) {
			deal->passed++;
			act_on(s, DEAL_DO_DROP, host)->lease = event->held[i];
		}
	if (deal->told != WORKLIST_GO)
		tell_stop(s, host);
}

static void on_link_down(struct step *s, struct deal_host *host)
{
	host->link = 0;
	if (s->event->dead) {
		lose_host(s, host);
		return;
	}
	host->state = DEAL_AWAY;
	host->recalling = false;
}

/* ---- what hosts say about orders ---- */

/* The order if it is this host's, under this lease. */
static struct batch_order *leased(const struct step *s, const struct deal_host *host)
{
	const struct deal_event *event = s->event;
	if (event->order >= s->deal->list->count)
		return NULL;
	struct batch_order *order = order_at(s->deal, event->order);
	bool valid = order->state == BATCH_GIVEN && order->lease == event->lease &&
		     order->host == host_number(s->deal, host);
	return valid ? order : NULL;
}

static void ack(struct step *s, const struct deal_host *host)
{
	struct deal_action *action = act_on(s, DEAL_DO_ACK, host);
	action->order = s->event->order;
	action->lease = s->event->lease;
	action->number = s->event->number;
}

static void keep_pace(const struct step *s, struct deal_host *host)
{
	int64_t passed = (int64_t)(s->now_ns - host->last_ns), pace = (int64_t)host->pace_ns;
	host->pace_ns = (uint64_t)MAX(pace ? pace + (passed - pace) / 8 : passed, 1);
	host->last_ns = s->now_ns;
}

static void on_result(struct step *s, struct deal_host *host)
{
	const struct deal_event *event = s->event;
	struct batch_order *order = leased(s, host);
	if (!order && event->order >= s->deal->list->count)
		return;
	if (!order) {
		struct deal_action *note = act_on(s, DEAL_DO_NOTE, host);
		s->deal->passed++;
		note->order = event->order;
		note->lease = event->lease;
		ack(s, host);
		return;
	}
	if (event->number != order->results) {
		if (event->number < order->results)
			ack(s, host); /* it came before */
		return;
	}
	order->results++;
	note_started(s, host, order);
	act_on(s, DEAL_DO_COUNT, host)->order = event->order;
	ack(s, host);
	if (!event->final)
		return;
	host->done++;
	keep_pace(s, host);
	take_back(s->deal, order);
	if (event->unrun)
		wait_again(s->deal, order);
	else
		worklist_settle(s->deal->list, order, event->ok);
}

static void on_returned(struct step *s, const struct deal_host *host)
{
	struct batch_order *order = leased(s, host);
	if (!order || order->started)
		return;
	take_back(s->deal, order);
	wait_again(s->deal, order);
}

/* Only who has the order gets its files. */
static void on_fetch(struct step *s, const struct deal_host *host)
{
	if (!leased(s, host))
		return;
	struct deal_action *action = act_on(s, DEAL_DO_FEED, host);
	action->order = s->event->order;
	action->lease = s->event->lease;
}

static void host_event(struct step *s)
{
	if (s->event->host >= s->deal->host_count)
		return;
	struct deal_host *host = &s->deal->hosts[s->event->host];
	if (host->link != s->event->link || host->state != DEAL_HERE)
		return;
	host->heard_ns = s->now_ns;
	struct batch_order *order;
	switch (s->event->type) {
	case DEAL_EV_STARTED:
		if ((order = leased(s, host)))
			note_started(s, host, order);
		break;
	case DEAL_EV_RESULT:
		on_result(s, host);
		break;
	case DEAL_EV_RETURNED:
		on_returned(s, host);
		break;
	case DEAL_EV_FETCH:
		on_fetch(s, host);
		break;
	case DEAL_EV_RECALLED:
		host->recalling = false;
		break;
	case DEAL_EV_LINK_DOWN:
		on_link_down(s, host);
		break;
	default:
		break;
	}
}

/* ---- time ---- */

static uint64_t lost_at(const struct deal *deal, const struct deal_host *host)
{
	if (host->state == DEAL_LOST)
		return NS_NEVER;
	return ns_add(host->heard_ns, deal->config.lost_after_ns);
}

static bool is_fit(void *arg, const struct schedule_item *item)
{
	const struct deal *deal = arg;
	const struct batch *own = deal->config.own;
	if (own && !batch_has_had_one(own) &&
	    needs_host_able(&own->opts.facts, worklist_kind(deal->list, item)))
		return true;
	for (size_t i = 0; i < deal->host_count; i++) {
		const struct deal_host *host = &deal->hosts[i];
		if (host->state != DEAL_LOST && !host->spare && !has_had_one(deal, host) &&
		    needs_host_able(&host->facts, worklist_kind(deal->list, item)))
			return true;
	}
	return false;
}

static bool is_unfit(void *arg, const struct schedule_item *item)
{
	return !is_fit(arg, item);
}

/* The first that waits for a host that is not here. */
static struct batch_order *first_unfit(struct deal *deal)
{
	struct schedule_item *item = schedule_find(&deal->list->schedule, is_unfit, deal);
	return item ? container_of(item, struct batch_order, item) : NULL;
}

static void fail_unfit(struct step *s)
{
	struct deal *deal = s->deal;
	for (struct batch_order *order; (order = first_unfit(deal));) {
		worklist_withdraw(deal->list, order);
		act(s, DEAL_DO_UNFIT)->order = order_number(deal, order);
		worklist_settle(deal->list, order, false);
	}
}

static bool some_unfit(struct deal *deal)
{
	const struct schedule *schedule = &deal->list->schedule;
	return schedule->queued > 0 && deal_running(deal) == 0 && deal->list->stop == BATCH_GO &&
	       !schedule_find(schedule, is_fit, deal);
}

/* All hosts that there can be are here. One that has started again is also among them, until it is
 * lost, as the process that it was. So one whose link is gone, or whose name another has, must be
 * heard of long after the last of them came. */
static bool is_complete(const struct deal *deal)
{
	for (size_t i = 0; deal->complete_ns && i < deal->host_count; i++) {
		const struct deal_host *host = &deal->hosts[i];
		if (host->state != DEAL_LOST && !host->spare &&
		    (host->state == DEAL_AWAY || host->twin) &&
		    host->heard_ns < ns_add(deal->complete_ns, deal->config.lost_after_ns))
			return false;
	}
	return deal->complete_ns;
}

static void tell_unfit(struct step *s)
{
	const struct batch_order *order = first_unfit(s->deal);
	if (order)
		act(s, DEAL_DO_AWAIT)->order = order_number(s->deal, order);
}

static void watch_unfit(struct step *s)
{
	struct deal *deal = s->deal;
	if (deal->list->stop == BATCH_GO && is_complete(deal)) {
		fail_unfit(s);
		deal->complete_ns = 0; /* once, until hosts come or are lost */
	}
	if (deal->list->opts.once || !some_unfit(deal)) {
		deal->idle_ns = 0;
	} else if (!deal->idle_ns) {
		deal->idle_ns = s->now_ns;
		if (deal_hosts_here(deal) > 0)
			tell_unfit(s);
	} else if (s->now_ns >= ns_add(deal->idle_ns, deal->config.patience_ns)) {
		fail_unfit(s);
	}
}

static void on_timer(struct step *s)
{
	struct deal *deal = s->deal;
	for (size_t i = 0; i < deal->host_count; i++)
		if (lost_at(deal, &deal->hosts[i]) <= s->now_ns)
			lose_host(s, &deal->hosts[i]);
	worklist_tick(deal->list, s->now_ns);
}

static void maybe_end(struct step *s)
{
	struct deal *deal = s->deal;
	const struct worklist *list = deal->list;
	if (deal->ended || deal_running(deal) > 0 ||
	    (list->stop == BATCH_GO && worklist_has_more(list)))
		return;
	deal->ended = true;
	act(s, DEAL_DO_END);
}

/* A host that comes when all is over, or that comes back. */
static void on_late_hello(struct step *s)
{
	struct deal *deal = s->deal;
	if (!find_host(deal, s->event->id) && deal->host_count < DEAL_HOSTS_MAX) {
		add_host(deal, s->event->id)->state = DEAL_LOST; /* it takes no part */
		deal->late++;
	}
	act(s, DEAL_DO_BYE)->link = s->event->link;
}

/* As a rule a host has room because it has ended something, and the others are as full as they
 * were. */
static void fill_hosts(struct step *s)
{
	struct deal *deal = s->deal;
	enum deal_event_type type = s->event->type;
	const struct worklist *list = deal->list;
	bool more = list->added != deal->seen;
	bool one = !more && type == DEAL_EV_RESULT;
	deal->seen = list->added;
	if (one && s->event->host < deal->host_count)
		fill_host(s, &deal->hosts[s->event->host]);
	if (one || (!more && type == DEAL_EV_LOOK))
		return;
	for (size_t i = 0; list->schedule.queued > 0 && i < deal->host_count; i++)
		fill_host(s, &deal->hosts[i]);
}

void deal_step(struct deal *deal, const struct deal_event *event, uint64_t now_ns,
	       struct deal_actions *actions)
{
	struct step s = { deal, event, now_ns, actions };
	if (deal->ended) {
		if (event->type == DEAL_EV_HELLO)
			on_late_hello(&s);
		return;
	}
	switch (event->type) {
	case DEAL_EV_START:
		count_hosts(&s);
		break;
	case DEAL_EV_LOOK:
		break;
	case DEAL_EV_HELLO:
		on_hello(&s);
		break;
	case DEAL_EV_STOP:
		worklist_stop(deal->list, event->stop, event->why);
		break;
	case DEAL_EV_TIMER:
		on_timer(&s);
		break;
	default:
		host_event(&s);
		break;
	}
	heed_stop(&s);
	fill_hosts(&s);
	recall_some(&s);
	watch_unfit(&s);
	heed_stop(&s);
	maybe_end(&s);
}

uint64_t deal_deadline_ns(const struct deal *deal)
{
	uint64_t next = worklist_deadline_ns(deal->list);
	for (size_t i = 0; i < deal->host_count; i++)
		next = MIN(next, lost_at(deal, &deal->hosts[i]));
	if (deal->idle_ns)
		next = MIN(next, ns_add(deal->idle_ns, deal->config.patience_ns));
	return deal->ended ? NS_NEVER : next;
}

uint32_t deal_absent(const struct deal *deal)
{
	uint32_t min = deal->config.min_hosts;
	uint32_t came = (uint32_t)deal->host_count + (deal->config.own ? 1 : 0);
	return came < min ? min - came : 0;
}

size_t deal_hosts_here(const struct deal *deal)
{
	size_t count = deal->config.own ? 1 : 0;
	for (size_t i = 0; i < deal->host_count; i++)
		count += deal->hosts[i].state == DEAL_HERE;
	return count;
}

size_t deal_hosts_ever(const struct deal *deal)
{
	return deal->host_count - deal->late + (deal->config.own ? 1 : 0);
}

size_t deal_running(const struct deal *deal)
{
	const struct batch *own = deal->config.own;
	return deal->given + (own ? (size_t)own->running : 0);
}

static uint64_t left_ns(const struct deal *deal, const struct batch_order *order, uint64_t now_ns)
{
	return worklist_left_ns(deal->list, order, order->started ? now_ns - order->since_ns : 0);
}

/* What waits at a host for its turn is counted as if it ran. */
static size_t given_left(const struct deal *deal, uint64_t now_ns,
			 struct schedule_running *ret_running)
{
	size_t count = 0;
	for (size_t i = 0; i < deal->host_count; i++)
		for (size_t n = 0; n < deal->hosts[i].given_count; n++) {
			const struct batch_order *order = order_at(deal, deal->hosts[i].given[n]);
			ret_running[count++] =
				(struct schedule_running){ .placement.width = order->item.width,
							   .left_ns =
								   left_ns(deal, order, now_ns) };
		}
	return count;
}

/* All hosts together as one pool. */
uint64_t deal_eta(const struct deal *deal, uint64_t now_ns)
{
	AUTO(corepool_done) struct corepool pool = COREPOOL_INIT;
	const struct batch *own = deal->config.own;
	size_t slots = own ? (size_t)own->opts.jobs : 0;
	AUTO_FREE struct schedule_running *running =
		NEW_ARRAY(struct schedule_running, deal->given + slots + 1);
	size_t cores = own ? (size_t)own->pool->count : 0;
	for (size_t i = 0; i < deal->host_count; i++)
		if (deal->hosts[i].state != DEAL_LOST && !deal->hosts[i].spare)
			cores += (size_t)deal->hosts[i].facts.cores;
	corepool_init_anonymous(&pool, (int)MAX(cores, (size_t)1));
	size_t count = own ? batch_left(own, now_ns, running) : 0;
	count += given_left(deal, now_ns, running + count);
	for (size_t i = 0; i < count; i++) {
		int width = running[i].placement.width;
		running[i].placement = (struct placement){ .width = 0 };
		corepool_take(&pool, width, &running[i].placement);
	}
	return worklist_eta(deal->list, &pool, running, count, (int)MAX(deal->jobs, (size_t)1));
}
