/* Who comes last to collectives, where the flight recorder is on: reads the records of the workers
 * of this host now and then, in a thread, and has the order of arrival judged, here or by the
 * coordinator (core/collectives/host_arrivals.h).
 *
 * A record is asked for with a request to PyTorch's server in the worker and comes as a whole,
 * about 470 bytes an operation. So the looks become rare: FLIGHTS_FIRST_NS apart until a worker has
 * come to a collective, then twice as long each time, up to FLIGHTS_LOOK_NS. Nothing is done, and
 * no timer runs, without a recorder, with a single rank, or while no workers run. */
#ifndef RUN_PACE_FLIGHTS_H
#define RUN_PACE_FLIGHTS_H

#include <event2/event.h>

#include "core/collectives/host_arrivals.h"
#include "run/worker_env.h"

#define FLIGHTS_FIRST_NS (3 * NS_PER_S)
#define FLIGHTS_LOOK_NS (12 * NS_PER_S)
#define FLIGHTS_FETCH_NS (10 * NS_PER_S) /* for an answer; workers may be busy */

struct flights;

struct flights_hooks {
	bool (*runs)(void *arg); /* whether the workers of the round do */
	void (*on_look)(void *arg);
	void (*on_record)(void *arg, size_t rank, const struct record *record); /* of each worker */
	/* A worker of this host holds the others up, or no longer does. */
	void (*on_news)(void *arg, const struct straggler_news *news);
	/* The coordinator is to be told of a group; borrowed until the next look. */
	void (*on_marks)(void *arg, const struct arrival_group *group, uint64_t error_ns);
	void (*on_done)(void *arg); /* the look is over */
	void *arg;
};

struct flights *flights_new(struct event_base *base, const struct flights_hooks *hooks);
void flights_free(struct flights *flights); /* NULL does nothing */

/* A round begins. `dir`: where workers give out their records (watch/flight_fetch.h); NULL: there
 * is no recorder. */
void flights_begin(struct flights *flights, const char *dir, const struct worker_round *round);

/* The name of a group, for people; NULL: it is not known here. */
const char *flights_group(const struct flights *flights, uint64_t key);

#endif
