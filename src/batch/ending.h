/* The end of an attempt: measure and hash its output, write its line, show its output.
 *
 * Hashing a large output takes a while, so it happens in pieces between which the loop runs. */
#ifndef BATCH_ENDING_H
#define BATCH_ENDING_H

#include <sodium.h>

#include "base/list.h"
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
};

/* Takes over `fds` and reads the sizes. */
void ending_init(struct ending *ending, int fds[2]);
void ending_done(struct ending *ending);

/* Hashes up to `budget` more bytes. True when everything is hashed. */
bool ending_hash(struct ending *ending, uint64_t budget);

#endif
