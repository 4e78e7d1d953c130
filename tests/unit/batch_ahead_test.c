/* Orders that lie ahead: slots start them by themselves, and nothing else changes. */
#include "unit.h"

#include "batch_rig.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "batch/ahead/ahead.h"
#include "sys/spawn.h"

static struct batch_opts options(void)
{
	struct batch_opts opts = batch_options();
	opts.ahead = 2;
	return opts;
}

/* Everything can be laid, unless a test says otherwise. */
static const struct batch_order *heavy;

static void step(struct batch_event event)
{
	size_t done = wanted.count;
	batch_tell(&event, S);
	for (; done < wanted.count; done++)
		if (wanted.items[done].type == BATCH_LAY) {
			struct batch_order *order = wanted.items[done].order;
			event = (struct batch_event){ .type = BATCH_LAID,
						      .slot = -1,
						      .order = order,
						      .refused = order == heavy };
			batch_tell(&event, S);
		}
}

static void begin(const struct batch_opts *opts, size_t count)
{
	batch_make(opts, 2, count);
	step((struct batch_event){ .type = BATCH_START, .slot = -1 });
}

static void finish(void)
{
	batch_end();
	memset(orders, 0, sizeof(orders));
	heavy = NULL;
}

/* The order of a slot ends; `next`: the slot has started that one. */
static void ends(int slot, int code, struct batch_order *next)
{
	step((struct batch_event){ .type = BATCH_EXITED,
				   .slot = slot,
				   .status = { .kind = EXIT_CODE, .value = code },
				   .start_ns = 1,
				   .end_ns = 2,
				   .empty = true,
				   .next = next });
}

static void taken_back(struct batch_order *order)
{
	step((struct batch_event){ .type = BATCH_TAKEN_BACK, .slot = -1, .order = order });
}

static const char *told(void)
{
	return batch_told(true);
}

TEST(when_all_slots_are_busy_the_next_orders_lie_ahead)
{
	struct batch_opts opts = options();
	begin(&opts, 6);
	ck_assert_str_eq(told(), "spawn0=0 spawn1=1 lay=2 lay=3");
	finish();
}

TEST(an_order_that_a_slot_has_started_runs_there_and_another_is_laid)
{
	struct batch_opts opts = options();
	begin(&opts, 6);
	told();
	ends(1, 0, &orders[2]);
	ck_assert_str_eq(told(), "finish1=1:ok runs1=2 lay=4");
	ends(1, 0, &orders[3]);
	ck_assert_str_eq(told(), "finish1=2:ok runs1=3 lay=5");
	ends(1, 3, NULL);
	ck_assert_str_eq(told(), "finish1=3:exit take-one");
	taken_back(&orders[4]);
	ck_assert_str_eq(told(), "spawn1=4");
	ends(0, 0, &orders[5]);
	ck_assert_str_eq(told(), "finish0=0:ok runs0=5");
	ends(1, 0, NULL);
	ends(0, 0, NULL);
	ck_assert_str_eq(told(), "finish1=4:ok finish0=5:ok end");
	ck_assert_uint_eq(list.ok, 5);
	ck_assert_uint_eq(list.failed, 1);
	finish();
}

TEST(a_free_slot_gets_what_lies_ahead_before_what_is_behind_it)
{
	struct batch_opts opts = options();
	begin(&opts, 6);
	told();
	ends(0, 0, NULL);
	ck_assert_str_eq(told(), "finish0=0:ok take-one");
	/* The other slot ends before the answer. */
	ends(1, 0, &orders[2]);
	ck_assert_str_eq(told(), "finish1=1:ok runs1=2");
	taken_back(&orders[3]);
	ck_assert_str_eq(told(), "spawn0=3 lay=4 lay=5");
	finish();
}

TEST(when_slots_have_all_that_lay_ahead_a_free_one_gets_the_next_in_line)
{
	struct batch_opts opts = options();
	opts.ahead = 1;
	begin(&opts, 5);
	told();
	ends(0, 0, NULL);
	ck_assert_str_eq(told(), "finish0=0:ok take-one");
	taken_back(NULL);
	ck_assert_str_eq(told(), "spawn0=3");
	ends(1, 0, &orders[2]);
	ck_assert_str_eq(told(), "finish1=1:ok runs1=2 lay=4");
	finish();
}

