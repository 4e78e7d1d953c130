/* The orders that failed, for the end of a batch: what each one said last. */
#ifndef BATCH_SHOW_FAILURES_H
#define BATCH_SHOW_FAILURES_H

#include "base/buf.h"

#define FAILURES_SHOWN 20 /* further ones are counted */
#define FAILURE_LINES 5	  /* of each */

struct failures {
	char *texts[FAILURES_SHOWN];
	size_t count;
};

#define FAILURES_INIT ((struct failures){ .count = 0 })

void failures_done(struct failures *failures);

/* `heading` is its line; then come the last lines that it wrote, or NULL. */
void failures_add(struct failures *failures, const char *heading, const char *tail);

/* The last lines of a file, of which `bytes` are written; NULL: none. The caller frees it. */
char *failures_tail(int fd, uint64_t bytes);

/* Appends the list; nothing for none. */
void failures_format(const struct failures *failures, struct buf *out);

#endif
