/* Reads a Python pickle that is only data (dicts, lists, tuples, text, numbers, None, True, False)
 * and gives it as JSON, so that readers of JSON can read it.
 *
 * Nothing is executed: an operation that would import or call anything is an error. Tuples become
 * arrays. Texts, numbers, and lists and dicts that were remembered when they had their members can
 * be referred to again: PyTorch does that with the frames of stacks. */
#ifndef PROTO_PICKLE_H
#define PROTO_PICKLE_H

#include "base/buf.h"
#include "base/err.h"

#define PICKLE_DEPTH_MAX 16
#define PICKLE_MEMO_MAX 65536
#define PICKLE_JSON_MAX ((size_t)64 << 20)
#define PICKLE_HELD_MAX (2 * PICKLE_JSON_MAX) /* of values and what it remembers of them */

/* Replaces what is in `ret_json`. Holds no more than PICKLE_HELD_MAX bytes (and as much again while
 * one value is copied), and copies no more than PICKLE_JSON_MAX and the pickle's own length,
 * however much a short one refers to. -EPROTO: it is not such a pickle. */
int pickle_to_json(const void *data, size_t len, struct buf *ret_json, struct err *err);

#endif
