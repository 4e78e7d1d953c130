#include "unit.h"

#include "base/clock.h"
#include "base/mem.h"
#include "core/deal/files.h"
#include "core/deal/hand.h"

#define ORDERS 8
#define ORDERS_MAX 32
#define LOST_NS (5 * NS_PER_S)

struct table {
	struct worklist list;
	struct deal deal;
	struct batch_order orders[ORDERS_MAX];
	struct order_kind kinds[2];
	struct deal_actions actions;
};

static struct deal_config usual(void)
{
	return (struct deal_config){ .lost_after_ns = LOST_NS,
				     .patience_ns = 30 * NS_PER_S,
				     .max_hosts = 2,
				     .retry_lost = true };
}

static struct worklist_opts plain(void)
{
	return (struct worklist_opts){ .order = SCHEDULE_LISTED,
				       .deadline_ns = NS_NEVER,
				       .gates = 2 };
}

/* Of the orders, what a test has filled in stays. */
static void list(struct table *t, size_t count, const struct deal_config *config,
		 const struct worklist_opts *opts)
{
	for (size_t i = 0; i < count; i++) {
		t->orders[i].item.index = (uint32_t)i;
		t->orders[i].item.width = t->kinds[t->orders[i].item.kind].width;
		t->orders[i].runs = 1;
	}
	struct worklist_opts with_kinds = *opts;
	with_kinds.kinds = t->kinds;
	worklist_init(&t->list, &with_kinds, t->orders, count);
	deal_init(&t->deal, config, &t->list);
}

static void begin(struct table *t, size_t count, const struct deal_config *config)
{
	const struct worklist_opts opts = plain();
	*t = (struct table){ .kinds = { { .width = 1 }, { .width = 2 } } };
	list(t, count, config, &opts);
}

/* The same orders once more, changed by the test. */
static void begin_again(struct table *t, size_t count, const struct deal_config *config)
{
	const struct worklist_opts opts = plain();
	deal_done(&t->deal);
	worklist_done(&t->list);
	for (size_t i = 0; i < count; i++)
		t->orders[i].item.node = HEAP_NODE_INIT;
	list(t, count, config, &opts);
}

static void table_done(struct table *t)
{
	deal_done(&t->deal);
	worklist_done(&t->list);
	deal_actions_done(&t->actions);
}

static void step(struct table *t, uint64_t now_ns, struct deal_event event)
{
	t->actions.count = 0;
	deal_step(&t->deal, &event, now_ns, &t->actions);
}

/* A host with two cores, on link `number`, with a name of its own. */
static void hello(struct table *t, uint64_t now_ns, uint64_t number, const uint32_t *held,
		  size_t count)
{
	char name[] = { 'n', 'o', 'd', 'e', (char)('0' + number % 10), '\0' };
	step(t, now_ns,
	     (struct deal_event){ DEAL_EV_HELLO, .link = number, .id = { 1, number % 10 },
				  .facts = { 2, 2, 2, 1000, .name = name }, .held = held,
				  .held_count = count });
}

static void result(struct table *t, uint64_t now_ns, uint32_t host, uint64_t link, uint32_t order,
		   uint32_t lease)
{
	step(t, now_ns,
	     (struct deal_event){ DEAL_EV_RESULT, .host = host, .link = link, .order = order,
				  .lease = lease, .final = true, .ok = true });
}

static const struct deal_action *find(const struct table *t, enum deal_action_type type)
{
	for (size_t i = 0; i < t->actions.count; i++)
		if (t->actions.items[i].type == type)
			return &t->actions.items[i];
	return NULL;
}

static size_t count_of(const struct table *t, enum deal_action_type type)
{
	size_t count = 0;
	for (size_t i = 0; i < t->actions.count; i++)
		count += t->actions.items[i].type == type;
	return count;
}

TEST(a_host_is_given_what_its_cores_take)
{
	AUTO(table_done) struct table t;
	const struct deal_config config = usual();
	begin(&t, 3, &config);
	t.orders[1].item.kind = 1;
	/* built again with a wide order in the middle */
	begin_again(&t, 3, &config);
	hello(&t, 1, 1, NULL, 0);
	ck_assert_ptr_nonnull(find(&t, DEAL_DO_WELCOME));
	ck_assert_uint_eq(count_of(&t, DEAL_DO_GIVE), 2); /* the wide one does not fit beside it */
	ck_assert_int_eq(t.orders[1].state, BATCH_QUEUED);
}

TEST(a_result_counts_before_it_is_confirmed_and_only_once)
{
	AUTO(table_done) struct table t;
	const struct deal_config config = usual();
	begin(&t, 1, &config);
	hello(&t, 1, 1, NULL, 0);
	uint32_t lease = find(&t, DEAL_DO_GIVE)->lease;
	result(&t, 2, 0, 1, 0, lease);
	ck_assert_int_eq(t.actions.items[0].type, DEAL_DO_COUNT);
	ck_assert_int_eq(t.actions.items[1].type, DEAL_DO_ACK);
	ck_assert_ptr_nonnull(find(&t, DEAL_DO_END));
	ck_assert_uint_eq(t.list.ok, 1);
}

TEST(a_lost_order_runs_elsewhere_and_its_late_result_is_noted)
{
	AUTO(table_done) struct table t;
	const struct deal_config config = usual();
	begin(&t, 1, &config);
	hello(&t, 1, 1, NULL, 0);
	uint32_t first = find(&t, DEAL_DO_GIVE)->lease;
	step(&t, 2, (struct deal_event){ DEAL_EV_STARTED, .link = 1, .order = 0, .lease = first });
	hello(&t, LOST_NS, 2, NULL, 0);
	ck_assert_ptr_null(find(&t, DEAL_DO_GIVE));
	ck_assert_uint_eq(deal_deadline_ns(&t.deal), 2 + LOST_NS);
	step(&t, 2 + LOST_NS, (struct deal_event){ DEAL_EV_TIMER });
	ck_assert_ptr_nonnull(find(&t, DEAL_DO_HOST_LOST));
	ck_assert(!find(&t, DEAL_DO_LOSE)->final);
	ck_assert_uint_eq(find(&t, DEAL_DO_GIVE)->link, 2);
	uint32_t second = find(&t, DEAL_DO_GIVE)->lease;
	/* It is told that the order is another's. */
	hello(&t, 3 + LOST_NS, 11, &first, 1);
	ck_assert_uint_eq(find(&t, DEAL_DO_DROP)->lease, first);
	result(&t, 4 + LOST_NS, 0, 11, 0, first);
	ck_assert_ptr_nonnull(find(&t, DEAL_DO_NOTE));
	ck_assert_ptr_null(find(&t, DEAL_DO_COUNT));
	result(&t, 5 + LOST_NS, 1, 2, 0, second);
	ck_assert_ptr_nonnull(find(&t, DEAL_DO_COUNT));
}

