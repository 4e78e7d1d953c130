/* What hosts and the coordinator tell each other so that the ranks of all hosts see one set of
 * pairs. A host puts its pairs of a fence; once all hosts of the round have, each gets the union:
 * its beginning at once, and the rest as it asks for it, so that no host is sent more than it has
 * room for. Of a union beyond EXCHANGE_PUSH_MAX hosts take nothing in advance, but ask for keys. */
#ifndef CORE_PMI_WANT_H
#define CORE_PMI_WANT_H

#include "base/bytes.h"

#define EXCHANGE_PIECE_MAX 1900 /* with its names it fits into a frame */
#define EXCHANGE_AHEAD 16	/* pieces of a union for each request */
#define EXCHANGE_PUSH_MAX ((uint32_t)1 << 20)
#define EXCHANGE_PAIR_MAX 1800 /* key, value and their lengths */

enum want_kind {
	WANT_REST,  /* seq, at: more of that union */
	WANT_KEY,   /* the value of the pair's key */
	WANT_SET,   /* add the pair at once; found: it was added, there was none with its key */
	WANT_UNSET, /* take it away at once; found: it was there */
	WANT_KIND_COUNT,
};

struct want {
	enum want_kind kind;
	uint32_t serial; /* comes back with the value */
	uint32_t seq, at;
	struct bytes pair; /* a run of one (core/pmi/keyvals.h), borrowed; empty for REST */
};

#endif
