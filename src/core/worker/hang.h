/* Decides what shows that the workers of a host go on, from samples of what they did.
 *
 * A hang is a property of the group: where only rank 0 prints, the others are healthy. So a host
 * tells what is missing (struct hang_signs), and the coordinator, which hears of all hosts,
 * decides (core/rounds/silence.h). Only a worker in uninterruptible sleep is a matter of its host.
 *
 * Signs of life are output, heartbeats, steps and collectives. Work is CPU time, bytes that are
 * read and written, and the times that the main thread had to wait, all of the worker and its
 * children: a group that works is not silent, but work excuses a broken promise only for
 * HANG_LONG_TIMES as long, since a worker that hangs may spin. Pure: no clock. */
#ifndef CORE_WORKER_HANG_H
#define CORE_WORKER_HANG_H

#include "base/util.h"

struct hang_policy { /* 0: no check */
	uint64_t start_ns;
	uint64_t silent_ns;
	uint64_t uninterruptible_ns;
};

/* Looks per shortest time-out: a verdict is late by at most one part in this many. */
#define HANG_LOOKS 10
#define HANG_LONG_TIMES 5

/* As much as this is work, on average over the time-out. */
#define HANG_WORK_CPU_PART 50		 /* 2 % of a CPU */
#define HANG_WORK_BYTES_PER_S (64 << 10) /* a thread that only monitors reads less */
#define HANG_WORK_WAITS_PER_10S 5	 /* a wait that wakes up now and then to look does less */

/* How often to look; 0: never. */
uint64_t hang_period_ns(const struct hang_policy *policy);

/* Counters of a worker, which only grow. */
struct hang_sample {
	uint64_t output;   /* bytes that it has printed */
	uint64_t promised; /* heartbeats and steps */
	uint64_t arrived;  /* collectives, as far as its flight record is known */
};

struct hang_work {
	uint64_t at_ns;
	uint64_t cpu_ns, bytes; /* of all its processes */
	uint64_t waits;		/* of its main thread */
	bool traced;		/* by a debugger: it is being looked after */
};

struct hang { /* of one worker */
	bool runs;
	struct hang_sample last;
	/* Of the last sign, or its start: any, output, a promise kept, a collective. */
	uint64_t alive_ns, output_ns, promised_ns, arrived_ns;
	uint64_t stuck_since_ns; /* in D state; 0: not */
	bool stuck_told;
	struct hang_work work[HANG_LOOKS + 1]; /* a ring of the last ones */
	size_t work_count;
	bool works;
};

void hang_begin(struct hang *hang, const struct hang_work *work, uint64_t now_ns);

/* Worker and watcher stood still for that long: it does not count. */
void hang_pause(struct hang *hang, uint64_t pause_ns);

void hang_look(struct hang *hang, const struct hang_sample *sample, uint64_t now_ns);

/* Whether the work of the worker is to be read again. */
bool hang_wants_work(const struct hang *hang, const struct hang_policy *policy, uint64_t now_ns);
void hang_add_work(struct hang *hang, const struct hang_policy *policy,
		   const struct hang_work *work);

/* Whether it has been in uninterruptible sleep, where no signal reaches it, for too long: once. */
bool hang_is_stuck(struct hang *hang, const struct hang_policy *policy, bool uninterruptible,
		   uint64_t now_ns);

/* ---- what a host tells ---- */

enum hang_level {
	HANG_FINE,
	HANG_SILENT, /* for as long as the time-out */
	HANG_LONG,   /* HANG_LONG_TIMES as long; of those that are starting: the time for a start */
	HANG_LEVEL_COUNT,
};

/* All 0: its workers go on. */
struct hang_signs {
	enum hang_level silence; /* no worker here has shown a sign of life */
	enum hang_level broken;	 /* one has, but has stopped sending heartbeats or steps */
	enum hang_level stalled; /* workers have come to collectives, but to none any more */
	bool starting;		 /* none here has shown a sign since its start */
	bool works;		 /* some here work */
	/* One here has stopped sending heartbeats or steps, too, but prints or works: the others
	 * may wait for it, as for a validation. */
	bool excuse;
	uint32_t rank; /* local: the one of `broken`, else one silent for longest */
};

void hang_signs_of(const struct hang *workers, size_t count, const struct hang_policy *policy,
		   uint64_t now_ns, struct hang_signs *ret_signs);
bool hang_signs_eq(const struct hang_signs *a, const struct hang_signs *b);

/* ---- what all of them mean ---- */

/* The later ones weigh more. */
enum hang_kind {
	HANG_NONE,
	HANG_RECORDS, /* if the records say so: all ranks have come to no collective any more */
	HANG_GROUP,   /* no rank shows a sign of life or works */
	HANG_START,   /* nor has any since its start */
	HANG_PROMISE, /* a rank has stopped sending heartbeats or steps */
	HANG_UNINTERRUPTIBLE, /* only its host knows */
	HANG_KIND_COUNT,
};

#define HANG_EVIDENCE "it counts as hung because " /* how a line about a verdict begins */

const char *hang_kind_text(enum hang_kind kind);

/* The signs of many hosts, counted. */
struct hang_tally {
	uint32_t silent, silent_long, starting, works, broken, broken_long, excuse, stalled,
		stalled_long;
};

void hang_tally_add(struct hang_tally *tally, const struct hang_signs *signs);
void hang_tally_remove(struct hang_tally *tally, const struct hang_signs *signs);

/* `hosts`: all that have workers, those that told nothing included. `ret_long`: work is no excuse
 * any more. */
enum hang_kind hang_judge(const struct hang_tally *tally, uint32_t hosts, bool *ret_long);

#endif
