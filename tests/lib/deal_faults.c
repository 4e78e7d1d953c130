/* What goes wrong in a simulated batch. */
#include <stdlib.h>

#include "deal_world_private.h"

/* The coordinator's own host fails with it only; and there is always one that has all. */
static bool is_safe(const struct world *w, const struct host *host)
{
	return host->local || (w->apart && host == &w->hosts[0]);
}

static void kill_host(struct world *w, int number)
{
	struct host *host = &w->hosts[number];
	if (!host->alive || is_safe(w, host))
		return;
	deal_host_drop_link(w, number, !host->cut, true);
	host->alive = false;
	for (size_t i = 0; i < host->waiting_count; i++)
		free(host->waiting[i]);
	host->waiting_count = 0;
	if (w->rules->takeover || rng_chance(&w->rng, 70))
		deal_later(w, w->now_ns + rng_range(&w->rng, 1, 2000) * MS, AT_REBORN, number);
}

/* The process of the coordinator has a host in it, too. */
static void kill_coordinator(struct world *w)
{
	if (!w->alive || w->over)
		return;
	w->outcome->takeovers++;
	w->alive = false;
	deal_own_done(w);
	deal_done(&w->deal);
	worklist_done(&w->list);
	for (size_t i = 0; i < w->waiting_count; i++)
		free(w->waiting[i]);
	w->waiting_count = 0;
	for (int i = 0; i < w->host_count; i++) {
		struct host *host = &w->hosts[i];
		if (host->local) {
			host->alive = host->local = false;
			host->link = 0;
			deal_later(w, w->now_ns + rng_range(&w->rng, 500, 3000) * MS, AT_REBORN, i);
		} else if (host->link && !host->cut) {
			deal_to_host(w, i, &(struct message){ M_DOWN, .link = host->link });
		}
	}
	deal_later(w, w->now_ns + rng_range(&w->rng, 10, 1500) * MS, AT_SUCCEED, 0);
}

static void freeze(struct world *w, int number)
{
	struct host *host = &w->hosts[number];
	if (!host->alive || host->frozen || is_safe(w, host))
		return;
	host->frozen = true;
	host->thaw_ns = w->now_ns + rng_range(&w->rng, 1, 1500) * MS;
	deal_later(w, host->thaw_ns, AT_THAW, number)->stamp = host->life;
}

static void cut(struct world *w, int number)
{
	struct host *host = &w->hosts[number];
	if (host->cut || is_safe(w, host))
		return;
	host->cut = true;
	deal_later(w, w->now_ns + rng_range(&w->rng, 1, 1500) * MS, AT_HEAL, number);
}

/* The connection breaks, and each end notices when it likes, or only from the other's silence. */
static void break_link(struct world *w, int number)
{
	struct host *host = &w->hosts[number];
	uint64_t link = host->link;
	if (!link || is_safe(w, host) || !host->alive)
		return;
	if (rng_chance(&w->rng, 70))
		deal_to_coordinator(w, number, &(struct message){ M_DOWN, .link = link });
	if (rng_chance(&w->rng, 70))
		deal_to_host(w, number, &(struct message){ M_DOWN, .link = link });
}

void deal_fault(struct world *w)
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
			deal_later(w, w->now_ns + rng_range(&w->rng, 1, 900) * MS, AT_THAW, -1)
				->stamp = w->term;
		}
		break;
	default:
		kill_coordinator(w);
		break;
	}
	uint64_t at = w->now_ns + rng_range(&w->rng, 1, 600) * MS;
	if (at < FAULTS_END_NS)
		deal_later(w, at, AT_FAULT, 0);
}