TEST(an_order_that_had_not_started_is_not_charged_with_the_loss)
{
	AUTO(table_done) struct table t;
	const struct deal_config config = usual();
	begin(&t, 1, &config);
	hello(&t, 1, 1, NULL, 0);
	step(&t, 2, (struct deal_event){ DEAL_EV_LINK_DOWN, .link = 1, .dead = true });
	ck_assert_ptr_nonnull(find(&t, DEAL_DO_HOST_LOST));
	ck_assert_ptr_null(find(&t, DEAL_DO_LOSE));
	ck_assert_uint_eq(t.list.schedule.queued, 1);
}

TEST(an_order_that_takes_its_hosts_with_it_fails_in_the_end)
{
	AUTO(table_done) struct table t;
	const struct deal_config config = usual();
	begin(&t, 1, &config);
	for (uint64_t i = 1; i <= DEAL_LOSSES_MAX; i++) {
		hello(&t, i, i, NULL, 0);
		const struct deal_action *given = find(&t, DEAL_DO_GIVE);
		uint32_t host = given->host, lease = given->lease;
		step(&t, i, (struct deal_event){ DEAL_EV_STARTED, host, i, 0, lease });
		step(&t, i, (struct deal_event){ DEAL_EV_LINK_DOWN, host, i, .dead = true });
		ck_assert_int_eq(find(&t, DEAL_DO_LOSE)->final, i == DEAL_LOSSES_MAX);
	}
	ck_assert_ptr_nonnull(find(&t, DEAL_DO_END));
	ck_assert_uint_eq(t.list.failed, 1);
}

TEST(without_lost_among_the_reasons_to_retry_the_first_loss_is_final)
{
	AUTO(table_done) struct table t;
	struct deal_config config = usual();
	config.retry_lost = false;
	begin(&t, 1, &config);
	hello(&t, 1, 1, NULL, 0);
	uint32_t lease = find(&t, DEAL_DO_GIVE)->lease;
	step(&t, 2, (struct deal_event){ DEAL_EV_STARTED, .link = 1, .lease = lease });
	step(&t, 3, (struct deal_event){ DEAL_EV_LINK_DOWN, .link = 1, .dead = true });
	ck_assert(find(&t, DEAL_DO_LOSE)->final);
}

TEST(what_never_arrived_is_given_again)
{
	AUTO(table_done) struct table t;
	const struct deal_config config = usual();
	begin(&t, 2, &config);
	hello(&t, 1, 1, NULL, 0);
	uint32_t kept = t.orders[0].lease, missed = t.orders[1].lease;
	step(&t, 2, (struct deal_event){ DEAL_EV_LINK_DOWN, .link = 1 });
	ck_assert_uint_eq(t.deal.given, 2);
	hello(&t, 3, 11, &kept, 1);
	ck_assert_uint_eq(t.orders[0].lease, kept);
	ck_assert_uint_ne(t.orders[1].lease, missed);
	ck_assert_uint_eq(count_of(&t, DEAL_DO_GIVE), 1);
}

TEST(hosts_beyond_the_maximum_wait_for_a_place)
{
	AUTO(table_done) struct table t;
	const struct deal_config config = usual();
	begin(&t, ORDERS, &config);
	hello(&t, 1, 1, NULL, 0);
	hello(&t, 1, 2, NULL, 0);
	hello(&t, 1, 3, NULL, 0);
	ck_assert_ptr_null(find(&t, DEAL_DO_GIVE));
	step(&t, 2, (struct deal_event){ DEAL_EV_LINK_DOWN, .link = 1, .dead = true });
	ck_assert_uint_eq(find(&t, DEAL_DO_GIVE)->link, 3);
}

TEST(orders_go_to_hosts_that_have_what_they_need)
{
	AUTO(table_done) struct table t;
	struct deal_config config = usual();
	static char *const features[] = { "gpu", NULL };
	begin(&t, 1, &config);
	t.orders[0].item.kind = 1;
	t.kinds[1] = (struct order_kind){ .width = 1, .needs.features = features };
	begin_again(&t, 1, &config);
	hello(&t, 1, 1, NULL, 0);
	ck_assert_ptr_null(find(&t, DEAL_DO_GIVE)); /* it has no such feature */
	ck_assert_uint_eq(find(&t, DEAL_DO_AWAIT)->order, 0);
	uint64_t late = deal_deadline_ns(&t.deal);
	step(&t, late, (struct deal_event){ DEAL_EV_BEAT, .link = 1 });
	late = deal_deadline_ns(&t.deal);
	ck_assert_ptr_null(find(&t, DEAL_DO_UNFIT));
	step(&t, 1 + 30 * NS_PER_S, (struct deal_event){ DEAL_EV_BEAT, .link = 1 });
	ck_assert_ptr_nonnull(find(&t, DEAL_DO_UNFIT));
	ck_assert_ptr_nonnull(find(&t, DEAL_DO_END));
}

TEST(orders_on_a_host_share_its_memory)
{
	AUTO(table_done) struct table t;
	const struct deal_config config = usual();
	begin(&t, 2, &config);
	t.kinds[0].memory = 600; /* of 1000 */
	hello(&t, 1, 1, NULL, 0);
	ck_assert_uint_eq(t.deal.given, 1);
	result(&t, 2, 0, 1, 0, t.orders[0].lease);
	ck_assert_uint_eq(find(&t, DEAL_DO_GIVE)->order, 1);
}

TEST(a_wide_order_is_overtaken_by_so_many_and_no_more)
{
	AUTO(table_done) struct table t;
	const struct deal_config config = usual();
	begin(&t, 0, &config);
	for (uint32_t i = 0; i < ORDERS_MAX; i++)
		t.orders[i].item.kind = i == 1;
	begin_again(&t, ORDERS_MAX, &config);
	hello(&t, 1, 1, NULL, 0);
	uint32_t ended = 0, given = 0;
	uint64_t now_ns = NS_PER_S;
	for (; t.deal.given == 2; now_ns += NS_PER_S, given++) {
		ck_assert_uint_lt(given, ORDERS_MAX);
		result(&t, now_ns, 0, 1, ended, t.orders[ended].lease);
		ended += ended == 0 ? 2 : 1;
	}
	ck_assert_uint_eq(given, (uint32_t)SCHEDULE_OVERTAKE * 2);
	result(&t, now_ns, 0, 1, ended, t.orders[ended].lease);
	ck_assert_uint_eq(find(&t, DEAL_DO_GIVE)->order, 1);
}

/* With what only the coordinator knows of hosts: their names, features and memory. */
static void hello_as(struct table *t, uint64_t number, struct host_facts facts)
{
	step(t, 1,
	     (struct deal_event){ DEAL_EV_HELLO, .link = number, .id = { 1, number },
				  .facts = facts });
}

