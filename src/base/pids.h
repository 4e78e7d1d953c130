/* A list of process ids. */
#ifndef BASE_PIDS_H
#define BASE_PIDS_H

#include "base/util.h"

struct pids {
	pid_t *items;
	size_t count;
	size_t cap;
};

#define PIDS_INIT ((struct pids){ .items = NULL })

void pids_done(struct pids *pids);
void pids_add(struct pids *pids, pid_t pid);
void pids_remove(struct pids *pids, pid_t pid);	   /* the order is not kept */
bool pids_has(const struct pids *pids, pid_t pid); /* NULL: has none */

#endif
