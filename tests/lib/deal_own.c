/* The slots of the host that coordinates a simulated batch: they take from the list itself. */
#include <signal.h>
#include <string.h>

#include "base/clock.h"
#include "deal_world_private.h"

int deal_own_number(const struct world *w)
{
	for (int i = 0; i < w->host_count; i++)
		if (w->hosts[i].local)
			return i;
	return -1;
}

static struct host *own_host(struct world *w)
{
	return &w->hosts[deal_own_number(w)];
}

void deal_own_begin(struct world *w)
{
	if (w->apart)
		return;
	const struct host_facts *facts = &own_host(w)->facts;
	struct batch_opts opts = { .jobs = facts->jobs,
				   .retry_on = retry_rule_any(),
				   .retry_delay_ns = 10 * MS,
				   .facts = *facts,
				   .stop_ladder = { .steps = { { .sig = SIGKILL } }, .count = 1 } };
	corepool_init_anonymous(&w->pool, facts->cores);
	batch_init(&w->own, &opts, &w->pool, &w->list);
}

void deal_own_done(struct world *w)
{
	if (w->apart)
		return;
	batch_done(&w->own);
	corepool_done(&w->pool);
}

static struct task *task_in(struct host *host, int slot)
{
	for (size_t i = 0; i < host->task_count; i++)
		if (host->tasks[i].slot == slot)
			return &host->tasks[i];
	return NULL;
}

static void end_later(struct world *w, struct task *task, uint64_t in_ns)
{
	task->stamp = ++w->stamps;
	deal_later(w, w->now_ns + in_ns, AT_ORDER_END, deal_own_number(w))->stamp = task->stamp;
}

static void spawn(struct world *w, const struct batch_action *action)
{
	struct host *host = own_host(w);
	uint32_t order = action->order->item.index;
	deal_host_check_alone(w, deal_own_number(w), order);
	if (!(action->order->item.kind & WORKLIST_HERE))
		deal_head_check_start(w, host, order);
	if (!deal_host_has_room(w, host, order))
		deal_wrong(w, "order %u has no room on %s", order, host->name);
	struct task *task = &host->tasks[host->task_count++];
	*task = (struct task){ .order = order,
			       .runs = true,
			       .slot = action->slot,
			       .failures = (uint32_t)(action->outcome.trial.attempt - 1 -
						      action->order->losses) };
	end_later(w, task, w->times[order]);
}

static void finish(struct world *w, const struct batch_action *action)
{
	uint32_t order = action->order->item.index;
	w->written[order]++;
	if (!action->outcome.final)
		return;
	*(action->outcome.reason == REASON_OK ? &w->ok : &w->failed) += 1;
	if (w->finals[order]++)
		deal_wrong(w, "order %u has two final results, one of them of %s", order,
			   own_host(w)->name);
}

static void act(struct world *w, const struct batch_action *action)
{
	struct task *task;
	switch (action->type) {
	case BATCH_SPAWN:
		spawn(w, action);
		break;
	case BATCH_SIGNAL:
	case BATCH_KILL:
		task = task_in(own_host(w), action->slot);
		task->killed = true;
		end_later(w, task, 0);
		break;
	case BATCH_FINISH:
		finish(w, action);
		break;
	default:
		break;
	}
}

void deal_own_step(struct world *w, const struct batch_event *event)
{
	struct batch_actions actions = { .items = NULL };
	if (w->apart)
		return;
	batch_step(&w->own, event, w->now_ns, &actions);
	for (size_t i = 0; i < actions.count; i++)
		act(w, &actions.items[i]);
	batch_actions_done(&actions);
	if (w->list.changes != w->seen) {
		w->seen = w->list.changes;
		deal_head_step(w, &(struct deal_event){ DEAL_EV_LOOK });
	}
	deal_head_arm(w);
}

void deal_own_end(struct world *w, uint64_t stamp)
{
	struct host *host = own_host(w);
	for (size_t i = 0; i < host->task_count; i++) {
		struct task task = host->tasks[i];
		if (task.stamp != stamp)
			continue;
		bool fails = task.failures < w->failures[task.order] || w->fails[task.order];
		host->tasks[i] = host->tasks[--host->task_count];
		struct batch_event event = { .type = BATCH_EXITED,
					     .slot = task.slot,
					     .empty = true,
					     .status = { task.killed ? EXIT_SIGNAL : EXIT_CODE,
							 task.killed ? SIGKILL : fails },
					     .end_ns = w->now_ns };
		deal_own_step(w, &event);
		return;
	}
}
