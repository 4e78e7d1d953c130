#include "batch_rig.h"

#include <check.h>

struct corepool pool;
struct batch batch;
struct worklist list;
struct worklist_opts list_opts;
struct batch_order orders[64];
struct batch_actions wanted;

struct batch_opts batch_options(void)
{
	struct batch_opts opts = { .jobs = 2, .retry_on = retry_rule_any() };
	list_opts = (struct worklist_opts){ .deadline_ns = NS_NEVER, .order = SCHEDULE_LISTED };
	ck_assert_int_eq(ladder_parse("TERM,2000,KILL", &opts.timeout_ladder, NULL), 0);
	ck_assert_int_eq(ladder_parse("INT,10000,KILL", &opts.stop_ladder, NULL), 0);
	return opts;
}

void batch_make(const struct batch_opts *opts, int cores, size_t count)
{
	corepool_init_anonymous(&pool, cores);
	for (size_t i = 0; i < count; i++) {
		orders[i].item.index = (uint32_t)i;
		orders[i].item.width = MAX(orders[i].item.width, 1);
		orders[i].runs = MAX(orders[i].runs, 1);
	}
	worklist_init(&list, &list_opts, orders, count);
	batch_init(&batch, opts, &pool, &list);
}

void batch_end(void)
{
	batch_done(&batch);
	worklist_done(&list);
	corepool_done(&pool);
	batch_actions_done(&wanted);
}

void batch_tell(const struct batch_event *event, uint64_t now_ns)
{
	batch_step(&batch, event, now_ns, &wanted);
}

const char *batch_told(bool indexes)
{
	static const char *const names[] = {
		[BATCH_SPAWN] = "spawn",
		[BATCH_SIGNAL] = "signal",
		[BATCH_KILL] = "kill",
		[BATCH_FINISH] = "finish",
		[BATCH_END] = "end",
		[BATCH_LAY] = "lay",
		[BATCH_TAKE_ONE] = "take-one",
		[BATCH_TAKE_ALL] = "take-all",
		[BATCH_QUERY_HOST] = "host",
		[BATCH_QUERY_CPU] = "cpu",
		[BATCH_QUERY_MEMORY] = "memory",
		[BATCH_FETCH] = "fetch",
	};
	static struct buf text;
	buf_clear(&text);
	for (size_t i = 0; i < wanted.count; i++) {
		const struct batch_action *action = &wanted.items[i];
		buf_printf(&text, "%s%s", i ? " " : "",
			   action->runs ? "runs" : names[action->type]);
		if (action->slot >= 0)
			buf_printf(&text, "%d", action->slot);
		if (indexes && action->order)
			buf_printf(&text, "=%u", action->order->item.index);
		if (!indexes && action->type == BATCH_SIGNAL)
			buf_printf(&text, ":%d", action->sig);
		if (action->type == BATCH_FINISH)
			buf_printf(&text, ":%s", reason_name(action->outcome.reason));
	}
	wanted.count = 0;
	return buf_str(&text);
}
