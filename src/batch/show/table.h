/* The end of a batch with repeated runs, as hyperfine shows it: mean ± σ, min … max, and which
 * order ran how many times faster than the others. */
#ifndef BATCH_SHOW_TABLE_H
#define BATCH_SHOW_TABLE_H

#include "batch/export.h"

#define TABLE_BLOCKS_MAX 10 /* more orders get a line each */

/* Appends nothing when no order has two runs. */
void table_format(const struct export_source *source, struct buf *out);

#endif
