/* A batch on this host as a state machine: which order of the list runs next and where, what
 * happens when it is too slow, fails, or does not end, and when the batch is over. Pure: the shell
 * (src/batch) starts and signals processes, writes results and keeps the clock.
 *
 *     batch_step(&batch, &event, now_ns, &actions);     // carry the actions out, in order
 *     arm_timer(batch_next_deadline(&batch));           // its expiry is a BATCH_TICK
 *
 * An order runs in a slot, on its own cores, as often as its repetition asks. Its cores become
 * free, and a retry may begin, only when its last process is gone. */
#ifndef CORE_DISPATCH_BATCH_H
#define CORE_DISPATCH_BATCH_H

#include "base/actions.h"
#include "core/dispatch/worklist.h"

enum batch_event_type {
	BATCH_START, /* once */
	BATCH_LOOK,  /* hosts elsewhere have changed the list */
	/* slot: status, start_ns, end_ns; `empty` if no process is left; `oom`; `next` if the slot
	 * has started that one already */
	BATCH_EXITED,
	BATCH_SPAWN_FAILED, /* slot: no process is left */
	BATCH_EMPTY,	    /* slot: its last process is gone */
	/* slot: its warden is gone, and so is the order; `next`: and that one, which it had taken
	 * without telling: once more for that one */
	BATCH_LOST,
	BATCH_CPU_USED,	   /* slot: cpu_ns, the answer to BATCH_QUERY_CPU */
	BATCH_MEMORY_USED, /* slot: memory, the answer to BATCH_QUERY_MEMORY */
	BATCH_TICK,	   /* a deadline has passed */
	BATCH_HOST,	   /* memory_free, load: the answer to BATCH_QUERY_HOST */
	BATCH_DRAIN,	   /* start no more; those that run go on to their end */
	BATCH_INTERRUPT,   /* Ctrl-C: first stops, second kills */
	BATCH_OFFER,	   /* of an open list: `order` is there, the answer to BATCH_FETCH */
	BATCH_CLOSED,	   /* of an open list: there is none left, the other answer */
	BATCH_DISCARD,	   /* of an open list: `order` is not wanted here any more */
	BATCH_FATAL,	   /* results cannot be written any more: kill everything and end */
	/* order: it was taken back; NULL, the answer to BATCH_TAKE_ONE if slots have all of them */
	BATCH_TAKEN_BACK,
	BATCH_LAID, /* order: the answer to BATCH_LAY; `refused`: it cannot be */
	BATCH_EVENT_COUNT,
};

struct batch_event {
	enum batch_event_type type;
	int slot;
	struct exit_status status;
	uint64_t start_ns, end_ns, cpu_ns;
	bool empty, oom;
	uint64_t memory;      /* MEMORY_USED: bytes */
	uint64_t memory_free; /* HOST: bytes */
	double load;	      /* HOST: threads that want to run */
	/* EXITED: the host was not quiet; the run counts less (core/batch/repeat.h) */
	bool suspect;
	struct batch_order *order; /* OFFER: filled in anew; DISCARD; TAKEN_BACK; LAID */
	struct batch_order *next;  /* EXITED, LOST */
	bool refused;		   /* LAID */
};

enum batch_action_type {
	BATCH_SPAWN,	    /* slot, order, cpus; trial; `runs`: the slot has started it itself */
	BATCH_SIGNAL,	    /* slot, sig: to every process of the slot */
	BATCH_KILL,	    /* slot: until no process is left; BATCH_EMPTY is the answer */
	BATCH_QUERY_CPU,    /* slot */
	BATCH_QUERY_MEMORY, /* slot */
	BATCH_QUERY_HOST,
	BATCH_FETCH,  /* order: fill in the next one here; BATCH_OFFER or BATCH_CLOSED follows */
	BATCH_FINISH, /* slot, order, outcome: write the result */
	/* order: lay it where every slot may take it; BATCH_LAID is the answer. A slot whose order
	 * has ended well, has left no process and has written nothing starts the first that lies
	 * there on the same cores. */
	BATCH_LAY,
	BATCH_TAKE_ONE, /* take the first back that no slot has; BATCH_TAKEN_BACK is the answer */
	BATCH_TAKE_ALL, /* take all those back; BATCH_TAKEN_BACK for each */
	BATCH_END, /* nothing runs and nothing will run, unless hosts elsewhere return orders */
};

/* Commands around the runs of an order, on its cores, not measured. If one fails, its order
 * fails. */
enum batch_hook {
	BATCH_HOOK_NONE,
	BATCH_HOOK_SETUP,   /* before its first run */
	BATCH_HOOK_PREPARE, /* before every run */
	/* the order itself, before a run that is slowed down: what was measured of this one counts,
	 * and if it fails, the order has failed */
	BATCH_HOOK_TIMED,
	BATCH_HOOK_CLEANUP, /* after its last run, however it ended */
	BATCH_HOOK_COUNT,
};

