/* The end of an attempt: measure and hash its output, write its line, show its output.
 *
 * Hashing a large output takes a while, so it happens in pieces between which the loop runs. */
#ifndef BATCH_ENDING_H
#define BATCH_ENDING_H

#include <sodium.h>

#include "base/list.h"
#include "core/batch/batch.h"
#include "proto/orders.h"
#include "proto/result.h"

struct ending {
	struct list link;
	struct result result;
	int fds[2]; /* stdout, stderr; owned */
	int stream; /* the one being hashed; 2: done */
	uint64_t offset;
	crypto_hash_sha256_state hash;
	/* For the job log; seq 0: not logged. */
	size_t seq;
	uint64_t start_wall_ns, runtime_ns;
	int log_exit, log_signal;
	char *log_command;
	/* For the screen. */
	size_t order; /* its place in the list */
	char *tag;    /* NULL: none */
	bool hidden, final;
	uint64_t shown[2]; /* bytes that were shown while it ran */
	/* For a source elsewhere. */
	const struct batch_order *from;
	uint32_t lease; /* under which it ran; 0: none any more */
	bool unrun;	/* it was stopped, so it counts as not run */
};

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
