/* `muster batch` from its command line to the runner: orders, history, cores, result file. */
#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "batch/config.h"
#include "batch/host.h"
#include "batch/load.h"
#include "batch/load_ab.h"
#include "batch/runner.h"
#include "core/worker/exit_code.h"
#include "proto/result.h"
#include "sys/topology.h"
#include "sys/warden.h"

#define WARDENS_MAX 1024
#define IMPLICIT_GROUPS_MAX 1024
#define CANARY_TIMEOUT_NS (60 * NS_PER_S)
#define STOP_LADDER "INT,10000,KILL"
#define QUIET_WAIT_NS (600 * NS_PER_S) /* the longest wait of --quiet-check=wait */

/* How often one order runs, when that is not a fixed number. */
struct repetition {
	struct repeat_rules rules;
	struct repeat repeat;
};

/* Everything that lives as long as the batch. */
struct setup {
	const struct batch_config *config;
	struct warden **wardens;
	int warden_count;
	struct orders orders;
	struct pasts history;
	struct batch_order *todo;
	size_t todo_count, already_done;
	struct map groups, programs; /* name -> number as a pointer */
	uint32_t group_count, gate_count;
	struct plan plan;
	struct journal journal;
	uint64_t keep; /* bytes of the result file to keep */
	struct measure measure;
	struct repetition *repetitions; /* one per order, or NULL */
	struct orders hooks;		/* commands by enum batch_hook */
	/* of --ab: from here on the orders are variants B; 0: none */
	size_t pairs;
	struct archive_key key; /* under which the result is filed */
	size_t orders_listed;	/* without variants B and the canary */
};

static void setup_done(struct setup *setup)
{
	for (int i = 0; i < setup->warden_count; i++)
		warden_free(setup->wardens[i]);
	free(setup->wardens);
	orders_done(&setup->orders);
	orders_done(&setup->hooks);
	pasts_done(&setup->history);
	free(setup->todo);
	map_done(&setup->groups);
	map_done(&setup->programs);
	plan_done(&setup->plan);
	journal_done(&setup->journal);
	for (size_t i = 0; setup->repetitions && i < setup->orders_listed; i++)
		repeat_done(&setup->repetitions[i].repeat);
	free(setup->repetitions);
	measure_done(&setup->measure);
	archive_key_done(&setup->key);
}

/* The wardens come first, while this process is small: every order's max RSS includes its size. */
static int fork_wardens(struct setup *setup, struct err *err)
{
	const struct batch_config *config = setup->config;
	struct cpuset affinity;
	int r = topology_affinity(&affinity, err);
	if (r < 0)
		return r;
	int cpus = cpuset_count(&affinity);
	int64_t wanted = config->jobs ? config->jobs : cpus;
	if (config->jobs_percent > 0)
		wanted = (int64_t)(cpus * config->jobs_percent / 100) + 1;
	wanted = MIN(MAX(wanted, (int64_t)1), (int64_t)WARDENS_MAX);
	setup->wardens = mem_alloc((size_t)wanted * sizeof(*setup->wardens));
	for (; setup->warden_count < wanted; setup->warden_count++) {
		r = warden_new(NULL, &setup->wardens[setup->warden_count], err);
		if (r < 0)
			return r;
	}
	return 0;
}

/* ---- the orders ---- */

static bool file_has_content(const char *path)
{
	struct stat info;
	return stat(path, &info) == 0 && info.st_size > 0;
}

static int read_history(struct setup *setup, struct err *err)
{
	const struct batch_config *config = setup->config;
	bool goes_on = config->resume || config->retry_failed;
	for (size_t i = 0; i < config->history.count; i++) {
		struct pasts *history = &setup->history;
		if (goes_on && config->output && str_eq(config->output, config->history.items[i]))
			continue;
		int r = pasts_read(history, config->history.items[i], NULL, err);
		if (r < 0)
			return r;
	}
	/* Only our own file says which runs are done; others only tell how long they take. */
	map_foreach(entry, &setup->history.by_hash)
	{
		struct past *past = entry->value;
		past->next_run = 0;
		past->failed = false;
	}
	if (goes_on && file_has_content(config->output))
		return pasts_read(&setup->history, config->output, &setup->keep, err);
	return 0;
}

