#include "unit.h"

#include "batch_rig.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

static struct batch_opts options(void)
{
	struct batch_opts opts = batch_options();
	opts.retry_delay_ns = S;
	list_opts.groups = 1;
	list_opts.gates = 4;
	return opts;
}

static void step(enum batch_event_type type, int slot, uint64_t now)
{
	batch_tell(&(struct batch_event){ .type = type, .slot = slot }, now);
}

/* The main process of a slot ends; `left`: something it started does not. */
static void ends(int slot, int code, bool left, uint64_t now)
{
	struct batch_event event = { .type = BATCH_EXITED,
				     .slot = slot,
				     .status = { .kind = EXIT_CODE, .value = code },
				     .start_ns = now - S,
				     .end_ns = now,
				     .empty = !left };
	batch_tell(&event, now);
}

static void dies(int slot, int sig, bool oom, uint64_t now)
{
	struct batch_event event = { .type = BATCH_EXITED,
				     .slot = slot,
				     .status = { .kind = EXIT_SIGNAL, .value = sig },
				     .start_ns = now - 1,
				     .end_ns = now,
				     .empty = true,
				     .oom = oom };
	batch_tell(&event, now);
}

static void begin(const struct batch_opts *opts, size_t count)
{
	batch_make(opts, 2, count);
	step(BATCH_START, 0, 0);
}

static const char *told(void)
{
	return batch_told(false);
}

TEST(orders_fill_the_slots_and_the_next_starts_when_one_ends)
{
	struct batch_opts opts = options();
	begin(&opts, 3);
	ck_assert_str_eq(told(), "spawn0 spawn1");
	uint64_t since_ns;
	ck_assert_ptr_eq(batch_running(&batch, 1, &since_ns), &orders[1]);
	ends(1, 0, false, 2 * S);
	ck_assert_uint_eq(wanted.items[0].outcome.start_ns, S);
	ck_assert_uint_eq(wanted.items[0].outcome.end_ns, 2 * S);
	ck_assert_str_eq(told(), "finish1:ok spawn1");
	ends(0, 0, false, S);
	ck_assert_ptr_null(batch_running(&batch, 0, &since_ns));
	ends(1, 0, false, S);
	ck_assert_str_eq(told(), "finish0:ok finish1:ok end");
	ck_assert_uint_eq(list.ok, 3);
	batch_end();
}

TEST(a_failure_stops_no_other_order)
{
	struct batch_opts opts = options();
	begin(&opts, 3);
	told();
	ends(0, 7, false, S);
	ck_assert_str_eq(told(), "finish0:exit spawn0");
	ends(0, 0, false, S);
	ends(1, 0, false, S);
	ck_assert_str_eq(told(), "finish0:ok finish1:ok end");
	ck_assert_uint_eq(list.failed, 1);
	batch_end();
}

TEST(cores_are_free_only_when_the_last_process_is_gone)
{
	struct batch_opts opts = options();
	begin(&opts, 3);
	told();
	ends(0, 0, true, S);
	ck_assert_str_eq(told(), "kill0");
	ck_assert_int_eq(pool.used, 2);
	step(BATCH_EMPTY, 0, 2 * S);
	ck_assert_str_eq(told(), "finish0:ok spawn0");
	/* One that crossed our order to kill is of the tree before. */
	step(BATCH_EMPTY, 0, 2 * S);
	ck_assert_str_eq(told(), "");
	batch_end();
}

TEST(orders_start_while_the_memory_that_they_need_is_there)
{
	const struct order_kind kinds[] = { { .width = 1, .memory = 60 },
					    { .width = 1, .memory = 40 },
					    { .width = 1, .memory = 101 },
					    { .width = 1 } };
	static const uint32_t kind_of[] = { 0, 0, 1, 2, 3 };
	struct batch_opts opts = options();
	opts.jobs = 4;
	list_opts.kinds = kinds;
	opts.facts = (struct host_facts){ .max_width = 4, .memory = 100 };
	for (size_t i = 0; i < ARRAY_LEN(kind_of); i++)
		orders[i].item.kind = kind_of[i];
	batch_make(&opts, 4, ARRAY_LEN(kind_of));
	step(BATCH_START, -1, 0);
	ck_assert_str_eq(batch_told(true), "spawn0=0 spawn1=2 spawn2=4");
	ends(1, 0, false, S);
	ck_assert_str_eq(batch_told(true), "finish1=2:ok");
	ends(0, 0, false, S);
	ck_assert_str_eq(batch_told(true), "finish0=0:ok spawn0=1");
	ends(0, 0, false, S);
	ends(2, 0, false, S);
	/* What needs more than there is waits for a host that has it. */
	ck_assert_str_eq(batch_told(true), "finish0=1:ok finish2=4:ok");
	ck_assert_uint_eq(batch.memory, 0);
	batch_end();
}