TEST(a_host_with_the_feature_name_or_memory_is_given_the_order)
{
	static char *const hosts[] = { "node7", NULL }, *const features[] = { "gpu", "ssd", NULL };
	const struct host_facts poor = { 2, 2, 2, 1000, "node8", "gpu" };
	const struct {
		struct order_kind kind;
		struct host_facts rich;
	} cases[] = {
		{ { .width = 1, .memory = 2000 }, { 2, 2, 2, 2000, "b", NULL } },
		{ { .width = 1, .needs.hosts = hosts }, { 2, 2, 2, 1000, "node7.cluster", NULL } },
		{ { .width = 1, .needs.features = features }, { 2, 2, 2, 1000, "b", "ssd,x,gpu" } },
		{ { .width = 3 }, { 3, 3, 3, 1000, "b", NULL } },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		AUTO(table_done) struct table t;
		struct deal_config config = usual();
		config.max_hosts = 3;
		begin(&t, 0, &config);
		t.kinds[0] = cases[i].kind;
		begin_again(&t, 1, &config);
		hello_as(&t, 1, poor);
		ck_assert_ptr_null(find(&t, DEAL_DO_GIVE));
		ck_assert_ptr_nonnull(find(&t, DEAL_DO_AWAIT));
		hello_as(&t, 2, cases[i].rich);
		ck_assert_uint_eq(find(&t, DEAL_DO_GIVE)->link, 2);
	}
}

/* Two orders, the second of which needs more memory than any host has. */
static void begin_unfit(struct table *t, const struct deal_config *config)
{
	begin(t, 2, config);
	t->orders[1].item.kind = 1;
	t->kinds[1] = (struct order_kind){ .width = 1, .memory = 5000 };
	begin_again(t, 2, config);
	hello(t, 1, 1, NULL, 0);
	ck_assert_ptr_null(find(t, DEAL_DO_UNFIT));
}

static void beat(struct table *t, uint64_t now_ns, uint32_t host)
{
	step(t, now_ns, (struct deal_event){ DEAL_EV_BEAT, .host = host, .link = host + 1 });
}

TEST(an_order_that_no_host_can_serve_fails_when_all_hosts_are_there)
{
	AUTO(table_done) struct table t;
	const struct deal_config config = usual();
	begin_unfit(&t, &config);
	hello(&t, 1, 2, NULL, 0);
	ck_assert_uint_eq(find(&t, DEAL_DO_UNFIT)->order, 1);
	ck_assert_ptr_null(find(&t, DEAL_DO_END)); /* the other one runs */
}

TEST(two_hosts_of_one_name_are_two_when_both_have_lived_long)
{
	AUTO(table_done) struct table t;
	const struct deal_config config = usual();
	begin_unfit(&t, &config);
	hello_as(&t, 2, (struct host_facts){ 2, 2, 2, 1000, .name = "node1" });
	beat(&t, LOST_NS, 0);
	beat(&t, LOST_NS, 1);
	beat(&t, 1 + LOST_NS, 0);
	ck_assert_ptr_null(find(&t, DEAL_DO_UNFIT));
	beat(&t, 1 + LOST_NS, 1);
	ck_assert_uint_eq(find(&t, DEAL_DO_UNFIT)->order, 1);
}

TEST(a_host_that_started_again_is_not_two_of_all_hosts)
{
	AUTO(table_done) struct table t;
	const struct deal_config config = usual();
	begin_unfit(&t, &config);
	/* The process before fell silent without a word. */
	hello_as(&t, 2, (struct host_facts){ 2, 2, 2, 1000, .name = "node1" });
	beat(&t, LOST_NS, 1);
	step(&t, 1 + LOST_NS, (struct deal_event){ DEAL_EV_TIMER });
	ck_assert_ptr_nonnull(find(&t, DEAL_DO_HOST_LOST));
	beat(&t, 2 + 2 * LOST_NS, 1);
	ck_assert_ptr_null(find(&t, DEAL_DO_UNFIT));
}

TEST(a_host_that_is_away_is_not_one_of_all_hosts_before_it_is_back)
{
	AUTO(table_done) struct table t;
	const struct deal_config config = usual();
	begin_unfit(&t, &config);
	step(&t, 2, (struct deal_event){ DEAL_EV_LINK_DOWN, .host = 0, .link = 1 });
	hello(&t, 3, 2, NULL, 0);
	ck_assert_ptr_null(find(&t, DEAL_DO_UNFIT));
	hello(&t, 4, 1, NULL, 0);
	ck_assert_ptr_nonnull(find(&t, DEAL_DO_UNFIT));
}

/* The slots of the coordinator's host: two, with 1000 bytes of memory. */
struct own {
	struct corepool pool;
	struct batch batch;
};

/* It takes from the same list. */
static void own_init(struct own *own, struct table *t)
{
	const struct batch_opts opts = { .jobs = 2, .facts = { .max_width = 2, .memory = 1000 } };
	corepool_init_anonymous(&own->pool, 2);
	batch_init(&own->batch, &opts, &own->pool, &t->list);
}

static void own_done(struct own *own)
{
	batch_done(&own->batch);
	corepool_done(&own->pool);
}

TEST(an_order_that_the_only_host_cannot_serve_fails_at_once)
{
	AUTO(table_done) struct table t;
	struct deal_config config = usual();
	AUTO(own_done) struct own own;
	own_init(&own, &t);
	config.max_hosts = 1;
	config.own = &own.batch;
	begin(&t, 1, &config);
	t.kinds[0].memory = 5000;
	step(&t, 1, (struct deal_event){ DEAL_EV_START });
	ck_assert_ptr_nonnull(find(&t, DEAL_DO_UNFIT));
}

static void own_step(struct own *own, uint64_t now_ns, struct batch_event event)
{
	AUTO(batch_actions_done) struct batch_actions actions = { .items = NULL };
	batch_step(&own->batch, &event, now_ns, &actions);
}

