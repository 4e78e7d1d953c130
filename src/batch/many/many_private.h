/* What the parts of many share: many.c (both), post.c (a host's side), dealer.c and dealer_tell.c
 * (the coordinator's). */
#ifndef BATCH_MANY_MANY_PRIVATE_H
#define BATCH_MANY_MANY_PRIVATE_H

#include <event2/event.h>

#include "nodes/peer_links.h"
#include "batch/many/many.h"
#include "batch/ending.h"
#include "batch/runner.h"
#include "core/deal/hand.h"
#include "proto/deal/work_msg.h"

#define MANY_LOCAL_LINK UINT64_MAX /* of the host in the coordinator's process */

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
	struct dealer *dealer;			  /* NULL: the coordinator is elsewhere */
	struct buf to_dealer, to_post;		  /* between the two, if both are here */
	struct event *deliver, *patience, *leave; /* leave: do not wait for the others any longer */
	struct event *hint;			  /* that nobody coordinates so far */
	struct event *hosts; /* what starts the other hosts has ended; or NULL */
	bool coordinated;
	bool withdrew; /* who coordinates is out of reach, but has the result file */
	int signals;   /* of the user, so far */
	int exit_code;
	bool over;
};

/* many.c */
void many_end(struct many *many, int code);
void many_orphaned(struct many *many); /* there is no coordinator any more, for now */

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
void post_job(struct post *post, struct runner_job *job);
void post_started(struct post *post, const struct batch_order *order);
void post_ended(struct post *post, struct ending *ending);
bool post_had_coordinator(const struct post *post);
uint32_t post_lease(const struct post *post, const struct batch_order *order); /* 0: none */

/* dealer.c */
int dealer_new(struct many *many, bool again, struct dealer **ret_dealer, struct err *err);
void dealer_free(struct dealer *dealer);
void dealer_peer(struct dealer *dealer, uint64_t link, const char *name);
void dealer_take(struct dealer *dealer, uint64_t link, const void *data, size_t len);
void dealer_down(struct dealer *dealer, uint64_t link, bool dead);
void dealer_stop(struct dealer *dealer, enum worklist_halt stop);
bool dealer_is_awaited(const struct dealer *dealer); /* by hosts that are still to come */
void dealer_finish(struct dealer *dealer);	     /* says how it ended */

#endif
