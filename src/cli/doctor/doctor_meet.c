/* `muster doctor` where something else starts it on each host, in a step of Slurm or with --nnodes:
 * a batch in which each host is given one order. Whatever that says, a host runs its own checks, so
 * who poses as one that shows the table cannot make it run anything else. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/env.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/mem.h"
#include "base/str.h"
#include "batch/config.h"
#include "batch/ending.h"
#include "cli/doctor/doctor_many.h"
#include "core/host/hostlist.h"
#include "core/worker/exit_code.h"
#include "proto/json_out.h"
#include "run/config.h"

#define HOST_MAX 256
#define RUN_ID "doctor" /* unless the user or Slurm names it */
#define OUTPUT_MAX ((size_t)1 << 20)
#define GRACE_NS (10 * NS_PER_S) /* for the order and its result to arrive */
#define REMEDY \
	"start muster doctor there, too, with the same --rdzv-endpoint and token; if it runs " \
	"there, see what it says"

extern char **environ;

void doctor_meeting_done(struct doctor_meeting *meeting)
{
	free(meeting->name);
	free(meeting->endpoint);
	strv_done(&meeting->names);
	engine_settings_done(&meeting->engine);
	rendezvous_done(&meeting->rdzv);
	*meeting = DOCTOR_MEETING_INIT;
}

/* ---- how many there are, and where they meet ---- */

static bool is_given(const char *text)
{
	return text && *text;
}

/* The nodes of the step of Slurm that we are in. What cannot be used there, such as two tasks on a
 * node, leaves this host alone. */
static void ask_slurm(struct doctor_options *o, struct doctor_meeting *meeting,
		      const struct engine_asked *asked)
{
	struct engine_settings *engine = &meeting->engine;
	struct err err = ERR_INIT;
	uint32_t count;
	int r = engine_detect(environ, asked, engine, &err);
	if (r < 0)
		log_warn("the nodes of this step are not compared: %s", err.msg);
	if (r < 0 || !engine->engine || !str_eq(engine->engine, "slurm") || !engine->settles ||
	    engine->max_nodes <= 1)
		return;
	meeting->nodes = engine->max_nodes;
	meeting->by_engine = true;
	/* The first node shows the table: only it can. */
	meeting->endpoint = mem_strndup(engine->endpoint, strcspn(engine->endpoint, ","));
	o->meeting.endpoint = meeting->endpoint;
	o->meeting.munge = engine->munge;
	if (!is_given(o->meeting.id))
		o->meeting.id = engine->run_id;
	if (hostlist_expand(env_find(environ, "SLURM_STEP_NODELIST"), HOSTLIST_HOSTS_MAX,
			    &meeting->names, &count, NULL) < 0 ||
	    count != meeting->nodes)
		strv_done(&meeting->names);
}

static char *own_name(const struct doctor_meeting *meeting)
{
	char name[HOST_MAX] = "";
	const char *node = meeting->by_engine ? getenv("SLURMD_NODENAME") : NULL;
	if (gethostname(name, sizeof(name) - 1) < 0 || !*name)
		strcpy(name, "localhost");
	return mem_strdup(is_given(node) ? node : name);
}

static int count_hosts(const struct command *self, struct doctor_options *o,
		       struct doctor_meeting *meeting)
{
	const struct rendezvous_options *options = &o->meeting;
	bool given = is_given(options->nnodes), told = is_given(options->endpoint);
	uint32_t min = 1, max = 1;
	struct err err = ERR_INIT;
	if (given && run_nodes_parse(options->nnodes, &min, &max, &err) < 0)
		return command_usage_error(self, "%s", err.msg);
	if (told && !given)
		return command_usage_error(self, "--rdzv-endpoint needs --nnodes=N, the number of "
						 "hosts on which this is typed");
	if (told)
		meeting->nodes = max;
	else if (!given || max > 1)
		ask_slurm(o, meeting,
			  &(struct engine_asked){ .min_nodes = given ? min : 0,
						  .max_nodes = given ? max : 0,
						  .node_rank = -1 });
	if (given && max > 1 && meeting->nodes == 1)
		return command_usage_error(self,
					   "--nnodes: '%.64s': several hosts need "
					   "--rdzv-endpoint=HOST, the same on all of them",
					   options->nnodes);
	return 0;
}

int doctor_plan(const struct command *self, struct doctor_options *o,
		struct doctor_meeting *meeting)
{
	struct err err = ERR_INIT;
	size_t own = 0;
	int r = count_hosts(self, o, meeting);
	if (r != 0 || meeting->nodes == 1)
		return r;
	r = rendezvous_make(&o->meeting, meeting->nodes, meeting->nodes, &meeting->rdzv, &err);
	if (r == -EINVAL)
		return command_usage_error(self, "%s", err.msg);
	if (r < 0) {
		log_error("%s", err.msg);
		return EXIT_CODE_SYSTEM;
	}
	meeting->rdzv.run_id = is_given(o->meeting.id) ? o->meeting.id : RUN_ID;
	meeting->rdzv.lookup_delay_ns = meeting->engine.lookup_delay_ns;
	meeting->name = own_name(meeting);
	while (own < meeting->names.count && !str_eq(meeting->names.items[own], meeting->name))
		own++;
	if (own < meeting->names.count)
		doctor_add_reach(&o->spec.reach, &meeting->names, own);
	return 0;
}

