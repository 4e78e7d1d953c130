/* The files of orders on a host that does not share the coordinator's directory: fetches what they
 * need before they run, finds what they made when they end, and removes both (--cleanup).
 *
 * Files are fetched one after the other, in the order in which their orders came. One that several
 * orders name is fetched once. A host asks for a part of a file (FETCH) and gets it in pieces
 * (PIECE), and asks for more before it has all of them: so only CARGO_WINDOW bytes are under way,
 * whatever the size of the file. Of a directory it gets the list, and asks for one entry after the
 * other (core/deal/files.h). */
#ifndef BATCH_MANY_CARGO_H
#define BATCH_MANY_CARGO_H

#include "base/strv.h"
#include "proto/deal/work_msg.h"

#define CARGO_WINDOW WORK_FETCH_MAX
#define CARGO_IDLE_MAX 1024 /* files that are remembered although no order here needs them */

struct cargo;

struct cargo_handler {
	void (*on_ask)(void *arg, const struct work_msg *fetch);
	void (*on_here)(void *arg, uint32_t lease); /* all files of it */
	void (*on_failed)(void *arg, uint32_t order, uint32_t lease, const char *why);
};

struct cargo *cargo_new(const struct cargo_handler *handler, void *arg);
void cargo_free(struct cargo *cargo); /* NULL is fine */

/* Fetches them, from the beginning if that was under way. Calls back only from cargo_take(), or
 * from here if nothing is to be fetched. */
void cargo_fetch(struct cargo *cargo, uint32_t order, uint32_t lease, const struct strv *names);

/* What a PIECE brings; one that nobody waits for does nothing. */
int cargo_take(struct cargo *cargo, const struct work_msg *piece, struct err *err);

/* The link has ended: what was asked for does not come. */
void cargo_stop(struct cargo *cargo);

/* The order is over, or another's. With `cleanup`, files that were made here for it and that no
 * other order needs are removed. */
void cargo_release(struct cargo *cargo, uint32_t lease, bool cleanup);

/* Opens a file that an order made, and with `cleanup` removes its name. */
int cargo_open(struct cargo *cargo, const char *name, bool cleanup, uint64_t *ret_size,
	       uint32_t *ret_mode, struct err *err);

/* Whether a file of this name is in the working directory: the coordinator has put it into its
 * own. */
bool cargo_sees(const struct cargo *cargo, const char *name);

#endif
