/* Values of options that several commands have. */
#ifndef CLI_VALUES_H
#define CLI_VALUES_H

#include "base/err.h"

/* A share: "1%" and "0.01" are the same. */
int share_parse_len(const char *text, size_t len, double *ret_share, struct err *err);

/* For option tables: any share from 0 on; and one between 0 and 1, both excluded. */
int share_parse(const char *text, void *field, struct err *err);
int share_parse_part(const char *text, void *field, struct err *err);

/* --count; `field` is a struct measure_options. */
int count_opt_parse(const char *text, void *field, struct err *err);

#endif
