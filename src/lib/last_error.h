/* The message behind the negative errno that a public function returns, one per thread. */
#ifndef LIB_LAST_ERROR_H
#define LIB_LAST_ERROR_H

#include "base/err.h"

/* Keeps the message if `r` is negative; returns `r`. Without a message it takes the system's. */
int last_error(int r, const struct err *err);

#endif
