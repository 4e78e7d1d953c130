/* What the parts of many share: many.c (both), post.c (a host's side), dealer.c (the
 * coordinator's). */
#ifndef BATCH_MANY_MANY_PRIVATE_H
#define BATCH_MANY_MANY_PRIVATE_H

#include <event2/event.h>

#include "nodes/peer_links.h"
#include "batch/many/many.h"
#include "batch/ending.h"
#include "batch/runner.h"
#include "core/deal/hand.h"
#include "proto/deal/work_msg.h"

struct dealer;
struct post;

struct many {
	const struct batch_config *config;
	const struct rendezvous *rdzv;
	const struct batch_plan *plan;
	const struct many_hooks *hooks;
	void *arg;
	char name[WORK_NAME_MAX]; /* of this host */
	uint64_t period_ns, lease_ns, lost_ns;
	struct runner *runner; /* while the loop runs */
	struct peer_links_handler handler;
	struct peer_links *links;
	struct post *post;
	struct dispatch_job job; /* with these two, if the list is here */
	struct dispatch *dispatch;
	struct dealer *dealer;		/* NULL: the coordinator is elsewhere */
	struct event *patience, *leave; /* leave: do not wait for the others any longer */
	struct event *hint;		/* that nobody coordinates so far */
	struct event *hosts;		/* what starts the other hosts has ended; or NULL */
	bool coordinated;
	bool withdrew; /* who coordinates is out of reach, but has the result file */
	int signals;   /* of the user, so far */
	int exit_code;
	bool over, failed; /* failed: whatever came of the orders */
};

/* many.c */
void many_end(struct many *many, int code);
void many_orphaned(struct many *many); /* there is no coordinator any more, for now */
static inline bool many_runs_orders(const struct many *many)
{
	return many->config->hosts_fd < 0; /* else they run elsewhere only */
}

/* post.c */
struct post *post_new(struct many *many);
void post_free(struct post *post);
void post_begin(struct post *post); /* the loop begins */
void post_up(struct post *post);
void post_down(struct post *post);
void post_coordinates(struct post *post);
int post_take(struct post *post, const void *data, size_t len, struct err *err);
void post_drained(struct post *post);
void post_interrupt(struct post *post, enum worklist_halt stop);
void post_stepped(struct post *post); /* the slots have */
struct order_source *post_source(struct post *post);
bool post_had_coordinator(const struct post *post);

/* dealer.c */
/* Shares the list of `dispatch` with hosts elsewhere. */
struct dealer *dealer_new(struct many *many, struct dispatch *dispatch);
void dealer_free(struct dealer *dealer);
void dealer_peer(struct dealer *dealer, uint64_t link, const char *name);
void dealer_take(struct dealer *dealer, uint64_t link, const void *data, size_t len);
void dealer_down(struct dealer *dealer, uint64_t link, bool dead);
bool dealer_is_awaited(const struct dealer *dealer); /* by hosts that are still to come */

#endif