TEST(a_batch_does_not_end_while_something_lies_ahead)
{
	struct batch_opts opts = options();
	begin(&opts, 3);
	told();
	ends(0, 1, NULL);
	ck_assert_str_eq(told(), "finish0=0:exit take-one");
	ends(1, 1, NULL);
	ck_assert_str_eq(told(), "finish1=1:exit");
	taken_back(&orders[2]);
	ck_assert_str_eq(told(), "spawn0=2");
	ends(0, 0, NULL);
	ck_assert_str_eq(told(), "finish0=2:ok end");
	finish();
}

TEST(an_order_that_cannot_be_laid_starts_in_its_turn)
{
	struct batch_opts opts = options();
	heavy = &orders[3];
	begin(&opts, 6);
	ck_assert_str_eq(told(), "spawn0=0 spawn1=1 lay=2 lay=3");
	ends(0, 0, &orders[2]);
	ck_assert_str_eq(told(), "finish0=0:ok runs0=2");
	ends(1, 0, NULL);
	ck_assert_str_eq(told(), "finish1=1:ok spawn1=3 lay=4 lay=5");
	finish();
}

TEST(nothing_is_laid_behind_an_order_that_depends_on_its_slot)
{
	struct batch_opts opts = options();
	orders[3].alone = true;
	begin(&opts, 6);
	ck_assert_str_eq(told(), "spawn0=0 spawn1=1 lay=2");
	ends(0, 0, &orders[2]);
	ck_assert_str_eq(told(), "finish0=0:ok runs0=2");
	ends(1, 0, NULL);
	ck_assert_str_eq(told(), "finish1=1:ok spawn1=3 lay=4 lay=5");
	finish();
}

TEST(a_stop_takes_back_what_lies_ahead_before_it_signals)
{
	struct batch_opts opts = options();
	begin(&opts, 6);
	told();
	step((struct batch_event){ .type = BATCH_INTERRUPT, .slot = -1 });
	ck_assert_str_eq(told(), "take-all signal0 signal1");
	taken_back(&orders[3]);
	/* This slot was faster; its new order had the signal. */
	ends(1, 0, &orders[2]);
	ck_assert_str_eq(told(), "finish1=1:killed runs1=2");
	ends(0, 0, NULL);
	step((struct batch_event){ .type = BATCH_EXITED,
				   .slot = 1,
				   .status = { .kind = EXIT_SIGNAL, .value = SIGINT },
				   .empty = true });
	ck_assert_str_eq(told(), "finish0=0:killed finish1=2:killed end");
	ck_assert_uint_eq(list.ok + list.failed, 0);
	finish();
}

TEST(an_order_that_a_slot_starts_in_the_middle_of_a_stop_is_killed_when_it_does_not_end)
{
	struct batch_opts opts = options();
	begin(&opts, 6);
	step((struct batch_event){ .type = BATCH_INTERRUPT, .slot = -1 });
	ends(1, 0, &orders[2]);
	ends(0, 0, NULL);
	told();
	ck_assert_uint_eq(batch_next_deadline(&batch), 11 * S);
	batch_tell(&(struct batch_event){ .type = BATCH_TICK, .slot = -1 }, 11 * S);
	ck_assert_str_eq(told(), "kill1");
	finish();
}

TEST(a_drained_batch_takes_back_what_lies_ahead_and_ends_after_what_runs)
{
	struct batch_opts opts = options();
	begin(&opts, 6);
	told();
	step((struct batch_event){ .type = BATCH_DRAIN, .slot = -1 });
	ck_assert_str_eq(told(), "take-all");
	taken_back(&orders[2]);
	taken_back(&orders[3]);
	ends(0, 0, NULL);
	ends(1, 0, NULL);
	ck_assert_str_eq(told(), "finish0=0:ok finish1=1:ok end");
	finish();
}

TEST(a_lost_warden_loses_the_order_that_it_had_taken_too)
{
	struct batch_opts opts = options();
	begin(&opts, 5);
	told();
	step((struct batch_event){ .type = BATCH_LOST, .slot = 1, .next = &orders[2] });
	ck_assert_str_eq(told(), "finish1=1:lost runs1=2 lay=4");
	step((struct batch_event){ .type = BATCH_LOST, .slot = 1 });
	ck_assert_str_eq(told(), "finish1=2:lost take-one");
	ck_assert_uint_eq(list.failed, 2);
	finish();
}

TEST(an_order_that_a_slot_could_not_start_has_failed)
{
	struct batch_opts opts = options();
	begin(&opts, 4);
	told();
	ends(0, 0, &orders[2]);
	step((struct batch_event){ .type = BATCH_SPAWN_FAILED, .slot = 0 });
	ck_assert_str_eq(told(), "finish0=0:ok runs0=2 finish0=2:spawn take-one");
	finish();
}

