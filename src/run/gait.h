/* How the workers of this host keep pace with those of others: reads when they told their steps,
 * from their pages, and has the node tell the coordinator (core/rounds/pacing.h). When that, or the
 * order of arrival at collectives (run/pace/flights.h), says that a worker here holds the others
 * up, finds out why, as far as the kernel knows, and tells it once.
 *
 * Workers write into memory, which makes no event. Their pages are looked at every GAIT_LOOK_NS
 * while workers tell steps, every GAIT_IDLE_NS while they have pages but tell none, and never
 * otherwise. Nothing is done about a straggler. */
#ifndef RUN_GAIT_H
#define RUN_GAIT_H

#include "core/pace/straggler.h"

#define GAIT_LOOK_NS (200 * NS_PER_MS)
#define GAIT_IDLE_NS (2 * NS_PER_S)
#define GAIT_STRAIN_NS (5 * NS_PER_S) /* counters are compared with those of so long ago */
#define GAIT_SPAN_NS (NS_PER_S / 4)   /* in less than this they tell nothing */

struct job;
struct gait;

struct gait *gait_new(struct job *job);

/* A round begins with fresh pages. */
void gait_begin(struct job *job);
void gait_free(struct gait *gait); /* NULL does nothing */

/* A worker has asked for its page. */
void gait_wake(struct job *job);

/* What the coordinator says about a worker of this host. */
void gait_late(struct job *job, const struct straggler_news *news);

#endif