static int read_orders(struct setup *setup, int argc, char *const *argv, struct err *err)
{
	if (setup->config->retry_failed && argc == 0)
		return load_failed(&setup->orders, setup->config->output, &setup->history, err);
	if (setup->config->ab)
		return load_ab(&setup->orders, argc, argv, &setup->pairs, err);
	return load_orders(&setup->orders, setup->config, argc, argv, err);
}

/* The number of a name, counted from 1; 0 once there are more than `max`. */
static uint32_t number_of(struct map *map, uint32_t *count, const char *name, uint32_t max)
{
	uintptr_t number = (uintptr_t)map_get(map, name, strlen(name));
	if (!number && *count < max) {
		number = ++*count;
		map_put(map, name, strlen(name), (void *)number);
	}
	return (uint32_t)number;
}

/* The first word of the command. */
static char *program_of(const struct order *order)
{
	if (order->argv)
		return mem_strdup(order->argv[0]);
	return mem_strndup(order->shell, strcspn(order->shell, " \t"));
}

static void set_limits(struct batch_order *todo, const struct order *order,
		       const struct batch_config *config)
{
	todo->timeout_ns = order->timeout_ns ? order->timeout_ns : config->timeout_ns;
	todo->timeout_percent =
		order->timeout_percent ? order->timeout_percent : config->timeout_percent;
	if (order->timeout_percent)
		todo->timeout_ns = 0;
	else if (order->timeout_ns)
		todo->timeout_percent = 0;
	todo->cpu_timeout_ns =
		order->cpu_timeout_ns ? order->cpu_timeout_ns : config->cpu_timeout_ns;
	todo->retries = order->retries >= 0 ? order->retries : (int32_t)config->retries;
	todo->runs = order->runs ? order->runs : (int32_t)config->runs;
	todo->warmup = (int32_t)config->warmup;
	todo->item.width = order->cores ? order->cores : (int)config->cores;
}

/* "auto": the first order of every program runs before the others. */
static void set_gate(struct setup *setup, struct batch_order *todo, const char *program)
{
	const char *canary = setup->config->canary;
	if (!canary)
		return;
	if (!str_eq(canary, "auto")) {
		todo->gate = setup->gate_count = 1;
		return;
	}
	uint32_t known = setup->gate_count;
	uint32_t gate = number_of(&setup->programs, &setup->gate_count, program, UINT32_MAX - 1);
	*(gate > known ? &todo->opens : &todo->gate) = gate;
}

static bool repeats_freely(const struct batch_config *config)
{
	return config->ab || config->runs == 0;
}

static void set_repeat(struct setup *setup, struct batch_order *todo, size_t index)
{
	const struct batch_config *config = setup->config;
	struct repetition *repetition = &setup->repetitions[index];
	struct repeat_rules *rules = &repetition->rules;
	repeat_rules_init(rules);
	rules->runs = (uint32_t)todo->runs;
	rules->warmup = (uint32_t)config->warmup;
	rules->min_runs = config->min_runs ? (uint32_t)config->min_runs : REPEAT_MIN_RUNS;
	rules->max_runs = (uint32_t)config->max_runs;
	rules->min_runs = rules->max_runs ? MIN(rules->min_runs, rules->max_runs) : rules->min_runs;
	rules->precision = config->precision;
	rules->confidence = config->confidence;
	rules->variants = config->ab;
	rules->interleave = (enum repeat_interleave)config->interleave;
	rules->seed = (uint64_t)config->seed + index;
	repeat_init(&repetition->repeat, rules);
	todo->repeat = &repetition->repeat;
	todo->runs =
		/* for the estimate of the remaining time */
		(int32_t)repeat_left(&repetition->repeat);
}

static void add_todo(struct setup *setup, size_t index)
{
	const struct order *order = &setup->orders.items[index];
	const struct batch_config *config = setup->config;
	const struct past *past = pasts_find(&setup->history, order);
	struct batch_order todo = { .item.index = (uint32_t)index };
	set_limits(&todo, order, config);
	if (past) {
		todo.estimate_ns = past_median_ns(past);
		bool wanted = config->retry_failed ? past->failed : past->next_run < todo.runs;
		if ((config->resume || config->retry_failed) && !wanted) {
			setup->already_done++;
			return;
		}
		if (config->resume || config->retry_failed)
			todo.run = past->next_run < todo.runs ? past->next_run : 0;
	} else if (config->retry_failed) {
		return; /* never tried */
	}
	AUTO_FREE char *program = program_of(order);
	const char *group = *order_group(order) ? order_group(order) : program;
	todo.group = number_of(&setup->groups, &setup->group_count, group, IMPLICIT_GROUPS_MAX);
	set_gate(setup, &todo, program);
	if (setup->repetitions)
		set_repeat(setup, &todo, index);
	setup->todo[setup->todo_count++] = todo;
}