TEST(the_slots_here_and_hosts_elsewhere_take_from_one_list)
{
	AUTO(table_done) struct table t;
	AUTO(own_done) struct own own;
	struct deal_config config = usual();
	config.own = &own.batch;
	begin(&t, 5, &config);
	own_init(&own, &t);
	t.list.opts.shared = true;
	t.orders[0].retries = 1;
	own.batch.opts.retry_on = retry_rule_any();
	own_step(&own, 1, (struct batch_event){ .type = BATCH_START, .slot = -1 });
	hello(&t, 1, 1, NULL, 0);
	ck_assert_uint_eq(own.batch.running, 2);
	ck_assert_uint_eq(deal_running(&t.deal), 4);
	/* What has begun here goes on here. */
	t.list.orders[4].state = BATCH_HELD;
	schedule_remove(&t.list.schedule, &t.orders[4].item);
	uint64_t changes = t.list.changes;
	own_step(&own, 2,
		 (struct batch_event){
			 .type = BATCH_EXITED, .empty = true, .status = { EXIT_CODE, 1 } });
	worklist_tick(&t.list, 2);
	ck_assert_int_eq(t.orders[0].state, BATCH_QUEUED);
	ck_assert_uint_ne(t.list.changes, changes);
	result(&t, 3, 0, 1, 2, t.orders[2].lease);
	ck_assert_ptr_null(find(&t, DEAL_DO_GIVE));
	own_step(&own, 4, (struct batch_event){ .type = BATCH_LOOK, .slot = -1 });
	ck_assert_int_eq(t.orders[0].state, BATCH_RUNNING);
	/* What comes back to the list is for all. */
	worklist_enqueue(&t.list, &t.orders[4]);
	step(&t, 5, (struct deal_event){ DEAL_EV_LOOK });
	ck_assert_uint_eq(find(&t, DEAL_DO_GIVE)->order, 4);
	changes = t.list.changes;
	step(&t, 6,
	     (struct deal_event){ DEAL_EV_RETURNED, .link = 1, .order = 4,
				  .lease = t.orders[4].lease });
	ck_assert_uint_ne(t.list.changes, changes);
}

TEST(a_batch_is_not_over_while_the_slots_here_run)
{
	AUTO(table_done) struct table t;
	AUTO(own_done) struct own own;
	struct deal_config config = usual();
	config.own = &own.batch;
	begin(&t, 1, &config);
	own_init(&own, &t);
	own_step(&own, 1, (struct batch_event){ .type = BATCH_START, .slot = -1 });
	step(&t, 1, (struct deal_event){ DEAL_EV_START });
	ck_assert_ptr_null(find(&t, DEAL_DO_END));
	uint64_t changes = t.list.changes;
	own_step(&own, 2, (struct batch_event){ .type = BATCH_INTERRUPT, .slot = -1 });
	own_step(&own, 2,
		 (struct batch_event){
			 .type = BATCH_EXITED, .empty = true, .status = { EXIT_SIGNAL, 9 } });
	ck_assert_uint_ge(t.list.changes, changes + 2); /* the stop, and what was stopped */
	step(&t, 2, (struct deal_event){ DEAL_EV_LOOK });
	ck_assert_ptr_nonnull(find(&t, DEAL_DO_END));
}

TEST(a_fast_host_is_given_orders_ahead_and_shares_them_at_the_end)
{
	AUTO(table_done) struct table t;
	const struct deal_config config = usual();
	begin(&t, ORDERS, &config);
	hello(&t, 1, 1, NULL, 0);
	ck_assert_uint_eq(t.deal.given, 2);
	result(&t, 2 + NS_PER_MS, 0, 1, 0, t.orders[0].lease);
	ck_assert_uint_gt(t.deal.given, 2);
	size_t given = t.deal.given;
	hello(&t, 3 + NS_PER_MS, 2, NULL, 0);
	ck_assert_uint_eq(t.list.schedule.queued, 0);
	for (uint32_t i = 0; !find(&t, DEAL_DO_RECALL) && i < ORDERS; i++)
		if (t.orders[i].state == BATCH_GIVEN && t.orders[i].host == 1)
			result(&t, 4 + NS_PER_MS, 1, 2, i, t.orders[i].lease);
	ck_assert_uint_gt(given, 2);
	ck_assert_ptr_nonnull(find(&t, DEAL_DO_RECALL));
	ck_assert_uint_eq(find(&t, DEAL_DO_RECALL)->link, 1);
}

/* It may have started more than it can run: those that wait for their retry make room for others.
 */
TEST(a_host_is_asked_to_return_only_what_it_has_not_started)
{
	for (uint32_t unstarted = 0; unstarted < 2; unstarted++) {
		AUTO(table_done) struct table t;
		const struct deal_config config = usual();
		begin(&t, ORDERS, &config);
		hello(&t, 1, 1, NULL, 0);
		result(&t, 1 + NS_PER_MS, 0, 1, 0, t.orders[0].lease);
		hello(&t, 2 + NS_PER_MS, 2, NULL, 0);
		ck_assert_uint_eq(t.deal.hosts[0].given_count, 5);
		for (uint32_t i = 0; i < 2 * (5 - unstarted); i++) /* each is told twice */
			step(&t, 3 + NS_PER_MS,
			     (struct deal_event){ DEAL_EV_STARTED, .link = 1, .order = i / 2 + 1,
						  .lease = t.orders[i / 2 + 1].lease });
		result(&t, 4 + NS_PER_MS, 1, 2, 6, t.orders[6].lease);
		const struct deal_action *recall = find(&t, DEAL_DO_RECALL);
		ck_assert_uint_eq(recall ? recall->count : 0, unstarted);
	}
}

TEST(halt_stops_all_hosts)
{
	AUTO(table_done) struct table t;
	const struct deal_config config = usual();
	begin(&t, ORDERS, &config);
	ck_assert_int_eq(halt_rule_parse("now,success=1", &t.list.opts.halt, NULL), 0);
	hello(&t, 1, 1, NULL, 0);
	hello(&t, 1, 2, NULL, 0);
	result(&t, 2, 0, 1, 0, t.orders[0].lease);
	ck_assert_uint_eq(count_of(&t, DEAL_DO_STOP), 2);
	ck_assert_int_eq(t.list.stop, BATCH_STOP_HALT);
	ck_assert_ptr_null(find(&t, DEAL_DO_GIVE));
}

TEST(a_host_that_comes_when_all_is_over_is_told_so)
{
	AUTO(table_done) struct table t;
	struct deal_config config = usual();
	config.min_hosts = 2;
	begin(&t, 1, &config);
	hello(&t, 0, 1, NULL, 0);
	uint32_t lease = find(&t, DEAL_DO_GIVE)->lease;
	result(&t, 1, 0, 1, 0, lease);
	ck_assert(find(&t, DEAL_DO_END) != NULL);
	ck_assert_uint_eq(deal_absent(&t.deal), 1);
	/* One that was there and comes again is not the one that is missing. */
	hello(&t, 2, 11, NULL, 0);
	ck_assert_uint_eq(find(&t, DEAL_DO_BYE)->link, 11);
	ck_assert_uint_eq(deal_absent(&t.deal), 1);
	hello(&t, 3, 2, NULL, 0);
	ck_assert_uint_eq(t.actions.count, 1);
	ck_assert_uint_eq(find(&t, DEAL_DO_BYE)->link, 2);
	ck_assert_uint_eq(deal_absent(&t.deal), 0);
	ck_assert_uint_eq(deal_hosts_here(&t.deal), 1);
	ck_assert_int_eq(t.deal.hosts[1].state, DEAL_LOST); /* it takes no part */
	ck_assert_uint_eq(t.deal.late, 1);
}

