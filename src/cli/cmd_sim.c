/* muster sim: the rendezvous in virtual time, with faults of every kind. */
#include <stdio.h>

#include "base/clock.h"
#include "cli/command.h"
#include "core/rounds/agent.h"
#include "core/worker/exit_code.h"
#include "sim/sim.h"

#define TRACE_LINES 60

struct sim_cli {
	int64_t agents, askers, seed, runs;
	bool faults, notices, checks, pace, silence, trace;
	int mode;
};

static const char *const modes[] = { "any", "endpoint", "endpoints", "arbiter", NULL };

static const struct opt sim_opts[] = {
	OPT_GROUP("World"),
	OPT_INT("agents", NULL, struct sim_cli, agents, "N",
		"number of agents (default: a few, the seed decides)"),
	OPT_INT("askers", NULL, struct sim_cli, askers, "N",
		"commands that ask all agents (default: in a third of the worlds with faults)"),
	OPT_INT("seed", NULL, struct sim_cli, seed, "S",
		"where all chance comes from (default: 1)"),
	OPT_FLAG("faults", NULL, struct sim_cli, faults,
		 "let connections, hosts, clocks, workers and coordinators fail"),
	OPT_FLAG("notices", NULL, struct sim_cli, notices,
		 "let workers leave or save together (default: in a third of the worlds with "
		 "faults)"),
	OPT_FLAG("checks", NULL, struct sim_cli, checks,
		 "let all nodes check themselves and the wires between them, and be well (default: "
		 "in a third of the worlds, not all of them well)"),
	OPT_FLAG("pace", NULL, struct sim_cli, pace,
		 "let workers tell steps, in half of the worlds a slow one among them, and hosts "
		 "compare them"),
	OPT_FLAG("silence", NULL, struct sim_cli, silence,
		 "let workers fall silent, in half of the worlds all of them, and a host find out "
		 "why"),
	OPT_CHOICE("coordination", NULL, struct sim_cli, mode, modes,
		   "how the coordinator is found (default: the seed decides)"),
	OPT_GROUP("Runs"),
	OPT_INT("runs", NULL, struct sim_cli, runs, "N",
		"seeds S, S+1, … S+N-1, up to the first that breaks"),
	OPT_FLAG("trace", NULL, struct sim_cli, trace, "print every step of a single run"),
	OPT_END,
};

/* The run broke at the end of the trace. */
static void print_tail(struct buf *trace, size_t lines)
{
	const char *text = buf_str(trace);
	const char *from = text + buf_len(trace);
	for (size_t seen = 0; from > text; from--)
		if (from[-1] == '\n' && seen++ == lines)
			break;
	fputs(from, stdout);
}

static void print_broken(const struct sim_options *options, const struct sim_result *result)
{
	AUTO(buf_done) struct buf trace = BUF_INIT;
	struct sim_result again;
	sim_run(options, &trace, &again);
	print_tail(&trace, TRACE_LINES);
	printf("seed %llu: %s\n", (unsigned long long)options->seed, result->why);
	printf("replay: muster sim --seed=%llu%s%s%s%s%s --trace",
	       (unsigned long long)options->seed, options->faults ? " --faults" : "",
	       options->notices ? " --notices" : "", options->checks ? " --checks" : "",
	       options->pace ? " --pace" : "", options->silence ? " --silence" : "");
	if (options->agents)
		printf(" --agents=%u", options->agents);
	if (options->askers)
		printf(" --askers=%u", options->askers);
	if (options->mode != SIM_MODE_ANY)
		printf(" --coordination=%s", modes[options->mode]);
	putchar('\n');
}

static void print_sum(const struct sim_result *sum, uint64_t runs)
{
	printf("%llu runs, %u agents, %llu steps, %llu s of virtual time: %u rounds, %u restarts, "
	       "%u takeovers, %u faults, %u groups with kept state\n",
	       (unsigned long long)runs, sum->agents, (unsigned long long)sum->steps,
	       (unsigned long long)(sum->virtual_ns / NS_PER_S), sum->rounds, sum->restarts,
	       sum->takeovers, sum->faults, sum->resumed);
	printf("ends: %u done, %u failed, %u by signal, %u timed out, %u refused, %u unknown\n",
	       sum->outcomes[OUTCOME_DONE], sum->outcomes[OUTCOME_FAILED],
	       sum->outcomes[OUTCOME_SIGNAL], sum->outcomes[OUTCOME_TIMED_OUT],
	       sum->outcomes[OUTCOME_REFUSED], sum->outcomes[OUTCOME_UNKNOWN]);
	if (sum->formed > 0)
		printf("first rounds: %.3f s after the start, on average\n",
		       (double)sum->formed_ns / (double)sum->formed / (double)NS_PER_S);
	if (sum->named > 0)
		printf("checks: %u nodes named as not fit\n", sum->named);
	if (sum->notices > 0)
		printf("notices: %u; %u workers left together, %u saved together\n", sum->notices,
		       sum->left, sum->saved);
	if (sum->paces > 0)
		printf("pace: %llu messages of steps, %u times a worker named as late; %u rounds "
		       "with a slow one were long and quiet\n",
		       (unsigned long long)sum->paces, sum->late, sum->judged);
	if (sum->looks > 0)
		printf("silence: %u times a host was to find out why the job hangs\n", sum->looks);
	if (sum->questions == 0)
		return;
	printf("questions: %u, of which %u ended with every host answered or named; at most %u "
	       "messages per agent and question, and %u pieces (%zu bytes) under way to an asker\n",
	       sum->questions, sum->complete, sum->asked_messages, sum->untaken,
	       sum->untaken * (size_t)ASK_PIECE_MAX);
}

