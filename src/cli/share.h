/* Shares as option values: "1%" and "0.01" are the same. */
#ifndef CLI_SHARE_H
#define CLI_SHARE_H

#include "base/err.h"

int share_parse_len(const char *text, size_t len, double *ret_share, struct err *err);

/* For option tables: any share from 0 on; and one between 0 and 1, both excluded. */
int share_parse(const char *text, void *field, struct err *err);
int share_parse_part(const char *text, void *field, struct err *err);

#endif
