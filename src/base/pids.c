#include "base/pids.h"

#include <stdlib.h>

#include "base/mem.h"

void pids_done(struct pids *pids)
{
	free(pids->items);
	*pids = PIDS_INIT;
}

void pids_add(struct pids *pids, pid_t pid)
{
	ARRAY_RESERVE(pids->items, pids->count, pids->cap);
	pids->items[pids->count++] = pid;
}

void pids_remove(struct pids *pids, pid_t pid)
{
	for (size_t i = 0; i < pids->count; i++)
		if (pids->items[i] == pid) {
			pids->items[i] = pids->items[--pids->count];
			return;
		}
}

bool pids_has(const struct pids *pids, pid_t pid)
{
	for (size_t i = 0; pids && i < pids->count; i++)
		if (pids->items[i] == pid)
			return true;
	return false;
}
