#include "batch/config.h"

#include "base/clock.h"
#include "core/fleet/fleet.h"

void batch_config_init(struct batch_config *config)
{
	*config = (struct batch_config){
		.args = { .max_args = -1, .max_lines = -1 },
		.cores = 1,
		.files.limit = RETURN_LIMIT_DEFAULT,
		.reserve = -1,
		.seed = 1,
		.confidence = REPEAT_CONFIDENCE,
		.shell = "/bin/sh",
		.retry_on = retry_rule_any(),
		.retry_delay_ns = NS_PER_S,
		.meeting = { .conf = "",
			     .node_rank = RENDEZVOUS_RANK_UNSET,
			     .master_port = RENDEZVOUS_PORT_UNSET },
		.hosts = { .ssh = "ssh",
			   .timeout_ns = HOSTS_TIMEOUT_NS,
			   .fanout = FLEET_FANOUT_DEFAULT },
		.hosts_fd = -1,
		.notify = -1,
		.lifeline = -1,
	};
	ladder_parse("TERM,5000,KILL", &config->ladder, NULL);
}

void batch_config_done(struct batch_config *config)
{
	struct strv *lists[] = { &config->history,	    &config->filter,
				 &config->measure.env.keep, &config->args.files,
				 &config->args.scans,	    &config->args.lists,
				 &config->args.names,	    &config->files.transfer,
				 &config->files.returns };
	for (size_t i = 0; i < ARRAY_LEN(lists); i++)
		strv_done(lists[i]);
}
