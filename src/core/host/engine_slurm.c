/* Slurm: a job step is a muster job, with one agent on each of its nodes.
 *
 * srun describes the step in SLURM_STEP_*. The shell of a batch job has the job's variables but not
 * those: there muster is alone, whatever the size of the allocation. SLURM_NODELIST and
 * SLURM_NNODES are not read: in a step on a part of the job one is the job's and the other the
 * step's. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/mem.h"
#include "base/str.h"
#include "core/host/engine_private.h"
#include "core/host/hostlist.h"

/* Step ids from here on are not srun's: the batch script, an interactive shell and so on. */
#define STEP_SPECIAL 0xfffffff0

/* Ports below those that kernels give to outgoing connections. Jobs whose ids are near each other
 * get different ones; where a port is taken nevertheless, another endpoint stands in. */
#define PORT_FIRST 16384
#define PORT_COUNT 16384
#define PORTS_PER_JOB 7

static bool slurm_is_here(char *const *environment)
{
	return env_find(environment, "SLURM_JOB_ID") != NULL;
}

static int read_number(char *const *environment, const char *name, uint64_t max,
		       uint64_t *ret_number, struct err *err)
{
	const char *text = env_find(environment, name);
	uint64_t number;
	if (!text || str_to_u64(text, &number) < 0 || number > max)
		return err_set(err, EINVAL,
			       "Slurm: %s is '%.64s', which is not a number up to %" PRIu64, name,
			       text ? text : "", max);
	*ret_number = number;
	return 0;
}

/* Whether srun started us, in a step of its own. */
static bool is_step(char *const *environment)
{
	uint64_t step;
	return read_number(environment, "SLURM_STEP_ID", STEP_SPECIAL - 1, &step, NULL) == 0 &&
	       env_find(environment, "SLURM_STEP_NODELIST") && !engine_in_worker(environment);
}

/* "slurmstepd: [71.2]" has a step of srun; the batch script's has "[71.batch]". */
static bool stepd_has_step(const struct engine_asked *asked)
{
	const char *job = asked->stepd ? strchr(asked->stepd, '[') : NULL;
	const char *dot = job ? strrchr(job, '.') : NULL;
	size_t digits = dot ? strspn(dot + 1, "0123456789") : 0;
	return digits > 0 && dot[1 + digits] == ']';
}

/* Without the variables of the step each of its nodes would be a job of its own. */
static int check_hidden(char *const *environment, const struct engine_asked *asked, struct err *err)
{
	bool told = asked->alone || asked->max_nodes == 1 || (asked->place && asked->max_nodes > 1);
	if (!stepd_has_step(asked) || told || engine_in_worker(environment))
		return 0;
	return err_set(err, EINVAL,
		       "this is a step of Slurm (%.60s), and the variables that tell its nodes, "
		       "SLURM_STEP_NODELIST and others, are missing: do not clear the environment "
		       "between srun and muster, or give --nnodes=N and --rdzv-endpoint=HOST, or "
		       "--standalone",
		       strchr(asked->stepd, '['));
}

/* "2(x3),1" is two tasks on each of three nodes and one on the fourth. The most of one node. */
static uint64_t most_tasks(const char *text)
{
	uint64_t most = 1;
	const char *rest = text, *piece;
	size_t len;
	while ((piece = str_split(&rest, ',', &len))) {
		const char *bracket = memchr(piece, '(', len);
		AUTO_FREE char *number =
			mem_strndup(piece, bracket ? (size_t)(bracket - piece) : len);
		uint64_t tasks;
		if (str_to_u64(number, &tasks) == 0)
			most = MAX(most, tasks);
	}
	return most;
}

static int check_tasks(char *const *environment, struct err *err)
{
	const char *text = env_find(environment, "SLURM_STEP_TASKS_PER_NODE");
	uint64_t tasks = text ? most_tasks(text) : 1;
	if (tasks <= 1)
		return 0;
	return err_set(err, EINVAL,
		       "Slurm starts %" PRIu64
		       " tasks on a node, and muster needs one, which starts the workers: add "
		       "--ntasks-per-node=1 to srun, and --nproc-per-node=%" PRIu64
		       " to muster run",
		       tasks, tasks);
}

/* ---- the size ---- */

static int choose_size(const struct engine_asked *asked, uint32_t nodes,
		       struct engine_settings *settings, struct err *err)
{
	settings->min_nodes = settings->max_nodes = nodes;
	if (!asked->max_nodes)
		return 0;
	if (asked->min_nodes > nodes)
		return err_set(
			err, EINVAL,
			"--nnodes: the Slurm step has %u of at least %u nodes: add -N%u to srun",
			nodes, asked->min_nodes, asked->min_nodes);
	settings->min_nodes = asked->min_nodes;
	settings->max_nodes = MIN(asked->max_nodes, nodes);
	if (asked->max_nodes > nodes)
		settings->notice =
			mem_printf("--nnodes: the Slurm step has %u nodes, so the job has "
				   "at most %u",
				   nodes, nodes);
	return 0;
}

/* ---- where nodes find each other ---- */

/* The first of the ports that Slurm reserved for the step ("12000-12003"), where it does that. */
static uint64_t reserved_port(char *const *environment)
{
	const char *text = env_find(environment, "SLURM_STEP_RESV_PORTS");
	uint64_t port;
	if (!text)
		return 0;
	AUTO_FREE char *first = mem_strndup(text, strcspn(text, "-,"));
	return str_to_u64(first, &port) == 0 && port <= UINT16_MAX ? port : 0;
}