TEST(a_new_coordinator_gives_nothing_while_orders_of_the_old_one_may_run)
{
	AUTO(table_done) struct table t;
	struct deal_config config = usual();
	begin(&t, 1, &config);
	t.list.opts.hold_until_ns = LOST_NS;
	hello(&t, 1, 1, NULL, 0);
	ck_assert_ptr_null(find(&t, DEAL_DO_GIVE));
	step(&t, LOST_NS - 1, (struct deal_event){ DEAL_EV_BEAT, .link = 1 });
	ck_assert_uint_eq(deal_deadline_ns(&t.deal), LOST_NS);
	step(&t, LOST_NS, (struct deal_event){ DEAL_EV_TIMER });
	ck_assert_ptr_nonnull(find(&t, DEAL_DO_GIVE));
}

TEST(the_pace_of_a_host_is_the_time_between_its_results)
{
	AUTO(table_done) struct table t;
	const struct deal_config config = usual();
	begin(&t, 3, &config);
	hello(&t, 1, 1, NULL, 0);
	step(&t, 50,
	     (struct deal_event){ DEAL_EV_RETURNED, .link = 1, .order = 1,
				  .lease = t.orders[1].lease });
	ck_assert_uint_eq(count_of(&t, DEAL_DO_GIVE), 1); /* which is no result */
	result(&t, 101, 0, 1, 0, t.orders[0].lease);
	ck_assert_uint_eq(t.deal.hosts[0].pace_ns, 100);
	ck_assert_uint_eq(t.deal.hosts[0].done, 1);
}

TEST(a_host_whose_places_are_taken_asks_for_nothing_though_it_has_cores)
{
	AUTO(table_done) struct table t;
	const struct deal_config config = usual();
	begin(&t, ORDERS, &config);
	hello(&t, 1, 1, NULL, 0);
	result(&t, 1 + NS_PER_MS, 0, 1, 0, t.orders[0].lease); /* and is given some ahead */
	step(&t, 2 + NS_PER_MS,
	     (struct deal_event){ DEAL_EV_HELLO, .link = 2, .id = { 1, 2 },
				  .facts = { 4, 4, 2, 1000, .name = "narrow" } });
	for (uint32_t i = 0; t.list.schedule.queued > 0 && i < ORDERS; i++)
		if (t.orders[i].state == BATCH_GIVEN && t.orders[i].host == 0)
			result(&t, 3 + NS_PER_MS, 0, 1, i, t.orders[i].lease);
	ck_assert_uint_eq(t.list.schedule.queued, 0);
	ck_assert_int_eq(t.deal.hosts[1].facts.jobs, (int)t.deal.hosts[1].given_count);
	ck_assert_ptr_null(find(&t, DEAL_DO_RECALL));
}

TEST(what_ran_when_all_was_stopped_is_not_charged_with_the_loss_of_its_host)
{
	AUTO(table_done) struct table t;
	const struct deal_config config = usual();
	begin(&t, 1, &config);
	hello(&t, 1, 1, NULL, 0);
	step(&t, 2, (struct deal_event){ DEAL_EV_STARTED, .link = 1, .lease = t.orders[0].lease });
	step(&t, 3,
	     (struct deal_event){ DEAL_EV_STOP, .stop = WORKLIST_STOP,
				  .why = BATCH_STOP_INTERRUPT });
	ck_assert_int_eq(find(&t, DEAL_DO_STOP)->stop, WORKLIST_STOP);
	step(&t, 4, (struct deal_event){ DEAL_EV_LINK_DOWN, .link = 1, .dead = true });
	ck_assert_ptr_null(find(&t, DEAL_DO_LOSE));
	ck_assert_uint_eq(t.list.failed, 0);
	ck_assert_uint_eq(count_of(&t, DEAL_DO_END), 1);
	beat(&t, 5, 0);
	ck_assert_uint_eq(t.actions.count, 0); /* it ends once */
}

TEST(only_hosts_that_are_told_to_stop_hear_of_it)
{
	AUTO(table_done) struct table t;
	const struct deal_config config = usual();
	begin(&t, 2, &config);
	hello(&t, 1, 1, NULL, 0);
	ck_assert_ptr_null(find(&t, DEAL_DO_STOP));
	step(&t, 2,
	     (struct deal_event){ DEAL_EV_STOP, .stop = WORKLIST_DRAIN, .why = BATCH_STOP_DRAIN });
	hello(&t, 3, 2, NULL, 0);
	ck_assert_int_eq(find(&t, DEAL_DO_STOP)->stop, WORKLIST_DRAIN);
	ck_assert_uint_eq(find(&t, DEAL_DO_STOP)->link, 2);
	ck_assert_ptr_null(find(&t, DEAL_DO_GIVE));
}

TEST(a_lost_host_takes_no_place_and_has_none_when_it_is_back)
{
	AUTO(table_done) struct table t;
	struct deal_config config = usual();
	config.max_hosts = 1;
	begin(&t, ORDERS, &config);
	hello(&t, 1, 1, NULL, 0);
	hello(&t, 1, 2, NULL, 0); /* a spare, which is lost */
	step(&t, 2, (struct deal_event){ DEAL_EV_LINK_DOWN, .host = 1, .link = 2, .dead = true });
	hello(&t, 3, 3, NULL, 0);
	ck_assert_ptr_null(find(&t, DEAL_DO_GIVE));
	step(&t, 4, (struct deal_event){ DEAL_EV_LINK_DOWN, .link = 1, .dead = true });
	ck_assert_uint_eq(find(&t, DEAL_DO_GIVE)->link, 3);
	ck_assert_uint_eq(t.deal.jobs, 2);
	hello(&t, 5, 11, NULL, 0);
	ck_assert_ptr_nonnull(find(&t, DEAL_DO_WELCOME));
	ck_assert_ptr_null(find(&t, DEAL_DO_GIVE));
	ck_assert_uint_eq(t.deal.jobs, 2);
}

TEST(a_host_that_is_silent_for_too_long_is_hung_up_on)
{
	AUTO(table_done) struct table t;
	const struct deal_config config = usual();
	begin(&t, 1, &config);
	hello(&t, 1, 1, NULL, 0);
	step(&t, 1 + LOST_NS, (struct deal_event){ DEAL_EV_TIMER });
	ck_assert_uint_eq(find(&t, DEAL_DO_HANG_UP)->link, 1);
	step(&t, 2 + LOST_NS, (struct deal_event){ DEAL_EV_TIMER });
	ck_assert_uint_eq(t.actions.count, 0); /* once */
	/* One whose link is gone already is only lost. */
	hello(&t, 3 + LOST_NS, 2, NULL, 0);
	step(&t, 4 + LOST_NS, (struct deal_event){ DEAL_EV_LINK_DOWN, .host = 1, .link = 2 });
	step(&t, 4 + 2 * LOST_NS, (struct deal_event){ DEAL_EV_TIMER });
	ck_assert_ptr_nonnull(find(&t, DEAL_DO_HOST_LOST));
	ck_assert_ptr_null(find(&t, DEAL_DO_HANG_UP));
}

