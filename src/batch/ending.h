/* The end of an attempt, and its output, which is measured and hashed.
 *
 * Hashing a large output takes a while, so it happens in pieces between which the loop runs. */
#ifndef BATCH_ENDING_H
#define BATCH_ENDING_H

#include <sodium.h>

#include "base/list.h"
#include "core/dispatch/batch.h"
#include "proto/orders.h"
#include "proto/result.h"

struct order_source;

struct ending {
	struct list link;
	struct result result;
	int fds[2]; /* stdout, stderr; owned */
	int stream; /* the one being hashed; 2: done */
	uint64_t offset;
	crypto_hash_sha256_state hash;
	/* What ended in a slot (from 1; 0: not known here); both are borrowed. */
	const struct batch_order *from;
	struct order_source *source;
	int slot;
	/* That is an order of the list (borrowed), its number `index` there and `number` among all.
	 */
	const struct order *what;
	size_t index, number;
	/* How. */
	uint64_t start_wall_ns;
	bool timed;
	uint64_t runtime_ns;
	bool final; /* the order is over */
	bool unrun; /* it was stopped, so it counts as not run */
	bool retry; /* the next of so many attempts follows in so long */
	int attempts;
	uint64_t retry_in_ns;
	enum reason canary; /* with REASON_CANARY: how the canary ended */
	bool silent;	    /* not recorded */
	bool logged;	    /* in the job log */
	/* For the screen. */
	size_t order;	   /* its turn */
	char *tag;	   /* NULL: none */
	bool hidden;	   /* its output is not shown */
	uint64_t bytes[2]; /* of the output */
	uint64_t shown[2]; /* of them, while it ran */
	uint32_t lease;	   /* of a coordinator elsewhere, under which it ran; 0: none any more */
};

/* Nothing is known of its output. */
void ending_init_bare(struct ending *ending);
/* Takes over `fds` and reads the sizes. */
void ending_init(struct ending *ending, int fds[2]);
/* Nothing was written to its files, which are not its own any more. */
void ending_init_empty(struct ending *ending);
void ending_done(struct ending *ending);

/* What ran, for the result. */
void ending_set_order(struct result *result, const struct order *order, int slot, int width);

/* Hashes up to `budget` more bytes. True when everything is hashed. */
bool ending_hash(struct ending *ending, uint64_t budget);

#endif
