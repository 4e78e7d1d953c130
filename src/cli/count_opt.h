/* --count as an option value, for the commands that measure. */
#ifndef CLI_COUNT_OPT_H
#define CLI_COUNT_OPT_H

#include "base/err.h"

/* `field` is a struct measure_options. */
int count_opt_parse(const char *text, void *field, struct err *err);

#endif
