/* Pairs of a key and a value as one run of bytes: how they go to other hosts and come from there.
 * Each is two lengths of two bytes, little-endian, then key and value. Pure. */
#ifndef CORE_PMI_PAIR_H
#define CORE_PMI_PAIR_H

#include "base/buf.h"
#include "base/bytes.h"

void pair_put(struct buf *out, struct bytes key, struct bytes value);

/* Takes the next one off: 1, 0 (that was all) or -EPROTO. What it returns points into `rest`. */
int pair_next(struct bytes *rest, struct bytes *ret_key, struct bytes *ret_value);

#endif
