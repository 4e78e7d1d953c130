/* How many hosts `muster doctor` is started on, and where they meet. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/env.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "cli/doctor/doctor_meet.h"
#include "cli/hosts.h"
#include "core/host/hostlist.h"
#include "core/worker/exit_code.h"
#include "run/config.h"

#define HOST_MAX 256
#define RUN_ID "doctor" /* unless the user or Slurm names it */

extern char **environ;

void doctor_meet_done(struct doctor_meet *meet)
{
	free(meet->name);
	free(meet->endpoint);
	strv_done(&meet->names);
	engine_settings_done(&meet->engine);
	rendezvous_done(&meet->rdzv);
	*meet = DOCTOR_MEET_INIT;
}

static bool is_given(const char *text)
{
	return text && *text;
}

/* The nodes of the step of Slurm that we are in. What cannot be used there, such as two tasks on a
 * node, leaves this host alone. */
static void ask_slurm(struct doctor_meet *meet, const struct engine_asked *asked)
{
	struct engine_settings *engine = &meet->engine;
	struct err err = ERR_INIT;
	uint32_t count;
	int r = engine_detect(environ, asked, engine, &err);
	if (r < 0)
		log_warn("the nodes of this step are not compared: %s", err.msg);
	if (r < 0 || !engine->engine || !str_eq(engine->engine, "slurm") || !engine->settles ||
	    engine->max_nodes <= 1)
		return;
	meet->nodes = engine->max_nodes;
	meet->by_engine = true;
	/* The first node shows the table: only it can. */
	meet->endpoint = mem_strndup(engine->endpoint, strcspn(engine->endpoint, ","));
	meet->options.endpoint = meet->endpoint;
	meet->options.munge = engine->munge;
	if (!is_given(meet->options.id))
		meet->options.id = engine->run_id;
	if (hostlist_expand(env_find(environ, "SLURM_STEP_NODELIST"), HOSTLIST_HOSTS_MAX,
			    &meet->names, &count, NULL) < 0 ||
	    count != meet->nodes)
		strv_done(&meet->names);
}

static char *own_name(const struct doctor_meet *meet)
{
	char name[HOST_MAX] = "";
	const char *node = meet->by_engine ? getenv("SLURMD_NODENAME") : NULL;
	if (gethostname(name, sizeof(name) - 1) < 0 || !*name)
		strcpy(name, "localhost");
	return mem_strdup(is_given(node) ? node : name);
}

/* Each node tries those that follow it, around the end of the list. */
static void add_reach(const struct doctor_meet *meet, struct checks_spec *spec)
{
	size_t count = meet->names.count, self = 0;
	while (self < count && !str_eq(meet->names.items[self], meet->name))
		self++;
	for (size_t i = 1; self < count && i < count && i <= HOSTS_REACH_MAX; i++)
		strv_add(&spec->reach, meet->names.items[(self + i) % count]);
}

static int count_hosts(const struct command *self, struct doctor_meet *meet)
{
	const struct rendezvous_options *options = &meet->options;
	bool given = is_given(options->nnodes), told = is_given(options->endpoint);
	uint32_t min = 1, max = 1;
	struct err err = ERR_INIT;
	if (given && run_nodes_parse(options->nnodes, &min, &max, &err) < 0)
		return command_usage_error(self, "%s", err.msg);
	if (told && !given)
		return command_usage_error(self, "--rdzv-endpoint needs --nnodes=N, the number of "
						 "hosts on which this is typed");
	if (told)
		meet->nodes = max;
	else if (!given || max > 1)
		ask_slurm(meet, &(struct engine_asked){ .min_nodes = given ? min : 0,
							.max_nodes = given ? max : 0,
							.node_rank = -1 });
	if (given && max > 1 && meet->nodes == 1)
		return command_usage_error(self,
					   "--nnodes: '%.64s': several hosts need "
					   "--rdzv-endpoint=HOST, the same on all of them",
					   options->nnodes);
	return 0;
}

int doctor_meet_plan(const struct command *self, struct doctor_meet *meet, struct checks_spec *spec)
{
	struct err err = ERR_INIT;
	int r = count_hosts(self, meet);
	if (r != 0 || meet->nodes == 1)
		return r;
	r = rendezvous_make(&meet->options, meet->nodes, meet->nodes, &meet->rdzv, &err);
	if (r == -EINVAL)
		return command_usage_error(self, "%s", err.msg);
	if (r < 0) {
		log_error("%s", err.msg);
		return EXIT_CODE_SYSTEM;
	}
	meet->rdzv.run_id = is_given(meet->options.id) ? meet->options.id : RUN_ID;
	meet->rdzv.lookup_delay_ns = meet->engine.lookup_delay_ns;
	meet->name = own_name(meet);
	add_reach(meet, spec);
	meet->wait_ns = ns_add(meet->timeout_ns, checks_longest_ns(spec));
	return 0;
}