/* A command that runs before everything else. */
static void add_canary(struct setup *setup)
{
	const char *command = setup->config->canary;
	if (!command || str_eq(command, "auto") || setup->todo_count == 0)
		return;
	struct order *order = orders_append(&setup->orders);
	order->id = mem_strdup("canary");
	order->shell = mem_strdup(command);
	order_close(order);
	struct batch_order *todo = &setup->todo[setup->todo_count++];
	*todo = (struct batch_order){ .item.index = (uint32_t)setup->orders.count - 1,
				      .opens = 1,
				      .is_canary = true };
	set_limits(todo, order, setup->config);
	todo->runs = 1;
	todo->warmup = 0;
	if (!todo->timeout_ns)
		todo->timeout_ns = CANARY_TIMEOUT_NS;
}

static void make_todo(struct setup *setup)
{
	setup->todo = NEW_ARRAY(struct batch_order, setup->orders.count + 1);
	setup->orders_listed = setup->pairs ? setup->pairs : setup->orders.count;
	if (repeats_freely(setup->config))
		setup->repetitions =
			mem_alloc((setup->orders_listed + 1) * sizeof(*setup->repetitions));
	for (size_t i = 0; i < setup->orders_listed; i++)
		add_todo(setup, i);
	add_canary(setup);
}

static int max_width(const struct setup *setup)
{
	int width = 1;
	for (size_t i = 0; i < setup->todo_count; i++)
		width = MAX(width, setup->todo[i].item.width);
	return width;
}

/* ---- running ---- */

static int open_journal(struct setup *setup, struct err *err)
{
	const struct batch_config *config = setup->config;
	bool goes_on = config->resume || config->retry_failed;
	AUTO(buf_done) struct buf header = BUF_INIT;
	host_header(&header, &setup->plan.topology, clock_wall_ns(), setup->plan.jobs);
	int r = journal_begin(&setup->journal, setup->keep, &header, err);
	if (r < 0)
		return r;
	r = journal_open_log(&setup->journal, config->joblog, goes_on, err);
	if (r < 0)
		return r;
	if (config->results && mkdir(config->results, 0777) < 0 && errno != EEXIST)
		return err_set(err, errno, "%s: %m", config->results);
	return 0;
}

static struct batch_opts make_opts(const struct setup *setup)
{
	const struct batch_config *config = setup->config;
	struct batch_opts opts = {
		.jobs = setup->plan.jobs,
		.order = (enum schedule_order)config->order,
		.seed = (uint64_t)config->seed,
		.retry_on = config->retry_on,
		.retry_delay_ns = config->retry_delay_ns,
		.timeout_ladder = config->ladder,
		.halt = config->halt,
		.deadline_ns =
			config->deadline_ns ? clock_now_ns() + config->deadline_ns : NS_NEVER,
		.groups = setup->group_count,
		.gates = setup->gate_count,
	};
	for (int i = 0; i < BATCH_HOOK_COUNT; i++)
		opts.hooks[i] = config->hooks[i] != NULL;
	ladder_parse(STOP_LADDER, &opts.stop_ladder, NULL);
	return opts;
}

static void make_hooks(struct setup *setup)
{
	for (int i = 0; i < BATCH_HOOK_COUNT; i++) {
		struct order *hook = orders_append(&setup->hooks);
		hook->shell = mem_strdup(setup->config->hooks[i] ? setup->config->hooks[i] : "");
		order_close(hook);
	}
}

static struct cpuset measured_cpus(const struct plan *plan)
{
	struct cpuset cpus = CPUSET_INIT;
	for (int i = 0; i < plan->pool.count; i++)
		for (int k = 0; k < plan->pool.units[i].cpu_count; k++)
			cpuset_add(&cpus, plan->pool.units[i].cpus[k]);
	return cpus;
}

/* Keeps the two variants of an A/B file apart. */
static int export_results(const struct batch_config *config, struct err *err)
{
	struct samples samples = SAMPLES_INIT;
	int r = samples_load(&samples, config->output, err);
	if (r < 0)
		return r;
	struct export_part parts[] = { { &samples, config->ab ? 'A' : 0, config->ab ? "A" : NULL },
				       { &samples, 'B', "B" } };
	struct export_source source = { .parts = parts, .count = config->ab ? 2 : 1 };
	r = export_write(&config->exports, &source, err);
	samples_done(&samples);
	return r;
}

