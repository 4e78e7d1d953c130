/* Reads the orders, and what earlier results say about them. */
#ifndef BATCH_LOAD_H
#define BATCH_LOAD_H

#include "base/map.h"
#include "batch/config.h"
#include "proto/orders.h"

/* What an earlier result says about one order (by hash). */
struct past {
	uint64_t times[5]; /* wall times of the last good runs */
	uint32_t good;	   /* good runs, warm-ups not counted */
	int32_t next_run;  /* runs 0 … next_run - 1 are done */
	bool failed;	   /* the last attempt failed */
};

struct pasts {
	struct map by_hash; /* hash text -> struct past */
};

#define PASTS_INIT ((struct pasts){ .by_hash = MAP_INIT })

void pasts_done(struct pasts *history);
int pasts_read(struct pasts *history, const char *path, uint64_t *ret_end, struct err *err);
const struct past *pasts_find(const struct pasts *history, const struct order *order); /* or NULL */
uint64_t past_median_ns(const struct past *past);				       /* 0: none */

/* The orders of a result file whose last attempt failed (--retry-failed). */
int load_failed(struct orders *orders, const char *path, const struct pasts *history,
		struct err *err);

#endif
