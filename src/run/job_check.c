/* The job's checks: those between attempts, and the wires to other nodes. */
#include "run/job_private.h"

#include "base/log.h"
#include "core/checks/counter_changes.h"
#include "run/checks/preflight.h"

static void on_checked(void *arg, const struct check_list *results, const char *why)
{
	struct job *job = arg;
	struct check_digest digest;
	AUTO(check_list_done) struct check_list all = CHECK_LIST_INIT;
	if (!results) {
		log_warn("preflight: the checks failed, which says nothing about this node: %s",
			 why);
	} else {
		preflight_tell(results);
		for (size_t i = 0; i < results->count; i++)
			check_list_add(&all, &results->items[i]);
		check_changes_add(&job->counters, &all);
		check_digest_make(&all, &digest);
	}
	job_push_agent(job, (struct agent_event){ .type = AGENT_CHECKED,
						  .digest = results ? &digest : NULL });
	job_pump(job);
}

static void on_measured(void *arg, const struct msg_paired *paired, const char *why)
{
	struct job *job = arg;
	if (*why)
		log_info("preflight: pairs: %s", why);
	else if (paired->known)
		log_info("preflight: pairs: %.0f MB/s, %.0f us there and back",
			 (double)paired->bandwidth / 1e6, (double)paired->latency_ns / 1e3);
	job_push_agent(job, (struct agent_event){ .type = AGENT_MEASURED, .paired = *paired });
	job_pump(job);
}

void job_open_measuring(struct job *job, struct node_info *node)
{
	const struct run_config *config = job->config;
	struct err err = ERR_INIT;
	if (!preflight_wants_pairs(config))
		return;
	job->measuring =
		measuring_new(job->base, config->rdzv.has_token ? &config->rdzv.token : NULL,
			      on_measured, job, &node->pair_port, &err);
	if (!job->measuring)
		log_warn("preflight: pairs: %s", err.msg);
	node->pair_ms = preflight_pair_ms(config);
}

void job_measure(struct job *job, const struct msg_pair *pair)
{
	if (job->measuring)
		measuring_start(job->measuring, pair);
}

void job_check(struct job *job)
{
	if (!job->recheck)
		job->recheck = recheck_new(job->base, job->config, on_checked, job);
	log_info("checking this node before the next attempt");
	recheck_start(job->recheck);
}