TEST(a_timeout_climbs_the_ladder_and_ends_in_kill)
{
	struct batch_opts opts = options();
	orders[0].timeout_ns = 3 * S;
	begin(&opts, 1);
	told();
	ck_assert_uint_eq(batch_next_deadline(&batch), 3 * S);
	step(BATCH_TICK, 0, 3 * S - 1);
	ck_assert_str_eq(told(), "");
	step(BATCH_TICK, 0, 3 * S);
	ck_assert_str_eq(told(), "signal0:15");
	ck_assert_uint_eq(batch_next_deadline(&batch), 5 * S);
	step(BATCH_TICK, 0, 5 * S);
	ck_assert_str_eq(told(), "kill0");
	ck_assert_uint_eq(batch_next_deadline(&batch), NS_NEVER);
	dies(0, SIGKILL, false, 5 * S);
	ck_assert_str_eq(told(), "finish0:timeout end");
	batch_end();
}

TEST(a_retry_waits_for_the_old_tree_and_backs_off)
{
	struct batch_opts opts = options();
	orders[0].retries = 2;
	begin(&opts, 1);
	told();
	ends(0, 1, true, S);
	ck_assert_str_eq(told(), "kill0");
	step(BATCH_EMPTY, 0, 2 * S);
	ck_assert(wanted.items[0].outcome.retry);
	ck_assert_str_eq(told(), "finish0:exit");
	ck_assert_int_eq(pool.used, 0);
	ck_assert_uint_eq(batch_next_deadline(&batch), 3 * S);
	step(BATCH_TICK, 0, 3 * S);
	ck_assert_int_eq(wanted.items[0].outcome.trial.attempt, 2);
	ck_assert_str_eq(told(), "spawn0");
	ends(0, 1, false, 4 * S);
	ck_assert_uint_eq(batch_next_deadline(&batch), 6 * S);
	step(BATCH_TICK, 0, 6 * S);
	told();
	ends(0, 1, false, 7 * S);
	ck_assert_str_eq(told(), "finish0:exit end");
	ck_assert_uint_eq(list.failed, 1);
	batch_end();
}

/* Fails so often, each time a second after its start, and returns the last delay. */
static uint64_t delay_after(int failures)
{
	uint64_t now = S, delay = 0;
	for (int i = 0; i < failures; i++) {
		wanted.count = 0;
		ends(0, 1, false, now);
		ck_assert(wanted.items[0].outcome.retry);
		delay = wanted.items[0].outcome.retry_in_ns;
		step(BATCH_TICK, 0, now + delay);
		now += delay + S;
	}
	return delay;
}

TEST(the_delay_of_a_retry_doubles_up_to_a_limit)
{
	struct batch_opts opts = options();
	orders[0].retries = 100;
	begin(&opts, 1);
	ck_assert_uint_eq(delay_after(3), 4 * S);
	ck_assert_uint_eq(delay_after(90), BATCH_RETRY_DELAY_MAX_NS);
	batch_end();
}

TEST(a_delay_beyond_the_limit_stays_as_it_was_given)
{
	struct batch_opts opts = options();
	opts.retry_delay_ns = 2 * BATCH_RETRY_DELAY_MAX_NS;
	orders[0].retries = 100;
	begin(&opts, 1);
	ck_assert_uint_eq(delay_after(3), 2 * BATCH_RETRY_DELAY_MAX_NS);
	batch_end();
}

TEST(only_the_reasons_asked_for_are_retried)
{
	static const struct {
		const char *rule;
		int code, sig;
		bool oom, retried;
	} cases[] = {
		{ "exit=75", 75, 0, false, true },     { "exit=75", 1, 0, false, false },
		{ "exit", 1, 0, false, true },	       { "oom", 0, SIGKILL, true, true },
		{ "oom", 0, SIGKILL, false, false },   { "signal", 0, SIGSEGV, false, true },
		{ "timeout,oom", 1, 0, false, false }, { "any", 1, 0, false, true },
		{ "signal", 0, SIGKILL, true, false },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct batch_opts opts = options();
		ck_assert_int_eq(retry_rule_parse(cases[i].rule, &opts.retry_on, NULL), 0);
		memset(orders, 0, sizeof(orders));
		orders[0].retries = 1;
		begin(&opts, 1);
		told();
		if (cases[i].sig)
			dies(0, cases[i].sig, cases[i].oom, S);
		else
			ends(0, cases[i].code, false, S);
		ck_assert_msg(wanted.items[0].outcome.retry == cases[i].retried, "case %zu", i);
		batch_end();
	}
}

