/* `muster batch` from its command line to the runner: orders, history, cores, result file. */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "batch/config.h"
#include "batch/args/load_args.h"
#include "batch/host.h"
#include "batch/load.h"
#include "batch/load_ab.h"
#include "batch/many/many.h"
#include "batch/many/order_needs.h"
#include "batch/dispatch.h"
#include "batch/show/table.h"
#include "core/worker/exit_code.h"
#include "proto/result.h"
#include "sys/hwloc_topology.h"
#include "sys/start/start_ring.h"
#include "sys/warden.h"

#define WARDENS_MAX 1024
#define IMPLICIT_GROUPS_MAX 1024
#define CANARY_TIMEOUT_NS (60 * NS_PER_S)
#define STOP_LADDER "INT,10000,KILL"
#define MEMORY_PERIOD_NS (100 * NS_PER_MS) /* the kernel has no event for it without a cgroup */
#define QUIET_WAIT_NS (600 * NS_PER_S)	   /* the longest wait of --quiet-check=wait */

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
	struct start_ring *ring; /* of all wardens; NULL: none */
	struct orders orders;
	struct pasts history;
	struct batch_order *todo;
	size_t todo_count, already_done;
	struct order_kinds kinds; /* of the orders to do */
	struct map groups;	  /* name -> number as a pointer */
	/* the line that a canary runs, or with "auto" what it stands for -> its gate */
	struct map gates;
	uint32_t group_count, gate_count;
	struct batch_plan plan;
	struct journal journal;
	uint64_t keep; /* bytes of the result file to keep */
	struct measure measure;
	struct repetition *repetitions; /* one per order, or NULL */
	struct orders hooks;		/* commands by enum batch_hook */
	struct pipe_orders pipe;	/* --pipe */
	struct memory_base memory;	/* --memory-limit */
	/* of --ab: as many orders of each variant, A first; 0: there are none */
	size_t pairs;
	uint32_t variants;
	char host_name[NEEDS_NAME_MAX];
	struct archive_key key; /* under which the result is filed */
	size_t orders_listed;	/* without variants B and the canary */
	/* On many hosts: */
	struct many *many;
	struct batch_config resuming; /* of a coordinator that takes over */
	struct repetition *given;     /* of the orders that this host was given, or NULL */
	size_t given_count;
	int argc;
	char *const *argv;
};

static void setup_done(struct setup *setup)
{
	for (int i = 0; i < setup->warden_count; i++)
		warden_free(setup->wardens[i]);
	free(setup->wardens);
	start_ring_free(setup->ring);
	pipe_orders_done(&setup->pipe);
	orders_done(&setup->orders);
	orders_done(&setup->hooks);
	pasts_done(&setup->history);
	free(setup->todo);
	order_kinds_done(&setup->kinds);
	map_done(&setup->groups);
	map_done(&setup->gates);
	plan_done(&setup->plan);
	journal_done(&setup->journal);
	for (size_t i = 0; setup->repetitions && i < setup->orders_listed; i++)
		repeat_done(&setup->repetitions[i].repeat);
	free(setup->repetitions);
	for (size_t i = 0; i < setup->given_count; i++)
		repeat_done(&setup->given[i].repeat);
	free(setup->given);
	memory_base_done(&setup->memory);
	many_free(setup->many);
	measure_done(&setup->measure);
	archive_key_done(&setup->key);
}

/* Whether orders may lie ahead: those that have their files and their environment from the order
 * before, and of which only the end is measured. core/batch has rules of its own. */
