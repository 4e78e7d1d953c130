/* Pairs of a key and a value: as one run of bytes, which is how they travel between hosts, and as a
 * map of bounded size. In a run each pair is two lengths of two bytes, little-endian, then key and
 * value. Pure. */
#ifndef CORE_PMI_KEYVALS_H
#define CORE_PMI_KEYVALS_H

#include "base/buf.h"
#include "base/bytes.h"
#include "base/map.h"
#include "core/pmi/want.h"

#define KEYVALS_SIZE_MAX ((size_t)32 << 20) /* bytes of keys and values in one map */

void keyval_put(struct buf *run, struct bytes key, struct bytes value);

/* Takes the next one off: 1, 0 (that was all) or -EPROTO. What it returns points into `rest`. */
int keyval_next(struct bytes *rest, struct bytes *ret_key, struct bytes *ret_value);

/* All 0 is an empty map. */
struct keyvals {
	struct map map; /* struct bytes behind each key */
	size_t size;
};

void keyvals_done(struct keyvals *keyvals); /* leaves an empty map */

/* The value is valid until the key is set again or unset. */
bool keyvals_get(const struct keyvals *keyvals, struct bytes key, struct bytes *ret_value);

/* Replaces an earlier value. False, and no change: there is no room. */
bool keyvals_set(struct keyvals *keyvals, struct bytes key, struct bytes value);
bool keyvals_unset(struct keyvals *keyvals, struct bytes key); /* false: it was not there */

/* Does what a host wants of the coordinator's pairs, but for REST. */
bool keyvals_want(struct keyvals *keyvals, const struct want *want, struct bytes *ret_value);

/* Sets all pairs of a run, up to the first that is damaged or finds no room. */
void keyvals_take(struct keyvals *keyvals, struct bytes run);

#endif
