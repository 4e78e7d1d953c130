/* Orders with two or more variants: "A=./old {}" "B=./new {}" ::: in1 in2. */
#ifndef BATCH_LOAD_AB_H
#define BATCH_LOAD_AB_H

#include "proto/orders.h"

/* Adds all orders of variant A, then those of variant B in the same sequence, then those of C, …;
 * *ret_count is the number of each. The variants of an order share an id: their arguments. Without
 * ":::" there is one order. Returns the number of variants. */
int load_ab(struct orders *orders, int argc, char *const *argv, size_t *ret_count, struct err *err);

#endif
