#include "cli/batch_hosts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "core/worker/exit_code.h"
#include "run/config.h"
#include "sys/engine_ask.h"

#define HOSTS_DEFAULT 1024 /* may take part where the user names no number */

static bool is_given(const char *text)
{
	return text && *text;
}

/* What works only where the whole list is on one host. */
static int check(const struct command *self, const struct batch_config *config)
{
	bool over_ssh = config->hosts.list || config->hosts.file, places = false;
	for (int i = 0; i < BATCH_HOOK_COUNT; i++)
		places |= config->hooks[i] && strchr(config->hooks[i], '{');
	const struct {
		bool given;
		const char *name;
	} excluded[] = {
		{ config->args.pipe, "--pipe" },
		{ config->ungroup && over_ssh, "--ungroup with --hosts" },
		{ config->line_buffer, "--line-buffer" },
		{ places, "{} in --setup, --prepare and --cleanup" },
	};
	for (size_t i = 0; i < ARRAY_LEN(excluded); i++)
		if (excluded[i].given)
			return command_usage_error(self, "on many hosts there is no %s",
						   excluded[i].name);
	return 0;
}

/* A batch that a worker of a job starts is its own: the engine's hosts belong to the job. */
static bool is_in_job(void)
{
	return getenv("TORCHELASTIC_RUN_ID");
}

/* What Slurm or another engine says, if it started this on several hosts. */
static int ask_engine(struct batch_config *config, uint32_t *min, uint32_t *max,
		      struct engine_settings *engine, struct err *err)
{
	struct rendezvous_options *meeting = &config->meeting;
	bool given = is_given(meeting->nnodes);
	struct engine_asked asked = { .min_nodes = given ? *min : 0,
				      .max_nodes = given ? *max : 0,
				      .node_rank = -1 };
	if (is_given(meeting->endpoint) || is_given(meeting->backend) || is_in_job())
		return 0;
	int r = engine_ask(asked, engine, err);
	if (r < 0 && given)
		return r;
	if (r < 0)
		log_warn("this host alone: %s", err->msg);
	if (r < 0 || !engine->settles || engine->max_nodes <= 1)
		return 0;
	*min = engine->min_nodes;
	*max = engine->max_nodes;
	meeting->endpoint = engine->endpoint;
	meeting->munge = engine->munge;
	if (engine->master_addr) {
		meeting->master_addr = engine->master_addr;
		meeting->master_port = engine->master_port;
		meeting->node_rank = engine->node_rank;
	}
	if (!is_given(meeting->id))
		meeting->id = engine->run_id;
	return 0;
}

int batch_hosts_find(const struct command *self, struct batch_config *config,
		     struct engine_settings *engine, struct rendezvous *rdzv)
{
	struct rendezvous_options *meeting = &config->meeting;
	uint32_t min = 1, max = 1;
	struct err err = ERR_INIT;
	int r = is_given(meeting->nnodes) ? run_nodes_parse(meeting->nnodes, &min, &max, &err) : 0;
	if (r == 0)
		r = ask_engine(config, &min, &max, engine, &err);
	if (r < 0)
		return command_usage_error(self, "%s", err.msg);
	bool told = is_given(meeting->endpoint) || is_given(meeting->backend) ||
		    is_given(meeting->master_addr);
	bool over_ssh = config->hosts.list || config->hosts.file;
	if (max <= 1 && is_given(meeting->nnodes) && told && !over_ssh)
		return 0;
	if (!told && max <= 1)
		return 0;
	if (!told)
		return command_usage_error(self,
					   "--nnodes: '%.64s': several hosts need "
					   "--rdzv-endpoint=HOST, the same on all of them",
					   meeting->nnodes);
	if (max <= 1)
		max = HOSTS_DEFAULT;
	if (!meeting->nnodes)
		meeting->nnodes = "1:1024";
	r = check(self, config);
	if (r != 0)
		return r;
	r = rendezvous_make(meeting, min, max, rdzv, &err);
	if (r == -EINVAL)
		return command_usage_error(self, "%s", err.msg);
	if (r < 0) {
		log_error("%s", err.msg);
		return EXIT_CODE_SYSTEM;
	}
	rdzv->run_id = is_given(meeting->id) ? meeting->id : "batch";
	rdzv->lookup_delay_ns = engine->lookup_delay_ns;
	config->rdzv = rdzv;
	return 0;
}