/* Begins with four orders and these options: nothing may be laid. */
static void lays_nothing(const struct batch_opts *opts)
{
	begin(opts, 4);
	for (size_t i = 0; i < wanted.count; i++)
		ck_assert_int_ne(wanted.items[i].type, BATCH_LAY);
	told();
	finish();
}

TEST(nothing_lies_ahead_where_the_end_of_an_order_may_decide_about_the_next)
{
	struct batch_opts opts = options();
	list_opts.halt = (struct halt_rule){ .when = HALT_SOON, .what = HALT_FAIL, .count = 1 };
	lays_nothing(&opts);
	opts = options();
	opts.start_delay_ns = 1;
	lays_nothing(&opts);
	opts = options();
	opts.memory_free = 1;
	lays_nothing(&opts);
	opts = options();
	opts.load = 1;
	lays_nothing(&opts);
	opts = options();
	opts.memory_period_ns = 1;
	lays_nothing(&opts);
	opts = options();
	list_opts.gates = 1;
	lays_nothing(&opts);
	opts = options();
	list_opts.open = true;
	lays_nothing(&opts);
	for (int i = 0; i < BATCH_HOOK_COUNT; i++) {
		opts = options();
		opts.hooks[i] = true;
		lays_nothing(&opts);
	}
	opts = options();
	opts.ahead = 0;
	lays_nothing(&opts);
}

TEST(nothing_lies_ahead_where_one_order_is_not_plain)
{
	struct batch_opts opts = options();
	struct repeat repeat = { .block = 0 };
	const struct batch_order not_plain[] = {
		{ .item.width = 2 },   { .timeout_ns = 1 },   { .cpu_timeout_ns = 1 },
		{ .memory_limit = 1 }, { .retries = 1 },      { .runs = 2 },
		{ .warmup = 1 },       { .repeat = &repeat }, { .timeout_percent = 100 },
	};
	for (size_t i = 0; i < ARRAY_LEN(not_plain); i++) {
		orders[3] = not_plain[i];
		lays_nothing(&opts);
	}
}

/* ---- with wardens whose reports take a while ---- */

#define WORLD_SLOTS 3
#define WORLD_ORDERS ARRAY_LEN(orders)

struct report {
	int code;
	uint64_t next, at;
};

/* The warden of a slot: what really runs, and what the batch has not heard of yet. */
struct world_slot {
	struct batch_order *order; /* NULL: nothing */
	uint64_t end;
	struct report reports[WORLD_ORDERS];
	size_t told, count;
};

static struct world {
	struct ahead ahead;
	struct world_slot slots[WORLD_SLOTS];
	uint64_t now;
	unsigned seed;
	uint32_t starts;		 /* so many were started */
	int codes[WORLD_ORDERS];	 /* with which they ended */
	unsigned finished[WORLD_ORDERS]; /* how often */
	bool stopped, ended;
	struct batch_event posted[2 * WORLD_ORDERS];
	size_t posted_count;
} world;

static uint64_t some(uint64_t most)
{
	return (uint64_t)rand_r(&world.seed) % most;
}

/* In the order of the list, whoever decides it. */
static void starts(struct world_slot *slot, struct batch_order *order)
{
	ck_assert(!slot->order && !world.stopped);
	ck_assert_uint_eq(order->item.index, world.starts);
	world.starts++;
	slot->order = order;
	slot->end = world.now + some(20);
}

static void post(struct batch_event event)
{
	ck_assert_uint_lt(world.posted_count, ARRAY_LEN(world.posted));
	world.posted[world.posted_count++] = event;
}

static void post_taken_back(struct batch_order *order)
{
	post((struct batch_event){ .type = BATCH_TAKEN_BACK, .slot = -1, .order = order });
}

static void lay(struct batch_order *order)
{
	char *argv[] = { (char *)"x", NULL };
	const struct spawn_spec spec = { .path = "/x", .argv = argv };
	bool refused = some(8) == 0 || !ahead_lay(&world.ahead, order, &spec, false);
	post((struct batch_event){
		.type = BATCH_LAID, .slot = -1, .order = order, .refused = refused });
}

static void finishes(const struct batch_action *action)
{
	uint32_t index = action->order->item.index;
	world.finished[index]++;
	if (!world.stopped)
		ck_assert_int_eq(action->outcome.status.value, world.codes[index]);
}

