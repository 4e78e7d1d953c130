#include "core/node/holdback.h"

static bool is_of_group(const struct job_event *event)
{
	/* LOST comes from the next warden, before anything that waits for it. */
	return event->for_group && event->group.type != GROUP_EV_LOST;
}

static bool is_end_of_worker(const struct job_event *event)
{
	return event->for_group &&
	       (event->group.type == GROUP_EV_EXITED || event->group.type == GROUP_EV_EMPTY);
}

static bool is_end_of_group(const struct job_event *event)
{
	return !event->for_group && event->node.type == NODE_EV_HOST &&
	       (event->node.agent.type == AGENT_GROUP_DONE ||
		event->node.agent.type == AGENT_GROUP_GONE);
}

static bool (*const waits[])(const struct job_event *event) = {
	[HOLD_FOR_WARDEN] = is_of_group,
	[HOLD_FOR_EXPLANATION] = is_end_of_worker,
	[HOLD_FOR_LOG] = is_end_of_group,
	[HOLD_FOR_WORDS] = is_end_of_group,
};
static_assert(ARRAY_LEN(waits) == HOLD_COUNT, "every hold keeps some events");

void holdback_done(struct holdback *holdback)
{
	for (size_t i = 0; i < HOLD_COUNT; i++)
		job_queue_done(&holdback->kept[i]);
}

void holdback_begin(struct holdback *holdback, enum hold why)
{
	holdback->begun[why] = true;
}

void holdback_push(struct holdback *holdback, const struct job_event *event,
		   struct job_queue *queue)
{
	struct job_queue *to = queue;
	for (size_t i = 0; i < HOLD_COUNT && to == queue; i++)
		if (holdback->begun[i] && waits[i](event))
			to = &holdback->kept[i];
	job_push(to, event);
}

void holdback_release(struct holdback *holdback, enum hold why, struct job_queue *queue)
{
	struct job_queue *kept = &holdback->kept[why];
	holdback->begun[why] = false;
	for (size_t i = 0; i < kept->count; i++)
		holdback_push(holdback, &kept->items[i], queue);
	kept->count = 0;
}