TEST(a_rule_of_retries_is_refused_by_the_word_that_is_wrong)
{
	static const char *const wrong[] = { "ok",	"killed", "canary",   "exit=0", "exit=256",
					     "exit=-1", "exit=x", "timeout,", "nothing" };
	struct retry_rule rule;
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		ck_assert_msg(retry_rule_parse(wrong[i], &rule, NULL) == -EINVAL, "%s", wrong[i]);
	char text[RETRY_CODES_MAX * 10] = "exit=255";
	for (int i = 1; i < RETRY_CODES_MAX; i++)
		snprintf(text + strlen(text), 12, ",exit=%d", i);
	ck_assert_int_eq(retry_rule_parse(text, &rule, NULL), 0);
	ck_assert_uint_eq(rule.code_count, RETRY_CODES_MAX);
	strcat(text, ",exit=9");
	struct err err = ERR_INIT;
	ck_assert_int_eq(retry_rule_parse(text, &rule, &err), -EINVAL);
	AUTO_FREE char *said = mem_printf("more than %d exit codes", RETRY_CODES_MAX);
	ck_assert_str_eq(err.msg, said);
}

TEST(a_ladder_has_a_limited_number_of_signals_and_ends_in_kill)
{
	static const char *const wrong[] = { "",	   "TERM",
					     "TERM,1000",  "TERM,x,KILL",
					     "FOO,1,KILL", "TERM,86400001,KILL" };
	struct ladder ladder;
	char text[LADDER_MAX * 8 + 16] = "";
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		ck_assert_msg(ladder_parse(wrong[i], &ladder, NULL) == -EINVAL, "%s", wrong[i]);
	ck_assert_int_eq(ladder_parse("TERM,86400000,KILL", &ladder, NULL), 0);
	for (int i = 1; i < LADDER_MAX; i++)
		strcat(text, "TERM,1,");
	AUTO_FREE char *most = mem_printf("%sKILL", text);
	AUTO_FREE char *more = mem_printf("%sTERM,1,KILL", text);
	ck_assert_int_eq(ladder_parse(most, &ladder, NULL), 0);
	ck_assert_uint_eq(ladder.count, LADDER_MAX);
	ck_assert_int_eq(ladder_parse(more, &ladder, NULL), -EINVAL);
}

TEST(halt_follows_gnu_parallel)
{
	static const struct {
		const char *rule;
		int codes[3];
		const char *expected; /* after the last */
	} cases[] = {
		{ "now,fail=1", { 1 }, "finish0:exit signal1:2" },
		{ "soon,fail=1", { 1 }, "finish0:exit" },
		{ "soon,fail=2", { 1, 1 }, "finish0:exit" },
		{ "now,success=1", { 0 }, "finish0:ok signal1:2" },
		{ "now,done=2", { 1, 0 }, "finish0:ok signal1:2" },
		{ "never", { 1 }, "finish0:exit spawn0" },
		{ "soon,fail=20%", { 1, 1 }, "finish0:exit" },
		{ "2", { 1 }, "finish0:exit signal1:2" },
		{ "1", { 1 }, "finish0:exit" },
		{ "0", { 1 }, "finish0:exit spawn0" },
		{ "-1", { 0 }, "finish0:ok" },
		{ "-2", { 0 }, "finish0:ok signal1:2" },
	};
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct batch_opts opts = options();
		ck_assert_int_eq(halt_rule_parse(cases[i].rule, &list_opts.halt, NULL), 0);
		memset(orders, 0, sizeof(orders));
		begin(&opts, 10);
		told();
		bool short_form = !strchr(cases[i].rule, ',');
		int last =
			strstr(cases[i].rule, "2") && !strstr(cases[i].rule, "=1") && !short_form;
		for (int n = 0; n <= last; n++) {
			told();
			ends(0, cases[i].codes[n], false, S);
		}
		ck_assert_msg(strcmp(told(), cases[i].expected) == 0, "%s", cases[i].rule);
		batch_end();
	}
	struct halt_rule rule;
	static const char *const wrong[] = {
		"",	      "now",	      "now,fail",      "now,fail=0",
		"now,fail=x", "later,fail=1", "now,fail=101%", "3"
	};
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		ck_assert_msg(halt_rule_parse(wrong[i], &rule, NULL) == -EINVAL, "%s", wrong[i]);
}

TEST(the_first_interrupt_stops_and_the_second_kills)
{
	struct batch_opts opts = options();
	begin(&opts, 3);
	told();
	step(BATCH_INTERRUPT, 0, S);
	ck_assert_str_eq(told(), "signal0:2 signal1:2");
	ck_assert_uint_eq(batch_next_deadline(&batch), 11 * S);
	dies(0, SIGINT, false, 2 * S);
	ck_assert_str_eq(told(), "finish0:killed");
	step(BATCH_INTERRUPT, 0, 3 * S);
	ck_assert_str_eq(told(), "kill1");
	dies(1, SIGKILL, false, 3 * S);
	ck_assert_str_eq(told(), "finish1:killed end");
	ck_assert_uint_eq(list.ok + list.failed, 0);
	batch_end();
}

TEST(nothing_is_retried_after_a_stop)
{
	struct batch_opts opts = options();
	orders[0].retries = 5;
	begin(&opts, 1);
	step(BATCH_INTERRUPT, 0, S);
	told();
	ends(0, 1, false, S);
	ck_assert_str_eq(told(), "finish0:killed end");
	batch_end();
}

