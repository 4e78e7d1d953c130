/* The files of --results: one for each stream of each execution of an order. */
#ifndef BATCH_SHOW_OUTPUT_FILE_H
#define BATCH_SHOW_OUTPUT_FILE_H

#include "core/dispatch/batch.h"
#include "proto/orders.h"

/* Its path; the caller frees it. `repeated`: the order runs more than once. */
char *output_file(const struct order *order, const char *dir, const struct batch_trial *trial,
		  bool repeated, int stream);

/* Opens one, and makes its directories if the user named the path. */
int output_open(const char *path, const struct order *order, struct err *err);

/* Fills one with the bytes of a file; `fd` -1: there are none. */
int output_copy(const char *path, const struct order *order, int fd, struct err *err);

#endif
