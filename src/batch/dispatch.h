/* The list of a batch, in the process that has it: hands orders to the slots of this host and, if
 * there are any, to hosts elsewhere (batch/many/dealer.c), and records what came of them. */
#ifndef BATCH_DISPATCH_H
#define BATCH_DISPATCH_H

#include "batch/journal.h"
#include "batch/pipe/pipe.h"
#include "batch/recorder.h"
#include "batch/runner.h"

struct dispatch;
struct deal;

/* What is to be done. All is borrowed. */
struct dispatch_job {
	const struct batch_config *config;
	const struct orders *orders;
	struct batch_order *todo; /* todo[i].item.index is an index into `orders` */
	size_t count;
	size_t already_done; /* for the summary */
	struct worklist_opts opts;
	size_t variant_step; /* see struct order_source; 0: there are no variants */
	uint32_t variants;   /* 0: none */
	const struct orders *hooks;
	struct pipe_orders *pipe;
	struct journal *journal;
	const char *node; /* the name of this host, in results; NULL: it is the only one */
};

int dispatch_new(struct runner *runner, const struct dispatch_job *job,
		 struct dispatch **ret_dispatch, struct err *err);
void dispatch_free(struct dispatch *dispatch, int code);

struct order_source *dispatch_source(struct dispatch *dispatch);
const struct dispatch_job *dispatch_job(const struct dispatch *dispatch);
static inline struct worklist *dispatch_list(struct dispatch *dispatch)
{
	return &dispatch_source(dispatch)->list;
}

/* Of the number `number` of the list: what one of its variants runs; 0: the only one. */
const struct order *dispatch_order(const struct dispatch *dispatch, uint32_t number, char variant);

/* Hosts elsewhere take from the list, too; `look` is called when it has changed. All is borrowed.
 */
void dispatch_share(struct dispatch *dispatch, const struct deal *deal, void (*look)(void *arg),
		    void *arg);

/* The slots of this host have taken a step, or those hosts have: what it did to the list may be of
 * use to the other side. */
void dispatch_slots_stepped(struct dispatch *dispatch);
void dispatch_hosts_stepped(struct dispatch *dispatch);

/* The result of an attempt elsewhere: an order of the list, by its number, whose output is in the
 * descriptors of the ending. Fills in the rest. */
void dispatch_started(struct dispatch *dispatch, uint32_t number, const char *node);
void dispatch_record(struct dispatch *dispatch, uint32_t number, struct ending *ending);

/* Its results can't be written any more. */
void dispatch_fail(struct dispatch *dispatch, const struct err *err);

/* What the user wants, by a signal. */
void dispatch_signalled(struct dispatch *dispatch, int sig);

int dispatch_exit_code(struct dispatch *dispatch);
/* The batch is over: says how, and returns the exit code. */
int dispatch_finish(struct dispatch *dispatch);

/* The owner of a batch on this host alone; its argument is a struct dispatch_here. */
struct dispatch_here {
	const struct dispatch_job *job;
	struct dispatch *dispatch;
};
extern const struct runner_owner dispatch_owner;

#endif