TEST(the_deadline_ends_the_batch)
{
	struct batch_opts opts = options();
	list_opts.deadline_ns = 5 * S;
	begin(&opts, 3);
	told();
	step(BATCH_TICK, 0, 5 * S);
	ck_assert_str_eq(told(), "signal0:2 signal1:2");
	ends(0, 0, false, 6 * S);
	ends(1, 0, false, 6 * S);
	ck_assert_str_eq(told(), "finish0:killed finish1:killed end");
	batch_end();
}

TEST(cpu_time_is_looked_at_when_it_can_be_used_up)
{
	struct batch_opts opts = options();
	orders[0].cpu_timeout_ns = 10 * S;
	begin(&opts, 1);
	told();
	/* Two cores at most: not before 5 s. */
	ck_assert_uint_eq(batch_next_deadline(&batch), 5 * S);
	step(BATCH_TICK, 0, 5 * S);
	ck_assert_str_eq(told(), "cpu0");
	batch_tell(&(struct batch_event){ .type = BATCH_CPU_USED, .cpu_ns = 4 * S }, 5 * S);
	ck_assert_uint_eq(batch_next_deadline(&batch), 8 * S);
	batch_tell(&(struct batch_event){ .type = BATCH_CPU_USED, .cpu_ns = 10 * S }, 8 * S);
	ck_assert_str_eq(told(), "signal0:15");
	ends(0, 0, false, 8 * S);
	ck_assert_str_eq(told(), "finish0:cpu-timeout end");
	batch_end();
}

TEST(a_percentage_limits_to_the_learned_median)
{
	struct batch_opts opts = options();
	opts.jobs = 1;
	for (int i = 0; i < 5; i++)
		orders[i].timeout_percent = 300;
	begin(&opts, 5);
	ck_assert_uint_eq(batch_next_deadline(&batch), NS_NEVER);
	for (int i = 0; i < 3; i++)
		ends(0, 0, false, 10 * S); /* each took a second */
	told();
	ck_assert_uint_eq(batch_next_deadline(&batch), 13 * S);
	step(BATCH_TICK, 0, 13 * S);
	ck_assert_str_eq(told(), "signal0:15");
	batch_end();
}

TEST(the_median_is_one_of_numbers)
{
	struct learned learned = { .count = 0 };
	static const uint64_t times[] = { 500, 2000, 12000, 100000 };
	for (size_t i = 0; i < ARRAY_LEN(times); i++)
		learned_add(&learned, times[i]);
	ck_assert_uint_eq(learned_median(&learned), 7000);
}

TEST(a_canary_goes_first_and_opens_or_closes_the_gate)
{
	for (int code = 0; code < 2; code++) {
		struct batch_opts opts = options();
		memset(orders, 0, sizeof(orders));
		orders[0].gate = orders[1].gate = 1;
		orders[2].is_canary = true;
		orders[2].opens = 1;
		begin(&opts, 3);
		ck_assert_str_eq(told(), "spawn0");
		ends(0, code, false, S);
		ck_assert_str_eq(told(), code ? "finish0:canary end" : "finish0:ok spawn0 spawn1");
		ck_assert_uint_eq(list.skipped, code ? 2 : 0);
		ck_assert_uint_eq(list.ok, 0);
		ck_assert_uint_eq(list.failed, 0);
		ck_assert_uint_eq(list.gates[1].held, 0);
		ck_assert_uint_eq(list.learned[0].count,
				  0); /* how long others take it does not say */
		ck_assert_uint_eq(list.total, 2);
		batch_end();
	}
}

TEST(repetitions_stay_in_their_slot_and_warmups_do_not_count)
{
	struct batch_opts opts = options();
	opts.jobs = 1;
	orders[0].runs = 2;
	orders[0].warmup = 1;
	begin(&opts, 2);
	ck_assert(wanted.items[0].outcome.trial.warmup);
	told();
	ends(0, 0, false, S);
	ck_assert(wanted.items[0].outcome.trial.warmup);
	ck_assert(!wanted.items[1].outcome.trial.warmup);
	ck_assert_ptr_eq(wanted.items[1].order, &orders[0]);
	told();
	ends(0, 0, false, S);
	ck_assert_int_eq(wanted.items[0].outcome.trial.run, 0);
	ck_assert_int_eq(wanted.items[1].outcome.trial.run, 1);
	told();
	ends(0, 0, false, S);
	ck_assert(wanted.items[0].outcome.final);
	ck_assert_ptr_eq(wanted.items[1].order, &orders[1]);
	ck_assert_uint_eq(list.ok, 1);
	batch_end();
}

TEST(a_lost_warden_is_a_failed_attempt)
{
	struct batch_opts opts = options();
	orders[0].retries = 1;
	begin(&opts, 1);
	told();
	step(BATCH_LOST, 0, S);
	ck_assert_str_eq(told(), "finish0:lost");
	step(BATCH_TICK, 0, 2 * S);
	ck_assert_str_eq(told(), "spawn0");
	step(BATCH_SPAWN_FAILED, 0, 2 * S);
	ck_assert_str_eq(told(), "finish0:spawn end");
	batch_end();
}

