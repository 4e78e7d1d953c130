/* The end of an attempt: its output is measured and hashed, its line written, its output shown.
 *
 * Hashing a large output takes a while; it is done in pieces, so that the loop goes on. */
#ifndef BATCH_ENDING_H
#define BATCH_ENDING_H

#include <sodium.h>

#include "base/list.h"
#include "proto/result.h"

struct ending {
	struct list link;
	struct result result;
	int fds[2]; /* stdout, stderr; owned */
	int stream; /* being hashed; 2: done */
	uint64_t offset;
	crypto_hash_sha256_state hash;
	/* For the job log; seq 0: not logged. */
	size_t seq;
	uint64_t start_wall_ns, runtime_ns;
	int log_exit, log_signal;
	char *log_command;
};

/* Takes `fds` over and reads the sizes. */
void ending_init(struct ending *ending, int fds[2]);
void ending_done(struct ending *ending);

/* Hashes up to `budget` bytes more. True when all is hashed. */
bool ending_hash(struct ending *ending, uint64_t budget);

#endif
