/* The job's checks between attempts. */
#include "run/job_private.h"

#include "base/log.h"
#include "core/checks/changes.h"
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
	/* Not queued: the digest is only borrowed. */
	job_step_node(job, &(struct node_event){ .type = NODE_EV_HOST,
						 .agent = { .type = AGENT_CHECKED,
							    .digest = results ? &digest : NULL } });
	job_pump(job);
}

void job_check(struct job *job)
{
	if (!job->recheck)
		job->recheck = recheck_new(job->base, job->config, on_checked, job);
	log_info("checking this node before the next attempt");
	recheck_start(job->recheck);
}