TEST(signal_ladders_end_in_kill)
{
	struct ladder ladder;
	ck_assert_int_eq(ladder_parse("INT,2000,TERM,500,KILL", &ladder, NULL), 0);
	ck_assert_uint_eq(ladder.count, 3);
	ck_assert_uint_eq(ladder.steps[1].wait_ns, 500 * NS_PER_MS);
	static const char *const wrong[] = { "",       "TERM",	     "TERM,100", "TERM,x,KILL",
					     "KILL,1", "FOO,1,KILL", ",KILL" };
	for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
		ck_assert_msg(ladder_parse(wrong[i], &ladder, NULL) == -EINVAL, "%s", wrong[i]);
}

/* The order's own runs as their variants, hooks as s, p and c, since the last look. */
static const char *spawned(void)
{
	static const char hooks[] = {
		[BATCH_HOOK_SETUP] = 's', [BATCH_HOOK_PREPARE] = 'p', [BATCH_HOOK_CLEANUP] = 'c'
	};
	static char text[16];
	size_t n = 0;
	for (size_t i = 0; i < wanted.count && n + 1 < sizeof(text); i++) {
		const struct batch_trial *trial = &wanted.items[i].outcome.trial;
		if (wanted.items[i].type == BATCH_SPAWN)
			text[n++] = trial->hook	     ? hooks[trial->hook]
				    : trial->variant ? trial->variant
						     : 'x';
	}
	text[n] = '\0';
	wanted.count = 0;
	return text;
}

TEST(variants_run_in_blocks_with_their_hooks_around_them)
{
	struct batch_opts opts = options();
	opts.hooks[BATCH_HOOK_SETUP] = opts.hooks[BATCH_HOOK_PREPARE] =
		opts.hooks[BATCH_HOOK_CLEANUP] = true;
	struct repeat_rules rules;
	repeat_rules_init(&rules);
	rules.runs = 2;
	rules.variants = 2;
	struct repeat repeat;
	repeat_init(&repeat, &rules);
	orders[0].repeat = &repeat;
	begin(&opts, 1);
	static const char expected[] = "spApBpBpAc";
	for (size_t i = 0; i < strlen(expected); i++) {
		const char *text = spawned();
		ck_assert_uint_eq(strlen(text), 1);
		ck_assert_int_eq(text[0], expected[i]);
		ends(0, 0, false, (i + 1) * S);
	}
	ck_assert(batch.ended);
	ck_assert_uint_eq(list.ok, 1);
	repeat_done(&repeat);
	batch_end();
}

TEST(a_hook_that_fails_fails_its_order_without_a_retry_and_cleanup_still_runs)
{
	struct batch_opts opts = options();
	opts.hooks[BATCH_HOOK_PREPARE] = opts.hooks[BATCH_HOOK_CLEANUP] = true;
	orders[0].retries = 3;
	begin(&opts, 1);
	ck_assert_str_eq(spawned(), "p");
	ends(0, 1, false, S);
	ck_assert_str_eq(spawned(), "c");
	ends(0, 0, false, 2 * S);
	ck_assert(batch.ended);
	ck_assert_uint_eq(list.failed, 1);
	batch_end();
}

TEST(an_interrupt_during_a_hook_is_not_a_result_of_the_order)
{
	struct batch_opts opts = options();
	opts.hooks[BATCH_HOOK_PREPARE] = true;
	begin(&opts, 1);
	step(BATCH_INTERRUPT, 0, S);
	wanted.count = 0;
	ends(0, 0, false, 2 * S);
	ck_assert_uint_eq(list.ok + list.failed, 0);
	ck_assert(batch.ended);
	batch_end();
}

TEST(starts_are_a_delay_apart)
{
	struct batch_opts opts = options();
	opts.start_delay_ns = 5 * S;
	begin(&opts, 2);
	ck_assert_str_eq(told(), "spawn0");
	ck_assert_uint_eq(batch_next_deadline(&batch), 5 * S);
	step(BATCH_TICK, 0, 4 * S);
	ck_assert_str_eq(told(), "");
	step(BATCH_TICK, 0, 5 * S);
	ck_assert_str_eq(told(), "spawn1");
	ck_assert_uint_eq(batch_next_deadline(&batch), NS_NEVER);
	batch_end();
}

static void host_is(uint64_t memory_free, double load, uint64_t now)
{
	struct batch_event event = {
		.type = BATCH_HOST, .slot = -1, .memory_free = memory_free, .load = load
	};
	batch_tell(&event, now);
}

