/* A set of ways for a process to end, such as "2,64-78,SIGSEGV". A number is an exit code, a name a
 * signal. --no-restart-on takes one. */
#ifndef CORE_WORKER_EXIT_SET_H
#define CORE_WORKER_EXIT_SET_H

#include "base/err.h"
#include "core/worker/exit_status.h"

struct exit_set {
	uint64_t codes[4]; /* one bit for each of 0..255 */
	uint64_t signals;  /* bit n - 1 for signal n */
};

#define EXIT_SET_INIT ((struct exit_set){ .signals = 0 })

/* Replaces the set with what `text` lists; an empty text is the empty set. */
int exit_set_parse(const char *text, struct exit_set *ret_set, struct err *err);

/* An unknown end is in no set. */
bool exit_set_contains(const struct exit_set *set, const struct exit_status *status);

#endif
