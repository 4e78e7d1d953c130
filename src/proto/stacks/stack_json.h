/* A set of stacks as JSON: between hosts, and for programs (muster-stacks(1) lists the members). */
#ifndef PROTO_STACKS_STACK_JSON_H
#define PROTO_STACKS_STACK_JSON_H

#include "base/err.h"
#include "core/stacks/stack_set.h"
#include "proto/json_out.h"

void stack_json_write(struct json_out *out, const struct stack_set *set);

/* Adds the stacks of a text to the set. Those without a host get `host`, if that is not NULL.
 * -EPROTO: not such a text; the set may have got a part of it. */
int stack_json_read(const char *text, size_t len, const char *host, struct stack_set *set,
		    struct err *err);

#endif