TEST(a_guarded_batch_looks_at_the_host_before_every_start)
{
	struct batch_opts opts = options();
	opts.memory_free = 100;
	opts.load = 3;
	begin(&opts, 3);
	ck_assert_str_eq(told(), "host");
	host_is(99, 0, 0);
	ck_assert_str_eq(told(), "");
	ck_assert_uint_eq(batch_next_deadline(&batch), BATCH_HOST_PERIOD_NS);
	step(BATCH_TICK, 0, BATCH_HOST_PERIOD_NS);
	ck_assert_str_eq(told(), "host");
	host_is(100, 2.9, S);
	ck_assert_str_eq(told(), "spawn0 host");
	host_is(1000, 3, S);
	ck_assert_str_eq(told(), "");
	ends(0, 0, false, S);
	ck_assert_str_eq(told(), "finish0:ok");
	ck_assert(!batch.ended);
	batch_end();
}

TEST(either_limit_guards_a_batch)
{
	for (int i = 0; i < 2; i++) {
		struct batch_opts opts = options();
		opts.memory_free = i ? 100 : 0;
		opts.load = i ? 0 : 0.5;
		begin(&opts, 1);
		ck_assert_str_eq(told(), "host");
		ck_assert(!batch_waits_for_host(&batch)); /* it is not known yet */
		host_is(i ? 99 : 0, i ? 100 : 0.5, 0);
		ck_assert_str_eq(told(), "");
		ck_assert(batch_waits_for_host(&batch));
		step(BATCH_TICK, 0, BATCH_HOST_PERIOD_NS);
		ck_assert_str_eq(told(), "host");
		ck_assert(!batch_waits_for_host(&batch));
		host_is(100, 0.4, S);
		ck_assert_str_eq(told(), "spawn0");
		ck_assert(!batch_waits_for_host(&batch)); /* nothing is left to start */
		batch_end();
	}
}

TEST(a_batch_that_waits_between_starts_does_not_wait_for_the_host)
{
	struct batch_opts opts = options();
	opts.memory_free = 100;
	opts.start_delay_ns = S;
	begin(&opts, 3);
	host_is(100, 0, 0);
	ck_assert_str_eq(told(), "host spawn0");
	ck_assert_uint_gt(batch.hold_ns, 0);
	batch.host_ok = true;
	ck_assert(!batch_waits_for_host(&batch));
	batch_end();
}

TEST(a_batch_whose_slots_are_taken_does_not_wait_for_the_host)
{
	struct batch_opts opts = options();
	opts.jobs = 1;
	opts.memory_free = 100;
	opts.start_delay_ns = S;
	begin(&opts, 2);
	host_is(100, 0, 0);
	ck_assert_str_eq(told(), "host spawn0");
	ck_assert_uint_gt(batch.hold_ns, 0);
	ck_assert(!batch_waits_for_host(&batch));
	batch_end();
}

TEST(cpu_time_of_a_pinned_order_is_that_of_its_cores)
{
	static const struct {
		int cores, cpus;
		uint64_t first_look_ns;
	} cases[] = { { 2, 1, 10 * S }, { 2, 0, 5 * S }, { 1, 0, 10 * S } };
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		struct batch_opts opts = options();
		orders[0].cpu_timeout_ns = 10 * S;
		batch_make(&opts, cases[i].cores, 1);
		pool.units[0].cpu_count = cases[i].cpus;
		step(BATCH_START, 0, 0);
		ck_assert_uint_eq(batch_next_deadline(&batch), cases[i].first_look_ns);
		told();
		batch_end();
	}
	orders[0].cpu_timeout_ns = 0;
}

TEST(an_order_that_has_ended_well_is_good_though_all_is_killed_before_its_last_process_is_gone)
{
	struct batch_opts opts = options();
	opts.hooks[BATCH_HOOK_CLEANUP] = true;
	begin(&opts, 1);
	ends(0, 0, true, S);
	ck_assert_str_eq(told(), "spawn0 kill0");
	step(BATCH_FATAL, -1, S);
	ck_assert_str_eq(told(), "kill0");
	step(BATCH_EMPTY, 0, 2 * S);
	ck_assert_str_eq(told(), "finish0:ok end"); /* nor is there time to clean up */
	ck_assert_uint_eq(list.ok, 1);
	batch_end();
}

TEST(an_end_that_nobody_knows_is_a_lost_one)
{
	struct batch_opts opts = options();
	begin(&opts, 1);
	told();
	batch_tell(&(struct batch_event){ .type = BATCH_EXITED,
					  .slot = 0,
					  .status = { .kind = EXIT_UNKNOWN },
					  .empty = true },
		   S);
	ck_assert_str_eq(told(), "finish0:lost end");
	batch_end();
}

TEST(a_batch_that_is_drained_during_a_hook_does_not_run_the_order)
{
	struct batch_opts opts = options();
	opts.hooks[BATCH_HOOK_PREPARE] = true;
	begin(&opts, 1);
	told();
	step(BATCH_DRAIN, -1, S);
	ends(0, 0, false, 2 * S);
	ck_assert_str_eq(told(), "finish0:killed end");
	ck_assert_uint_eq(list.ok + list.failed, 0);
	batch_end();
}