/* ---- the table, on the host that shows it ---- */

struct meet {
	const struct command *self;
	const struct doctor_options *o;
	const struct doctor_meeting *meeting;
	uint64_t begin_ns;
	struct across across;
	int code; /* of the table; -1: it is not shown */
};

static void read_output(int fd, struct buf *ret_text)
{
	if (fd >= 0 && lseek(fd, 0, SEEK_SET) == 0)
		fd_read_all(fd, OUTPUT_MAX, ret_text, NULL);
}

static void on_ending(void *arg, struct ending *ending)
{
	struct meet *meet = arg;
	const struct result *result = &ending->result;
	const char *name = result->node ? result->node : "?";
	AUTO(buf_done) struct buf output = BUF_INIT, errors = BUF_INIT;
	const char *why = env_get(&result->missing, "run");
	read_output(ending->fds[0], &output);
	read_output(ending->fds[1], &errors);
	doctor_add(&meet->across, name, &output, &errors,
		   why ? why : "it did not tell what it found", REMEDY);
	if (result->reason != REASON_LOST && !meet->meeting->by_engine)
		command_complain(meet->self, "%s has come, %zu of %u hosts", name,
				 meet->across.count, meet->meeting->nodes);
}

static int on_end(void *arg)
{
	struct meet *meet = arg;
	const struct doctor_meeting *meeting = meet->meeting;
	if (meet->code < 0) {
		across_add_missing(&meet->across, meeting->nodes, &meeting->names,
				   clock_now_ns() - meet->begin_ns, REMEDY);
		across_compare(&meet->across);
		meet->code = doctor_show(&meet->across, meet->o->json);
		fflush(stdout);
	}
	return meet->code;
}

/* ---- the batch ---- */

static void put_order(const struct checks_spec *spec, struct buf *out)
{
	AUTO(strv_done) struct strv words = STRV_INIT;
	struct json_out json = JSON_OUT(out);
	checks_words(spec, &words);
	json_out_open(&json, NULL, '{');
	json_out_open(&json, "cmd", '[');
	json_out_text(&json, NULL, "/proc/self/exe");
	json_out_text(&json, NULL, "doctor");
	for (size_t i = 0; i < words.count; i++)
		json_out_text(&json, NULL, words.items[i]);
	json_out_close(&json, ']');
	json_out_close(&json, '}');
}

static int run_batch(struct meet *meet, struct rendezvous *rdzv)
{
	AUTO(batch_config_done) struct batch_config config;
	AUTO(buf_done) struct buf order = BUF_INIT;
	uint64_t wait_ns = ns_add(meet->o->meet_timeout_ns, checks_longest_ns(&meet->o->spec));
	put_order(&meet->o->spec, &order);
	const struct batch_part part = {
		.host = meet->meeting->name,
		.order = buf_str(&order),
		.risk = "pose as one of the hosts, and say what its checks found",
		.on_ending = on_ending,
		.on_end = on_end,
		.arg = meet
	};
	batch_config_init(&config);
	config.jobs = config.runs = 1;
	config.place = BATCH_PLACE_NONE;
	config.quiet = true;
	config.retry_on = (struct retry_rule){ .code_count = 0 };
	config.deadline_ns = ns_add(wait_ns, GRACE_NS);
	config.part = &part;
	rdzv->join_timeout_ns = wait_ns;
	config.rdzv = rdzv;
	return batch_run(&config, 0, NULL);
}

int doctor_meet(const struct command *self, const struct doctor_options *o,
		const struct doctor_meeting *meeting)
{
	struct meet meet = { self, o, meeting, clock_now_ns(), ACROSS_INIT, -1 };
	struct rendezvous rdzv = meeting->rdzv;
	if (!meeting->by_engine)
		command_complain(self, "meets %u hosts at %s", meeting->nodes, rdzv.endpoint_text);
	int code = run_batch(&meet, &rdzv);
	across_done(&meet.across);
	if (meet.code >= 0 || code >= EXIT_CODE_SIGNAL_BASE)
		return code;
	if (code == EXIT_CODE_OK || code == EXIT_CODE_BAD_NODE)
		command_complain(self, "the table of all %u hosts is shown at %s", meeting->nodes,
				 rdzv.endpoint_text);
	else
		command_complain(self, "no host shows a table; this is what is found here");
	return code == EXIT_CODE_OK || code == EXIT_CODE_BAD_NODE ? code : -1;
}
