/* Orders with two variants: "A=./old {}" "B=./new {}" ::: in1 in2. */
#ifndef BATCH_LOAD_AB_H
#define BATCH_LOAD_AB_H

#include "proto/orders.h"

/* Adds all orders of variant A, then those of variant B in the same sequence; *ret_count is the
 * number of each. The two of a pair share an id: their arguments. Without ":::" there is one
 * pair. */
int load_ab(struct orders *orders, int argc, char *const *argv, size_t *ret_count, struct err *err);

#endif