TEST(what_a_precision_is_measured_from_are_the_durations_of_runs)
{
	struct batch_opts opts = options();
	struct repeat_rules rules;
	struct repeat repeat;
	repeat_rules_init(&rules);
	rules.precision = 0.01;
	repeat_init(&repeat, &rules);
	orders[0].repeat = &repeat;
	begin(&opts, 1);
	ends(0, 0, false, 5 * S);
	ck_assert_uint_eq(repeat.wall_count[0], 1);
	ck_assert_double_eq(repeat.walls[0][0], (double)S);
	told();
	orders[0].repeat = NULL;
	repeat_done(&repeat);
	batch_end();
}

TEST(a_drained_batch_lets_running_orders_end)
{
	struct batch_opts opts = options();
	begin(&opts, 3);
	told();
	step(BATCH_DRAIN, 0, S);
	ck_assert_str_eq(told(), "");
	ends(0, 0, false, S);
	ends(1, 0, false, S);
	ck_assert_str_eq(told(), "finish0:ok finish1:ok end");
	ck_assert_uint_eq(list.ok, 2);
	batch_end();
}

TEST(with_ignored_failures_any_exit_code_is_good)
{
	struct batch_opts opts = options();
	opts.ignore_exit = true;
	begin(&opts, 2);
	told();
	ends(0, 3, false, S);
	ck_assert_str_eq(told(), "finish0:ok");
	dies(1, SIGSEGV, false, S);
	ck_assert_str_eq(told(), "finish1:signal end");
	ck_assert_uint_eq(list.failed, 1);
	batch_end();
}

/* ---- orders that come one by one ---- */

static void offer(struct batch_order *order, uint64_t number, uint64_t now)
{
	uint32_t index = order->item.index;
	*order = (struct batch_order){
		.item = { .index = index, .width = 1 }, .runs = 1, .retries = 1, .number = number
	};
	struct batch_event event = { .type = BATCH_OFFER, .slot = -1, .order = order };
	batch_tell(&event, now);
}

TEST(an_open_list_asks_for_as_many_orders_as_there_are_jobs_ahead)
{
	struct batch_opts opts = options();
	list_opts.open = true;
	begin(&opts, 6);
	ck_assert_str_eq(told(), "fetch");
	offer(&orders[0], 0, S);
	ck_assert_str_eq(told(), "spawn0 fetch");
	offer(&orders[1], 1, S);
	offer(&orders[2], 2, S);
	ck_assert_str_eq(told(), "spawn1 fetch fetch");
	offer(&orders[3], 3, S);
	ck_assert_str_eq(told(), ""); /* two run, two wait */
	ends(0, 0, false, 2 * S);
	ck_assert_str_eq(told(), "finish0:ok spawn0 fetch");
	ck_assert_uint_eq(batch_eta(&batch, 2 * S), NS_NEVER);
	ends(0, 0, false, 2 * S);
	ends(1, 0, false, 2 * S);
	told();
	step(BATCH_CLOSED, -1, 2 * S);
	ck_assert_str_eq(told(), "");
	ends(0, 0, false, 3 * S);
	ck_assert_str_eq(told(), "finish0:ok end");
	ck_assert_uint_eq(list.ok, 4);
	ck_assert_uint_eq(list.total, 4);
	batch_end();
}

TEST(an_open_list_uses_the_place_of_an_order_again_only_when_that_is_over)
{
	struct batch_opts opts = options();
	list_opts.open = true;
	begin(&opts, 2);
	told();
	offer(&orders[0], 0, S);
	ends(0, 1, false, S); /* waits for its second attempt */
	offer(&orders[1], 1, S);
	ck_assert_str_eq(told(), "spawn0 fetch finish0:exit spawn0");
	ends(0, 0, false, S);
	ck_assert_str_eq(told(), "finish0:ok fetch");
	step(BATCH_TICK, -1, 3 * S);
	ck_assert_str_eq(told(), "spawn0");
	step(BATCH_CLOSED, -1, 3 * S);
	ends(0, 0, false, 4 * S);
	ck_assert_str_eq(told(), "finish0:ok end");
	batch_end();
}

TEST(an_open_list_that_is_stopped_asks_for_no_more)
{
	struct batch_opts opts = options();
	list_opts.open = true;
	begin(&opts, 6);
	offer(&orders[0], 0, S);
	told();
	step(BATCH_DRAIN, -1, S);
	ends(0, 0, false, 2 * S);
	ck_assert_str_eq(told(), "finish0:ok end");
	batch_end();
}

static void discard(struct batch_order *order, uint64_t now)
{
	struct batch_event event = { .type = BATCH_DISCARD, .slot = -1, .order = order };
	batch_tell(&event, now);
}

