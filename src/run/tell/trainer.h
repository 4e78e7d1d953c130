/* Tells Kubeflow's Trainer how far the job has got, where it asks for that
 * ($KUBEFLOW_TRAINER_SERVER_URL) and workers tell their steps.
 *
 * The host of rank 0 does it, about its own workers. Each time a program takes the news there
 * (muster-report-kubeflow), so that neither a slow server nor its TLS concerns this process. */
#ifndef RUN_TELL_TRAINER_H
#define RUN_TELL_TRAINER_H

#include "run/tell/steps.h"

struct event_base;
struct trainer;

#define TRAINER_PERIOD_NS (5 * NS_PER_S) /* Kubeflow asks for at most one report in 5 seconds */
#define TRAINER_LAST_NS (12 * NS_PER_S)	 /* the end of the job waits so long for the last one */

/* Borrows `steps`. NULL if nobody asks for reports. */
struct trainer *trainer_new(struct event_base *base, const struct steps *steps);

/* A round begins, with the group rank of this host. */
void trainer_begin(struct trainer *trainer, uint32_t group_rank, uint32_t restarts);

/* The job has ended; trainer_free() reports it. */
void trainer_end(struct trainer *trainer, bool done);

/* Sends the last report and waits for it, at most `patience_ns`. */
void trainer_free(struct trainer *trainer, uint64_t patience_ns);

#endif