TEST(the_own_host_is_never_another_that_started_again)
{
	AUTO(table_done) struct table t;
	AUTO(own_done) struct own own;
	struct deal_config config = usual();
	config.own = &own.batch;
	begin(&t, 2, &config);
	own_init(&own, &t);
	own.batch.opts.facts.name = "one";
	t.orders[1].item.kind = 1;
	t.kinds[1] = (struct order_kind){ .width = 1, .memory = 5000 };
	begin_again(&t, 2, &config);
	step(&t, 1, (struct deal_event){ DEAL_EV_START });
	hello_as(&t, 1, (struct host_facts){ 2, 2, 2, 1000, .name = "one" });
	ck_assert_uint_eq(find(&t, DEAL_DO_UNFIT)->order, 1);
}

TEST(a_lost_process_keeps_no_order_waiting_for_hosts_that_are_all_here)
{
	AUTO(table_done) struct table t;
	const struct deal_config config = usual();
	begin_unfit(&t, &config);
	hello_as(&t, 2, (struct host_facts){ 2, 2, 2, 1000, .name = "node1" });
	step(&t, 2, (struct deal_event){ DEAL_EV_LINK_DOWN, .link = 1, .dead = true });
	hello_as(&t, 3, (struct host_facts){ 2, 2, 2, 1000, .name = "node3" });
	beat(&t, LOST_NS, 2);
	beat(&t, LOST_NS, 1);
	ck_assert_ptr_null(find(&t, DEAL_DO_UNFIT));
	beat(&t, 2 + LOST_NS, 1);
	ck_assert_uint_eq(find(&t, DEAL_DO_UNFIT)->order, 1);
}

TEST(no_more_hosts_than_the_limit_are_taken)
{
	AUTO(table_done) struct table t;
	const struct deal_config config = usual();
	begin(&t, 1, &config);
	t.deal.hosts = NEW_ARRAY(struct deal_host, DEAL_HOSTS_MAX);
	t.deal.host_cap = t.deal.host_count = DEAL_HOSTS_MAX;
	for (uint32_t i = 0; i < DEAL_HOSTS_MAX; i++)
		t.deal.hosts[i] = (struct deal_host){ .id = { 2, i }, .state = DEAL_LOST };
	hello(&t, 1, 7, NULL, 0);
	ck_assert_uint_eq(t.actions.count, 1);
	ck_assert_uint_eq(find(&t, DEAL_DO_HANG_UP)->link, 7);
	ck_assert_uint_eq(t.deal.host_count, DEAL_HOSTS_MAX);
}

TEST(what_comes_on_another_link_than_the_hosts_is_nothing)
{
	AUTO(table_done) struct table t;
	const struct deal_config config = usual();
	begin(&t, 3, &config);
	hello(&t, 1, 1, NULL, 0);
	uint32_t lease = t.orders[1].lease;
	result(&t, 2, 0, 99, 1, lease);
	ck_assert_uint_eq(t.actions.count, 0);
	step(&t, 3, (struct deal_event){ DEAL_EV_LINK_DOWN, .link = 1 });
	result(&t, 4, 0, 0, 1, lease); /* no link at all is not the one it has not */
	ck_assert_uint_eq(t.actions.count, 0);
	ck_assert_uint_eq(t.deal.hosts[0].heard_ns, 3);
	hello(&t, 5, 11, &lease, 1);
	result(&t, 6, 0, 11, 1, lease);
	ck_assert_uint_eq(find(&t, DEAL_DO_COUNT)->order, 1);
	result(&t, 7, 0, 11, 1, lease); /* once more */
	ck_assert_uint_eq(find(&t, DEAL_DO_NOTE)->order, 1);
	ck_assert_uint_eq(find(&t, DEAL_DO_NOTE)->lease, lease);
}

TEST(a_lone_own_host_waits_for_no_time)
{
	AUTO(table_done) struct table t;
	AUTO(own_done) struct own own;
	struct deal_config config = usual();
	config.own = &own.batch;
	begin(&t, 1, &config);
	own_init(&own, &t);
	step(&t, 1, (struct deal_event){ DEAL_EV_START });
	own_step(&own, 1, (struct batch_event){ .type = BATCH_START, .slot = -1 });
	ck_assert_uint_eq(deal_deadline_ns(&t.deal), NS_NEVER);
}

/* ---- the host's side ---- */

struct fist {
	struct hand hand;
	struct hand_actions actions;
};

static void fist_done(struct fist *f)
{
	hand_done(&f->hand);
	hand_actions_done(&f->actions);
}

static void poke(struct fist *f, uint64_t now_ns, struct hand_event event)
{
	f->actions.count = 0;
	hand_step(&f->hand, &event, now_ns, &f->actions);
}

/* With an order that runs, under lease 7 of term 1. */
static void make_fist(struct fist *f)
{
	*f = (struct fist){ .actions.items = NULL };
	hand_init(&f->hand, &(struct hand_config){ NS_PER_S, 4 * NS_PER_S });
	poke(f, 1, (struct hand_event){ HAND_EV_LINK_UP });
	ck_assert_int_eq(f->actions.items[0].type, HAND_DO_HELLO);
	poke(f, 2, (struct hand_event){ HAND_EV_WELCOME, .term = 1 });
	poke(f, 3, (struct hand_event){ HAND_EV_GIVEN, .order = 5, .lease = 7 });
	ck_assert_int_eq(f->actions.items[0].type, HAND_DO_RUN);
	poke(f, 4, (struct hand_event){ HAND_EV_STARTED, .lease = 7 });
	ck_assert_int_eq(f->actions.items[0].type, HAND_DO_STARTED);
}

TEST(a_result_is_sent_again_on_the_next_link_until_it_is_confirmed)
{
	AUTO(fist_done) struct fist f;
	make_fist(&f);
	poke(&f, 5, (struct hand_event){ HAND_EV_LINK_DOWN });
	poke(&f, 6, (struct hand_event){ HAND_EV_RESULT, .lease = 7, .final = true });
	ck_assert_uint_eq(f.actions.count, 0);
	poke(&f, 7, (struct hand_event){ HAND_EV_LINK_UP });
	poke(&f, 8, (struct hand_event){ HAND_EV_WELCOME, .term = 1 });
	ck_assert_int_eq(f.actions.items[0].type, HAND_DO_RESULT);
	ck_assert(!hand_is_empty(&f.hand));
	poke(&f, 9, (struct hand_event){ HAND_EV_ACK, .lease = 7 });
	ck_assert_int_eq(f.actions.items[0].type, HAND_DO_FORGET);
	ck_assert(hand_is_empty(&f.hand));
}

