/* What the parts of the machine share: the slots, and one step's view of the batch. */
#ifndef CORE_DISPATCH_BATCH_PRIVATE_H
#define CORE_DISPATCH_BATCH_PRIVATE_H

#include "core/dispatch/batch.h"

enum slot_state {
	SLOT_IDLE,
	SLOT_RUNNING,
	SLOT_STOPPING, /* the ladder of signals is under way; `why` says why */
	SLOT_SWEEPING, /* the main process is gone, others are still alive */
	SLOT_STATE_COUNT,
};

struct batch_slot {
	enum slot_state state;
	struct batch_order *order;
	struct worklist *list; /* that of the order */
	struct placement placement;
	uint64_t since_ns;     /* asked to start */
	uint64_t step_ns;      /* STOPPING: when the next step is due */
	uint64_t cpu_check_ns; /* RUNNING: when to look at its CPU time */
	uint64_t memory_check_ns;
	const struct ladder *ladder;
	size_t step;
	enum reason why; /* REASON_OK: it ended by itself */
	struct exit_status status;
	bool timed, oom, suspect;
	enum batch_hook hook; /* this runs instead of the order */
	bool order_ok;	      /* CLEANUP: how the order ended */
	bool was_timed;	      /* the TIMED run before this one is over; its times: */
	uint64_t timed_start_ns, timed_end_ns;
	uint64_t start_ns, end_ns;
};

/* One step's view: the handlers below all take it. */
struct step {
	struct batch *batch;
	const struct batch_event *event;
	uint64_t now_ns;
	struct batch_actions *actions;
};

/* A new action of this step, zeroed but for these. */
struct batch_action *batch_act(struct step *s, enum batch_action_type type, int slot);

/* What it needs, in bytes; 0: it does not say. */
uint64_t batch_memory_of(const struct worklist *list, const struct schedule_item *item);

/* batch_slot.c: the life of an order in a slot */
void batch_slot_begin(struct step *s, struct batch_slot *slot); /* the next trial of its order */
void batch_slot_event(struct step *s, int number);
void batch_slot_stop(struct step *s, struct batch_slot *slot, enum reason why,
		     const struct ladder *ladder);
void batch_stop_all(struct step *s);
void batch_kill_all(struct step *s);
/* When it wants a BATCH_TICK; NS_NEVER: not at all. */
uint64_t batch_slot_deadline(const struct batch_slot *slot);

#endif