static bool can_lay(const struct setup *setup)
{
	const struct batch_config *config = setup->config;
	const struct measure *measure = &setup->measure;
	return !config->rdzv && !config->args.pipe && !config->results && !config->ungroup &&
	       !config->line_buffer && !config->watch_memory && !measure_env(measure) &&
	       measure->source == COUNTER_NONE && measure->options->quiet == QUIET_CHECK_OFF;
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
	setup->ring = can_lay(setup) ? start_ring_new() : NULL;
	for (; setup->warden_count < wanted; setup->warden_count++) {
		const struct warden_opts opts = { .ring = setup->ring,
						  .taker = setup->warden_count };
		r = warden_new(&opts, &setup->wardens[setup->warden_count], err);
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

static int load_variants(struct setup *setup, int argc, char *const *argv, struct err *err)
{
	int r = load_ab(&setup->orders, argc, argv, &setup->pairs, err);
	setup->variants = r > 0 ? (uint32_t)r : 0;
	for (size_t i = 0; r > 0 && setup->config->ab_dirs && i < setup->orders.count; i++) {
		struct order *order = &setup->orders.items[i];
		order_extra(order)->cwd = mem_strdup(setup->config->ab_dirs[i / setup->pairs]);
		order_close(order);
	}
	return r < 0 ? r : 0;
}

static int read_orders(struct setup *setup, int argc, char *const *argv, struct err *err)
{
	const struct batch_config *config = setup->config;
	const char *part = config->part ? config->part->order : NULL;
	for (uint32_t i = 0; part && i < config->rdzv->max_nodes; i++) {
		int r = orders_add_line(&setup->orders, part, strlen(part), 0, err);
		if (r < 0)
			return r;
	}
	if (part)
		return 0;
	if (config->ab)
		return load_variants(setup, argc, argv, err);
	if (config->args.pipe) {
		size_t places = (size_t)MAX(setup->warden_count, 1) * PIPE_PLACES_PER_JOB;
		return pipe_orders_init(&setup->pipe, config, argc, argv, &setup->orders, places,
					err);
	}
	int r = config->retry_failed && argc == 0
			? load_failed(&setup->orders, config->output, &setup->history, err)
			: load_orders(&setup->orders, config, argc, argv, err);
	size_t listed = setup->orders.count;
	orders_filter(&setup->orders, &config->filter);
	if (r >= 0 && listed > 0 && setup->orders.count == 0)
		return err_set(err, ENODATA, "no order of %zu passes --filter", listed);
	return r;
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
	todo->memory_limit = config->memory_limit;
	todo->retries = order->retries >= 0 ? order->retries : (int32_t)config->retries;
	todo->runs = order->runs ? order->runs : (int32_t)config->runs;
	todo->warmup = (int32_t)config->warmup;
	todo->item.width = order->cores ? order->cores : (int)config->cores;
}

/* The canary in the environment of an order; in both environments of a pair. */
static char *canary_line(const struct setup *setup, size_t index)
{
	const char *canary = setup->config->canary;
	const char *source = order_source(&setup->orders.items[index]);
	const char *other =
		setup->pairs ? order_source(&setup->orders.items[index + setup->pairs]) : source;
	if (!str_eq(source, other))
		return mem_printf("( %s && %s ) && ( %s && %s )", *source ? source : ":", canary,
				  *other ? other : ":", canary);
	return *source ? mem_printf("%s && %s", source, canary) : mem_strdup(canary);
}

/* A command runs once with every source command; "auto": the first order of every program, in every
 * environment, runs before the others. */
static void set_gate(struct setup *setup, struct batch_order *todo, size_t index,
		     const char *program)
{
	if (!setup->config->canary)
		return;
	bool automatic = str_eq(setup->config->canary, "auto");
	AUTO_FREE char *name =
		automatic ? mem_printf("%s\n%s", order_source(&setup->orders.items[index]), program)
			  : canary_line(setup, index);
	uint32_t known = setup->gate_count;
	uint32_t gate = number_of(&setup->gates, &setup->gate_count, name, UINT32_MAX - 1);
	*(automatic && gate > known ? &todo->opens : &todo->gate) = gate;
}

static bool repeats_freely(const struct batch_config *config)
{
	return config->ab || config->runs == 0;
}

static void set_repeat(const struct setup *setup, struct batch_order *todo,
		       struct repetition *repetition, uint32_t variants, uint64_t number)
{
	const struct batch_config *config = setup->config;
	struct repeat_rules *rules = &repetition->rules;
	repeat_rules_init(rules);
	rules->runs = (uint32_t)todo->runs;
	rules->warmup = (uint32_t)config->warmup;
	rules->min_runs = config->min_runs ? (uint32_t)config->min_runs : REPEAT_MIN_RUNS;
	rules->max_runs = (uint32_t)config->max_runs;
	rules->min_runs = rules->max_runs ? MIN(rules->min_runs, rules->max_runs) : rules->min_runs;
	rules->precision = config->precision;
	rules->confidence = config->confidence;
	rules->variants = variants;
	rules->interleave = (enum repeat_interleave)config->interleave;
	rules->seed = (uint64_t)config->seed + number;
	repeat_init(&repetition->repeat, rules);
	todo->repeat = &repetition->repeat;
	todo->runs =
		/* for the estimate of the remaining time */
		(int32_t)repeat_left(&repetition->repeat);
}

/* Or it has an environment or an input of its own, which is sent to its slot. */
static bool depends_on_slot(const struct order *order)
{
	const struct order_extra *extra = order->extra;
	return order->uses_slot || (extra && (extra->env.count > 0 || extra->stdin_path));
}

static void add_todo(struct setup *setup, size_t index)
{
	const struct order *order = &setup->orders.items[index];
	const struct batch_config *config = setup->config;
	const struct past *past = pasts_find(&setup->history, order);
	struct batch_order todo = { .item.index = (uint32_t)index, .number = index };
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
	AUTO_FREE char *program = order_program(order);
	const char *group = *order_group(order) ? order_group(order) : program;
	todo.group = number_of(&setup->groups, &setup->group_count, group, IMPLICIT_GROUPS_MAX);
	set_gate(setup, &todo, index, program);
	todo.alone = depends_on_slot(order);
	todo.item.kind = order_kinds_add(&setup->kinds, order, todo.item.width);
	if (setup->repetitions)
		set_repeat(setup, &todo, &setup->repetitions[index], setup->variants, index);
	setup->todo[setup->todo_count++] = todo;
}

/* A command that runs before the orders of its gate. */
static void add_canary(struct setup *setup, const char *line, uint32_t gate)
{
	struct order *order = orders_append(&setup->orders);
	order->id = gate == 1 ? mem_strdup("canary") : mem_printf("canary-%u", gate);
	order->shell = mem_strdup(line);
	order_close(order);
	struct batch_order *todo = &setup->todo[setup->todo_count++];
	*todo = (struct batch_order){ .item.index = (uint32_t)setup->orders.count - 1,
				      .number = setup->orders.count - 1,
				      .opens = gate,
				      .is_canary = true };
	set_limits(todo, order, setup->config);
	todo->runs = 1;
	todo->warmup = 0;
	if (!todo->timeout_ns)
		todo->timeout_ns = CANARY_TIMEOUT_NS;
	todo->item.kind = order_kinds_add(&setup->kinds, order, todo->item.width);
}

static void add_canaries(struct setup *setup)
{
	const char *canary = setup->config->canary;
	if (!canary || str_eq(canary, "auto"))
		return;
	map_foreach(entry, &setup->gates)
		add_canary(setup, entry->key, (uint32_t)(uintptr_t)entry->value);
}

static void make_todo(struct setup *setup)
{
	setup->orders_listed = setup->pairs ? setup->pairs : setup->orders.count;
	/* At most one canary for each. */
	size_t each = setup->config->canary ? 2 : 1;
	setup->todo = NEW_ARRAY(struct batch_order, each * setup->orders_listed + 1);
	if (repeats_freely(setup->config))
		setup->repetitions =
			mem_alloc((setup->orders_listed + 1) * sizeof(*setup->repetitions));
	for (size_t i = 0; i < setup->orders_listed; i++)
		add_todo(setup, i);
	add_canaries(setup);
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
	bool is_folder = config->results && !strchr(config->results, '{');
	if (is_folder && mkdir(config->results, 0777) < 0 && errno != EEXIST)
		return err_set(err, errno, "%s: %m", config->results);
	return 0;
}

/* What is to be done here, or what this process hands out. */
static struct dispatch_job list_job(struct setup *setup)
{
	const struct batch_config *config = setup->config;
	return (struct dispatch_job){
		.config = config,
		.orders = &setup->orders,
		.todo = setup->todo,
		.count = setup->todo_count,
		.already_done = setup->already_done,
		.opts = {
			.order = (enum schedule_order)config->order,
			.seed = (uint64_t)config->seed,
			.halt = config->halt,
			.deadline_ns = config->deadline_ns
				? clock_now_ns() + config->deadline_ns : NS_NEVER,
			.open = config->args.pipe,
			.groups = setup->group_count,
			.gates = setup->gate_count,
			.kinds = setup->kinds.items,
		},
		.variant_step = setup->pairs,
		.variants = setup->variants,
		.hooks = &setup->hooks,
		.pipe = config->args.pipe ? &setup->pipe : NULL,
		.journal = &setup->journal,
	};
}

static struct batch_opts make_opts(const struct setup *setup)
{
	const struct batch_config *config = setup->config;
	struct batch_opts opts = {
		.jobs = setup->plan.jobs,
		.facts = {
			.max_width = corepool_max_width(&setup->plan.pool),
			.memory = order_kinds_memory(&setup->kinds),
			.name = setup->host_name,
			.features = config->features,
			.files = true, /* nothing has to move */
		},
		.retry_on = config->retry_on,
		.retry_delay_ns = config->retry_delay_ns,
		.timeout_ladder = config->ladder,
		.ignore_exit = config->ignore_failure,
		.start_delay_ns = config->delay_ns,
		.memory_free = config->memory_free,
		.load = config->load,
		.memory_period_ns = config->watch_memory && !memory_base_kills_all(&setup->memory)
					    ? MEMORY_PERIOD_NS
					    : 0,
		.ahead = setup->ring ? MIN(setup->plan.jobs, START_RING_PLACES / 2) : 0,
	};
	for (int i = 0; i < BATCH_HOOK_COUNT; i++)
		opts.hooks[i] = config->hooks[i] != NULL;
	opts.hooks[BATCH_HOOK_TIMED] = counter_is_valgrind(setup->measure.source);
	ladder_parse(STOP_LADDER, &opts.stop_ladder, NULL);
	return opts;
}

static void add_hook(struct setup *setup, char *command)
{
	struct order *hook = orders_append(&setup->hooks);
	hook->shell = command;
	order_close(hook);
}

/* On many hosts: each has the same ones. */
static void make_plain_hooks(struct setup *setup)
{
	for (int i = 0; i < BATCH_HOOK_COUNT; i++) {
		const char *command = setup->config->hooks[i];
		add_hook(setup, mem_strdup(command ? command : ""));
	}
}

static bool hooks_have_places(const struct batch_config *config)
{
	for (int i = 0; i < BATCH_HOOK_COUNT; i++)
		if (config->hooks[i] && strchr(config->hooks[i], '{'))
			return true;
	return false;
}

/* One set for all orders or, if they have places for arguments, one for each. */
static void make_hooks(struct setup *setup)
{
	const struct batch_config *config = setup->config;
	size_t sets = hooks_have_places(config) ? setup->orders_listed : 1;
	if (setup->orders.count == 0) /* standard input was empty */
		return;
	for (size_t n = 0; n < sets; n++)
		for (int i = 0; i < BATCH_HOOK_COUNT; i++)
			add_hook(setup, load_hook(&setup->orders.items[n],
						  config->hooks[i] ? config->hooks[i] : ""));
}

static struct cpuset measured_cpus(const struct batch_plan *plan)
{
	struct cpuset cpus = CPUSET_INIT;
	for (int i = 0; i < plan->pool.count; i++)
		for (int k = 0; k < plan->pool.units[i].cpu_count; k++)
			cpuset_add(&cpus, plan->pool.units[i].cpus[k]);
	return cpus;
}

static int by_number(const void *a, const void *b)
{
	const struct sample_order *x = *(struct sample_order *const *)a,
				  *y = *(struct sample_order *const *)b;
	return (x->number > y->number) - (x->number < y->number);
}

/* A result file has them in the order of their ends; people expect the order of their list. */
static void sort_as_listed(const struct orders *orders, struct samples *samples)
{
	for (size_t i = 0; i < samples->order_count; i++)
		samples->orders[i]->number += orders->count;
	for (size_t i = 0; i < orders->count; i++) {
		char hash[ORDER_HASH_TEXT];
		order_hash_text(&orders->items[i], hash);
		struct sample_order *order = map_get(&samples->by_hash, hash, strlen(hash));
		if (order)
			order->number = MIN(order->number, i);
	}
	if (samples->order_count)
		qsort(samples->orders, samples->order_count, sizeof(*samples->orders), by_number);
}

/* The files that were asked for, and what hyperfine prints at its end. Keeps the variants of an A/B
 * file apart. */
static int export_results(const struct setup *setup, struct err *err)
{
	const struct batch_config *config = setup->config;
	AUTO(buf_done) struct buf table = BUF_INIT;
	struct samples samples = SAMPLES_INIT;
	int r = samples_load(&samples, config->output, err);
	if (r < 0)
		return r;
	sort_as_listed(&setup->orders, &samples);
	struct export_part parts[REPEAT_SIDES_MAX] = { { .samples = &samples } };
	size_t variants = config->ab ? samples.variant_count : 0;
	for (size_t i = 0; i < variants; i++)
		parts[i] =
			(struct export_part){ &samples, (char)('A' + i), samples_variant_name(i) };
	struct export_source source = { .parts = parts, .count = MAX(variants, (size_t)1) };
	r = export_write(&config->exports, &source, err);
	if (config->table)
		table_format(&source, &table);
	samples_done(&samples);
	return r < 0 || buf_len(&table) == 0 ? r : export_file("-", &table, err);
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
	if (setup->many)
		make_plain_hooks(setup);
	else
		make_hooks(setup);
	int r = measure_quiet_start(&setup->measure, &cpus, QUIET_WAIT_NS, &err);
	if (r >= 0 && !setup->many)
		r = open_journal(setup, &err);
	if (r < 0) {
		log_error("%s", err.msg);
		return r == -EEXIST ? EXIT_CODE_USAGE : EXIT_CODE_SYSTEM;
	}
	if (setup->plan.why_unpinned && !setup->config->quiet)
		log_warn("orders are not pinned to cores: %s", setup->plan.why_unpinned);
	for (; setup->warden_count > setup->plan.jobs; setup->warden_count--)
		warden_free(setup->wardens[setup->warden_count - 1]);
	const struct dispatch_job list = list_job(setup);
	struct dispatch_here here = { .job = &list };
	struct runner_job job = {
		.config = setup->config,
		.plan = &setup->plan,
		.opts = make_opts(setup),
		.wardens = setup->wardens,
		.ring = setup->ring,
		.measure = &setup->measure,
		.memory = &setup->memory,
		.owner = &dispatch_owner,
		.owner_arg = &here,
	};
	if (setup->config->args.pipe)
		setup->pipe.model = setup->todo[0];
	if (setup->many)
		many_job(setup->many, &setup->hooks, &job);
	int code = runner_run(&job);
	setup->warden_count = 0; /* the runner has freed them */
	if (setup->many && !many_coordinated(setup->many))
		return code;
	bool reads = export_wanted(&setup->config->exports) || setup->config->table;
	r = reads ? export_results(setup, &err) : 0;
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

/* A descriptor that we were given: orders must not get it, and a write to it must not wait. */
static int claim_descriptor(const char *option, int64_t fd, struct err *err)
{
	if (fd == -1)
		return 0;
	if (fd < 0 || fd > INT_MAX || fcntl((int)fd, F_SETFD, FD_CLOEXEC) < 0)
		return err_set(err, EINVAL, "--%s: %lld is not an open descriptor", option,
			       (long long)fd);
	return fd_set_nonblock((int)fd, true);
}

/* Before the wardens are there: they go where we go. */
static void find_memory_groups(struct setup *setup)
{
	struct err why = ERR_INIT;
	if (memory_base_init(&setup->memory, &why) < 0)
		log_warn("no cgroup for the memory of orders: %s; their processes are added up "
			 "every %d ms instead",
			 why.msg, (int)(MEMORY_PERIOD_NS / NS_PER_MS));
}

/* ---- many hosts ---- */

/* This process coordinates. */
static int load_list(void *arg, bool again, struct dispatch_job *ret_job, struct err *err)
{
	struct setup *setup = arg;
	if (again && !setup->config->output)
		return err_set(err, EIO,
			       "the coordinator is gone, and without a result file (-o) "
			       "no host knows what is done");
	if (again && repeats_freely(setup->config))
		return err_set(err, EIO,
			       "the coordinator is gone, and what --ab and runs as many as "
			       "necessary have measured cannot be gone on with");
	if (again && !file_has_content(setup->config->output))
		return err_set(err, EIO,
			       "the coordinator is gone, and its result file %s is not here: "
			       "--resume goes on where it is",
			       setup->config->output);
	setup->resuming = *setup->config;
	setup->resuming.resume |= again;
	setup->config = &setup->resuming;
	const struct batch_config *config = setup->config;
	int r;
	if ((r = journal_open(&setup->journal, config->output,
			      config->resume || config->retry_failed, err)) < 0 ||
	    (r = read_history(setup, err)) < 0 ||
	    (r = read_orders(setup, setup->argc, setup->argv, err)) < 0)
		return r;
	make_todo(setup);
	r = open_journal(setup, err);
	if (r < 0)
		return r;
	*ret_job = list_job(setup);
	return 0;
}

static void fill_given(void *arg, const struct order *order, uint32_t variants, size_t places,
		       struct batch_order *todo)
{
	struct setup *setup = arg;
	size_t place = todo->item.index;
	set_limits(todo, order, setup->config);
	if (!repeats_freely(setup->config))
		return;
	if (!setup->given)
		setup->given = mem_alloc(places * sizeof(*setup->given));
	setup->given_count = places;
	repeat_done(&setup->given[place].repeat);
	set_repeat(setup, todo, &setup->given[place], variants, todo->number);
}

static int prepare_many(struct setup *setup, int argc, char *const *argv, struct err *err)
{
	static const struct many_hooks hooks = { .load = load_list, .fill = fill_given };
	const struct batch_config *config = setup->config;
	setup->argc = argc;
	setup->argv = argv;
	if (config->watch_memory)
		find_memory_groups(setup);
	int r = measure_init(&setup->measure, &config->measure, err);
	if (r >= 0)
		r = fork_wardens(setup, err);
	if (r >= 0)
		r = plan_make(&setup->plan, config, 1, setup->warden_count, err);
	if (r < 0)
		return r;
	setup->many = many_new(config, config->rdzv, &setup->plan, &hooks, setup);
	return 0;
}

static int prepare(struct setup *setup, int argc, char *const *argv, struct err *err)
{
	const struct batch_config *config = setup->config;
	int r = claim_descriptor("notify", config->notify, err);
	if (r >= 0)
		r = claim_descriptor("lifeline", config->lifeline, err);
	if (r < 0)
		return r;
	setup->journal.notify_fd = (int)config->notify;
	if (config->rdzv)
		return prepare_many(setup, argc, argv, err);
	if (!config->dry_run) {
		if (config->watch_memory)
			find_memory_groups(setup);
		r = measure_init(&setup->measure, &config->measure, err);
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
	r = config->filing.dir ? archive_key_make(&setup->key, &config->filing,
						  configuration(&setup->measure), err)
			       : 0;
	if (r >= 0)
		r = read_history(setup, err);
	if (r >= 0)
		r = read_orders(setup, argc, argv, err);
	if (r >= 0)
		r = order_needs_check(&setup->orders, setup->host_name, config->features, err);
	if (r < 0)
		return r;
	make_todo(setup);
	int most = config->dry_run ? WARDENS_MAX : setup->warden_count;
	int jobs = (int)MIN((uint64_t)most, MAX((uint64_t)setup->todo_count, (uint64_t)1));
	return plan_make(&setup->plan, config, max_width(setup), jobs, err);
}

/* --dry-run */
static void print_commands(const struct setup *setup)
{
	for (size_t i = 0; i < setup->todo_count; i++) {
		AUTO(buf_done) struct buf text = BUF_INIT;
		order_append_command(&setup->orders.items[setup->todo[i].item.index], 0, &text);
		printf("%s\n", buf_str(&text));
	}
}

int batch_run(const struct batch_config *config, int argc, char *const *argv)
{
	AUTO(setup_done)
	struct setup setup = { .config = config,
			       .history = PASTS_INIT,
			       .journal = JOURNAL_INIT,
			       .host_name = "localhost" };
	gethostname(setup.host_name, sizeof(setup.host_name) - 1);
	struct err err = ERR_INIT;
	int r = prepare(&setup, argc, argv, &err);
	if (r < 0) {
		fprintf(stderr, "muster batch: %s\n", err.msg);
		bool system =
			r == -ENOMEM || r == -EAGAIN || r == -EMFILE || r == -EIO || r == -ENOSPC;
		return system ? EXIT_CODE_SYSTEM : EXIT_CODE_USAGE;
	}
	if (config->dry_run && config->args.pipe) {
		r = pipe_orders_print(&setup.pipe, &err);
		if (r < 0)
			fprintf(stderr, "muster batch: %s\n", err.msg);
		return r < 0 ? EXIT_CODE_SYSTEM : EXIT_CODE_OK;
	}
	if (config->dry_run) {
		print_commands(&setup);
		if (!config->quiet)
			plan_print(&setup.plan, setup.todo, setup.todo_count, stdout);
		return EXIT_CODE_OK;
	}
	return run(&setup);
}