TEST(an_order_waits_for_its_files_and_they_are_fetched_again_on_the_next_link)
{
	AUTO(fist_done) struct fist f;
	make_fist(&f);
	poke(&f, 0, (struct hand_event){ HAND_EV_GIVEN, .order = 7, .lease = 9, .files = true });
	ck_assert_uint_eq(f.actions.count, 1);
	ck_assert_int_eq(f.actions.items[0].type, HAND_DO_FETCH);
	poke(&f, 1, (struct hand_event){ HAND_EV_STARTED, .lease = 9 });
	ck_assert_uint_eq(f.actions.count, 0); /* it cannot have */
	poke(&f, 2, (struct hand_event){ HAND_EV_LINK_DOWN });
	poke(&f, 3, (struct hand_event){ HAND_EV_LINK_UP });
	poke(&f, 4, (struct hand_event){ HAND_EV_WELCOME, .term = f.hand.term });
	ck_assert_int_eq(f.actions.items[f.actions.count - 1].type, HAND_DO_FETCH);
	poke(&f, 5, (struct hand_event){ HAND_EV_FILES, .lease = 9 });
	ck_assert_uint_eq(f.actions.count, 1);
	ck_assert_int_eq(f.actions.items[0].type, HAND_DO_RUN);
	poke(&f, 6, (struct hand_event){ HAND_EV_FILES, .lease = 9 });
	ck_assert_uint_eq(f.actions.count, 0);
}

TEST(an_order_whose_files_are_under_way_can_be_recalled)
{
	AUTO(fist_done) struct fist f;
	make_fist(&f);
	poke(&f, 0, (struct hand_event){ HAND_EV_GIVEN, .order = 7, .lease = 9, .files = true });
	poke(&f, 1, (struct hand_event){ HAND_EV_RECALL, .count = 1 });
	ck_assert_int_eq(f.actions.items[1].type, HAND_DO_RETURNED);
	ck_assert_uint_eq(f.actions.items[1].lease, 9);
	poke(&f, 2, (struct hand_event){ HAND_EV_FILES, .lease = 9 });
	ck_assert_uint_eq(f.actions.count, 0);
}

TEST(files_go_to_the_host_that_has_the_order)
{
	AUTO(table_done) struct table t;
	struct deal_config config = usual();
	begin(&t, 1, &config);
	t.kinds[0].files = true;
	hello(&t, 0, 1, NULL, 0);
	ck_assert(!find(&t, DEAL_DO_GIVE)); /* of a version that knows of none */
	step(&t, 1,
	     (struct deal_event){ DEAL_EV_HELLO, .link = 2, .id = { 1, 2 },
				  .facts = { 2, 2, 2, 1000, .files = true } });
	uint32_t lease = find(&t, DEAL_DO_GIVE)->lease;
	step(&t, 2, (struct deal_event){ DEAL_EV_FETCH, .host = 1, .link = 2, .lease = lease });
	ck_assert_uint_eq(find(&t, DEAL_DO_FEED)->link, 2);
	step(&t, 3, (struct deal_event){ DEAL_EV_FETCH, .host = 0, .link = 1, .lease = lease });
	ck_assert(!find(&t, DEAL_DO_FEED));
	step(&t, 3, (struct deal_event){ DEAL_EV_FETCH, .host = 1, .link = 2, .lease = lease + 1 });
	ck_assert(!find(&t, DEAL_DO_FEED));
}

TEST(a_file_is_named_beneath_the_working_directory)
{
	static const char *const good[] = { "a",     "a/b", "./a",	"a/./b",
					    "a/..b", ".a",  "/x/./a/b", "../x/./a" };
	static const char *const bad[] = { "",	 "/a", "..",  "../a",	   "a/../b", "a/..",
					   "a/", ".",  "a/.", "/x/./../a", "/x/./" };
	for (size_t i = 0; i < ARRAY_LEN(good); i++)
		ck_assert_msg(files_path_ok(good[i]), "%s", good[i]);
	for (size_t i = 0; i < ARRAY_LEN(bad); i++)
		ck_assert_msg(!files_path_ok(bad[i]), "%s", bad[i]);
	ck_assert_str_eq(files_name("/x/./a/b"), "a/b");
	ck_assert_str_eq(files_name("/x/.//b"), "b");
	ck_assert_str_eq(files_name("./a"), "./a");
}

TEST(orders_end_with_the_lease)
{
	AUTO(fist_done) struct fist f;
	make_fist(&f);
	ck_assert_uint_eq(hand_deadline_ns(&f.hand), 2 + NS_PER_S);
	poke(&f, 2 + NS_PER_S, (struct hand_event){ HAND_EV_TIMER });
	ck_assert_int_eq(f.actions.items[0].type, HAND_DO_BEAT);
	uint64_t cookie = f.actions.items[0].cookie;
	poke(&f, 3 * NS_PER_S, (struct hand_event){ HAND_EV_ANSWERED, .cookie = cookie });
	/* From the sending of the beat, not from its answer. */
	poke(&f, cookie + 4 * NS_PER_S - 1, (struct hand_event){ HAND_EV_TIMER });
	ck_assert_uint_eq(f.hand.count, 1);
	poke(&f, cookie + 4 * NS_PER_S, (struct hand_event){ HAND_EV_TIMER });
	ck_assert_int_eq(f.actions.items[0].type, HAND_DO_DISCARD);
	ck_assert_int_eq(f.actions.items[1].type, HAND_DO_HANG_UP);
	ck_assert_uint_eq(f.hand.count, 0);
}

TEST(what_another_coordinator_gave_is_discarded)
{
	AUTO(fist_done) struct fist f;
	make_fist(&f);
	poke(&f, 5, (struct hand_event){ HAND_EV_LINK_DOWN });
	poke(&f, 6, (struct hand_event){ HAND_EV_LINK_UP });
	poke(&f, 7, (struct hand_event){ HAND_EV_WELCOME, .term = 2 });
	ck_assert_int_eq(f.actions.items[0].type, HAND_DO_DISCARD);
	ck_assert(hand_is_empty(&f.hand));
}