static void add(struct sim_result *sum, const struct sim_result *one)
{
	sum->steps += one->steps;
	sum->virtual_ns += one->virtual_ns;
	sum->agents += one->agents;
	sum->rounds += one->rounds;
	sum->formed += one->rounds > 0;
	sum->formed_ns += one->formed_ns;
	sum->named += one->named;
	sum->restarts += one->restarts;
	sum->takeovers += one->takeovers;
	sum->resumed += one->resumed;
	sum->faults += one->faults;
	sum->questions += one->questions;
	sum->notices += one->notices;
	sum->left += one->left;
	sum->saved += one->saved;
	sum->late += one->late;
	sum->judged += one->judged;
	sum->paces += one->paces;
	sum->looks += one->looks;
	sum->complete += one->complete;
	sum->asked_messages = MAX(sum->asked_messages, one->asked_messages);
	sum->untaken = MAX(sum->untaken, one->untaken);
	for (size_t i = 0; i < ARRAY_LEN(sum->outcomes); i++)
		sum->outcomes[i] += one->outcomes[i];
}

static int sim_main(const struct command *self, int argc, char **argv)
{
	struct sim_cli o = { .seed = 1, .runs = 1 };
	int first, status;
	if (!command_parse(self, &o, argc, argv, NULL, &first, &status))
		return status;
	if (first < argc)
		return command_usage_error(self, "unexpected argument '%s'", argv[first]);
	if (o.agents < 0 || o.agents > MSG_NODES_MAX)
		return command_usage_error(self, "--agents: %lld is not between 1 and %d",
					   (long long)o.agents, MSG_NODES_MAX);
	if (o.askers < 0 || o.askers > SIM_ASKERS_MAX)
		return command_usage_error(self, "--askers: %lld is not between 1 and %d",
					   (long long)o.askers, SIM_ASKERS_MAX);
	if (o.faults && o.agents > 4096)
		return command_usage_error(self, "--faults: at most 4096 agents");
	if (o.runs < 1 || o.seed < 0)
		return command_usage_error(self,
					   "--runs must be at least 1 and --seed not negative");

	struct sim_options options = { .agents = (uint32_t)o.agents,
				       .askers = (uint32_t)o.askers,
				       .faults = o.faults,
				       .notices = o.notices,
				       .checks = o.checks,
				       .pace = o.pace,
				       .silence = o.silence,
				       .mode = (enum sim_mode)o.mode };
	struct sim_result sum = { 0 }, result;
	AUTO(buf_done) struct buf trace = BUF_INIT;
	for (int64_t run = 0; run < o.runs; run++) {
		options.seed = (uint64_t)(o.seed + run);
		sim_run(&options, o.trace ? &trace : NULL, &result);
		if (o.trace) {
			fputs(buf_str(&trace), stdout);
			buf_clear(&trace);
		} else if (result.broken) {
			print_broken(&options, &result);
		}
		if (result.broken)
			return EXIT_CODE_FAILED;
		add(&sum, &result);
	}
	print_sum(&sum, (uint64_t)o.runs);
	return EXIT_CODE_OK;
}

const struct command command_sim = {
	.name = "sim",
	.synopsis = "[--agents=N] [--seed=S] [--faults] [--runs=N]",
	.summary = "try to break the rendezvous in virtual time",
	.footer = "Examples:\n"
		  "  muster sim --faults --runs=10000        10,000 worlds in which all fails\n"
		  "  muster sim --agents=100000              a large one in which nothing does\n"
		  "  muster sim --faults --seed=42 --trace   the same world again, step by step\n",
	.opts = sim_opts,
	.mode = OPT_PERMUTE,
	.main = sim_main,
};