static void carry_out(const struct batch_action *action)
{
	struct batch_order *back;
	switch (action->type) {
	case BATCH_SPAWN:
		if (!action->runs)
			starts(&world.slots[action->slot], action->order);
		break;
	case BATCH_LAY:
		lay(action->order);
		break;
	case BATCH_TAKE_ONE:
		post_taken_back(ahead_take_back(&world.ahead));
		break;
	case BATCH_TAKE_ALL:
		while ((back = ahead_take_back(&world.ahead)))
			post_taken_back(back);
		world.stopped = true;
		break;
	case BATCH_FINISH:
		finishes(action);
		break;
	case BATCH_END:
		world.ended = true;
		break;
	default: /* signals: all end soon */
		break;
	}
}

static void drive(struct batch_event event)
{
	world.posted[0] = event;
	world.posted_count = 1;
	for (size_t i = 0; i < world.posted_count; i++) {
		wanted.count = 0;
		batch_tell(&world.posted[i], world.now);
		for (size_t a = 0; a < wanted.count; a++)
			carry_out(&wanted.items[a]);
	}
}

/* What the warden does, without the batch. */
static void warden_sees_the_end(int number)
{
	struct world_slot *slot = &world.slots[number];
	AUTO(buf_done) struct buf request = BUF_INIT;
	uint64_t heard = slot->count ? slot->reports[slot->count - 1].at : 0;
	struct report report = { .code = some(5) == 0 };
	world.codes[slot->order->item.index] = report.code;
	slot->order = NULL;
	bool wrote = some(5) == 0;
	if (!wrote && report.code == 0)
		report.next = start_ring_take(world.ahead.ring, number, &request);
	if (report.next)
		starts(slot, world.ahead.laid[report.next % START_RING_PLACES].order);
	report.at = MAX(heard, world.now) + some(30);
	slot->reports[slot->count++] = report;
}

static void batch_hears(int number)
{
	struct world_slot *slot = &world.slots[number];
	struct report report = slot->reports[slot->told++];
	drive((struct batch_event){
		.type = BATCH_EXITED,
		.slot = number,
		.status = { .kind = EXIT_CODE, .value = report.code },
		.start_ns = 1,
		.end_ns = 2,
		.empty = true,
		.next = report.next ? ahead_taken(&world.ahead, report.next).order : NULL });
}

static void play(unsigned seed, uint64_t stop_at)
{
	struct batch_opts opts = options();
	opts.jobs = WORLD_SLOTS;
	opts.ahead = 1 + (int)(seed % 5);
	world = (struct world){ .seed = seed, .ahead.ring = start_ring_new() };
	for (size_t i = 0; i < WORLD_ORDERS; i++)
		orders[i] = (struct batch_order){ .alone = some(10) == 0 };
	batch_make(&opts, WORLD_SLOTS, WORLD_ORDERS);
	drive((struct batch_event){ .type = BATCH_START, .slot = -1 });
	for (bool told = false; !world.ended;) {
		int first = -1;
		bool hears = false;
		uint64_t at = UINT64_MAX;
		for (int i = 0; i < WORLD_SLOTS; i++) {
			struct world_slot *slot = &world.slots[i];
			if (slot->told < slot->count && slot->reports[slot->told].at < at) {
				at = slot->reports[slot->told].at;
				first = i;
				hears = true;
			}
			if (slot->order && slot->end < at) {
				at = slot->end;
				first = i;
				hears = false;
			}
		}
		ck_assert_int_ge(first, 0);
		world.now = MAX(world.now, at);
		if (!told && world.now >= stop_at) {
			told = true;
			drive((struct batch_event){ .type = BATCH_INTERRUPT, .slot = -1 });
			world.stopped = true;
		} else if (hears) {
			batch_hears(first);
		} else {
			warden_sees_the_end(first);
		}
	}
	for (int i = 0; i < WORLD_SLOTS; i++)
		ck_assert(!world.slots[i].order && world.slots[i].told == world.slots[i].count);
	for (uint32_t i = 0; i < WORLD_ORDERS; i++)
		ck_assert_uint_eq(world.finished[i], i < world.starts);
	start_ring_free(world.ahead.ring);
	finish();
}

TEST(each_order_starts_once_in_its_turn_however_late_the_batch_hears_of_it)
{
	for (unsigned seed = 1; seed <= 2000; seed++) {
		play(seed, UINT64_MAX);
		ck_assert_uint_eq(world.starts, WORLD_ORDERS);
	}
}

TEST(nothing_starts_after_a_stop_and_all_that_has_started_is_told)
{
	for (unsigned seed = 1; seed <= 2000; seed++)
		play(seed, seed % 300);
}