/* Which execution of an order. */
struct batch_trial {
	int attempt, run;
	bool warmup;
	char variant;	      /* 'A', 'B', …; 0: there is only one */
	int block;	      /* -1: none */
	enum batch_hook hook; /* this hook runs, not the order itself */
};

struct batch_outcome {
	struct batch_trial trial;
	enum reason reason;
	enum reason canary; /* with REASON_CANARY: how the canary ended */
	struct exit_status status;
	bool timed; /* start_ns and end_ns are known */
	uint64_t start_ns, end_ns;
	bool shared; /* a core was shared with another order */
	bool final;  /* the last outcome of this order */
	bool retry;
	uint64_t retry_in_ns;
};

struct batch_action {
	enum batch_action_type type;
	int slot;
	int sig;
	bool runs;
	struct batch_order *order;
	struct worklist *list;	      /* SPAWN, FINISH: that of the order; see batch_adopt() */
	struct cpuset cpus;	      /* empty: not pinned */
	struct batch_outcome outcome; /* SPAWN: only its trial */
};

ACTIONS_OF(batch);
QUEUE_OF(batch);

struct batch_opts {
	int jobs; /* orders at a time, at least 1 */
	struct retry_rule retry_on;
	uint64_t retry_delay_ns; /* doubles with every attempt, up to BATCH_RETRY_DELAY_MAX_NS */
	struct host_facts facts; /* of this host; its texts are borrowed */
	struct ladder timeout_ladder;
	struct ladder stop_ladder;    /* Ctrl-C, --halt now, --deadline */
	bool hooks[BATCH_HOOK_COUNT]; /* which hooks exist */
	bool ignore_exit;	      /* a run with any exit code is a good one */
	uint64_t start_delay_ns;      /* between two starts */
	uint64_t memory_free;	      /* start an order only with this much free; 0: always */
	uint64_t memory_period_ns;    /* between looks at the memory of an order; 0: none */
	double load;		      /* and only below this load; 0: always */
	/* So many orders may lie ahead (BATCH_LAY), if all orders are plain ones: of one core, run
	 * once, without a limit or a need, and the end of one decides nothing about the others. 0:
	 * none. */
	int ahead;
};

#define BATCH_RETRY_DELAY_MAX_NS ((uint64_t)60 * 1000000000)
#define BATCH_CPU_CHECK_MIN_NS ((uint64_t)10 * 1000000)
#define BATCH_HOST_PERIOD_NS ((uint64_t)1000000000) /* between looks at a host that is too busy */

struct batch_slot;

struct batch {
	struct batch_opts opts;
	struct worklist *list; /* borrowed */
	struct corepool *pool; /* borrowed */
	struct schedule_taker taker;
	struct batch_slot *slots; /* opts.jobs of them */
	int running;
	bool had_one;	  /* order of its list */
	uint64_t memory;  /* that those need (struct order_kind) */
	uint64_t hold_ns; /* start nothing before; 0: nothing is held */
	bool host_asked, host_ok;
	int ahead;	     /* orders that were laid, and no slot has told that it has them */
	bool laying, taking; /* BATCH_LAY, BATCH_TAKE_ONE are not answered yet */
	bool all_taken;	     /* by slots: nothing lies there, until more is laid */
	struct batch_order *unlaid; /* the first in line, but cannot be laid; NULL: none */
	/* What was done of what the list says. */
	enum worklist_halt halt;
	enum batch_stop stop;
	bool ended;
};

/* `pool` and `list` are borrowed for the life of the batch; no width may exceed
 * corepool_max_width(). */
void batch_init(struct batch *batch, const struct batch_opts *opts, struct corepool *pool,
		struct worklist *list);
void batch_done(struct batch *batch);

/* From now on orders are taken from this list, which is borrowed, too. What runs of the one before
 * goes on to its end, and is told to that one. */
void batch_adopt(struct batch *batch, struct worklist *list);

void batch_step(struct batch *batch, const struct batch_event *event, uint64_t now_ns,
		struct batch_actions *actions);

/* When the next BATCH_TICK is due; NS_NEVER: none. */
uint64_t batch_next_deadline(const struct batch *batch);

/* Orders could start, but --memfree or --load does not let them. */
bool batch_waits_for_host(const struct batch *batch);

/* It gets no more, by worklist_opts.once. */
static inline bool batch_has_had_one(const struct batch *batch)
{
	return batch->list->opts.once && batch->had_one;
}

/* Nothing waits that could start, and cores are free. */
bool batch_is_idle(const struct batch *batch);

/* The order that runs in a slot and since when; NULL: none. */
const struct batch_order *batch_running(const struct batch *batch, int slot,
					uint64_t *ret_since_ns);

/* How long an attempt that failed waits for the next one. */
uint64_t batch_retry_delay_ns(uint64_t first_ns, int attempt);

/* What runs of its list, for worklist_eta(): at most opts.jobs; returns how many. */
size_t batch_left(const struct batch *batch, uint64_t now_ns, struct schedule_running *ret_running);

/* Time until everything is done; NS_NEVER while there is no estimate. */
uint64_t batch_eta(const struct batch *batch, uint64_t now_ns);

#endif