static uint64_t choose_port(char *const *environment, uint64_t job, uint64_t step)
{
	uint64_t reserved = reserved_port(environment);
	return reserved ? reserved : PORT_FIRST + (job * PORTS_PER_JOB + step) % PORT_COUNT;
}

static char *endpoints_of(const struct strv *names, uint64_t port)
{
	AUTO(buf_done) struct buf text = BUF_INIT;
	for (size_t i = 0; i < names->count; i++)
		buf_printf(&text, "%s%s:%" PRIu64, i ? "," : "", names->items[i], port);
	return buf_take_str(&text);
}

/* The nodes of the step; its first ones may coordinate. */
static int read_nodes(char *const *environment, struct strv *ret_first, uint32_t *ret_count,
		      struct err *err)
{
	const char *list = env_find(environment, "SLURM_STEP_NODELIST");
	uint64_t expected;
	int r = hostlist_expand(list, ENGINE_ENDPOINTS, ret_first, ret_count, err);
	if (r < 0)
		return err_wrap(err, "Slurm: SLURM_STEP_NODELIST");
	if (!env_find(environment, "SLURM_STEP_NUM_NODES"))
		return 0;
	r = read_number(environment, "SLURM_STEP_NUM_NODES", HOSTLIST_HOSTS_MAX, &expected, err);
	if (r == 0 && expected != *ret_count)
		return err_set(err, EINVAL,
			       "Slurm: SLURM_STEP_NODELIST '%.64s' has %u nodes, and "
			       "SLURM_STEP_NUM_NODES is %" PRIu64,
			       list, *ret_count, expected);
	return r;
}

/* SLURM_RESTART_COUNT is unset in the first run of a job. */
static char *name_run(char *const *environment, uint64_t job, uint64_t step)
{
	const char *restarts = env_find(environment, "SLURM_RESTART_COUNT");
	return mem_printf("slurm-%" PRIu64 ".%" PRIu64 ".%.20s", job, step,
			  restarts && *restarts ? restarts : "0");
}

static int settle_step(char *const *environment, const struct engine_asked *asked,
		       struct engine_settings *settings, struct err *err)
{
	AUTO(strv_done) struct strv first = STRV_INIT;
	uint64_t job, step, rank;
	uint32_t nodes;
	int r;
	if ((r = check_tasks(environment, err)) < 0 ||
	    (r = read_number(environment, "SLURM_JOB_ID", UINT32_MAX, &job, err)) < 0 ||
	    (r = read_number(environment, "SLURM_STEP_ID", STEP_SPECIAL - 1, &step, err)) < 0 ||
	    (r = read_nodes(environment, &first, &nodes, err)) < 0 ||
	    (r = read_number(environment, "SLURM_NODEID", nodes - 1, &rank, err)) < 0 ||
	    (r = choose_size(asked, nodes, settings, err)) < 0)
		return r;
	settings->settles = true;
	settings->run_id = name_run(environment, job, step);
	/* A spare takes the rank of the node that it stands in for. */
	if (settings->max_nodes == nodes && asked->node_rank < 0)
		settings->node_rank = (int64_t)rank;
	if (nodes > 1 && !asked->place)
		settings->endpoint = endpoints_of(&first, choose_port(environment, job, step));
	return 0;
}

/* What the user gave is complete: the job may have nodes outside of this step, too. */
static bool goes_beyond(char *const *environment, const struct engine_asked *asked)
{
	AUTO(strv_done) struct strv first = STRV_INIT;
	uint32_t nodes;
	return asked->place && asked->max_nodes &&
	       (read_nodes(environment, &first, &nodes, NULL) < 0 || asked->max_nodes > nodes);
}

static int slurm_settle(char *const *environment, const struct engine_asked *asked,
			struct engine_settings *settings, struct err *err)
{
	settings->hosts_are_final = true;
	settings->signaller = "slurmstepd";
	settings->more_cpus = "add --cpus-per-task=N or --cpu-bind=none to srun";
	if (!is_step(environment))
		return check_hidden(environment, asked, err);
	if (asked->alone)
		return 0;
	settings->munge = true;
	return goes_beyond(environment, asked) ? 0 : settle_step(environment, asked, settings, err);
}

int engine_slurm_spread(char *const *environment, struct strv *ret_command, struct err *err)
{
	/* The agents, not srun, deal with a node that dies and with one that ends before the
	 * others. */
	static const char *const words[] = {
		"srun",	       "--ntasks-per-node=1",  "--cpu-bind=none",
		"--no-kill",   "--kill-on-bad-exit=0", "--wait=0",
		"--unbuffered"
	};
	uint64_t nodes;
	if (is_step(environment))
		return 0;
	if (!slurm_is_here(environment))
		return err_set(
			err, EINVAL,
			"--slurm: this is not a job of Slurm, SLURM_JOB_ID is not set: submit "
			"a script with sbatch, or start a shell with salloc");
	int r = read_number(environment, "SLURM_JOB_NUM_NODES", HOSTLIST_HOSTS_MAX, &nodes, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < ARRAY_LEN(words); i++)
		strv_add(ret_command, words[i]);
	strv_take(ret_command, mem_printf("--nodes=%" PRIu64, nodes));
	strv_take(ret_command, mem_printf("--ntasks=%" PRIu64, nodes));
	/* srun does not take it over from sbatch. */
	const char *cpus = env_find(environment, "SLURM_CPUS_PER_TASK");
	if (cpus && *cpus)
		strv_take(ret_command, mem_printf("--cpus-per-task=%s", cpus));
	return 1;
}

const struct engine engine_slurm = {
	.name = "slurm",
	.is_here = slurm_is_here,
	.is_hidden = stepd_has_step,
	.settle = slurm_settle,
};