TEST(an_order_that_is_discarded_before_its_retry_never_starts_again)
{
	struct batch_opts opts = options();
	list_opts.open = true;
	begin(&opts, 1);
	offer(&orders[0], 0, S);
	ends(0, 1, false, 2 * S);
	told();
	discard(&orders[0], 2 * S);
	ck_assert_str_eq(told(), "fetch"); /* its place is free */
	ck_assert_uint_eq(batch_next_deadline(&batch), NS_NEVER);
	step(BATCH_TICK, -1, 9 * S);
	ck_assert_str_eq(told(), "");
	step(BATCH_CLOSED, -1, 9 * S);
	ck_assert_str_eq(told(), "end");
	batch_end();
}

TEST(an_order_that_is_discarded_in_the_queue_never_starts)
{
	struct batch_opts opts = options();
	list_opts.open = true;
	opts.jobs = 1;
	begin(&opts, 2);
	offer(&orders[0], 0, S);
	offer(&orders[1], 1, S);
	told();
	discard(&orders[1], S);
	ck_assert_str_eq(told(), "fetch");
	step(BATCH_CLOSED, -1, S);
	ends(0, 0, false, 2 * S);
	ck_assert_str_eq(told(), "finish0:ok end");
	batch_end();
}

TEST(an_order_that_is_discarded_while_it_runs_is_killed_and_has_no_result)
{
	struct batch_opts opts = options();
	list_opts.open = true;
	begin(&opts, 2);
	offer(&orders[0], 0, S);
	offer(&orders[1], 1, S);
	told();
	discard(&orders[1], S);
	ck_assert_str_eq(told(), "kill1");
	dies(1, SIGKILL, false, S);
	ck_assert(!wanted.items[0].outcome.final && !wanted.items[0].outcome.retry);
	ck_assert_str_eq(told(), "finish1:killed");
	step(BATCH_CLOSED, -1, S);
	ends(0, 0, false, 2 * S);
	ck_assert_str_eq(told(), "finish0:ok end");
	batch_end();
}

TEST(an_empty_open_list_ends_at_once)
{
	struct batch_opts opts = options();
	list_opts.open = true;
	begin(&opts, 6);
	step(BATCH_CLOSED, -1, S);
	ck_assert_str_eq(told(), "fetch end");
	batch_end();
}

TEST(an_order_with_more_memory_than_allowed_is_killed_at_once)
{
	struct batch_opts opts = options();
	opts.memory_period_ns = S / 10;
	orders[0].memory_limit = 100;
	begin(&opts, 1);
	ck_assert_uint_eq(batch_next_deadline(&batch), S / 10);
	step(BATCH_TICK, -1, S / 10);
	ck_assert_str_eq(told(), "spawn0 memory0");
	struct batch_event used = { .type = BATCH_MEMORY_USED, .slot = 0, .memory = 100 };
	batch_tell(&used, S / 10);
	ck_assert_str_eq(told(), "");
	ck_assert_uint_eq(batch_next_deadline(&batch), S / 5);
	used.memory = 101;
	batch_tell(&used, S / 5);
	ck_assert_str_eq(told(), "kill0");
	dies(0, SIGKILL, false, S);
	ck_assert_str_eq(told(), "finish0:oom end");
	orders[0].memory_limit = 0;
	batch_end();
}

TEST(a_run_that_is_slowed_down_has_a_timed_one_before_it_whose_times_count)
{
	struct batch_opts opts = options();
	opts.hooks[BATCH_HOOK_PREPARE] = opts.hooks[BATCH_HOOK_TIMED] = true;
	begin(&opts, 1);
	ck_assert_int_eq(wanted.items[0].outcome.trial.hook, BATCH_HOOK_PREPARE);
	told();
	ends(0, 0, false, S);
	ck_assert_int_eq(wanted.items[0].outcome.trial.hook, BATCH_HOOK_TIMED);
	told();
	ends(0, 0, false, 2 * S);
	ck_assert_int_eq(wanted.items[0].outcome.trial.hook, BATCH_HOOK_PREPARE);
	told();
	ends(0, 0, false, 3 * S);
	ck_assert_int_eq(wanted.items[0].outcome.trial.hook, BATCH_HOOK_NONE);
	told();
	ends(0, 0, false, 40 * S);
	ck_assert_uint_eq(wanted.items[0].outcome.start_ns, S);
	ck_assert_uint_eq(wanted.items[0].outcome.end_ns, 2 * S);
	ck_assert_str_eq(told(), "finish0:ok end");
	batch_end();
}

TEST(a_timed_run_that_fails_is_tried_again)
{
	struct batch_opts opts = options();
	opts.hooks[BATCH_HOOK_TIMED] = true;
	orders[0].retries = 1;
	begin(&opts, 1);
	ends(0, 3, false, S);
	ck_assert_str_eq(told(), "spawn0 finish0:exit");
	step(BATCH_TICK, -1, 3 * S);
	ends(0, 0, false, 4 * S);
	ends(0, 0, false, 5 * S);
	ck_assert_str_eq(told(), "spawn0 spawn0 finish0:ok end");
	orders[0].retries = 0;
	batch_end();
}
