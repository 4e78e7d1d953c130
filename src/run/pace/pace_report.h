/* How the workers of this host keep pace with those of others: reads when they told their steps,
 * from their pages, and has the node tell the coordinator (core/rounds/pacing.h). When that, or the
 * order of arrival at collectives (run/pace/flights.h), says that a worker here holds the others
 * up, finds out why, as far as the kernel knows, and tells it once.
 *
 * Workers write into memory, which makes no event. Their pages are looked at every PACE_LOOK_NS
 * while workers tell steps, every PACE_IDLE_NS while they have pages but tell none, and never
 * otherwise. Nothing is done about a straggler. */
#ifndef RUN_PACE_PACE_REPORT_H
#define RUN_PACE_PACE_REPORT_H

#include <event2/event.h>

#include "core/rounds/agent.h"
#include "run/workers.h"
#include "watch/worker_pages.h"

#define PACE_LOOK_NS (200 * NS_PER_MS)
#define PACE_IDLE_NS (2 * NS_PER_S)
#define PACE_COUNTERS_NS (5 * NS_PER_S) /* counters are compared with those of so long ago */
#define PACE_SPAN_NS (NS_PER_S / 4)	/* in less than this they tell nothing */

/* Borrowed, for as long as the report is used. */
struct pace_report_spec {
	struct event_base *base;
	const struct group *group;
	const struct workers *workers;
	const struct worker_pages *pages;
	const struct agent *agent;
	/* For the node, which takes it after the look; what it points to lives until the next. */
	void (*on_event)(void *arg, const struct agent_event *event);
	void (*on_looked)(void *arg); /* from the loop */
	/* A worker here holds the others up, or no longer does. `why`: as far as the kernel knows,
	 * "": not known; `group`: of collectives, "": not known, or of steps. */
	void (*on_straggler)(void *arg, size_t rank, const struct straggler_news *news,
			     const char *why, const char *group);
	/* As its flight record says, this worker has come to so many collectives. */
	void (*on_arrived)(void *arg, size_t rank, uint64_t collectives);
	void *arg;
};

struct pace_report;

struct pace_report *pace_report_new(const struct pace_report_spec *spec);
void pace_report_free(struct pace_report *report); /* NULL does nothing */

/* A round begins with fresh pages. `records`: where its workers give out their flight records;
 * NULL: there is no recorder. */
void pace_report_begin(struct pace_report *report, const char *records);

/* A worker has asked for its page. */
void pace_report_wake(struct pace_report *report);

/* What the coordinator says about a worker of this host. */
void pace_report_late(struct pace_report *report, const struct straggler_news *news);

#endif