/* The runs before an interrupt are not a result of a version. */
static int file_results(const struct setup *setup, int code, struct err *err)
{
	const struct batch_config *config = setup->config;
	bool whole = code == EXIT_CODE_OK || code == EXIT_CODE_FAILED;
	return config->filing.dir && whole
		       ? archive_file(config->filing.dir, &setup->key, config->output, err)
		       : 0;
}

static int run(struct setup *setup)
{
	struct err err = ERR_INIT;
	struct cpuset cpus = measured_cpus(&setup->plan);
	measure_set_slots(&setup->measure, setup->plan.jobs);
	make_hooks(setup);
	int r = measure_quiet_start(&setup->measure, &cpus, QUIET_WAIT_NS, &err);
	if (r >= 0)
		r = open_journal(setup, &err);
	if (r < 0) {
		log_error("%s", err.msg);
		return r == -EEXIST ? EXIT_CODE_USAGE : EXIT_CODE_SYSTEM;
	}
	if (setup->plan.why_unpinned && !setup->config->quiet)
		log_warn("orders are not pinned to cores: %s", setup->plan.why_unpinned);
	for (; setup->warden_count > setup->plan.jobs; setup->warden_count--)
		warden_free(setup->wardens[setup->warden_count - 1]);
	struct runner_job job = {
		.config = setup->config,
		.orders = &setup->orders,
		.batch_orders = setup->todo,
		.count = setup->todo_count,
		.plan = &setup->plan,
		.opts = make_opts(setup),
		.journal = &setup->journal,
		.wardens = setup->wardens,
		.already_done = setup->already_done,
		.measure = &setup->measure,
		.hooks = &setup->hooks,
		.b_offset = setup->pairs,
	};
	int code = runner_run(&job);
	setup->warden_count = 0; /* the runner has freed them */
	r = export_wanted(&setup->config->exports) ? export_results(setup->config, &err) : 0;
	if (r >= 0)
		r = file_results(setup, code, &err);
	if (r < 0) {
		log_error("%s", err.msg);
		return EXIT_CODE_SYSTEM;
	}
	return code;
}

/* Times and counts, and counts of different sources, are different configurations. */
static const char *configuration(const struct measure *measure)
{
	return measure->source == COUNTER_NONE ? "time" : counter_source_name(measure->source);
}

static int prepare(struct setup *setup, int argc, char *const *argv, struct err *err)
{
	const struct batch_config *config = setup->config;
	if (!config->dry_run) {
		int r = measure_init(&setup->measure, &config->measure, err);
		if (r >= 0)
			r = fork_wardens(setup, err);
		if (r < 0)
			return r;
		r = journal_open(&setup->journal, config->output,
				 config->resume || config->retry_failed, err);
		if (r < 0)
			return r;
	}
	/* Before anything runs: hours of measuring must not end with "which version?". */
	int r = config->filing.dir ? archive_key_make(&setup->key, &config->filing,
						      configuration(&setup->measure), err)
				   : 0;
	if (r >= 0)
		r = read_history(setup, err);
	if (r >= 0)
		r = read_orders(setup, argc, argv, err);
	if (r < 0)
		return r;
	make_todo(setup);
	int most = config->dry_run ? WARDENS_MAX : setup->warden_count;
	int jobs = (int)MIN((uint64_t)most, MAX((uint64_t)setup->todo_count, (uint64_t)1));
	return plan_make(&setup->plan, config, max_width(setup), jobs, err);
}

int batch_run(const struct batch_config *config, int argc, char *const *argv)
{
	AUTO(setup_done)
	struct setup setup = { .config = config, .history = PASTS_INIT, .journal = JOURNAL_INIT };
	struct err err = ERR_INIT;
	int r = prepare(&setup, argc, argv, &err);
	if (r < 0) {
		fprintf(stderr, "muster batch: %s\n", err.msg);
		bool system =
			r == -ENOMEM || r == -EAGAIN || r == -EMFILE || r == -EIO || r == -ENOSPC;
		return system ? EXIT_CODE_SYSTEM : EXIT_CODE_USAGE;
	}
	if (config->dry_run) {
		plan_print(&setup.plan, setup.todo, setup.todo_count, stdout);
		return EXIT_CODE_OK;
	}
	return run(&setup);
}
