/* How far a job has got, as Kubeflow's Trainer wants to be told: the body of the request that its
 * server at $KUBEFLOW_TRAINER_SERVER_URL takes. */
#ifndef PROTO_K8S_TRAINER_STATUS_H
#define PROTO_K8S_TRAINER_STATUS_H

#include "base/buf.h"
#include "core/worker/step_progress.h"

struct trainer_status {
	struct step_progress_sum steps;
	bool done;	   /* the job has succeeded */
	uint32_t restarts; /* of the job, so far */
	uint64_t wall_ns;
};

/* Appends it. 100 percent is said only of a job that has succeeded. */
void trainer_status_put(const struct trainer_status *status, struct buf *out);

#endif