TEST(a_host_that_stops_returns_what_has_not_started)
{
	AUTO(fist_done) struct fist f;
	make_fist(&f);
	poke(&f, 5, (struct hand_event){ HAND_EV_GIVEN, .order = 6, .lease = 8 });
	poke(&f, 6, (struct hand_event){ HAND_EV_STOP, .stop = WORKLIST_STOP });
	ck_assert_int_eq(f.actions.items[0].type, HAND_DO_UNQUEUE);
	ck_assert_int_eq(f.actions.items[1].type, HAND_DO_RETURNED);
	ck_assert_int_eq(f.actions.items[2].type, HAND_DO_STOP);
	poke(&f, 7, (struct hand_event){ HAND_EV_GIVEN, .order = 6, .lease = 9 });
	ck_assert_int_eq(f.actions.items[0].type, HAND_DO_RETURNED);
	ck_assert_uint_eq(f.actions.count, 1);
}

TEST(a_second_welcome_on_a_link_changes_nothing)
{
	AUTO(fist_done) struct fist f;
	make_fist(&f);
	poke(&f, 5, (struct hand_event){ HAND_EV_WELCOME, .term = 2 });
	ck_assert_uint_eq(f.actions.count, 0);
	ck_assert_uint_eq(f.hand.count, 1);
	poke(&f, 6, (struct hand_event){ HAND_EV_LINK_DOWN });
	poke(&f, 7, (struct hand_event){ HAND_EV_WELCOME, .term = 2 }); /* and without a link */
	ck_assert_uint_eq(f.actions.count, 0);
	ck_assert_uint_eq(f.hand.count, 1);
}

TEST(an_order_that_runs_is_told_again_on_the_next_link)
{
	AUTO(fist_done) struct fist f;
	make_fist(&f);
	poke(&f, 5, (struct hand_event){ HAND_EV_LINK_DOWN });
	poke(&f, 6, (struct hand_event){ HAND_EV_LINK_UP });
	poke(&f, 7, (struct hand_event){ HAND_EV_WELCOME, .term = 1 });
	ck_assert_uint_eq(f.actions.count, 1);
	ck_assert_int_eq(f.actions.items[0].type, HAND_DO_STARTED);
	ck_assert_uint_eq(f.actions.items[0].lease, 7);
}

TEST(an_order_is_taken_once_and_only_after_the_welcome)
{
	AUTO(fist_done) struct fist f;
	make_fist(&f);
	poke(&f, 5, (struct hand_event){ HAND_EV_GIVEN, .order = 5, .lease = 7 });
	ck_assert_uint_eq(f.actions.count, 0);
	poke(&f, 6, (struct hand_event){ HAND_EV_LINK_DOWN });
	poke(&f, 7, (struct hand_event){ HAND_EV_LINK_UP });
	poke(&f, 8, (struct hand_event){ HAND_EV_GIVEN, .order = 6, .lease = 8 });
	ck_assert_uint_eq(f.actions.count, 0);
	ck_assert_uint_eq(f.hand.count, 1);
}

TEST(as_many_orders_are_returned_as_are_recalled)
{
	AUTO(fist_done) struct fist f;
	make_fist(&f);
	for (uint32_t lease = 8; lease < 11; lease++)
		poke(&f, 5, (struct hand_event){ HAND_EV_GIVEN, .order = lease, .lease = lease });
	poke(&f, 6, (struct hand_event){ HAND_EV_RECALL, .count = 2 });
	ck_assert_uint_eq(f.actions.count, 5); /* UNQUEUE and RETURNED of each, and the end */
	ck_assert_uint_eq(f.actions.items[0].lease, 10); /* the last first */
	ck_assert_uint_eq(f.actions.items[2].lease, 9);
	ck_assert_int_eq(f.actions.items[4].type, HAND_DO_RECALLED);
	ck_assert_uint_eq(f.hand.count, 2);
}

TEST(a_host_beats_when_a_beat_is_due_and_it_has_a_link)
{
	AUTO(fist_done) struct fist f;
	make_fist(&f);
	poke(&f, 1 + NS_PER_S, (struct hand_event){ HAND_EV_TIMER });
	ck_assert_uint_eq(f.actions.count, 0);
	poke(&f, 2 + NS_PER_S, (struct hand_event){ HAND_EV_TIMER });
	ck_assert_uint_eq(f.actions.count, 1);
	ck_assert_uint_eq(hand_deadline_ns(&f.hand), 2 + 2 * NS_PER_S);
	poke(&f, 3 + NS_PER_S, (struct hand_event){ HAND_EV_LINK_DOWN });
	poke(&f, 3 + 2 * NS_PER_S, (struct hand_event){ HAND_EV_TIMER });
	ck_assert_uint_eq(f.actions.count, 0);
}

TEST(an_order_that_is_anothers_is_discarded_without_a_word)
{
	AUTO(fist_done) struct fist f;
	make_fist(&f);
	poke(&f, 5, (struct hand_event){ HAND_EV_DROP, .lease = 7 });
	ck_assert_uint_eq(f.actions.count, 1);
	ck_assert_int_eq(f.actions.items[0].type, HAND_DO_DISCARD);
	poke(&f, 6, (struct hand_event){ HAND_EV_DROP, .lease = 7 });
	ck_assert_uint_eq(f.actions.count, 0);
}

TEST(where_each_host_is_given_one_order_the_others_wait_for_hosts_to_come)
{
	struct table t;
	struct deal_config config = usual();
	config.retry_lost = false;
	config.max_hosts = 3;
	begin(&t, 3, &config);
	t.list.opts.once = true;
	hello(&t, 1, 1, NULL, 0);
	ck_assert_uint_eq(count_of(&t, DEAL_DO_GIVE), 1);
	result(&t, 2, 0, 1, 0, 1);
	ck_assert_uint_eq(count_of(&t, DEAL_DO_GIVE), 0);
	step(&t, 3 + 60 * NS_PER_S, (struct deal_event){ DEAL_EV_TIMER });
	ck_assert_uint_eq(count_of(&t, DEAL_DO_UNFIT) + count_of(&t, DEAL_DO_AWAIT), 0);
	uint64_t now_ns = 4 + 60 * NS_PER_S;
	hello(&t, now_ns, 2, NULL, 0);
	uint32_t lease = find(&t, DEAL_DO_GIVE)->lease;
	hello(&t, now_ns, 3, NULL, 0);
	ck_assert_uint_eq(count_of(&t, DEAL_DO_GIVE), 1);
	/* What never arrived is given again, to a host that has had none. */
	step(&t, now_ns, (struct deal_event){ DEAL_EV_LINK_DOWN, .host = 1, .link = 2 });
	hello(&t, now_ns, 12, NULL, 0);
	ck_assert_ptr_nonnull(find(&t, DEAL_DO_GIVE));
	ck_assert_uint_ne(find(&t, DEAL_DO_GIVE)->lease, lease);
	ck_assert_uint_eq(find(&t, DEAL_DO_GIVE)->link, 12);
	table_done(&t);
}
