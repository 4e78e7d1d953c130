/* A batch on this host alone, with orders that name what they need of one. */
#ifndef BATCH_MANY_ALONE_H
#define BATCH_MANY_ALONE_H

#include "proto/orders.h"

/* -EINVAL, with the first order that can never run here; `features` may be NULL. */
int alone_check(const struct orders *orders, const char *features, struct err *err);

#endif
