/* Checks what --preflight and its relatives say. */
#ifndef RUN_CHECKS_PREFLIGHT_OPTIONS_H
#define RUN_CHECKS_PREFLIGHT_OPTIONS_H

#include "base/err.h"
#include "run/options.h"

/* ret_excluded: --exclude-hosts names this host, by its whole name or without the domain. */
int preflight_options_check(const struct preflight *preflight, bool *ret_excluded, struct err *err);

#endif
