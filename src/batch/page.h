/* The frame of the pages that reports write: one self-contained file with its style sheet and the
 * few lines of script that filter its cards. */
#ifndef BATCH_PAGE_H
#define BATCH_PAGE_H

#include "base/buf.h"

void page_open(struct buf *out, const char *title);
void page_search(struct buf *out, const char *what); /* the field that filters cards by text */
void page_close(struct buf *out);

#endif
