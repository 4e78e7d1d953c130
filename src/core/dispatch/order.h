/* An order of a batch, as the list has it (core/dispatch/worklist.h), the slot of a host in which
 * it runs (core/dispatch/batch.h), and who gives orders to hosts elsewhere (core/deal/deal.h). */
#ifndef CORE_DISPATCH_ORDER_H
#define CORE_DISPATCH_ORDER_H

#include "core/batch/repeat.h"
#include "core/batch/schedule.h"

enum batch_order_state {
	BATCH_QUEUED,
	BATCH_AHEAD, /* a slot may have started it (BATCH_LAY) */
	BATCH_GIVEN, /* to a host elsewhere */
	BATCH_HELD,  /* waits for a canary */
	BATCH_RUNNING,
	BATCH_WAITING, /* waits for its next attempt */
	BATCH_OK,
	BATCH_FAILED,
	BATCH_SKIPPED, /* its canary failed */
	BATCH_FREE,    /* of an open list: nothing is in it yet */
};

/* The caller fills the fields above the line; the machines own the others. */
struct batch_order {
	struct schedule_item item; /* index, width and kind */
	uint64_t timeout_ns;	   /* 0: none */
	uint64_t cpu_timeout_ns;   /* 0: none */
	uint64_t memory_limit;	   /* bytes, of its whole tree; 0: none, or the kernel sees to it */
	uint64_t estimate_ns;	   /* from history; 0: unknown */
	uint32_t timeout_percent;  /* of the median; 0: none */
	uint32_t group; /* orders that take about the same time; < worklist_opts.groups */
	uint32_t gate;	/* held until this gate opens; 0: none */
	uint32_t opens; /* its success opens this gate; 0: none */
	int32_t retries, runs, warmup;
	uint8_t losses; /* attempts that were lost with their hosts */
	int32_t run;	/* the first run to do: 0, or where an earlier batch stopped */
	/* decides instead of runs, warmup and run; borrowed; may be NULL */
	struct repeat *repeat;
	bool is_canary;	 /* not in the list, so not counted */
	bool alone;	 /* no slot can start it by itself (BATCH_LAY) */
	uint64_t number; /* its place among all orders, from 0 */
	/* --- the list */
	uint8_t state;
	uint64_t key; /* smaller ones run first */
	struct heap_node wake;
	/* --- the slot that it is in */
	bool is_set_up;	     /* its SETUP has run */
	int32_t attempt;     /* 1, 2, … */
	int32_t warmup_left; /* of this attempt's run */
	/* --- when it is given to hosts elsewhere */
	bool started;	   /* its host said so */
	uint64_t since_ns; /* of that */
	uint32_t host;	   /* GIVEN: to whom */
	uint32_t at;	   /* GIVEN: its place in the list of that host */
	uint32_t lease;	   /* the last one; 0: none yet */
	uint32_t results;  /* that have come under this lease */
};

#endif
