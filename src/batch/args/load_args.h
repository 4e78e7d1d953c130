/* Orders from the words of the command line. */
#ifndef BATCH_ARGS_LOAD_ARGS_H
#define BATCH_ARGS_LOAD_ARGS_H

#include "batch/config.h"
#include "core/batch/batch_words.h"
#include "proto/orders.h"

/* Adds the orders: from files, from standard input, from a command and its arguments. */
int load_orders(struct orders *orders, const struct batch_config *config, int argc,
		char *const *argv, struct err *err);

/* Commands around the runs with their parameters filled in; the caller frees it. */
char *load_hook(const struct order *order, const char *command);

#endif
